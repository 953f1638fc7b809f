/* A reduction that carries messages (embed.h), for pt2pt.pml: its steps, the vectors of two reductions,
 * and the cargo.
 *
 * The model defines before: RANKS, ride(), deliver(), WAIT, SRC, DST, NONE, MOST_CARGO, and NUMBER_HERE, of
 * the reduction that the rank is in, 0 or 1 in turn. A rank has: me, one, i, k, cargo[MOST_CARGO],
 * n_cargo, slot[8] (the ranks of the vector that has come, by reduction and step), reduced. The
 * vector of a reduction's message is its last part, and comes as a ride of its own. */

#define CARGO 2048                 /* rides in a reduction */
#define IS_VECTOR(s) ((s) >= 8192)
#define VECTOR(number, step, ranks) (8192 + (ranks) + ((step) << 4) + ((number) << 6))
#define RANKS_IN(s) ((s) & 15)     /* a set: what has been reduced */
#define STEP(s) (((s) >> 4) & 3)
#define REDUCTION(s) (((s) >> 6) & 1)

/* Three ranks: 0 and 1 share corner 0, 1 takes part. */
#if RANKS == 3
#define N_STEPS 1
#define CORNER(r) ((r) >> 1)
#define RANK_AT(corner) ((corner) + 1)
#else
#define N_STEPS 2
#define CORNER(r) (r)
#define RANK_AT(corner) (corner)
#endif
#define FOLD N_STEPS
#define UNFOLD (N_STEPS + 1)
#ifdef BUG_EMBED_ONE_SET /* the next reduction's vectors come where this one's do */
#define SLOT(number, step) (step)
#else
#define SLOT(number, step) ((number) * 4 + (step))
#endif

/* embed.c. A segment is kept for a reduction. */
inline put_aboard(s)
{
    assert(n_cargo < MOST_CARGO);
    cargo[n_cargo] = s;
    n_cargo++
}

/* Sends the cargo of which `goes` holds (of `one`), then the vector. */
inline send_step(partner, step, goes)
{
    i = 0; k = 0;
    do
    :: i < n_cargo ->
        one = cargo[i];
        cargo[i] = NONE;
        if
        :: goes -> ride(partner, one, NONE)
        :: else -> cargo[k] = one; k++
        fi;
        i++
    :: else -> break
    od;
    n_cargo = k;
    ride(partner, VECTOR(NUMBER_HERE, step, reduced | 1 << me), NONE);
    one = NONE; i = 0; k = 0
}

inline combine(step)
{
    reduced = reduced | slot[SLOT(NUMBER_HERE, step)];
    slot[SLOT(NUMBER_HERE, step)] = 0
}

inline expire_now()
{
    i = 0;
    do
    :: i < n_cargo -> ride(DST(cargo[i]), cargo[i], NONE); cargo[i] = NONE; i++
    :: else -> break
    od;
    n_cargo = 0; i = 0
}

inline expire_cargo()
{
    d_step { expire_now() }
}
#define TAKES_CARGO \
    :: IS_VECTOR(s) -> \
        assert(slot[SLOT(REDUCTION(s), STEP(s))] == 0); \
        slot[SLOT(REDUCTION(s), STEP(s))] = RANKS_IN(s) \
    :: !IS_VECTOR(s) && (s & CARGO) && DST(s) == me -> s = s - CARGO; deliver(s) \
    :: !IS_VECTOR(s) && (s & CARGO) && DST(s) != me -> put_aboard(s)
#ifdef BUG_EMBED_HOLDS /* cargo is for reductions only */
#define EXPIRES_CARGO
#else
#define EXPIRES_CARGO \
    :: atomic { n_cargo > 0 -> expire_cargo() }
#endif
#define IS_CARGO(s) (IS_VECTOR(s) || ((s) & CARGO))

/* A step in which all corners exchange. */
inline exchange_step(step)
{
    d_step {
        send_step(RANK_AT(CORNER(me) ^ (1 << step)), step,
                  ((CORNER(DST(one)) ^ CORNER(me)) & (1 << step)) != 0)
    };
    WAIT(slot[SLOT(NUMBER_HERE, step)] != 0);
    atomic { combine(step) }
}

inline embedded_reduction()
{
#if RANKS == 3
    if
    :: me == 0 ->
        d_step { send_step(1, FOLD, true) };
        WAIT(slot[SLOT(NUMBER_HERE, UNFOLD)] != 0);
        atomic { combine(UNFOLD) }
    :: me == 1 ->
        WAIT(slot[SLOT(NUMBER_HERE, FOLD)] != 0);
        atomic { combine(FOLD) };
        exchange_step(0);
        d_step { send_step(0, UNFOLD, DST(one) == 0) }
    :: else -> exchange_step(0)
    fi;
#else
    exchange_step(0);
    exchange_step(1);
#endif
    atomic {
        assert((reduced | 1 << me) == (1 << RANKS) - 1);
        reduced = 0
    }
}
