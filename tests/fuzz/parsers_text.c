/* Parsers of texts for parsers_fuzz.c: patterns, machines, distances, strategies and settings. */
#include "parsers_fuzz.h"

#include "config.h"
#include "planner/machine.h"
#include "planner/pattern/pattern_read.h"
#include "planner/strategy.h"
#include "shim/base/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#define BANNER "%%MatrixMarket matrix coordinate "

/* --- patterns */
#define MAX_AFFORDABLE_RANKS 65536

static const char *const pattern_seeds[] = {
    "# a comment\n4\n0 1 2\n1 0 5\n1 3 3\n2 0 1\n2 3 6\n3 2 2\n",
    "5\n0 1 : 7 3 4\n0 2 : 3 4\n0 1 5\n3 3 : 1\n1 4 : 0 9223372036854775807 # all\n0 1 : 3 9\n",
    "6\n0 1 : 1 2 3\n0 2 : 1 2\n0 3 : 1\n4 5 : 0\n4 0 : 0\n5 4 0\n",
    "64\r\n0 63 9223372036854775807\r\n63 0 0\r\n5 5 1\r\n",
    BANNER "integer general\n% a comment\n4 4 3\n1 2 5\n4 1 6\n1 2 7\n",
    BANNER "real symmetric\n3 3 3\n2 1 4.0\n2 2 1e2\n3 2 12.50e+1\n",
    BANNER "pattern symmetric\n5 5 2\n2 1\n5 4",
    BANNER "integer skew-symmetric\n3 3 2\n2 1 -4\n3 1 5\n",
    NULL};

/* Inputs that may ask for millions of ranks are passed over: they are valid, and every one would
 * take a quarter of a gigabyte. */
static bool is_affordable(const uint8_t *bytes, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && bytes[i] >= '0' && bytes[i] <= '9') {
            value = value > CPL_MAX_RANKS ? value : value * 10 + (uint64_t)(bytes[i] - '0');
            continue;
        }
        if (value > MAX_AFFORDABLE_RANKS && value <= CPL_MAX_RANKS)
            return false;
        value = 0;
    }
    return true;
}

/* Whether message m comes behind the one before it: by destination, by class. */
static bool is_behind(const struct cpl_pattern *pattern, int64_t m)
{
    if (pattern->dst[m - 1] != pattern->dst[m])
        return pattern->dst[m - 1] < pattern->dst[m];
    return pattern->pairs && pattern->payload_class[m - 1] < pattern->payload_class[m];
}

static void check_pattern(const struct cpl_pattern *p)
{
    need(p->n_ranks >= 1 && p->n_ranks <= CPL_MAX_RANKS);
    need(p->first[0] == 0 && p->first[p->n_ranks] == p->n_messages);
    for (int32_t i = 0; i < p->n_ranks; i++) {
        need(p->first[i] <= p->first[i + 1]);
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            need(p->dst[m] >= 0 && p->dst[m] < p->n_ranks && p->dst[m] != i && p->volume[m] >= 0);
            need(!p->payload_class || p->payload_class[m] >= -1);
            need(m == p->first[i] || is_behind(p, m));
        }
    }
    if (p->pairs) {
        need(!p->pairs->pairs && !p->pairs->payload_class && p->pairs->n_ranks == p->n_ranks);
        check_pattern(p->pairs);
    }
}

static void check_written(const struct cpl_pattern *pattern)
{
    const struct cpl_pattern *pairs = cpl_pattern_pairs(pattern);
    struct cpl_pattern again;
    struct cpl_error error;
    need(!cpl_pattern_write(pattern, "written.mtx", &error));
    need(!cpl_pattern_read("written.mtx", &again, &error));
    need(again.n_ranks == pairs->n_ranks && again.n_messages == pairs->n_messages);
    need(memcmp(again.first, pairs->first, ((size_t)pairs->n_ranks + 1) * sizeof(int64_t)) == 0);
    size_t n = (size_t)pairs->n_messages;
    need(n == 0 || memcmp(again.dst, pairs->dst, n * sizeof(int32_t)) == 0);
    need(n == 0 || memcmp(again.volume, pairs->volume, n * sizeof(int64_t)) == 0);
    cpl_pattern_free(&again);
}

static bool run_pattern(const uint8_t *bytes, size_t n, uint64_t *random)
{
    struct cpl_text_reader reader;
    struct cpl_pattern pattern;
    struct cpl_error error = {""};
    if (!is_affordable(bytes, n))
        return false;
    cpl_text_open_memory("input", bytes, n, &reader);
    enum cpl_status status = cpl_pattern_read_text(&reader, &pattern, &error);
    cpl_text_close(&reader);
    if (status) {
        need(status == CPL_ERR_FORMAT || status == CPL_ERR_NOMEM);
        need(strncmp(error.text, "input:", 6) == 0 || status == CPL_ERR_NOMEM);
        need_text(status, &error);
        return false;
    }
    check_pattern(&pattern);
    if (draw(random, 8) == 0)
        check_written(&pattern);
    cpl_pattern_free(&pattern);
    return true;
}

