/* Agreement on a plan (plan_agree.h).
 *
 * Every step that can fail on one rank is followed by a step in which all ranks learn of it, before
 * anything is sent by a plan: a rank that fell back alone would leave the others waiting. */
#include "shim/plan/plan_agree.h"

#include "planner/rank_plan.h"
#include "shim/base/log.h"
#include "shim/meet/agree.h"
#include "shim/plan/plan_root.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What the root holds while it gathers and spreads; NULL elsewhere. */
struct desk {
    int root, rank;
    int n_ranks;
    int64_t *headers; /* HEADER_WORDS a rank */
    int64_t *n_messages;
    int64_t *node_key;
    int32_t *world_rank;
    int64_t *messages; /* CPL_MESSAGE_WORDS each */
    int *counts;
    int *displs;
    struct cpl_pattern pattern;
    struct cpl_plan plan[CPL_MAX_PLANS];
    int n_plans; /* when there are any, the pattern is filled too */
    int32_t *words;
};

enum {
    HEADER_MESSAGES,
    HEADER_NODE,
    HEADER_WORLD_RANK,
    HEADER_STRAIGHT,
    HEADER_STRAIGHT_BYTES,
    HEADER_REDUCED,
    HEADER_WORDS
};

static bool at_root(const struct desk *desk)
{
    return desk->rank == desk->root;
}

static bool open_desk(struct desk *desk)
{
    size_t n = (size_t)desk->n_ranks;
    desk->headers = calloc(n, HEADER_WORDS * sizeof *desk->headers);
    desk->n_messages = calloc(n, sizeof *desk->n_messages);
    desk->node_key = calloc(n, sizeof *desk->node_key);
    desk->world_rank = calloc(n, sizeof *desk->world_rank);
    desk->counts = calloc(n, sizeof *desk->counts);
    desk->displs = calloc(n, sizeof *desk->displs);
    return desk->headers && desk->n_messages && desk->node_key && desk->world_rank &&
           desk->counts && desk->displs;
}

static void close_desk(struct desk *desk)
{
    free(desk->headers);
    free(desk->n_messages);
    free(desk->node_key);
    free(desk->world_rank);
    free(desk->messages);
    free(desk->counts);
    free(desk->displs);
    free(desk->words);
    for (int k = 0; k < desk->n_plans; k++)
        cpl_plan_free(&desk->plan[k]);
    if (desk->n_plans > 0)
        cpl_pattern_free(&desk->pattern);
}

/* Turns counts[] into displacements. Returns the total, or -1 when it exceeds what MPI can count.
 */
static int64_t lay_out(struct desk *desk)
{
    int64_t total = 0;
    for (int i = 0; i < desk->n_ranks; i++) {
        desk->displs[i] = (int)total;
        total += desk->counts[i];
        if (total > INT_MAX)
            return -1;
    }
    return total;
}

/* Makes room for everybody's messages. */
static bool expect_messages(struct desk *desk)
{
    for (int i = 0; i < desk->n_ranks; i++) {
        int64_t n = desk->headers[i * HEADER_WORDS + HEADER_MESSAGES];
        if (n > INT_MAX / CPL_MESSAGE_WORDS)
            return false;
        desk->n_messages[i] = n;
        desk->node_key[i] = desk->headers[i * HEADER_WORDS + HEADER_NODE];
        desk->world_rank[i] = (int32_t)desk->headers[i * HEADER_WORDS + HEADER_WORLD_RANK];
        desk->counts[i] = (int)(CPL_MESSAGE_WORDS * n);
    }
    int64_t total = lay_out(desk);
    if (total >= 0)
        desk->messages = calloc((size_t)total + 1, sizeof *desk->messages);
    return total >= 0 && desk->messages;
}

/* Gathers all send sets at the root's desk. Collective; false on all ranks when it failed on one.
 */
static bool gather(MPI_Comm comm, const struct cpl_agree_input *input, struct desk *desk)
{
    int64_t header[HEADER_WORDS] = {input->n_messages, cpl_agree_node(comm),  cpl_context.rank,
                                    input->n_straight, input->straight_bytes, input->reduced};
    int64_t *messages = calloc(CPL_MESSAGE_WORDS * (size_t)input->n_messages + 1, sizeof *messages);
    bool ready = messages && (!at_root(desk) || open_desk(desk));
    if (!cpl_agree_all(comm, ready)) {
        free(messages);
        return false;
    }
    for (int m = 0; m < input->n_messages; m++) {
        int64_t *words = messages + (size_t)m * CPL_MESSAGE_WORDS;
        words[CPL_MESSAGE_DST] = input->dst[m];
        words[CPL_MESSAGE_BYTES] = input->bytes[m];
        words[CPL_MESSAGE_CLASS] = input->same_payload ? 0 : -1;
    }
    cpl_collective_Gather(header, HEADER_WORDS, MPI_INT64_T, desk->headers, HEADER_WORDS,
                          MPI_INT64_T, desk->root, comm);
    bool done = cpl_agree_all(comm, !at_root(desk) || expect_messages(desk));
    if (done)
        cpl_collective_Gatherv(messages, CPL_MESSAGE_WORDS * input->n_messages, MPI_INT64_T,
                               desk->messages, desk->counts, desk->displs, MPI_INT64_T, desk->root,
                               comm);
    free(messages);
    return done;
}

