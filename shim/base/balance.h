/* The balance of a rank's messages on a communicator: sent less received. Over all ranks it is zero
 * when every message has its receive. Leaf module. */
#ifndef CARPOOL_BALANCE_H
#define CARPOOL_BALANCE_H

#include <stdint.h>

/* Numbers of messages, and two hashes of source, destination and tag, added up. */
struct cpl_balance {
    uint64_t n, hash, hash_again;
};

/* Adds a message that was sent (sign 1), or takes one whose receive was posted or is over (-1). */
static inline void cpl_balance_count(struct cpl_balance *balance, int sign, int source, int dest,
                                     int tag)
{
    /* done for each message while a communicator rests: little code; squares, since sums of what is
     * linear in the ends would be the same when two messages exchanged theirs */
    uint64_t ends = (uint64_t)(uint32_t)source << 32 | (uint32_t)dest;
    uint64_t key =
        ends * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)tag * UINT64_C(0xd1342543de82ef95);
    __extension__ typedef unsigned __int128 wide;
    wide square = (wide)key * key;
    uint64_t hash = (uint64_t)square, again = (uint64_t)(square >> 64);
    balance->n += (uint64_t)sign;
    balance->hash += sign > 0 ? hash : -hash;
    balance->hash_again += sign > 0 ? again : -again;
}

#endif
