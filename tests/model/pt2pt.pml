/* A model of managed point-to-point messages (doc/point-to-point.md), checked by check_model.sh.
 *
 * Three ranks (0 and 2 send each other's messages over 1) or four (0 and 1 forward for each other,
 * 2 and 3 only receive; with FAN all of 0's messages go over 1) run two instances of an exchange that all have learned, with deviations
 * that spin chooses; then they drain. What is checked: no rank waits for ever (invalid end states);
 * every message is matched exactly once and, of one source and tag, in sending order (assertions).
 * Each wait is a state that blocks until something comes, so the model has no cycles, and
 * all that it does ends, unless the drain has rounds (DRAIN_SEGMENTS: their end is not checked).
 *
 * The model                        mirrors
 *   wire, ride()                   combined.c: rides on the private communicator, in order per pair only
 *   take(), POLL                   line.c and combined.c: polling; only a rank in WAIT or a test polls
 *   deliver(), stash, next_in      match.c: segments in order of their numbers, per source
 *   match(), post(), fits          match.c: posted receives and the unexpected queue
 *   hold(), expire, held, left     combined.c, relay.h: an out-edge of the slice; the hold time ends at any moment
 *   leave_batch()                  pt2pt.c: leave, or the last send of a planned signature
 *   leave_abandoned()              pt2pt_manage.c: cpl_pt2pt_follows, cpl_pt2pt_abandon
 *   gather_ranks(), reduction()    collective.c: gather_ranks; a reduction, which does not poll
 *   embedded_reduction(), slot     embed.c: a reduction that carries messages; of which step the vector has come
 *   cargo, put_aboard, expire      embed.c: segments of others' and the batch; the hold time ends at any moment (reduction.pml)
 *   drain()                        line.c: cpl_line_drain, before a communicator is freed and at the end of the process
 *
 * A rank that computes is a process that is not scheduled: it does not poll, for as long as spin likes.
 *
 * Configuration (-D): RANKS=3|4. DEVIATIONS=n, how often ranks leave the pattern altogether. Receives: ANY (all are
 * MPI_ANY_SOURCE), TAGS (a tag per instance, all posted at the beginning, those of the later
 * instance first, source 0 by name and the others by MPI_ANY_SOURCE), else by source. ORDER: receives are posted before or after
 * the sends, as spin likes; else before, or with LATE after. REDUCE: a reduction after every instance; OUTSIDER: also by a
 * rank that is not in the managed communicator. EMBED: a reduction after every instance, in which planned batches ride unless
 * their rank waits for its receives first; of its messages the vector is the last part, and comes as a ride of its own. OPEN: the last receives are waited for
 * only after the drain (Irecv, Comm_free, Wait). SYNC: rank 0 sends with MPI_Ssend. ONCE: one
 * instance. The drain: by numbers, or with DRAIN_SEGMENTS in rounds.
 * Faults (BUG_...) are explained where they are. */

#ifndef RANKS
#define RANKS 3
#endif
#ifndef DEVIATIONS
#define DEVIATIONS 1
#endif
#ifdef ONCE
#define INSTANCES 1
#else
#define INSTANCES 2
#endif

#ifdef BUG_DRAIN_RIDES_HELD
#define BUG_DRAIN_RIDES
#endif

#define MOST 3               /* messages of a rank in an instance */
#define NOBODY 7             /* the end of a list of destinations */
#define ANY_SOURCE 7
#define NUMBERS (2 * INSTANCES)  /* messages of a pair: no deviation sends more */
#define INCOMING 8           /* open receives, or unexpected messages, of a rank */

/* A segment: its envelope is its payload. 0 is none. */
#define NONE 0
#define SEGMENT(src, dst, tag, number) (4096 + (src) + ((dst) << 2) + ((tag) << 4) + ((number) << 5))
#define SRC(s) ((s) & 3)
#define DST(s) (((s) >> 2) & 3)
#define TAG(s) (((s) >> 4) & 1)
#define NUMBER(s) (((s) >> 5) & 3)
#define PLANNED 128
#define INSTANCE(s) (((s) >> 8) & 1)
#define SYNCHRONOUS 512
#define ACK 1024

