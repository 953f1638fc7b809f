/* Pictures of exchanges (picture.h). */
#include "shim/report/picture.h"
#include "shim/meet/decision.h"

#include "shim/base/log.h"
#include "shim/report/report.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of all pictures together, at rank 0. */
#define MOST_BYTES (16 << 20)

static size_t n_counts(const struct cpl_picture *picture, int part)
{
    size_t n = (size_t)picture->n_cells;
    return part <= CPL_PLANNED_BYTES ? n * n : (size_t)picture->n_bins;
}

int64_t *cpl_picture_counts(const struct cpl_picture *picture, int part)
{
    int64_t *counts = (int64_t *)(uintptr_t)(picture + 1);
    for (int k = 0; k < part; k++)
        counts += n_counts(picture, k);
    return counts;
}

/* The number of ranks in a group when there may be at most `most` groups. */
static int32_t group_of(int32_t n_ranks, int32_t most)
{
    return (n_ranks + most - 1) / most;
}

static struct cpl_picture *make(int32_t n_ranks)
{
    struct cpl_picture shape = {.n_ranks = n_ranks};
    size_t n = 0;
    shape.cell_ranks = group_of(n_ranks, CPL_PICTURE_CELLS);
    shape.n_cells = group_of(n_ranks, shape.cell_ranks);
    shape.bin_ranks = group_of(n_ranks, CPL_PICTURE_BINS);
    shape.n_bins = group_of(n_ranks, shape.bin_ranks);
    for (int k = 0; k < CPL_N_PARTS; k++)
        n += n_counts(&shape, k);
    size_t bytes = sizeof shape + n * sizeof(int64_t);
    struct cpl_picture *picture = calloc(1, bytes);
    if (picture) {
        *picture = shape;
        picture->n_bytes = (int64_t)bytes;
    }
    return picture;
}

/* What messages are counted into. */
struct tally {
    struct cpl_picture *picture;
    const struct cpl_machine *machine;
    int32_t *loads; /* n_ranks for sends, then as many for receives */
};

/* Counts a message, of the plan or of the pattern. */
static void count(const struct tally *t, bool planned, int32_t from, int32_t to, int64_t bytes)
{
    struct cpl_picture *picture = t->picture;
    struct cpl_traffic *traffic = planned ? &picture->planned : &picture->direct;
    int between = t->machine->node[from] != t->machine->node[to];
    int64_t cell =
        (int64_t)(from / picture->cell_ranks) * picture->n_cells + to / picture->cell_ranks;
    cpl_picture_counts(picture, planned ? CPL_PLANNED_CELLS : CPL_DIRECT_CELLS)[cell]++;
    cpl_picture_counts(picture, planned ? CPL_PLANNED_BYTES : CPL_DIRECT_BYTES)[cell] += bytes;
    traffic->messages[between]++;
    traffic->bytes[between] += bytes;
    t->loads[from]++;
    t->loads[picture->n_ranks + to]++;
}

/* Keeps the busiest rank of each bin, and clears the loads. */
static void bin(struct cpl_picture *picture, enum cpl_picture_part sends,
                enum cpl_picture_part recvs, int32_t *loads)
{
    int64_t *send = cpl_picture_counts(picture, sends), *recv = cpl_picture_counts(picture, recvs);
    for (int32_t i = 0; i < picture->n_ranks; i++) {
        int32_t k = i / picture->bin_ranks;
        if (loads[i] > send[k])
            send[k] = loads[i];
        if (loads[picture->n_ranks + i] > recv[k])
            recv[k] = loads[picture->n_ranks + i];
    }
    memset(loads, 0, 2 * (size_t)picture->n_ranks * sizeof *loads);
}

static int class_of(int64_t bytes)
{
    int k = 0;
    for (; bytes > 0 && k < CPL_SIZE_CLASSES - 1; bytes >>= 1)
        k++;
    return k;
}

/* Where nodes begin, if each has consecutive ranks and there are few. */
static void find_borders(struct cpl_picture *picture, const struct cpl_machine *machine)
{
    int32_t n = 0;
    for (int32_t i = 1; i < machine->n_ranks; i++) {
        if (machine->node[i] == machine->node[i - 1])
            continue;
        if (n == CPL_PICTURE_CELLS)
            return;
        picture->border[n++] = i;
    }
    if (n == machine->n_nodes - 1)
        picture->n_borders = n;
}

static void draw(const struct tally *t, const struct cpl_pattern *pattern,
                 const struct cpl_plan *plan)
{
    struct cpl_picture *picture = t->picture;
    find_borders(picture, t->machine);
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            int64_t bytes = pattern->volume[m];
            count(t, false, i, pattern->dst[m], bytes);
            picture->size_class[class_of(bytes)]++;
            if (m == 0 || bytes < picture->smallest)
                picture->smallest = bytes;
            if (bytes > picture->largest)
                picture->largest = bytes;
        }
    bin(picture, CPL_DIRECT_SENDS, CPL_DIRECT_RECVS, t->loads);
    for (int64_t e = 0; e < plan->n_edges; e++)
        count(t, true, plan->edges[e].from, plan->edges[e].to, plan->edges[e].volume);
    bin(picture, CPL_PLANNED_SENDS, CPL_PLANNED_RECVS, t->loads);
}

