/* Pictures of exchanges (picture.h). */
#include "shim/report/picture.h"
#include "shim/meet/decision.h"

#include "shim/base/log.h"
#include "shim/report/report.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES   (16 << 20) /* of a process's pictures, and of all together at rank 0 */
#define CELLS        128        /* the most cells a side */
#define BINS         256        /* the most bins */
#define SIZE_CLASSES 32

/* The messages of an exchange, or the combined messages of its plan. */
struct side {
    const struct cpl_machine *machine;
    int32_t n_cells, cell_ranks, bin_ranks;
    int64_t *cells, *volumes; /* messages, and their bytes, from one group of cell_ranks ranks to
                                 another: [sender's group * n_cells + receiver's] */
    int64_t *sends, *recvs;   /* messages, by rank */
    int64_t messages[2], bytes[2]; /* 0: inside nodes, 1: between them */
};

/* The number of ranks in a group when there may be at most `most` groups. */
static int32_t group_of(int32_t n_ranks, int32_t most)
{
    return (n_ranks + most - 1) / most;
}

static bool open_side(struct side *s, const struct cpl_machine *machine)
{
    const int32_t n = machine->n_ranks, cell_ranks = group_of(n, CELLS);
    *s = (struct side){.machine = machine,
                       .cell_ranks = cell_ranks,
                       .n_cells = group_of(n, cell_ranks),
                       .bin_ranks = group_of(n, BINS)};
    const size_t n_all = (size_t)s->n_cells * (size_t)s->n_cells;
    s->cells = calloc(2 * n_all + 2 * (size_t)n, sizeof *s->cells);
    if (!s->cells)
        return false;
    s->volumes = s->cells + n_all;
    s->sends = s->volumes + n_all;
    s->recvs = s->sends + n;
    return true;
}

static void count(struct side *s, int32_t from, int32_t to, int64_t bytes)
{
    const int between = s->machine->node[from] != s->machine->node[to];
    const int32_t cell = from / s->cell_ranks * s->n_cells + to / s->cell_ranks;
    s->cells[cell]++;
    s->volumes[cell] += bytes;
    s->messages[between]++;
    s->bytes[between] += bytes;
    s->sends[from]++;
    s->recvs[to]++;
}

/* The busiest rank's load in each bin. */
static json_t *bins_json(const struct side *s, const int64_t *loads)
{
    json_t *array = json_array();
    for (int32_t i = 0, n = s->machine->n_ranks; i < n;) {
        int64_t most = 0;
        for (int32_t end = i + s->bin_ranks; i < n && i < end; i++)
            most = loads[i] > most ? loads[i] : most;
        json_array_append_new(array, json_integer(most));
    }
    return array;
}

/* A text for each row, of the cells that are not empty: "COLUMN:COUNT COLUMN:COUNT". */
static json_t *cells_json(const struct side *s, const int64_t *cells)
{
    json_t *rows = json_array();
    for (int32_t i = 0; i < s->n_cells; i++, cells += s->n_cells) {
        char text[CELLS * 24] = "";
        size_t used = 0;
        for (int32_t k = 0; k < s->n_cells; k++)
            if (cells[k])
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%d:%lld",
                                         used ? " " : "", k, (long long)cells[k]);
        json_array_append_new(rows, json_string(text));
    }
    return rows;
}

/* Frees its arrays. */
static json_t *close_side(struct side *s)
{
    json_t *o = json_pack("{s:{s:I s:I} s:{s:I s:I} s:o s:o s:o s:o}", "inside", "messages",
                          (json_int_t)s->messages[0], "bytes", (json_int_t)s->bytes[0], "between",
                          "messages", (json_int_t)s->messages[1], "bytes", (json_int_t)s->bytes[1],
                          "sends", bins_json(s, s->sends), "recvs", bins_json(s, s->recvs), "cells",
                          cells_json(s, s->cells), "cell_bytes", cells_json(s, s->volumes));
    free(s->cells);
    return o;
}

/* Where nodes begin, but for the first, if each has consecutive ranks and there are few. */
static json_t *borders_json(const struct cpl_machine *machine)
{
    json_t *borders = json_array();
    int32_t n = 0;
    for (int32_t i = 1; i < machine->n_ranks; i++)
        if (machine->node[i] != machine->node[i - 1] && n++ < CELLS)
            json_array_append_new(borders, json_integer(i));
    if (n > CELLS || n != machine->n_nodes - 1)
        json_array_clear(borders);
    return borders;
}

/* Pairs [largest number of bytes, messages] of classes of 0 bytes, 1, 2 to 3, 4 to 7, ... that are
 * not empty. */