/* The pattern and the plan. An out-edge carries two segments: its owner's and the other one's. */
#if RANKS == 3
#define PATTERN(r, k) (k == 0 -> (r + 1) % 3 : (r + 2) % 3)
#define SENDS(r) true
#define FIRST_HOP(r, dst) 1
#define EDGE(r, dst) (dst >> 1)      /* 1 to 0 and 1 to 2 */
#define EDGE_DST(r, edge) (edge << 1)
#define IS_EDGE(r, dst) (r == 1)
#define N_EDGES 2
#define STRAY(r) ((r + 1) % 3)
#else
#define PATTERN(r, k) (k == 0 -> 2 + r : 3 - r)
#define SENDS(r) (r < 2)
#ifdef FAN
#define FIRST_HOP(r, dst) 1
#define EDGE(r, dst) (dst - 2)       /* 1 to 2 and 1 to 3 */
#define EDGE_DST(r, edge) (edge + 2)
#define IS_EDGE(r, dst) (r == 1)
#define N_EDGES 2
#else
#define FIRST_HOP(r, dst) (dst - 2)  /* 0 to 2 and 1 to 3 */
#define EDGE(r, dst) 0
#define EDGE_DST(r, edge) (r + 2)
#define IS_EDGE(r, dst) (dst == r + 2)
#define N_EDGES 1
#endif
#define STRAY(r) (1 - r)
#endif

#if defined(ANY)
#define RECEIVE_FROM(peer) ANY_SOURCE
#elif defined(TAGS)
#define RECEIVE_FROM(peer) (peer == 0 -> 0 : ANY_SOURCE)
#else
#define RECEIVE_FROM(peer) peer
#endif

#ifdef TAGS
#define TAG_OF(instance) instance
#else
#define TAG_OF(instance) 0
#endif

#define TO(rank, k) to[((rank) * INSTANCES + instance) * MOST + (k)]

#ifdef EMBED
#define WIRE 8
#else
#define WIRE 6
#endif
chan wire[RANKS * RANKS] = [WIRE] of {short, short};
byte to[RANKS * INSTANCES * MOST]; /* who is sent to, by rank and instance */
bit splits[RANKS * INSTANCES];
bit planned[RANKS * INSTANCES];    /* the batch has the planned signature */
byte n_sent;                       /* messages of all ranks, for the last assertion */
byte n_matched;
byte n_done;
#ifdef REDUCE
byte n_gathered[INSTANCES];        /* ranks that have come to the barrier before a reduction */
byte n_reducing[INSTANCES];
#ifdef OUTSIDER
#define REDUCING (RANKS + 1)
#else
#define REDUCING RANKS
#endif
#endif
#if defined(DRAIN_SEGMENTS) || defined(BUG_DRAIN_RIDES)
#define ROUNDS 3                   /* of these the last, the current and the next */
byte n_in_round[ROUNDS];
short round_sum[ROUNDS];
#else
byte promised[RANKS * RANKS];      /* messages of a pair */
byte n_draining;
byte n_drained;
#endif

inline ride(dst, first, second)
{
    assert(nfull(wire[me * RANKS + (dst)]));
    wire[me * RANKS + (dst)]!first, second;
    count_ride(1)
}

inline count_ride(change)
{
#ifdef BUG_DRAIN_RIDES
    balance = balance + (change)
#else
    skip
#endif
}

inline count_held(change)
{
#ifdef BUG_DRAIN_RIDES_HELD
    balance = balance + (change)
#else
    skip
#endif
}

inline count_segment(change)
{
#ifdef DRAIN_SEGMENTS
    balance = balance + (change)
#else
    skip
#endif
}

/* match.c. A message has found its receive. MPI tells the sender of a synchronous one; here as a
 * message does, which it finds when it polls. */
inline complete(s)
{
    assert(NUMBER(s) >= next_match[SRC(s) * 2 + TAG(s)]);
    next_match[SRC(s) * 2 + TAG(s)] = NUMBER(s) + 1;
    n_matched++;
    if
    :: s & SYNCHRONOUS -> ride(SRC(s), SEGMENT(me, SRC(s), 0, 0) + ACK, NONE)
    :: else
    fi
}

#define FITS(src, tag, s) ((src == ANY_SOURCE || src == SRC(s)) && tag == TAG(s))

