/* A 64-bit hash over integers that gives the same value on every machine and compiler: FNV-1a over
 * 64-bit words with a final mix (Fowler, Noll, Vo; the finalizer is that of splitmix64). For
 * fingerprints, not for security. And random numbers, the same everywhere. */
#ifndef CARPOOL_HASH_H
#define CARPOOL_HASH_H

#include <stdint.h>

#define CPL_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t cpl_hash_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The next of a stream of random numbers, splitmix64 (Steele, Lea, Flood); *random is its state,
 * any value to start. */
static inline uint64_t cpl_random_next(uint64_t *random)
{
    *random += UINT64_C(0x9e3779b97f4a7c15);
    return cpl_hash_mix(*random);
}

/* The hash that continues hash by one word. */
static inline uint64_t cpl_hash_word(uint64_t hash, uint64_t word)
{
    return (hash ^ cpl_hash_mix(word)) * UINT64_C(0x100000001b3);
}

#endif