static json_t *sizes_json(const int64_t classes[SIZE_CLASSES], int64_t largest)
{
    json_t *array = json_array();
    for (int k = 0; k < SIZE_CLASSES; k++) {
        const int64_t most = (INT64_C(1) << k) - 1;
        if (classes[k])
            json_array_append_new(array,
                                  json_pack("[I, I]", (json_int_t)(most < largest ? most : largest),
                                            (json_int_t)classes[k]));
    }
    return array;
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

/* Names a pattern and its plan. */
struct name {
    char text[36];
};

static struct name name_of(const struct cpl_plan_summary *summary)
{
    struct name name;
    snprintf(name.text, sizeof name.text, "%016" PRIx64 "-%016" PRIx64,
             summary->pattern_fingerprint, summary->plan_fingerprint);
    return name;
}

/* NULL: no memory. */
static char *draw(const struct cpl_pattern *pattern, const struct cpl_plan *plan,
                  const struct cpl_machine *machine, const struct cpl_plan_summary *summary,
                  bool is_written)
{
    struct side direct, planned;
    int64_t classes[SIZE_CLASSES] = {0}, smallest = 0, largest = 0;
    if (!open_side(&direct, machine) || !open_side(&planned, machine)) {
        free(direct.cells);
        return NULL;
    }
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            const int64_t bytes = pattern->volume[m];
            int k = 0;
            count(&direct, i, pattern->dst[m], bytes);
            while (k < SIZE_CLASSES - 1 && bytes >> k > 0)
                k++;
            classes[k]++;
            smallest = m == 0 || bytes < smallest ? bytes : smallest;
            largest = bytes > largest ? bytes : largest;
        }
    for (int64_t e = 0; e < plan->n_edges; e++)
        count(&planned, plan->edges[e].from, plan->edges[e].to, plan->edges[e].volume);
    const struct name name = name_of(summary);
    char file[48];
    snprintf(file, sizeof file, "pattern-%.16s.mtx", name.text);
    json_t *o = json_pack("{s:s s:s* s:i s:I s:I s:o s:i s:i s:o s:o s:o}", "of", name.text, "file",
                          is_written ? file : NULL, "nodes", machine->n_nodes, "bytes_min",
                          (json_int_t)smallest, "bytes_max", (json_int_t)largest, "sizes",
                          sizes_json(classes, largest), "cell_ranks", direct.cell_ranks,
                          "bin_ranks", direct.bin_ranks, "node_borders", borders_json(machine),
                          "direct", close_side(&direct), "planned", close_side(&planned));
    char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(o);
    return text;
}

void cpl_picture_add(const struct cpl_pattern *pattern, const struct cpl_plan *plan,
                     const struct cpl_machine *machine, const struct cpl_plan_summary *summary)
{
    struct cpl_pictures *all = &cpl_context.told.pictures;
    if (!cpl_report_has_file())
        return;
    bool is_written = write_pattern(pattern, summary->pattern_fingerprint);
    if (all->n == CPL_MOST_PICTURES || cpl_picture_find(all->texts, (size_t)all->n_bytes, summary))
        return;
    char *text = draw(pattern, plan, machine, summary, is_written);
    const int64_t bytes = text ? (int64_t)strlen(text) + 1 : 0, sum = all->n_bytes + bytes;
    char *more = text && sum <= MOST_BYTES ? realloc(all->texts, (size_t)sum) : NULL;
    if (more) {
        memcpy(more + all->n_bytes, text, (size_t)bytes);
        all->texts = more;
        all->n_bytes = sum;
        all->n++;
    }
    free(text);
}

char *cpl_picture_collect(size_t *bytes)
{
    CPL_DECISION(decision, MPI_COMM_WORLD);
    const struct cpl_pictures *mine = &cpl_context.told.pictures;
    int64_t before = 0;
    char *all = NULL;
    *bytes = 0;
    /* of the first ranks, as far as there is room */
    if (cpl_collective_Exscan(&mine->n_bytes, &before, 1, MPI_INT64_T, MPI_SUM, decision.comm) ==
        MPI_SUCCESS) {
        bool fits = before + mine->n_bytes <= MOST_BYTES;
        const struct cpl_handed_in handed = {.able = true,
                                             .records = mine->texts,
                                             .n = fits ? (int)mine->n_bytes : 0,
                                             .record_bytes = 1};
        if (cpl_decision_hand_in(&decision, &handed) && cpl_decision_is_root(&decision)) {
            *bytes = (size_t)decision.first[decision.n_ranks];
            all = decision.records;
            decision.records = NULL;
        }
    }
    return all;
}

char *cpl_picture_find(char *pictures, size_t bytes, const struct cpl_plan_summary *summary)
{
    char head[48];
    snprintf(head, sizeof head, "{\"of\":\"%s", name_of(summary).text);
    for (size_t at = 0; pictures && at < bytes; at += strlen(pictures + at) + 1)
        if (strncmp(pictures + at, head, strlen(head)) == 0)
            return pictures + at;
    return NULL;
}

void cpl_picture_free(void)
{
    struct cpl_pictures *all = &cpl_context.told.pictures;
    free(all->texts);
    all->texts = NULL;
    all->n_bytes = all->n = all->n_written = 0;
}
