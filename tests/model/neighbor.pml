/* A model of nonblocking neighborhood collectives that ride in reductions (neighbor_embed.h), checked
 * by check_model.sh.
 *
 * Three ranks (0 folds) or four (all messages are forwarded) start CALLS calls and as many blocking
 * collectives. What each rank does is spin's choice: whether a call comes before the collective or
 * after it, whether the rank waits for it before the collective, only tests, waits behind it, or
 * has several calls open until the end, and in which order it then waits for them; but no program
 * that would wait for ever with MPI alone. At every collective the ranks vote on whether calls ride
 * from now on, or no longer. What is checked: no rank waits for ever (invalid end states); every
 * segment arrives exactly once, and what a call receives was sent by the same call (assertions).
 *
 * The model                        mirrors
 *   start_call()                   neighbor_serve.c: cpl_neighbor_start; neighbor_embed.c: ..._start, ..._started
 *   leave(), board()               neighbor_embed.c: cpl_neighbor_embed_leave, cpl_neighbor_embed_board
 *   deliver(), stash, n_arrived    match.c: segments in order of their numbers; receives in the order of calls
 *   finish()                       way_reduction.c: progress, in a call that waits
 *   vote(), meet()                 neighbor_embed_agree.c: ..._ballot, ..._settle, vote, review; meeting.c
 *   collective()                   pt2pt.c: cpl_pt2pt_allreduce; meeting.c; collective.c: gather_ranks
 *   drain()                        line.c: cpl_line_drain; then neighbor_embed_agree.c: close_host
 *   mpi_call, mpi_started          a call that is MPI's: MPI matches such calls in their order
 *   reduction.pml                  embed.c
 *
 * Configuration (-D): RANKS=3|4. CALLS=n. RIDES: calls ride from the beginning; else the ranks have to
 * vote for it. LATE=n: the call of this number may come after its collective, and then nobody waits for it
 * before. EXCHANGES=2: so many calls on each of two communicators, in any order; with CALLS=1.
 * KINDS=n: the collective of this number may be another one than a small reduction. Faults (BUG_...) are explained where they are. */

#ifndef RANKS
#define RANKS 3
#endif
#ifndef CALLS
#define CALLS 2
#endif
#ifndef EXCHANGES
#define EXCHANGES 1
#endif

#if RANKS == 3
#define IS_EDGE(src, dst) ((dst) == ((src) + 1) % 3)
#else
#define IS_EDGE(src, dst) ((src) < 2 && (src) + (dst) == 3)
#endif

/* A segment: its envelope and the call, which is its payload. 0 is none. */
#define NONE 0
#define SEGMENT(src, dst, exchange, number, call) \
    (4096 + (src) + ((dst) << 2) + ((exchange) << 4) + ((number) << 5) + ((call) << 8))
#define SRC(s) ((s) & 3)
#define DST(s) (((s) >> 2) & 3)
#define EXCHANGE(s) (((s) >> 4) & 1)
#define NUMBER(s) (((s) >> 5) & 3)
#define CALL(s) (((s) >> 8) & 3)

#define NUMBERS (CALLS * EXCHANGES) /* segments of a pair: at most 4 */
#define OF(exchange, call) ((exchange) * CALLS + (call))
#ifdef BUG_NO_TAGS /* segments of all exchanges are received in the order in which they were sent */
#define TAG(exchange) 0
#else
#define TAG(exchange) exchange
#endif
#define MOST_CARGO 8
#define WIRE 8
#define DRAINS 3                    /* at most so many: when calls no longer ride, at the end */
#define MANY 15

mtype = {SMALL, OTHER};

