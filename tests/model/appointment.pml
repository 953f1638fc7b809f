/* A model of appointments (shim/meet/appointment.h), checked by check_model.sh.
 *
 * The ranks are a tree: 0 has the children 1 and 2, and 1 has 3. Each comes to an appointment or goes by, as
 * Spin chooses, and may lose its patience at any time in the first round. To the second appointment ranks come
 * only when all have left the first, since they wait for each other in the collective; AHEAD: in this one they do not. A rank that has gone reads nothing
 * and sends nothing any more until it comes again. What is checked: nobody waits for ever, and of each
 * appointment all ranks say that they have met, or none does.
 *
 * Faults: BUG_ONE_ROUND, the first rank tells all to meet when all have come; BUG_SILENT, who goes does not
 * tell; BUG_UNNUMBERED, messages do not say which appointment they are of; BUG_ASKS_ON, who is asked passes
 * the question on and answers at once. */

#ifndef RANKS
#define RANKS 4
#endif
#define APPOINTMENTS 2
#define NOBODY RANKS

mtype = { NOTHING, HAS_COME, HAS_GONE, ARE_YOU, IS_THERE, MEET, IS_OFF };

/* from s to r */
chan to[RANKS * RANKS] = [6] of { byte, mtype };
#define WAY(s, r) to[(s) * RANKS + (r)]

byte n_left[APPOINTMENTS + 1];
byte n_met[APPOINTMENTS + 1];

#define PARENT(r)   ((r) == 0 -> NOBODY : ((r) - 1) / 2)
#define IS_CHILD(r, k) ((k) < RANKS && (k) > 0 && ((k) - 1) / 2 == (r))

#ifdef BUG_UNNUMBERED
#define CONCERNS(m) true
#else
#define CONCERNS(m) (m == number)
#endif

/* Takes one message from rank k, if there is one. */
inline take(k)
{
    if
    :: nempty(WAY(k, me)) ->
        WAY(k, me)?m, said;
        if
        :: CONCERNS(m) -> by[k] = said
        :: else
        fi;
        m = 0;
        said = NOTHING
    :: empty(WAY(k, me))
    fi
}

inline hear()
{
    atomic {
        k = 0;
        do
        :: k < RANKS -> take(k); k++
        :: else -> break
        od;
        k = 0
    }
}

#define N_SAID(what) ((IS_CHILD(me, 2 * me + 1) && by[2 * me + 1] == what) + \
                      (IS_CHILD(me, 2 * me + 2) && by[2 * me + 2] == what))
#define N_CHILDREN (IS_CHILD(me, 2 * me + 1) + IS_CHILD(me, 2 * me + 2))

inline tell_children(heard, what)
{
    if
    :: 2 * me + 1 < RANKS && by[2 * me + 1] == heard -> WAY(me, 2 * me + 1)!number, what
    :: else
    fi;
    if
    :: 2 * me + 2 < RANKS && by[2 * me + 2] == heard -> WAY(me, 2 * me + 2)!number, what
    :: else
    fi
}

inline tell_parent(what)
{
    if
    :: me > 0 -> WAY(me, PARENT(me))!number, what
    :: else
    fi
}

proctype rank(byte me)
{
    byte number = 1, m, k;
    mtype said = NOTHING;
    mtype by[RANKS + 3];
    bit told, asked, there;
    do
    :: number > APPOINTMENTS -> break
    :: else ->
#ifndef AHEAD
        n_left[number - 1] == RANKS || number == 1;
#endif
        atomic {
            told = 0; asked = 0; there = 0;
            k = 0;
            do
            :: k < RANKS -> by[k] = NOTHING; k++
            :: else -> break
            od;
            k = 0
        }
        if
        :: goto passed /* it goes by */
        :: skip
        fi;
        do
        :: atomic {
           hear();
           if
           :: N_SAID(HAS_GONE) > 0 -> break
           :: else
           fi;
           if
           :: N_SAID(HAS_COME) < N_CHILDREN
           :: else ->
               if
               :: me == 0 || by[PARENT(me)] == ARE_YOU -> asked = 1; break
               :: else
               fi;
#ifdef BUG_ONE_ROUND
               if
               :: by[PARENT(me)] == MEET -> tell_children(HAS_COME, MEET); there = 1; goto passed
               :: else
               fi;
#endif
               if
               :: !told -> tell_parent(HAS_COME); told = 1
               :: else
               fi
           fi;
           }
           if
           :: skip
           :: break /* no patience any more */
           fi
        od;
        if
        :: !asked && told ->
#ifndef BUG_SILENT
            tell_parent(HAS_GONE)
#else
            skip
#endif
        :: else
        fi;
        if
        :: !asked -> goto passed
        :: else
        fi;
#ifdef BUG_ONE_ROUND
        tell_children(HAS_COME, MEET);
        there = 1;
        goto passed;
#endif
        tell_children(HAS_COME, ARE_YOU);
#ifdef BUG_ASKS_ON
        tell_parent(IS_THERE);
#endif
        do
        :: N_SAID(IS_THERE) + N_SAID(HAS_GONE) == N_CHILDREN -> break
        :: else ->
            atomic {
                nempty(WAY((2 * me + 1) % RANKS, me)) || nempty(WAY((2 * me + 2) % RANKS, me));
                hear()
            }
        od;
        there = (N_SAID(HAS_GONE) == 0);
#ifndef BUG_ASKS_ON
        if
        :: there -> tell_parent(IS_THERE)
        :: else -> tell_parent(HAS_GONE)
        fi;
#endif
        do
        :: !there || me == 0 || by[PARENT(me)] != ARE_YOU -> break
        :: else -> atomic { nempty(WAY(PARENT(me), me)); hear() }
        od;
        there = (there && (me == 0 || by[PARENT(me)] == MEET));
        if
        :: there -> tell_children(IS_THERE, MEET)
        :: else -> tell_children(IS_THERE, IS_OFF)
        fi;
passed:
        atomic {
            n_met[number] = n_met[number] + there;
            there = 0;
            n_left[number]++;
            assert(n_left[number] < RANKS || n_met[number] == 0 || n_met[number] == RANKS);
            number++
        }
    od
}

init {
    byte r = 0;
    atomic {
        do
        :: r < RANKS -> run rank(r); r++
        :: else -> break
        od
    }
}
