/* The balance of a rank's messages on a communicator: sent less received. Over all ranks it is zero
 * when every message has its receive. Leaf module. */
#ifndef CARPOOL_BALANCE_H
#define CARPOOL_BALANCE_H

#include "planner/base/hash.h"

#include <stdint.h>

/* Numbers of messages, and two hashes of source, destination and tag, added up. */
struct cpl_balance {
    uint64_t n, hash, hash_again;
};

/* Adds a message that was sent (sign 1), or takes one whose receive was posted or is over (-1). */
static inline void cpl_balance_count(struct cpl_balance *balance, int sign, int source, int dest,
                                     int tag)
{
    uint64_t ends = cpl_hash_mix((uint64_t)(uint32_t)source << 32 | (uint32_t)dest);
    uint64_t hash = cpl_hash_mix(ends + (uint64_t)tag);
    balance->n += (uint64_t)sign;
    balance->hash += (uint64_t)sign * hash;
    balance->hash_again += (uint64_t)sign * cpl_hash_mix(hash);
}

#endif