inline match(s)
{
    i = 0;
    do
    :: i < n_open && !FITS(open_src[i], open_tag[i], s) -> i++
    :: else -> break
    od;
    if
    :: i < n_open ->
        complete(s);
        n_open--;
        do
        :: i < n_open -> open_src[i] = open_src[i + 1]; open_tag[i] = open_tag[i + 1]; i++
        :: else -> break
        od;
        open_src[n_open] = 0; open_tag[n_open] = 0
    :: else ->
        assert(n_unexpected < INCOMING);
        unexpected[n_unexpected] = s;
        n_unexpected++
    fi;
    i = 0
}

inline post(src, tag)
{
    i = 0;
    do
    :: i < n_unexpected && !FITS(src, tag, unexpected[i]) -> i++
    :: else -> break
    od;
    if
    :: i < n_unexpected ->
        complete(unexpected[i]);
        n_unexpected--;
        do
        :: i < n_unexpected -> unexpected[i] = unexpected[i + 1]; i++
        :: else -> break
        od;
        unexpected[n_unexpected] = NONE
    :: else ->
        assert(n_open < INCOMING);
        open_src[n_open] = src;
        open_tag[n_open] = tag;
        n_open++
    fi;
    i = 0
}

inline deliver(s)
{
    count_segment(-1);
#ifdef BUG_NO_NUMBERS /* segments are matched as they come */
    next_in[SRC(s)]++;
    match(s)
#else
    from = SRC(s);
    assert(NUMBER(s) >= next_in[from] && stash[from * NUMBERS + NUMBER(s)] == NONE);
    stash[from * NUMBERS + NUMBER(s)] = s;
    do
    :: next_in[from] < NUMBERS && stash[from * NUMBERS + next_in[from]] != NONE ->
        next = stash[from * NUMBERS + next_in[from]];
        stash[from * NUMBERS + next_in[from]] = NONE;
        next_in[from]++;
        match(next)
    :: else -> break
    od;
    from = 0; next = NONE
#endif
}

/* combined.c. An out-edge of this rank's slice gets a segment. */
inline hold(s)
{
    e = EDGE(me, DST(s)) * INSTANCES + INSTANCE(s);
    if
    :: left[e] -> ride(DST(s), s, NONE)
    :: !left[e] && held[e] == NONE -> held[e] = s; count_held(1)
    :: else ->
        count_held(-1);
        ride(DST(s), held[e], s);
        left[e] = 1;
        held[e] = NONE
    fi;
    e = 0
}

inline expire(n)
{
    d_step {
        left[n] = 1;
        count_held(-1);
        ride(EDGE_DST(me, n / INSTANCES), held[n], NONE);
        held[n] = NONE
    }
}

/* When the hold time may end. */
#ifdef BUG_WAITS_FOR_OWN /* an out-edge does not leave without the intermediate's own segment */
#define MAY_EXPIRE(n) (held[n] != NONE && SRC(held[n]) == me)
#else
#define MAY_EXPIRE(n) (held[n] != NONE)
#endif

#if RANKS == 3
#define ARRIVES \
    :: atomic { wire[me]?one, other -> arrived() } \
    :: atomic { wire[RANKS + me]?one, other -> arrived() } \
    :: atomic { wire[2 * RANKS + me]?one, other -> arrived() }
#elif defined(EMBED) /* 2 and 3 send, too */
#define ARRIVES \
    :: atomic { wire[me]?one, other -> arrived() } \
    :: atomic { wire[RANKS + me]?one, other -> arrived() } \
    :: atomic { wire[2 * RANKS + me]?one, other -> arrived() } \
    :: atomic { wire[3 * RANKS + me]?one, other -> arrived() }
#else
#define ARRIVES \
    :: atomic { wire[me]?one, other -> arrived() } \
    :: atomic { wire[RANKS + me]?one, other -> arrived() }
#endif
#if N_EDGES * INSTANCES == 4
#define EXPIRES \
    :: atomic { MAY_EXPIRE(0) -> expire(0) } \
    :: atomic { MAY_EXPIRE(1) -> expire(1) } \
    :: atomic { MAY_EXPIRE(2) -> expire(2) } \
    :: atomic { MAY_EXPIRE(3) -> expire(3) }
