/* A model of a lane (shim/carry/lane.h), checked by check_model.sh: one writer, one reader, two slots,
 * and counters that wrap around. A write of shared memory is seen by the other end when it is made, in
 * the order of the writer: releases and acquires give no less.
 *
 * What is checked: the reader takes every message once, whole and in order, the writer never writes
 * where the reader may still read, and both come to the end, whoever is slow.
 *
 * The model                  mirrors
 *   number[], payload[]      the slots: the number that is written last, the message in two halves
 *   taken                    the lane's first line
 *   n, n_taken; m            the ends: cpl_lane.n and .n_taken of the writer, .n of the reader
 *   MODULUS                  2^32: counters wrap around
 *   read while it is kept    the executor, which gives slots back at the end of an exchange
 *
 * Faults: BUG_NUMBER_FIRST, the number is written before the payload; BUG_TAKEN_FIRST, a slot is given
 * back before it is read; BUG_FULL, the writer finds its lane full one message too late; BUG_NO_RETRY, a
 * writer that found its lane full does not look again; BUG_ODD, counters that wrap around where a slot is
 * used twice. */

#define SLOTS 2
#ifdef BUG_ODD
#define MODULUS 7
#else
#define MODULUS 8
#endif
#ifndef MESSAGES
#define MESSAGES 20
#endif
#ifdef BUG_FULL
#define FULL (SLOTS + 1)
#else
#define FULL SLOTS
#endif

#define IN_FLIGHT ((n + MODULUS - n_taken) % MODULUS)

byte number[SLOTS];   /* 0 at first, as in new memory */
byte half[2 * SLOTS]; /* of the message in each slot: which message it is of */
byte taken;
bool reads[SLOTS]; /* the reader may look at the slot's message */
byte n_came;

proctype writer()
{
    byte n, n_taken, k;
    do
    :: k == MESSAGES -> break
    :: else ->
       do /* cpl_lane_next; the caller comes again */
       :: IN_FLIGHT != FULL -> break
       :: else ->
#ifndef BUG_NO_RETRY
          taken != n_taken;
#endif
          n_taken = taken;
#ifdef BUG_NO_RETRY
          IN_FLIGHT != FULL
#endif
       od;
#ifdef BUG_NUMBER_FIRST
       number[n % SLOTS] = (n + 1) % MODULUS;
#endif
       assert(!reads[n % SLOTS]);
       half[2 * (n % SLOTS)] = k + 1;
       half[2 * (n % SLOTS) + 1] = k + 1;
#ifndef BUG_NUMBER_FIRST
       number[n % SLOTS] = (n + 1) % MODULUS;
#endif
       n = (n + 1) % MODULUS;
       k++
    od
}

/* Looks at message k, and leaves its slot as it is. */
inline look(k, m)
{
    number[m % SLOTS] == (m + 1) % MODULUS;
    reads[m % SLOTS] = 1;
    assert(half[2 * (m % SLOTS)] == k + 1);
    assert(half[2 * (m % SLOTS) + 1] == k + 1)
}

proctype reader()
{
    byte m, k;
    do
    :: k == MESSAGES -> break
    :: else ->
#ifdef BUG_TAKEN_FIRST
       number[m % SLOTS] == (m + 1) % MODULUS;
       taken = (m + 1) % MODULUS;
       look(k, m);
       reads[m % SLOTS] = 0;
#else
       look(k, m);
       if /* once more, later: a message is the reader's until it is taken */
       :: look(k, m)
       :: true
       fi;
       reads[m % SLOTS] = 0;
       taken = (m + 1) % MODULUS;
#endif
       m = (m + 1) % MODULUS;
       k++;
       n_came++
    od
}

init
{
    atomic {
        run writer();
        run reader()
    }
    n_came == MESSAGES
}