const struct parser parser_pattern = {"patterns", 30,          false, pattern_seeds,
                                      NULL,       run_pattern, false};

/* --- patterns in files, compressed where there is zlib; the compressed bytes are damaged, too */
static bool run_pattern_file(const uint8_t *bytes, size_t n, uint64_t *random)
{
    struct cpl_pattern pattern;
    struct cpl_error error = {""};
    if (!is_affordable(bytes, n))
        return false;
    write_input("input", bytes, n);
#ifdef HAVE_ZLIB
    if (draw(random, 4)) {
        struct input packed = {.n = 0};
        gzFile file = gzopen("input", "wb1");
        need(file && gzwrite(file, bytes, (unsigned)n) == (int)n && gzclose(file) == Z_OK);
        FILE *in = fopen("input", "rb");
        need(in);
        packed.n = fread(packed.bytes, 1, MAX_INPUT, in);
        fclose(in);
        struct input other = packed;
        if (draw(random, 2))
            mutate(&packed, &other, random);
        write_input("input", packed.bytes, packed.n);
    }
#endif
    enum cpl_status status = cpl_pattern_read("input", &pattern, &error);
    need_text(status, &error);
    if (status)
        return false;
    check_pattern(&pattern);
    cpl_pattern_free(&pattern);
    return true;
}

const struct parser parser_pattern_file = {"pattern files",  8,    false, pattern_seeds, NULL,
                                           run_pattern_file, false};

/* --- machine files */
static const char *const machine_seeds[] = {
    "# a machine\nsocket.send_us 0.25\nsocket.recv_us 0.3\nsocket.latency_us 0.5\n"
    "socket.ns_per_byte 0.1\nsocket.lane.send_us 0.03\nnode.send_us 0.4\nnode.latency_us "
    "1e-1\nnetwork.send_us 1\n"
    "network.recv_us 2\nnetwork.ns_per_byte 0.08\nnetwork.node_ns_per_byte 0.09\n",
    "combined_ns 100\nsegment_ns 20 # a piece\npacked_ns_per_byte 0.05\nitem_ns 3\nswitch_us 2\n"
    "ranks_per_node 4\ndistances my distances.mtx\n",
    "ranks_per_node 2147483647\r\ndistances /a/b.mtx\r\n", NULL};

static void need_path(const struct cpl_machine_path *path)
{
    need(memchr(path->name, 0, sizeof path->name));
    need((path->name[0] != '\0') == (path->line > 0));
}

static bool run_machine(const uint8_t *bytes, size_t n, uint64_t *random)
{
    struct cpl_machine_file file = cpl_machine_file_default(), before;
    struct cpl_error error = {""};
    (void)random;
    memcpy(&before, &file, sizeof file);
    write_input("input", bytes, n);
    enum cpl_status status = cpl_machine_file_read("input", &file, &error);
    need_text(status, &error);
    if (status) {
        need(status == CPL_ERR_FORMAT && memcmp(&before, &file, sizeof file) == 0);
        need(strncmp(error.text, "input:", 6) == 0);
        return false;
    }
    const double *cost = (const double *)(const void *)&file.costs;
    for (size_t k = 0; k < sizeof file.costs / sizeof *cost; k++)
        need(isfinite(cost[k]) && cost[k] >= 0);
    need(file.ranks_per_node >= 0);
    need_path(&file.distances);
    need_path(&file.distance_bytes);
    return true;
}

const struct parser parser_machine = {"machine files", 12,   false, machine_seeds, NULL,
                                      run_machine,     false};

/* --- distances */
static const char *const distance_seeds[] = {
    "%%MatrixMarket matrix array real general\n4 4\n0\n1.5\n2\n3\n1\n0\n2.5\n3\n1\n2\n0\n3\n1\n2\n"
    "3\n0\n",
    "%%MatrixMarket matrix array integer symmetric\n4 4\n0\n1\n2\n3\n0\n2\n3\n0\n3\n0\n",
    BANNER "real symmetric\n4 4 6\n2 1 1\n3 1 2\n4 1 3.25\n3 2 4\n4 2 1e1\n4 3 5\n", NULL};