#elif N_EDGES * INSTANCES == 2
#define EXPIRES \
    :: atomic { MAY_EXPIRE(0) -> expire(0) } \
    :: atomic { MAY_EXPIRE(1) -> expire(1) }
#else
#define EXPIRES \
    :: atomic { MAY_EXPIRE(0) -> expire(0) }
#endif

/* A call that waits: it polls, in any order, until what it waits for is there; then it may return at
 * once, or poll on. */
#define WAIT(condition) \
    do \
    ARRIVES \
    EXPIRES \
    EXPIRES_CARGO \
    :: (condition) -> break \
    od

#ifdef EMBED
#define MOST_CARGO 4
#define NUMBER_HERE instance
#include "reduction.pml"
#else
#define TAKES_CARGO
#define EXPIRES_CARGO
#define IS_CARGO(s) false
#endif

inline take(s)
{
    if
    TAKES_CARGO
    :: s == NONE
    :: s != NONE && !IS_CARGO(s) && DST(s) == me && (s & ACK) -> n_acks--
    :: s != NONE && !IS_CARGO(s) && DST(s) == me && !(s & ACK) -> deliver(s)
    :: s != NONE && !IS_CARGO(s) && DST(s) != me -> hold(s)
    fi
}

inline arrived()
{
    d_step {
        count_ride(-1);
        take(one);
        take(other);
        one = NONE; other = NONE
    }
}

/* pt2pt.c. The segment of the program's next message to dst. */
inline make(s, dst)
{
    s = SEGMENT(me, dst, TAG_OF(instance), send_no[dst]);
#ifdef SYNC
    if
    :: me == 0 -> s = s + SYNCHRONOUS; n_acks++
    :: else
    fi;
#endif
    assert(send_no[dst] < NUMBERS);
    send_no[dst]++;
    n_sent++;
    count_segment(1)
}

/* Segments of a batch without a plan, the kth and following: each goes straight. */
inline leave_straight(k, end)
{
    i = k;
    do
    :: i < end && TO(me, i) != NOBODY ->
        make(one, TO(me, i));
        ride(TO(me, i), one, NONE);
        i++
    :: else -> break
    od;
    one = NONE; i = 0
}

inline leave_planned()
{
    make(one, TO(me, 0));
    make(other, TO(me, 1));
    one = one + PLANNED + (n_planned << 8);
    other = other + PLANNED + (n_planned << 8);
    n_planned++;
    if
    :: IS_EDGE(me, DST(one)) -> hold(one)
    :: !IS_EDGE(me, DST(one)) && IS_EDGE(me, DST(other)) ->
        ride(FIRST_HOP(me, DST(one)), one, NONE)
    :: else -> ride(FIRST_HOP(me, DST(one)), one, other)
    fi;
    if
    :: IS_EDGE(me, DST(other)) -> hold(other)
    :: !IS_EDGE(me, DST(other)) && IS_EDGE(me, DST(one)) ->
        ride(FIRST_HOP(me, DST(other)), other, NONE)
    :: else
    fi;
    one = NONE; other = NONE
}

/* The first message of a batch that began as a planned one and then turned out not to be: it is in a
 * ride of the plan already. The next planned batch has the same instance. */
inline leave_abandoned()
{
    make(one, TO(me, 0));
    one = one + PLANNED + (n_planned << 8);
    if
    :: IS_EDGE(me, DST(one)) -> hold(one)
    :: else -> ride(FIRST_HOP(me, DST(one)), one, NONE)
    fi;
    one = NONE
}

inline leave_batch()
{
    if
    :: planned[me * INSTANCES + instance] -> d_step { leave_planned() }
    :: !planned[me * INSTANCES + instance] && TO(me, 0) != NOBODY ->
        d_step { leave_abandoned() };
        d_step { leave_straight(1, MOST) }
    :: !planned[me * INSTANCES + instance] && splits[me * INSTANCES + instance] ->
        d_step { leave_straight(0, 1) };
        d_step { leave_straight(1, MOST) }
    :: !planned[me * INSTANCES + instance] && !splits[me * INSTANCES + instance] ->
        d_step { leave_straight(0, MOST) }
    fi
}