chan wire[RANKS * RANKS] = [WIRE] of {short};
mtype kind[CALLS];                 /* of the collectives */
bit late_starts[CALLS];            /* the call may come after its collective */
byte mpi_started[RANKS * EXCHANGES];
byte mpi_call[RANKS * EXCHANGES * CALLS]; /* of each, in their order: which one it was, plus 1 */
byte n_entered[CALLS];
byte n_voted[CALLS];
bit outcome[CALLS];
byte low = MANY;                   /* of the vote that is going on: calls started, */
byte high;
byte n_yes;                        /* and ranks for it */
byte n_draining[DRAINS];
byte n_rides;                      /* that were sent and have not come */
byte n_travelling;                 /* segments that were sent and not delivered */
byte n_done;

inline ride(dst, first, second)
{
    assert(nfull(wire[me * RANKS + (dst)]));
    wire[me * RANKS + (dst)]!first;
    n_rides++
}

/* The next message of an exchange from a source: for the next of the calls that receive it. */
inline match(s)
{
    e = SRC(s) * EXCHANGES + TAG(EXCHANGE(s));
    assert(n_arrived[e] < NUMBERS);
    arrived_call[e * NUMBERS + n_arrived[e]] = OF(EXCHANGE(s), CALL(s)) + 1;
    n_arrived[e]++;
    n_travelling--;
    e = 0
}

