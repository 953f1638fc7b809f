/* Ranks in one process (neighbor_ranks.h). */
#include "neighbor_ranks.h"

#include "mock_mpi.h"
#include "random_pattern.h"
#include "shim/carry/embed.h"
#include "shim/carry/line.h"
#include "shim/meet/agree.h"
#include "shim/plan/embed_map.h"
#include "shim/plan/plan_agree.h"
#include "shim/plan/plan_root.h"
#include "shim/state/hooks.h"
#include "shim/wait/away.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

struct cpl_context cpl_context;
struct world world;

void act_as(int r)
{
    if (world.acting)
        world.acting->context = cpl_context;
    world.acting = &world.ranks[r];
    cpl_context = world.acting->context;
}

struct cpl_exchange *exchange_of(struct rank *me, int x)
{
    return &me->state[x].exchanges[CPL_NEIGHBOR_ALLTOALLV];
}

/* ---- what the code under test calls ---- */

unsigned char *cpl_embed_place(struct cpl_line *line, const struct cpl_segment *segment)
{
    (void)line;
    struct rank *me = world.acting;
    assert_in_range(me->n_cargo, 0, MOST_CARGO - 1);
    assert_in_range(segment->payload_bytes, 0, SEGMENT_BYTES);
    me->cargo[me->n_cargo].segment = *segment;
    return me->cargo[me->n_cargo++].payload;
}

bool cpl_goes_straight(int64_t bytes)
{
    return bytes > SEGMENT_BYTES;
}

int cpl_span_copy(const struct cpl_span *from, const struct cpl_span *to)
{
    memcpy(to->address, from->address, (size_t)from->count);
    return MPI_SUCCESS;
}

int PMPI_Comm_compare(MPI_Comm one, MPI_Comm other, int *result)
{
    (void)one, (void)other;
    *result = MPI_CONGRUENT;
    return MPI_SUCCESS;
}

/* Blocking calls are none of the test's. */
int cpl_collective_waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    (void)n, (void)requests, (void)statuses;
    fail();
    return MPI_ERR_INTERN;
}

MPI_Comm cpl_agree_own(struct cpl_comm_state *state)
{
    return state->private_comm;
}

bool cpl_agree_service(MPI_Comm over)
{
    (void)over;
    return true;
}

void cpl_progress_update(void)
{
}

bool cpl_agree_all(MPI_Comm comm, bool yes)
{
    (void)comm;
    return yes;
}

bool cpl_line_open(struct cpl_comm_state *state)
{
    (void)state;
    return true;
}

bool cpl_embed_init(struct cpl_comm_state *state)
{
    (void)state;
    return true;
}

void cpl_line_link(struct cpl_comm_state *state)
{
    state->line->linked = true;
}

void cpl_line_close(struct cpl_comm_state *state)
{
    assert_false(state->line->hosts);
    state->line->linked = false;
}

void cpl_line_drain(struct cpl_comm_state *state)
{
    (void)state;
}

void cpl_embed_map(struct cpl_comm_state *state, int n, const int64_t *messages)
{
    (void)state, (void)n, (void)messages;
}

void cpl_neighbor_drain(struct cpl_exchange *exchange)
{
    (void)exchange;
}

bool cpl_plan_managed_promises(const struct cpl_plan_summary *summary, double modelled_us,
                               double direct_us)
{
    (void)summary;
    return modelled_us < direct_us;
}

/* ---- ranks ---- */

static void set_neighbors(struct rank *me, int x, int r)
{
    struct cpl_adjacency *a = &me->state[x].adjacency;
    int n_in = 0, n_out = 0;
    for (int other = 0; other < world.n_ranks; other++) {
        if (world.edge[x][other][r])
            me->rank[x][0][n_in++] = other;
        if (world.edge[x][r][other])
            me->rank[x][1][n_out++] = other;
    }
    a->in = (struct cpl_neighbors){
        n_in, me->rank[x][0], n_in, me->rank[x][0], me->first_part, me->part, 0, NULL, NULL, NULL};
    a->out = (struct cpl_neighbors){
        n_out, me->rank[x][1], n_out, me->rank[x][1], me->first_part, me->part, 0,
        NULL,  NULL,           NULL};
    me->state[x].watched = true;
}

static void begin_rank(int r)
{
    struct rank *me = &world.ranks[r];
    for (int k = 0; k < MOST_RANKS; k++)
        me->part[k] = me->first_part[k] = k;
    me->first_part[MOST_RANKS] = MOST_RANKS;
    me->context.size = world.n_ranks;
    me->context.rank = r;
    me->context.settings.mode = CPL_MODE_AUTO;
    me->context.settings.embed = CPL_EMBED_EXACT;
    for (int x = 0; x < N_EXCHANGES; x++) {
        struct cpl_comm_state *state = &me->state[x];
        state->line = calloc(1, sizeof *state->line);
        state->serve = calloc(1, sizeof *state->serve);
        state->exchanges = calloc(CPL_N_NEIGHBOR_KINDS, sizeof *state->exchanges);
        assert_true(state->line && state->serve && state->exchanges);
        assert_true(cpl_hosted_hooks.begin(state));
        struct cpl_exchange *exchange = exchange_of(me, x);
        state->comm = state->private_comm = mock_comm(r);
        state->rank = r;
        state->size = world.n_ranks;
        state->serve->named = true;
        state->serve->id = x;
        set_neighbors(me, x, r);
        exchange->kind = CPL_NEIGHBOR_ALLTOALLV;
        exchange->adjacency = &state->adjacency;
        exchange->nonblocking.settled = true;
        exchange->plans.n = 1;
        exchange->plans.summary[0].known = 1;
        exchange->plans.summary[0].direct.modelled_us = 20;
        exchange->plans.summary[0].embedded_us = 10;
        LL_APPEND(me->context.comms.first, state);
    }
}

void neighbor_ranks_begin(int n_ranks, uint64_t seed)
{
    mock_begin(n_ranks, seed);
    memset(&world, 0, sizeof world);
    world.n_ranks = n_ranks;
    world.random = seed;
    world.ranks = calloc((size_t)n_ranks, sizeof *world.ranks);
    assert_non_null(world.ranks);
    for (int x = 0; x < N_EXCHANGES; x++)
        for (int i = 0; i < n_ranks; i++)
            for (int j = 0; j < n_ranks; j++)
                world.edge[x][i][j] = i != j && random_below(&world.random, 3) > 0;
    for (int r = 0; r < n_ranks; r++)
        begin_rank(r);
}

void neighbor_ranks_end(void)
{
    for (int r = 0; r < world.n_ranks; r++) {
        struct rank *me = &world.ranks[r];
        act_as(r);
        assert_null(cpl_context.busy.first_open);
        assert_int_equal(cpl_context.busy.n_open_batches, 0);
        cpl_hosted_hooks.end(&me->state[0]);
        assert_int_equal(cpl_context.busy.n_hosts, 0);
        for (int x = 0; x < N_EXCHANGES; x++)
            for (int c = 0; c < CALLS; c++)
                free(me->op[x][c].receives);
        for (int x = 0; x < N_EXCHANGES; x++) {
            free(me->state[x].line);
            free(me->state[x].hosted);
            free(me->state[x].serve);
            free(me->state[x].exchanges);
        }
    }
    free(world.ranks);
    mock_end();
}
