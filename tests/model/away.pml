/* A model of who serves whom when (shim/state/service.h, shim/wait/assembly.h), checked by check_model.sh.
 *
 * Rank SRC sends a message to DST by way of THIRD. Spin chooses what kind of message it is, what each
 * rank does before and after it, and which two ranks make a call X that waits inside MPI, where nobody
 * can poll (MPI_Comm_create_group, MPI_Win_fence). Programs are correct: MPI alone, which makes progress
 * inside X and needs no third rank, would end them all. What is checked: with the library, too, nobody
 * waits for ever.
 *
 * The model                 mirrors
 *   server(), SERVES        a poll, or the helper thread while the rank is outside MPI: never while it is AWAY
 *   in[], HELD              rides that have come, and the own batch that has not left
 *   enter_x()               assembly.c: a barrier that polls, then MPI's own call
 *   STRAIGHT, SYNCHRONOUS   the sender waits until the receiver has looked at the segment and answered it
 *   FREED                   a persistent receive that is freed while it is active: nobody waits for it
 *   flag                    memory or a file: a rank that waits for it does not call MPI
 *
 * Faults: BUG_NO_BARRIER, X is entered by each rank as it comes; BUG_NO_HELPER, only a rank that polls
 * serves; BUG_BARRIER_UNPOLLED, ranks wait for each other without polling. */

#define SRC 0
#define THIRD 1
#define DST 2
#define RANKS 3

/* Where a rank is. */
#define OUTSIDE 0
#define POLLS 1
#define AWAY 2

/* Kinds of messages. */
#define PLAIN 0
#define SYNCHRONOUS 1
#define STRAIGHT 2

/* What a server finds. */
#define HELD 0   /* the own message, still to leave */
#define RIDE 1   /* the message, on its way to DST */
#define ANSWER 2 /* for SRC */

byte mode[RANKS];
chan in[RANKS] = [4] of {byte};
byte kind;
bit has_come;   /* DST has the message */
bit answered;   /* SRC knows */
bit flag;       /* set by DST outside MPI, after it has the message */
bit freed;      /* DST does not wait for the message */
bit first_x;    /* DST makes X before it waits for the message, whose receive is posted */
bit src_waits, third_waits; /* for the flag, before X */
byte x_one, x_other;        /* who makes X */
byte n_gathered, n_inside, n_done;

#ifdef BUG_NO_HELPER
#define SERVES(r) (mode[r] == POLLS)
#else
#define SERVES(r) (mode[r] != AWAY)
#endif

proctype server(byte me)
{
    byte what;
end:
    do
    :: atomic {
           SERVES(me) && in[me]?[what] -> in[me]?what;
           if
           :: what == HELD -> in[THIRD]!RIDE
           :: what == RIDE && me == THIRD -> in[DST]!RIDE
           :: what == RIDE && me == DST ->
               has_come = 1;
               if
               :: kind != PLAIN -> in[SRC]!ANSWER
               :: else
               fi
           :: what == ANSWER -> answered = 1
           fi;
           what = 0
       }
    od
}

/* A call that waits and polls. */
#define WAIT(condition) mode[me] = POLLS; (condition); mode[me] = OUTSIDE

/* The call that waits where nobody can poll. */
inline enter_x()
{
    if
    :: me == x_one || me == x_other ->
#ifdef BUG_NO_BARRIER
        skip;
#elif defined(BUG_BARRIER_UNPOLLED)
        mode[me] = AWAY;
        n_gathered++;
        n_gathered == 2;
#else
        n_gathered++;
        WAIT(n_gathered == 2);
#endif
        mode[me] = AWAY;
        n_inside++;
        n_inside == 2;
        mode[me] = OUTSIDE
    :: else
    fi
}

/* The end of the program: all drain, and poll. */
inline finish()
{
    n_done++;
    WAIT(n_done == RANKS)
}

proctype source()
{
    byte me = SRC;
    in[SRC]!HELD; /* it leaves when this rank polls, or is outside */
    if
    :: kind != PLAIN -> WAIT(answered)
    :: else
    fi;
    if
    :: src_waits -> flag
    :: else
    fi;
    enter_x();
    finish()
}

proctype third()
{
    byte me = THIRD;
    if
    :: third_waits -> flag
    :: else
    fi;
    enter_x();
    finish()
}

proctype destination()
{
    byte me = DST;
    if
    :: first_x -> enter_x()
    :: else
    fi;
    if
    :: !freed -> WAIT(has_come)
    :: else
    fi;
    flag = 1;
    if
    :: !first_x -> enter_x()
    :: else
    fi;
    finish()
}

init
{
    atomic {
        if
        :: kind = PLAIN
        :: kind = SYNCHRONOUS
        :: kind = STRAIGHT
        fi;
        if
        :: x_one = THIRD; x_other = DST
        :: x_one = SRC; x_other = THIRD
        :: x_one = SRC; x_other = DST
        fi;
        if
        :: freed = 1
        :: true
        fi;
        if /* who waits for the flag before X must not be waited for by DST inside it */
        :: first_x = 1;
           if
           :: x_other != DST || x_one != THIRD -> third_waits = 1
           :: true
           fi;
           if
           :: x_other != DST || x_one != SRC -> src_waits = 1
           :: true
           fi
        :: first_x = 0;
           if
           :: third_waits = 1
           :: true
           fi;
           if
           :: src_waits = 1
           :: true
           fi
        fi;
        run server(SRC);
        run server(THIRD);
        run server(DST);
        run source();
        run third();
        run destination()
    }
    n_done == RANKS
}