/* The receives of one instance: as many as are sent, source by source. */
inline post_receives(instance)
{
    peer = 0;
    do
    :: peer < RANKS ->
        k = 0;
        do
        :: k < MOST && TO(peer, k) == me ->
            post(RECEIVE_FROM(peer), TAG_OF(instance));
            k++
        :: k < MOST && TO(peer, k) != me -> k++
        :: else -> break
        od;
        peer++
    :: else -> break
    od;
    peer = 0; k = 0
}

inline post_here()
{
#ifndef TAGS
    d_step { post_receives(instance) }
#else
    skip
#endif
}

#ifdef EMBED
/* The batch waits for the reduction, or the rank waits for its messages first, and the batch leaves
 * before. */
inline exchange_and_reduce()
{
    post_here();
    if
    :: planned[me * INSTANCES + instance] ->
        d_step {
            make(one, TO(me, 0));
            make(other, TO(me, 1));
            one = one + CARGO;
            other = other + CARGO;
            put_aboard(one);
            put_aboard(other);
            one = NONE; other = NONE
        };
        embedded_reduction();
        WAIT(n_open == 0)
    :: else ->
        leave_batch();
        if
        :: WAIT(n_open == 0)
        :: true
        fi;
        embedded_reduction();
        WAIT(n_open == 0)
    :: true ->
        leave_batch();
        WAIT(n_open == 0);
        embedded_reduction()
    fi
}
#endif

inline exchange()
{
#if defined(ORDER)
    if
    :: post_here(); leave_batch()
    :: leave_batch();
        WAIT(true); /* tests */
        post_here()
    fi;
#elif defined(LATE)
    leave_batch();
    post_here();
#else
    post_here();
    leave_batch();
#endif
#ifdef TAGS
    if
    :: instance == INSTANCES - 1 -> WAIT(n_open == 0 && n_acks == 0)
    :: else -> WAIT(n_acks == 0)
    fi
#elif defined(OPEN)
    if
    :: instance < INSTANCES - 1 -> WAIT(n_open == 0 && n_acks == 0)
    :: else
    fi
#else
    WAIT(n_open == 0 && n_acks == 0)
#endif
}

#ifdef REDUCE
inline reduction()
{
#ifndef BUG_REDUCTION_UNPOLLED /* a reduction is entered while others are not there yet */
    n_gathered[instance]++;
    WAIT(n_gathered[instance] == REDUCING);
#endif
    n_reducing[instance]++;
    n_reducing[instance] == REDUCING
}
#endif

/* One of the ranks that call the reduction, but not of the managed communicator. */
#ifdef OUTSIDER
proctype outsider()
{
    byte instance;
    do
    :: instance < INSTANCES ->
#ifndef BUG_OUTSIDER /* each rank looks only at whether it has a managed communicator itself */
        n_gathered[instance]++;
        n_gathered[instance] == REDUCING;
#endif
        n_reducing[instance]++;
        n_reducing[instance] == REDUCING;
        instance++
    :: else -> break
    od
}
#endif

#if defined(DRAIN_SEGMENTS) || defined(BUG_DRAIN_RIDES)
/* Rounds of a polled MPI_Iallreduce, until the sum is 0. What each rank puts in: the segments that
 * it has sent as their source less those delivered to it as their destination. With
 * BUG_DRAIN_RIDES: the rides that it has sent less those that it has received; segments that are
 * held are in neither. With BUG_DRAIN_RIDES_HELD these count as not received, and the sum is still
 * wrong: ranks put in their parts at different times, so that a ride which was received, but not yet
 * counted as sent, hides one that was sent and has not come. */
inline drain()
{
    do
    :: d_step {
           n_in_round[(round + 1) % ROUNDS] = (n_in_round[round] == 0 -> 0 : n_in_round[(round + 1) % ROUNDS]);
           round_sum[(round + 1) % ROUNDS] = (n_in_round[round] == 0 -> 0 : round_sum[(round + 1) % ROUNDS]);
           n_in_round[round]++;
           round_sum[round] = round_sum[round] + balance
       };
       WAIT(n_in_round[round] == RANKS);
       if
       :: round_sum[round] == 0 -> break
       :: else -> round = (round + 1) % ROUNDS
       fi
    od;
    round = 0
}
#else
#if RANKS == 3
#define CAME(p) (next_in[p] == promised[(p) * RANKS + me])
#define ALL_CAME (CAME(0) && CAME(1) && CAME(2))
#else
#define CAME(p) (next_in[p] == promised[(p) * RANKS + me])
#define ALL_CAME (CAME(0) && CAME(1) && CAME(2) && CAME(3))
#endif