/* The root cuts a plan. */
static bool cut(struct desk *desk, int plan)
{
    struct cpl_slicer slicer;
    struct cpl_error error;
    bool done = !cpl_slicer_init(&slicer, &desk->plan[plan], &desk->pattern, &error);
    if (!done)
        return false;
    for (int i = 0; i < desk->n_ranks && done; i++)
        done = !cpl_slicer_words(&slicer, i, &desk->counts[i], &error);
    int64_t total = done ? lay_out(desk) : -1;
    free(desk->words);
    desk->words = NULL;
    if (total >= 0)
        desk->words = calloc((size_t)total + 1, sizeof *desk->words);
    done = total >= 0 && desk->words;
    for (int i = 0; i < desk->n_ranks && done; i++)
        cpl_slicer_extract(&slicer, i, desk->words + desk->displs[i]);
    cpl_slicer_free(&slicer);
    return done;
}

/* Spreads the slices of a plan. Collective; false on all ranks when it failed on one. */
static bool spread(MPI_Comm comm, struct desk *desk, int plan, int32_t **words, int32_t *n_words)
{
    if (!cpl_agree_all(comm, !at_root(desk) || cut(desk, plan)))
        return false;
    int n = 0;
    cpl_collective_Scatter(desk->counts, 1, MPI_INT, &n, 1, MPI_INT, desk->root, comm);
    int32_t *mine = calloc((size_t)n + 1, sizeof *mine);
    if (!cpl_agree_all(comm, mine)) {
        free(mine);
        return false;
    }
    cpl_collective_Scatterv(desk->words, desk->counts, desk->displs, MPI_INT32_T, mine, n,
                            MPI_INT32_T, desk->root, comm);
    *words = mine;
    *n_words = n;
    return true;
}

static enum cpl_embed_verdict all_reduced(const struct desk *desk)
{
    int64_t least = CPL_EMBED_ANY_ORDER;
    for (int i = 0; i < desk->n_ranks; i++) {
        int64_t reduced = desk->headers[i * HEADER_WORDS + HEADER_REDUCED];
        if (desk->n_messages[i] > 0 && reduced < least)
            least = reduced;
    }
    return (enum cpl_embed_verdict)least;
}

static void plan_at_root(struct desk *desk, const struct cpl_agree_input *input,
                         struct cpl_plan_summary *summaries)
{
    struct cpl_plan_request request = {.n_ranks = desk->n_ranks,
                                       .n_messages = desk->n_messages,
                                       .messages = desk->messages,
                                       .node_key = desk->node_key,
                                       .world_rank = desk->world_rank,
                                       .needed = input->needed,
                                       .reduced = all_reduced(desk),
                                       .most_plans = input->most_plans};
    desk->n_plans = cpl_plan_root(&request, summaries, &desk->pattern, desk->plan);
    for (int k = 0; k < desk->n_plans; k++)
        for (int i = 0; i < desk->n_ranks; i++) {
            const int64_t *header = desk->headers + i * HEADER_WORDS;
            summaries[k].n_straight += header[HEADER_STRAIGHT];
            summaries[k].straight_bytes += header[HEADER_STRAIGHT_BYTES];
        }
}

void cpl_agree_output_free(struct cpl_agree_output *output)
{
    for (int k = 0; k < output->n; k++)
        free(output->words[k]);
    *output = (struct cpl_agree_output){.n = 0};
}

bool cpl_plan_agree(MPI_Comm comm, MPI_Comm *private_comm, const struct cpl_agree_input *input,
                    struct cpl_agree_output *output)
{
    struct desk desk = {.root = 0};
    int rank;
    memset(output, 0, sizeof *output);
    PMPI_Comm_rank(comm, &rank);
    if (!cpl_agree_all(comm, input->able) ||
        (*private_comm == MPI_COMM_NULL && !cpl_agree_private(comm, rank, private_comm)))
        return false;
    PMPI_Comm_rank(*private_comm, &desk.rank);
    PMPI_Comm_size(*private_comm, &desk.n_ranks);
    desk.root = cpl_agree_root(*private_comm, desk.rank);
    bool done = gather(*private_comm, input, &desk);
    if (done) {
        if (at_root(&desk))
            plan_at_root(&desk, input, output->summary);
        cpl_collective_Bcast(output->summary, sizeof output->summary, MPI_BYTE, desk.root,
                             *private_comm);
        while (output->n < CPL_MAX_PLANS && output->summary[output->n].known)
            output->n++;
        done = output->n > 0;
    }
    for (int k = 0; k < output->n && done; k++)
        if (output->summary[k].decided)
            done = spread(*private_comm, &desk, k, &output->words[k], &output->n_words[k]);
    close_desk(&desk);
    if (!done)
        cpl_agree_output_free(output);
    return done;
}