/* The fastest that were tried, and direct, which is what MPI does: mpi_us. */
static void list_tried(struct cpl_picture *picture, const struct cpl_ranking *ranking,
                       const struct cpl_machine *machine, double mpi_us)
{
    bool has_direct = false;
    for (size_t k = 0; k < ranking->n && picture->n_tried < CPL_MOST_TRIED; k++) {
        struct cpl_tried tried = {.us = ranking->ranked[k].us};
        cpl_strategy_label(&ranking->ranked[k].choice, machine, tried.strategy);
        bool is_direct = strcmp(tried.strategy, "direct") == 0;
        has_direct |= is_direct;
        if (picture->n_tried < CPL_MOST_TRIED - !has_direct)
            picture->tried[picture->n_tried++] = tried;
    }
    if (ranking->n == 0 || has_direct)
        return;
    int32_t at = picture->n_tried++;
    for (; at > 0 && picture->tried[at - 1].us > mpi_us; at--)
        picture->tried[at] = picture->tried[at - 1];
    picture->tried[at] = (struct cpl_tried){"direct", mpi_us};
}

/* One file for a pattern, whichever communicators have it. */
static bool write_pattern(const struct cpl_pattern *pattern, uint64_t fingerprint)
{
    struct cpl_context *c = &cpl_context;
    char file[CPL_SETTINGS_TEXT + 64];
    struct cpl_error error;
    if (!c->settings.output[0] || c->told.pictures.output_failed)
        return false;
    for (int k = 0; k < c->told.pictures.n_written; k++)
        if (c->told.pictures.written[k] == fingerprint)
            return true;
    if (c->told.pictures.n_written == CPL_MOST_PATTERN_FILES)
        return false;
    snprintf(file, sizeof file, "%.*s/pattern-%016" PRIx64 ".mtx", CPL_SETTINGS_TEXT - 1,
             c->settings.output, fingerprint);
    if (cpl_pattern_write(pattern, file, &error)) {
        cpl_log(CPL_LOG_WARN, "report", "CARPOOL_OUTPUT: %s; no patterns are written", error.text);
        remove(file); /* half a file would be taken for the pattern */
        c->told.pictures.output_failed = true;
        return false;
    }
    c->told.pictures.written[c->told.pictures.n_written++] = fingerprint;
    return true;
}

static bool is_of(const struct cpl_picture *picture, const struct cpl_plan_summary *summary)
{
    return picture->pattern_fingerprint == summary->pattern_fingerprint &&
           picture->plan_fingerprint == summary->plan_fingerprint;
}

void cpl_picture_add(const struct cpl_pattern *pattern, const struct cpl_plan *plan,
                     const struct cpl_machine *machine, const struct cpl_plan_summary *summary,
                     const struct cpl_ranking *ranking)
{
    struct cpl_pictures *all = &cpl_context.told.pictures;
    if (!cpl_report_has_file())
        return;
    bool is_written = write_pattern(pattern, summary->pattern_fingerprint);
    for (int k = 0; k < all->n; k++)
        if (is_of(all->picture[k], summary))
            return;
    if (all->n == CPL_MOST_PICTURES)
        return;
    int32_t *loads = calloc(2 * (size_t)pattern->n_ranks, sizeof *loads);
    struct cpl_picture *picture = loads ? make(pattern->n_ranks) : NULL;
    if (picture) {
        picture->pattern_fingerprint = summary->pattern_fingerprint;
        picture->plan_fingerprint = summary->plan_fingerprint;
        picture->n_nodes = machine->n_nodes;
        picture->is_written = is_written;
        draw(&(struct tally){picture, machine, loads}, pattern, plan);
        if (ranking)
            list_tried(picture, ranking, machine, summary->direct.modelled_us);
        all->picture[all->n++] = picture;
        all->n_bytes += picture->n_bytes;
    }
    free(loads);
}

/* Packs as many of this process's pictures as fit into one block. */
static unsigned char *pack(int most_bytes, int *bytes)
{
    const struct cpl_pictures *all = &cpl_context.told.pictures;
    unsigned char *block = malloc((size_t)most_bytes + 1);
    *bytes = 0;
    for (int k = 0; block && k < all->n; k++) {
        int64_t n = all->picture[k]->n_bytes;
        if (n > most_bytes - *bytes)
            break;
        memcpy(block + *bytes, all->picture[k], (size_t)n);
        *bytes += (int)n;
    }
    return block;
}

unsigned char *cpl_picture_collect(size_t *bytes)
{
    struct cpl_decision decision;
    int64_t wanted = cpl_context.told.pictures.n_bytes, before = 0;
    int packed = 0;
    unsigned char *all = NULL;
    *bytes = 0;
    cpl_decision_open(&decision, MPI_COMM_WORLD, 0);
    /* the first ranks' pictures, as many as there is room for */
    if (cpl_collective_Exscan(&wanted, &before, 1, MPI_INT64_T, MPI_SUM, decision.comm) ==
        MPI_SUCCESS) {
        int64_t room = before < MOST_BYTES ? MOST_BYTES - before : 0;
        unsigned char *mine = pack((int)(wanted < room ? wanted : room), &packed);
        const struct cpl_handed_in handed = {
            .able = mine, .records = mine, .n = packed, .record_bytes = 1};
        if (cpl_decision_hand_in(&decision, &handed) && cpl_decision_is_root(&decision)) {
            *bytes = (size_t)decision.first[decision.n_ranks];
            all = decision.records;
            decision.records = NULL;
        }
        free(mine);
    }
    cpl_decision_close(&decision);
    return all;
}

const struct cpl_picture *cpl_picture_find(const unsigned char *pictures, size_t bytes,
                                           const struct cpl_plan_summary *summary)
{
    for (size_t at = 0; pictures && at < bytes;) {
        const struct cpl_picture *picture = (const void *)(pictures + at);
        if (is_of(picture, summary))
            return picture;
        at += (size_t)picture->n_bytes;
    }
    return NULL;
}

void cpl_picture_free(void)
{
    struct cpl_pictures *all = &cpl_context.told.pictures;
    for (int k = 0; k < all->n; k++)
        free(all->picture[k]);
    all->n_bytes = all->n = all->n_written = 0;
}