static bool run_distances(const uint8_t *bytes, size_t n, uint64_t *random)
{
    struct cpl_distances distances;
    struct cpl_error error = {""};
    (void)random;
    write_input("input", bytes, n);
    enum cpl_status status = cpl_distances_read("input", 4, &distances, &error);
    need_text(status, &error);
    if (status)
        return false;
    need(distances.n_ranks == 4);
    for (int k = 0; k < 16; k++) {
        need(isfinite(distances.us[k]) && distances.us[k] >= 0);
        need((double)distances.us[k] <= CPL_MAX_DISTANCE_US && (k % 5 || distances.us[k] == 0));
    }
    cpl_distances_free(&distances);
    return true;
}

const struct parser parser_distances = {"distances",   8,    false, distance_seeds, NULL,
                                        run_distances, false};

/* --- strategies: what is accepted has a canonical text that means the same */
static const char *const strategy_seeds[] = {"direct",
                                             "share",
                                             "share:1",
                                             "share:stay",
                                             "vpt:3",
                                             "grid:8x64",
                                             "grid:far:8x64+near",
                                             "grid:increase:4",
                                             "grid:far:locality",
                                             "node",
                                             "node:2",
                                             "node:spread",
                                             "node:partner",
                                             "node-grid:0:2:2",
                                             "part-grid:product",
                                             "vpt:3+klr",
                                             "vpt:2+klf",
                                             "balance",
                                             "balance:hops=2",
                                             "auto",
                                             NULL};

static bool run_strategy(const uint8_t *bytes, size_t n, uint64_t *random)
{
    struct cpl_strategy_choice choice, again;
    struct cpl_error error = {""};
    char text[CPL_STRATEGY_TEXT], same[CPL_STRATEGY_TEXT];
    (void)n;
    (void)random;
    enum cpl_status status = cpl_strategy_parse((const char *)bytes, &choice, &error);
    need_text(status, &error);
    if (status) {
        need(status == CPL_ERR_ARG);
        return false;
    }
    cpl_strategy_format(&choice, text);
    need(memchr(text, 0, sizeof text) && text[0]);
    need(!cpl_strategy_parse(text, &again, &error));
    cpl_strategy_format(&again, same);
    need(strcmp(text, same) == 0 && again.strategy == choice.strategy);
    need(again.numbers.n == choice.numbers.n);
    for (int32_t k = 0; k < again.numbers.n; k++)
        need(again.numbers.at[k] == choice.numbers.at[k]);
    return true;
}

const struct parser parser_strategy = {"strategies", 15,           true, strategy_seeds,
                                       NULL,         run_strategy, false};

/* --- settings: an environment, a variable a line. Accepted: nothing was warned about. */
static const char *const settings_seeds[] = {
    "CARPOOL_MODE=force\nCARPOOL_STRATEGY=vpt:3+klr\nCARPOOL_BUDGET=500\nHOME=/root\n",
    "CARPOOL_SIZE_LIMIT=4K\nCARPOOL_HOLD=0\nCARPOOL_EMBED=all\nCARPOL_MODE=off\ncarpool_mode=x\n",
    "CARPOOL_REPORT=a file\nCARPOOL_OUTPUT=\nCARPOOL_VERBOSE=info\nCARPOOL_TRIAL=7\nX\n=\n",
    "CARPOOL_LEARN=1\nCARPOOL_RANKS_PER_NODE=2\nCARPOOL_CHECK=yes\nCARPOOL_SIZE_LIMIT=2g\n", NULL};

static void count_warning(void *context, const char *text)
{
    need(text[0] && strlen(text) < 2048 && !strchr(text, '\n'));
    ++*(int *)context;
}

static bool run_settings(const uint8_t *bytes, size_t n, uint64_t *random)
{
    char *lines = malloc(n + 1), *environment[512], text[CPL_SETTINGS_TEXT + 1];
    struct cpl_settings settings;
    struct cpl_error error;
    struct cpl_strategy_choice choice;
    int n_lines = 0, n_warnings = 0;
    need(lines);
    memcpy(lines, bytes, n);
    lines[n] = '\0';
    for (char *at = strtok(lines, "\n"); at && n_lines < 511; at = strtok(NULL, "\n"))
        environment[n_lines++] = at;
    environment[n_lines] = NULL;
    cpl_settings_read(&settings, environment, draw(random, 8) ? count_warning : NULL, &n_warnings);
    need(!cpl_strategy_parse(settings.strategy, &choice, &error));
    for (size_t k = 0; k < cpl_settings_count(); k++)
        cpl_settings_value(&settings, k, text, sizeof text);
    need(settings.mode >= CPL_MODE_OFF && settings.mode <= CPL_MODE_FORCE);
    need(settings.size_limit >= 0 && settings.budget >= 0);
    free(lines);
    return n_warnings == 0;
}

const struct parser parser_settings = {"settings", 15,           true, settings_seeds,
                                       NULL,       run_settings, false};