/* A polled MPI_Ialltoall of how many messages of each pair there were; polling until they have come;
 * a polled MPI_Ibarrier, since others may still need this rank. */
inline drain()
{
    d_step {
        peer = 0;
        do
        :: peer < RANKS -> promised[me * RANKS + peer] = send_no[peer]; peer++
        :: else -> break
        od;
        peer = 0;
        n_draining++
    };
    WAIT(n_draining == RANKS);
    WAIT(ALL_CAME && n_acks == 0);
#ifndef BUG_DRAIN_OWN /* a rank is done when it has its own messages */
    n_drained++;
    WAIT(n_drained == RANKS);
#endif
}
#endif

proctype rank(byte me)
{
    byte instance;
    byte send_no[RANKS];          /* messages sent to each rank */
    byte next_in[RANKS];          /* the number of the next message of each source */
    byte next_match[RANKS * 2];   /* the least number that may be matched, by source and tag */
    short stash[RANKS * NUMBERS]; /* by source and number */
    byte open_src[INCOMING + 1];  /* posted receives in order */
    bit open_tag[INCOMING + 1];
    byte n_open;
    short unexpected[INCOMING + 1];
    byte n_unexpected;
    byte n_acks;                  /* synchronous sends that are not complete */
    byte n_planned;               /* how often the planned signature was sent */
    short held[N_EDGES * INSTANCES];
    bit left[N_EDGES * INSTANCES];
#if defined(DRAIN_SEGMENTS) || defined(BUG_DRAIN_RIDES)
    short balance;
    byte round;
#endif
    short one, other, next;
    byte i, k, e, from, peer;
#ifdef EMBED
    short cargo[MOST_CARGO];
    byte n_cargo;
    byte slot[8];                 /* the ranks of the vector that has come, by reduction and step */
    byte reduced;
#endif

#ifdef TAGS
    d_step {
        instance = INSTANCES;
        do
        :: instance > 0 -> instance--; post_receives(instance)
        :: else -> break
        od
    };
#endif
    do
    :: instance < INSTANCES ->
#ifdef EMBED
        exchange_and_reduce();
#else
        exchange();
#endif
#ifdef REDUCE
        reduction();
#endif
        instance++
    :: else -> break
    od;
    instance = 0;
    drain();
    /* Nobody polls any more. */
    assert(n_open == 0 && n_acks == 0);
    n_done++
}

/* What the ranks will do; then they begin. */
init
{
    byte r, instance, n_deviations;
    atomic {
        do
        :: r < RANKS ->
            do
            :: instance < INSTANCES && SENDS(r) ->
                TO(r, 0) = PATTERN(r, 0);
                TO(r, 1) = PATTERN(r, 1);
                TO(r, 2) = NOBODY;
                planned[r * INSTANCES + instance] = 1;
                if
                :: true
                :: n_deviations < DEVIATIONS ->
                    n_deviations++;
                    planned[r * INSTANCES + instance] = 0;
                    if
                    :: TO(r, 0) = NOBODY; TO(r, 1) = NOBODY /* sends nothing */
                    :: TO(r, 2) = TO(r, 1); TO(r, 1) = TO(r, 0) /* sends the first message twice */
                    :: TO(r, 1) = NOBODY /* sends only the first */
                    :: splits[r * INSTANCES + instance] = 1 /* has a leave point between the two */
                    :: TO(r, 1) = STRAY(r) /* sends the second to another rank */
                    fi
                :: else
                fi;
                instance++
            :: instance < INSTANCES && !SENDS(r) ->
                TO(r, 0) = NOBODY;
                TO(r, 1) = NOBODY;
                TO(r, 2) = NOBODY;
                instance++
            :: else -> break
            od;
            instance = 0;
            r++
        :: else -> break
        od;
        r = 0;
        do
        :: r < RANKS -> run rank(r); r++
        :: else -> break
        od;
        r = 0; n_deviations = 0;
#ifdef OUTSIDER
        run outsider()
#endif
    }
    n_done == RANKS;
    assert(n_matched == n_sent)
}
