/* Joining values by keys: every rank has records, and gets for each of its keys what the values of
 * all ranks' records with that key come to. No rank gets all records of a key that many have: they
 * travel to the key's owner (a rank that follows from the key) by log2(ranks) steps of doubling
 * distance, to one rank and from one rank in each, and are joined on the way; the answers go back
 * the same way, each step being a round of a sparse exchange. Any number of ranks. Nothing is as
 * long as there are ranks. */
#ifndef CARPOOL_KEYED_H
#define CARPOOL_KEYED_H

#include "shim/meet/sparse_exchange.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_keyed {
    int64_t n; /* records of this rank; keys may come several times */
    const uint64_t *key;
    int words;       /* of a value; alike on all ranks, like join */
    uint64_t *value; /* n * words; in: this rank's; out: what they come to */
    /* Associative and commutative; no value is joined twice. */
    void (*join)(uint64_t *into, const uint64_t *value);
    size_t most_bytes; /* that the records of others may take here */
};

/* The sparse exchange is open. Collective. False on this rank: it had no memory, too many came, or
 * MPI failed, here or on a rank that it hears from; the values are of no use then. The others'
 * calls still end; it must be told to them afterwards. */
bool cpl_keyed_join(struct cpl_sparse *sparse, const struct cpl_keyed *keyed);

#endif