inline deliver(s)
{
#ifdef BUG_NO_NUMBERS /* segments are matched as they come */
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

#define ARRIVES_FROM(p) \
    :: atomic { wire[(p) * RANKS + me]?one -> arrived() }
#if RANKS == 3
#define ARRIVES ARRIVES_FROM(0) ARRIVES_FROM(1) ARRIVES_FROM(2)
#else
#define ARRIVES ARRIVES_FROM(0) ARRIVES_FROM(1) ARRIVES_FROM(2) ARRIVES_FROM(3)
#endif

#define WAIT(condition) \
    do \
    ARRIVES \
    EXPIRES_CARGO \
    :: (condition) -> break \
    od

/* A rank polls while the communicator hosts exchanges. */
#define WAIT_IN_CALL(condition) \
    if \
    :: open -> WAIT(condition) \
    :: !open -> (condition) \
    fi

#define NUMBER_HERE reduction
#include "reduction.pml"

inline take(s)
{
    if
    TAKES_CARGO
    :: !IS_CARGO(s) -> deliver(s)
    fi
}

inline arrived()
{
    d_step {
        n_rides--;
        take(one);
        one = NONE
    }
}

/* ---- calls ---- */

/* Sends what waits of an exchange's calls: alone, or aboard the reduction. */
inline send_kept(x, boards)
{
    do
    :: kept_from[x] < started[x] ->
        k = 0;
        do
        :: k < RANKS && IS_EDGE(me, k) ->
            one = SEGMENT(me, k, x, send_no[k], kept_from[x]);
            send_no[k]++;
            n_travelling++;
            if
            :: boards -> one = one + CARGO; put_aboard(one)
            :: else -> ride(k, one, NONE)
            fi;
            k++
        :: k < RANKS && !IS_EDGE(me, k) -> k++
        :: else -> break
        od;
        kept_from[x]++
    :: else -> break
    od;
    one = NONE; k = 0
}

#if EXCHANGES == 1
#define FOR_EACH_EXCHANGE(what) what(0)
#else
#define FOR_EACH_EXCHANGE(what) what(0); what(1)
#endif

inline leave()
{
#define LEAVE(x) send_kept(x, false)
    d_step { FOR_EACH_EXCHANGE(LEAVE) }
}

/* A test or a wait: what waits for a reduction leaves alone. */
inline leave_alone()
{
#ifndef BUG_WAITS_FOR_REDUCTION /* it goes on waiting for the reduction */
    leave()
#else
    skip
#endif
}

inline board()
{
#define BOARD(x) send_kept(x, true)
    d_step { FOR_EACH_EXCHANGE(BOARD) }
}

inline start_call(x)
{
    d_step {
        is_segments[OF(x, started[x])] = rides;
        if
        :: rides ->
            place[OF(x, started[x])] = n_segment_calls[TAG(x)];
            n_segment_calls[TAG(x)]++;
            started[x]++
        :: else ->
            place[OF(x, started[x])] = mpi_started[me * EXCHANGES + x];
            mpi_call[OF(me * EXCHANGES + x, mpi_started[me * EXCHANGES + x])] = OF(x, started[x]) + 1;
            mpi_started[me * EXCHANGES + x]++;
            started[x]++;
            kept_from[x] = started[x]
        fi
    };
}

inline start_calls()
{
#if EXCHANGES == 1
    start_call(0)
#else
    if
    :: start_call(0); start_call(1)
    :: start_call(1); start_call(0)
    fi
#endif
}

#define CAME(p, x, call) \
    (!IS_EDGE(p, me) || \
     (is_segments[OF(x, call)] -> n_arrived[(p) * EXCHANGES + TAG(x)] > place[OF(x, call)] \
                               : mpi_started[(p) * EXCHANGES + x] > place[OF(x, call)]))
#define WHAT_CAME(p, x, call) \
    (is_segments[OF(x, call)] \
         -> arrived_call[((p) * EXCHANGES + TAG(x)) * NUMBERS + place[OF(x, call)]] \
         : mpi_call[OF((p) * EXCHANGES + x, place[OF(x, call)])])
#define IS_RIGHT(p, x, call) (!IS_EDGE(p, me) || WHAT_CAME(p, x, call) == OF(x, call) + 1)
#if RANKS == 3
#define ALL(what, x, call) (what(0, x, call) && what(1, x, call) && what(2, x, call))
#else
#define ALL(what, x, call) \
    (what(0, x, call) && what(1, x, call) && what(2, x, call) && what(3, x, call))
#endif

inline finish(x, call)
{
    leave_alone();
    WAIT_IN_CALL(ALL(CAME, x, call));
    is_right = ALL(IS_RIGHT, x, call);
    assert(is_right)
}

/* All calls that were started, the first one or the last one first. */
inline finish_exchange(x)
{
    if
    :: at = finished[x];
        do
        :: at < started[x] -> finish(x, at); at++
        :: else -> break
        od
    :: started[x] > finished[x] + 1 ->
        at = started[x];
        do
        :: at > finished[x] -> at--; finish(x, at)
        :: else -> break
        od
    fi;
    finished[x] = started[x];
    at = 0
}

inline finish_all()
{
#if EXCHANGES == 1
    finish_exchange(0)
#else
    if
    :: finish_exchange(0); finish_exchange(1)
    :: finish_exchange(1); finish_exchange(0)
    fi
#endif
}

/* ---- what the ranks agree on ---- */

/* Until no ride is under way and no rank has cargo. (How the ranks find out by counting is not
 * modelled: two counts in a row over all ranks.) */
inline drain()
{
    n_draining[n_drains]++;
    WAIT(n_draining[n_drains] == RANKS && n_rides == 0 && n_travelling == 0);
    n_drains++
}

/* Whether all ranks have started the same calls and all, or any, are for it. The votes come one
 * after the other, since each rank waits for all in each. */
inline vote(meeting, mine, wants_all)
{
    d_step {
        low = (started[0] < low -> started[0] : low);
        high = (started[0] > high -> started[0] : high);
        n_yes = n_yes + (mine);
        n_voted[meeting]++;
        if
        :: n_voted[meeting] == RANKS ->
#ifdef BUG_NO_COUNTS /* ranks that have started more calls than others vote, too */
            outcome[meeting] = (wants_all -> n_yes == RANKS : n_yes > 0);
#else
            outcome[meeting] = low == high && (wants_all -> n_yes == RANKS : n_yes > 0);
#endif
            low = MANY; high = 0; n_yes = 0
        :: else
        fi
    };
    WAIT_IN_CALL(n_voted[meeting] == RANKS)
}

/* No call rides from now on; then the communicator is no longer polled. */
inline end_riding()
{
    rides = 0;
#ifndef BUG_CLOSES_UNDRAINED /* segments may be on their way */
    drain();
#endif
    open = 0
}

inline meet(meeting)
{
    wants = 0;
    if
    :: meeting == CALLS - 1 -> skip /* no more calls */
    :: meeting < CALLS - 1 && open ->
        if
        :: me == 2 -> wants = 1 /* too many calls have missed their reductions here */
        :: true
        fi;
        vote(meeting, wants, false);
#ifdef BUG_OWN_REVIEW /* each rank judges by itself */
        outcome_here = wants;
#else
        outcome_here = outcome[meeting];
#endif
        if
        :: outcome_here -> end_riding()
        :: else
        fi
    :: meeting < CALLS - 1 && !open && !settled ->
        wants = 1;
        vote(meeting, wants, true);
        rides = outcome[meeting];
        open = rides;
        settled = rides
    :: else
    fi;
    wants = 0; outcome_here = 0
}

/* ---- the program ---- */

inline collective(number)
{
    if
    :: kind[number] == SMALL && open ->
        board();
        embedded_reduction();
        reduction = 1 - reduction;
        meet(number)
    :: else ->
        leave();
        meet(number);
        n_entered[number]++;
        WAIT_IN_CALL(n_entered[number] == RANKS)
    fi
}

inline iterate(number)
{
    if
    :: start_calls();
        if
        :: true
        :: leave_alone() /* tests */
        :: !late_starts[number] -> finish_all()
        fi;
        collective(number)
    :: late_starts[number] ->
        collective(number);
        start_calls()
    fi;
    if
    :: number < CALLS - 1 -> finish_all()
    :: true
    fi
}

proctype rank(byte me)
{
    byte number;                        /* of the collective */
    byte started[EXCHANGES];            /* calls */
    byte kept_from[EXCHANGES];          /* those whose segments have not left */
    byte finished[EXCHANGES];           /* calls before this one */
    bit is_segments[NUMBERS];
    byte place[NUMBERS];                /* a call's among those that receive from a source */
    byte n_segment_calls[EXCHANGES];
    byte send_no[RANKS];                /* segments sent to each rank */
    byte next_in[RANKS];                /* the number of the next segment of each source */
    short stash[RANKS * NUMBERS];       /* by source and number */
    byte n_arrived[RANKS * EXCHANGES];
    byte arrived_call[RANKS * EXCHANGES * NUMBERS]; /* in their order: which one, plus 1 */
    bit rides, open, settled;           /* alike on all ranks between collectives */
    bit reduction;
    short cargo[MOST_CARGO];
    byte n_cargo;
    byte slot[8];                       /* the ranks of the vector that has come, by reduction and step */
    byte reduced;
    byte n_drains;
    bit wants, outcome_here, is_right;
    short one, next;
    byte i, k, e, from, at;

#ifdef RIDES
    rides = 1;
    open = 1;
    settled = 1;
#endif
    do
    :: number < CALLS -> iterate(number); number++
    :: else -> break
    od;
    number = 0;
    finish_all();
    if
    :: open -> drain()
    :: else
    fi;
    assert(n_cargo == 0);
    n_done++
}

/* What the program does on all ranks; then they begin. */
init
{
    byte r;
    atomic {
        do
        :: r < CALLS ->
            kind[r] = SMALL;
#ifdef LATE
            if
            :: true
            :: r == LATE -> late_starts[r] = 1
            fi;
#endif
#ifdef KINDS
            if
            :: true
            :: r == KINDS -> kind[r] = OTHER
            fi;
#endif
            r++
        :: else -> break
        od;
        r = 0;
        do
        :: r < RANKS -> run rank(r); r++
        :: else -> break
        od;
        r = 0
    }
    n_done == RANKS;
    assert(n_travelling == 0)
}
