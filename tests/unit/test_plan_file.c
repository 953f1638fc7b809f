/* Tests of plans in files (plan_file.h) and of the directory that they are kept in (plan_cache.h):
 * plans are read as they were written, and anything else is refused. */
#include "planner/keep/plan_cache.h"
#include "planner/keep/plan_file.h"
#include "plans.h"
#include "random_machine.h"
#include "random_pattern.h"
#include "temp_dir.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define N_TRIALS   40
#define N_FORGED   20000
#define MOST_RANKS 24
#define HEADER     32 /* bytes before the table of sections, and of one of its rows */

struct trial {
    uint64_t random;
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_strategy_input input;
    char strategy[CPL_STRATEGY_TEXT];
    struct cpl_plan_key key;
    struct cpl_plan_set set;
    struct cpl_bytes key_bytes, file;
};

static void describe(struct trial *t, uint64_t seed)
{
    *t = (struct trial){.random = seed};
    t->pattern = random_pattern(seed, MOST_RANKS);
    t->machine = random_machine(&t->random, t->pattern.n_ranks);
    if (seed % 3 == 0) {
        int64_t n = (int64_t)t->pattern.n_ranks * t->pattern.n_ranks;
        float *us = CPL_ARENA_ARRAY(&t->machine.arena, float, n);
        float *ns = CPL_ARENA_ARRAY(&t->machine.arena, float, n);
        for (int64_t k = 0; k < n; k++) {
            us[k] = (float)random_below(&t->random, 100) / 8;
            ns[k] = us[k] / 4;
        }
        t->machine.distance_us = us;
        t->machine.distance_ns_per_byte = ns;
    }
    t->input = (struct cpl_strategy_input){&t->pattern, &t->machine, 8, 0.3};
    t->key = (struct cpl_plan_key){"1.2", t->strategy, 2, &t->input};
}

/* Plans by a choice, which may be auto, and writes the file. */
static bool make(struct trial *t, const struct cpl_strategy_choice *choice)
{
    struct cpl_error error = {""};
    cpl_strategy_format(choice, t->strategy);
    t->set = (struct cpl_plan_set){.n = 1, .ms = 12.5};
    t->set.choice[0] = *choice;
    enum cpl_status status = choice->strategy
                                 ? cpl_strategy_plan(&t->input, choice, t->set.plan, &error)
                                 : cpl_strategy_plan_several(&t->input, 2, t->set.choice,
                                                             t->set.plan, &t->set.n, &error);
    if (status == CPL_ERR_UNFIT)
        return false;
    if (status)
        fail_msg("%s", error.text);
    cpl_plan_key_put(&t->key, &t->key_bytes);
    cpl_plan_file_put(&t->key_bytes, &t->set, &t->file);
    assert_false(t->key_bytes.failed || t->file.failed);
    return true;
}

static void unmake(struct trial *t)
{
    cpl_plan_set_free(&t->set);
    cpl_bytes_free(&t->file);
    cpl_bytes_free(&t->key_bytes);
}

static void clear(struct trial *t)
{
    cpl_machine_free(&t->machine);
    cpl_pattern_free(&t->pattern);
}

/* Makes a trial whose pattern has some messages, planned by auto. */
static void make_some(struct trial *t, uint64_t seed)
{
    for (describe(t, seed); t->pattern.n_messages < 3; describe(t, ++seed))
        clear(t);
    assert_true(make(t, &(struct cpl_strategy_choice){.strategy = NULL}));
}

static enum cpl_status take(const struct trial *t, const unsigned char *bytes, size_t n,
                            struct cpl_plan_set *set, struct cpl_error *error)
{
    unsigned char *aligned = malloc(n + 1); /* of this size, so that ASan sees what lies beyond */
    assert_non_null(aligned);
    memcpy(aligned, bytes, n);
    error->text[0] = '\0';
    enum cpl_status status = cpl_plan_file_take(aligned, n, &t->key, &t->key_bytes, set, error);
    free(aligned);
    return status;
}

static void assert_same_plan(const struct cpl_plan *a, const struct cpl_plan *b)
{
    assert_true(a->n_ranks == b->n_ranks && a->n_waves == b->n_waves);
    assert_true(a->has_parts == b->has_parts);
    assert_true(a->n_bundles == b->n_bundles && a->n_dests == b->n_dests);
    assert_true(a->n_edges == b->n_edges && a->n_segments == b->n_segments);
    assert_memory_equal(a->bundles, b->bundles, (size_t)a->n_bundles * sizeof *a->bundles);
    assert_memory_equal(a->dests, b->dests, (size_t)a->n_dests * sizeof *a->dests);
    assert_memory_equal(a->edges, b->edges, (size_t)a->n_edges * sizeof *a->edges);
    assert_memory_equal(a->segments, b->segments, (size_t)a->n_segments * sizeof *a->segments);
    assert_true(a->pattern_fingerprint == b->pattern_fingerprint);
    assert_true(a->fingerprint == b->fingerprint);
}

static void assert_same_choice(const struct cpl_strategy_choice *a,
                               const struct cpl_strategy_choice *b)
{
    char text[2][CPL_STRATEGY_TEXT];
    cpl_strategy_format(a, text[0]);
    cpl_strategy_format(b, text[1]);
    assert_string_equal(text[0], text[1]);
    assert_ptr_equal(a->strategy, b->strategy);
    assert_int_equal(a->numbers.n, b->numbers.n);
    for (int32_t k = 0; k < a->numbers.n; k++)
        assert_int_equal(a->numbers.at[k], b->numbers.at[k]);
}

static void assert_same_set(const struct cpl_plan_set *a, const struct cpl_plan_set *b)
{
    assert_int_equal(a->n, b->n);
    assert_true(a->ms == b->ms);
    for (int32_t k = 0; k < a->n; k++) {
        assert_same_plan(&a->plan[k], &b->plan[k]);
        assert_same_choice(&a->choice[k], &b->choice[k]);
    }
}

/* Reads the trial's file, and writes the same file of what was read. */
static void read_back(struct trial *t)
{
    struct cpl_plan_set set;
    struct cpl_error error;
    struct cpl_bytes again = {NULL, 0, 0, false};
    if (take(t, t->file.at, t->file.n, &set, &error))
        fail_msg("%s: %s", t->strategy, error.text);
    assert_same_set(&t->set, &set);
    cpl_plan_file_put(&t->key_bytes, &set, &again);
    assert_int_equal(again.n, t->file.n);
    assert_memory_equal(again.at, t->file.at, again.n);
    cpl_bytes_free(&again);
    cpl_plan_set_free(&set);
}

static void test_round_trips(void **state)
{
    (void)state;
    int n_read = 0, n_several = 0;
    for (uint64_t seed = 0; seed < N_TRIALS; seed++) {
        struct trial t;
        struct cpl_strategy_list list;
        describe(&t, seed);
        cpl_strategy_candidates(&t.input, &list);
        cpl_strategy_add(&list, NULL, &(struct cpl_strategy_numbers){0});
        for (size_t k = 0; k < list.n; k++) {
            if (!make(&t, &list.choice[k]))
                continue;
            read_back(&t);
            n_read++;
            n_several += t.set.n > 1;
            unmake(&t);
        }
        clear(&t);
    }
    assert_true(n_read > 5 * N_TRIALS && n_several > N_TRIALS / 8);
}

/* What is refused leaves the output alone and says why. */
static void refuse(const struct trial *t, const unsigned char *bytes, size_t n,
                   enum cpl_status expected)
{
    struct cpl_plan_set set, before;
    struct cpl_error error;
    memset(&set, 0xa5, sizeof set);
    memset(&before, 0xa5, sizeof before);
    enum cpl_status status = take(t, bytes, n, &set, &error);
    assert_int_not_equal(status, CPL_OK);
    if (expected)
        assert_int_equal(status, expected);
    assert_true(error.text[0] != '\0');
    assert_memory_equal(&set, &before, sizeof set);
}

static void test_cut_off(void **state)
{
    (void)state;
    struct trial t;
    make_some(&t, 3);
    for (size_t n = 0; n < t.file.n; n++)
        refuse(&t, t.file.at, n, CPL_ERR_FORMAT);
    unsigned char *longer = calloc(1, t.file.n + 8);
    assert_non_null(longer);
    memcpy(longer, t.file.at, t.file.n);
    for (size_t more = 1; more <= 8; more++)
        refuse(&t, longer, t.file.n + more, CPL_ERR_FORMAT);
    free(longer);
    unmake(&t);
    clear(&t);
}

static void test_flipped(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++) {
        struct trial t;
        make_some(&t, seed);
        for (size_t k = 0; k < 8 * t.file.n; k++) {
            t.file.at[k / 8] ^= (unsigned char)(1 << k % 8);
            refuse(&t, t.file.at, t.file.n, CPL_OK);
            t.file.at[k / 8] ^= (unsigned char)(1 << k % 8);
        }
        read_back(&t);
        unmake(&t);
        clear(&t);
    }
}

/* Makes the checksums right again. */
static void sign(struct cpl_bytes *file)
{
    uint64_t *words = (uint64_t *)(void *)file->at, n_sections = words[3];
    size_t end = HEADER + n_sections * HEADER;
    for (uint64_t k = 0; k < n_sections; k++) {
        uint64_t *row = words + (HEADER + k * HEADER) / 8; /* kind, offset, bytes, checksum */
        if (row[1] % 8 == 0 && row[1] <= file->n && row[2] <= file->n - row[1])
            row[3] = cpl_bytes_hash(file->at + row[1], row[2] / 8 * 8);
    }
    words[end / 8] = cpl_bytes_hash(file->at, end);
}

/* Files that no checksum gives away: what is taken passed cpl_plan_check, and nothing crashes. */
static void test_forged(void **state)
{
    (void)state;
    struct trial t;
    make_some(&t, 5);
    int n_taken = 0;
    unsigned char *kept = malloc(t.file.n);
    assert_non_null(kept);
    memcpy(kept, t.file.at, t.file.n);
    for (int k = 0; k < N_FORGED; k++) {
        struct cpl_plan_set set;
        struct cpl_error error;
        static const int32_t odd[] = {-1, 0, 1, 2, INT32_MAX, INT32_MIN};
        int32_t *words = (int32_t *)(void *)t.file.at;
        /* the table's rows, and what is behind the key */
        size_t behind = (size_t)((uint64_t *)(void *)t.file.at)[HEADER / 8 + 5] / 4;
        size_t at = random_draw(&t.random, 8)
                        ? behind + random_draw(&t.random, t.file.n / 4 - behind)
                        : HEADER / 4 + random_draw(&t.random, 24);
        words[at] = random_draw(&t.random, 2)
                        ? odd[random_draw(&t.random, sizeof odd / sizeof *odd)]
                        : words[at] + random_below(&t.random, 5) - 2;
        sign(&t.file);
        enum cpl_status status = take(&t, t.file.at, t.file.n, &set, &error);
        if (!status) {
            n_taken++;
            for (int32_t i = 0; i < set.n; i++)
                assert_int_equal(cpl_plan_check(&set.plan[i], &t.pattern, &error), CPL_OK);
            cpl_plan_set_free(&set);
        } else {
            assert_true(error.text[0] != '\0');
        }
        memcpy(t.file.at, kept, t.file.n);
    }
    assert_in_range(n_taken, 1, N_FORGED / 2); /* other times, and what was not changed at all */
    free(kept);
    unmake(&t);
    clear(&t);
}

/* The trial's file for the key as it is now: another one, so that it is refused and has another
 * name. */
static void expect_other_key(struct trial *t, const char *what)
{
    struct cpl_bytes old = t->key_bytes;
    t->key_bytes = (struct cpl_bytes){NULL, 0, 0, false};
    cpl_plan_key_put(&t->key, &t->key_bytes);
    if (t->key_bytes.n == old.n && memcmp(t->key_bytes.at, old.at, old.n) == 0)
        fail_msg("%s is not in the key", what);
    if (cpl_bytes_hash(t->key_bytes.at, t->key_bytes.n) == cpl_bytes_hash(old.at, old.n))
        fail_msg("%s: the same name", what);
    refuse(t, t->file.at, t->file.n, CPL_ERR_UNFIT);
    cpl_bytes_free(&t->key_bytes);
    t->key_bytes = old;
}

#define EXPECT_OTHER_KEY(t, what, change, undo)                                                    \
    do {                                                                                           \
        change;                                                                                    \
        expect_other_key(t, what);                                                                 \
        undo;                                                                                      \
    } while (0)

static void test_other_keys(void **state)
{
    (void)state;
    struct trial t;
    make_some(&t, 9);
    struct cpl_pattern *p = &t.pattern;
    struct cpl_machine *m = &t.machine;
    int32_t last = p->n_ranks - 1;
    float *us = (float *)(uintptr_t)m->distance_us;
    float *ns = (float *)(uintptr_t)m->distance_ns_per_byte;
    assert_true(us && ns);
    EXPECT_OTHER_KEY(&t, "version", t.key.version = "1.20", t.key.version = "1.2");
    EXPECT_OTHER_KEY(&t, "strategy", t.key.strategy = "balance", t.key.strategy = t.strategy);
    EXPECT_OTHER_KEY(&t, "plans", t.key.most--, t.key.most++);
    EXPECT_OTHER_KEY(&t, "budget", t.input.budget_ms++, t.input.budget_ms--);
    EXPECT_OTHER_KEY(&t, "unit", t.input.unit_bytes++, t.input.unit_bytes--);
    EXPECT_OTHER_KEY(&t, "volume", p->volume[p->n_messages - 1]++, p->volume[p->n_messages - 1]--);
    EXPECT_OTHER_KEY(&t, "destination", p->dst[0]++, p->dst[0]--);
    EXPECT_OTHER_KEY(&t, "row", p->first[1]++, p->first[1]--);
    EXPECT_OTHER_KEY(&t, "node", m->node[last]++, m->node[last]--);
    EXPECT_OTHER_KEY(&t, "socket", m->socket[last]++, m->socket[last]--);
    EXPECT_OTHER_KEY(&t, "NUMA domain", m->numa[last]++, m->numa[last]--);
    EXPECT_OTHER_KEY(&t, "cores", m->cores_per_node++, m->cores_per_node--);
    EXPECT_OTHER_KEY(&t, "lanes", m->lanes = !m->lanes, m->lanes = !m->lanes);
    EXPECT_OTHER_KEY(&t, "distance", us[1] += 1, us[1] -= 1);
    EXPECT_OTHER_KEY(&t, "time per byte", ns[1] += 1, ns[1] -= 1);
    EXPECT_OTHER_KEY(&t, "no times per byte", m->distance_ns_per_byte = NULL,
                     m->distance_ns_per_byte = ns);
    EXPECT_OTHER_KEY(&t, "no distances", m->distance_us = NULL, m->distance_us = us);
    for (size_t k = 0; k < sizeof m->costs / sizeof(double); k++) {
        double *cost = (double *)(void *)&m->costs + k, before = *cost;
        EXPECT_OTHER_KEY(&t, "a cost", *cost += 1, *cost = before);
    }
    int32_t *class_ = p->payload_class;
    if (class_)
        EXPECT_OTHER_KEY(&t, "class", class_[0]++, class_[0]--);
    EXPECT_OTHER_KEY(&t, "no classes", p->payload_class = class_ ? NULL : p->dst,
                     p->payload_class = class_);
    read_back(&t);
    unmake(&t);
    clear(&t);
}

static void test_other_formats(void **state)
{
    (void)state;
    struct trial t;
    make_some(&t, 4);
    uint32_t *words = (uint32_t *)(void *)t.file.at;
    words[2]++;
    sign(&t.file);
    refuse(&t, t.file.at, t.file.n, CPL_ERR_UNFIT);
    words[2]--;
    words[3] = 0x04030201;
    sign(&t.file);
    refuse(&t, t.file.at, t.file.n, CPL_ERR_UNFIT);
    unmake(&t);
    clear(&t);
}

/* --- the directory */

static int n_files(const char *directory, char *name, size_t size)
{
    int n = 0;
    DIR *list = opendir(directory);
    assert_non_null(list);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
        if (entry->d_name[0] != '.') {
            snprintf(name, size, "%.*s", (int)size - 1, entry->d_name);
            n++;
        }
    closedir(list);
    return n;
}

static void expect_found(struct trial *t, const char *directory, bool expected)
{
    struct cpl_plan_set set;
    struct cpl_error error = {""};
    bool found = !expected;
    if (cpl_plan_cache_find(directory, &t->key, &set, &found, &error))
        fail_msg("%s", error.text);
    assert_int_equal(found, expected);
    if (found) {
        assert_same_set(&t->set, &set);
        cpl_plan_set_free(&set);
    }
}

static void expect_refused(struct trial *t, const char *directory, enum cpl_status expected,
                           const char *text)
{
    struct cpl_plan_set set;
    struct cpl_error error = {""};
    bool found = true;
    assert_int_equal(cpl_plan_cache_find(directory, &t->key, &set, &found, &error), expected);
    assert_true(found); /* as it was */
    if (!strstr(error.text, directory) || !strstr(error.text, text))
        fail_msg("%s", error.text);
}

static void keep(struct trial *t, const char *directory)
{
    struct cpl_error error = {""};
    if (cpl_plan_cache_keep(directory, &t->key, &t->set, &error))
        fail_msg("%s", error.text);
}

static void test_directory(void **state)
{
    (void)state;
    struct trial t, other;
    struct temp_dir dir;
    char name[256] = "", path[400];
    temp_dir_make(&dir);
    make_some(&t, 11);
    make_some(&other, 20);
    expect_found(&t, dir.path, false);
    keep(&t, dir.path);
    keep(&t, dir.path);
    assert_int_equal(n_files(dir.path, name, sizeof name), 1);
    expect_found(&t, dir.path, true);
    expect_found(&other, dir.path, false);
    /* of another pattern under this name */
    snprintf(path, sizeof path, "%s", temp_dir_write(&dir, name, other.file.at, other.file.n));
    expect_refused(&t, dir.path, CPL_ERR_UNFIT, "another pattern");
    /* damaged, empty, of something else; replaced */
    temp_dir_write(&dir, name, t.file.at, t.file.n - 8);
    expect_refused(&t, dir.path, CPL_ERR_FORMAT, "damaged");
    temp_dir_text(&dir, name, "");
    expect_refused(&t, dir.path, CPL_ERR_FORMAT, "no file of plans");
    temp_dir_text(&dir, name, "a letter to someone else, longer than a header is");
    expect_refused(&t, dir.path, CPL_ERR_FORMAT, "no file of plans");
    keep(&t, dir.path);
    expect_found(&t, dir.path, true);
    /* not even a file */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    expect_refused(&t, dir.path, CPL_ERR_IO, "no plain file");
    struct cpl_error error = {""};
    assert_int_equal(cpl_plan_cache_keep(dir.path, &t.key, &t.set, &error), CPL_ERR_IO);
    assert_non_null(strstr(error.text, "cannot be written"));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(n_files(dir.path, name, sizeof name), 0);
    /* no directory */
    const char *none = temp_dir_path(&dir, "none");
    expect_found(&t, none, false);
    assert_int_equal(cpl_plan_cache_keep(none, &t.key, &t.set, &error), CPL_ERR_IO);
    assert_non_null(strstr(error.text, "No such file"));
    temp_dir_remove(&dir);
    unmake(&other);
    clear(&other);
    unmake(&t);
    clear(&t);
}

/* A disk that is full after some bytes: what was kept before stays, and nothing else. */
static void test_full_disk(void **state)
{
    (void)state;
    struct trial t;
    struct temp_dir dir;
    struct rlimit limit, before;
    struct cpl_error error = {""};
    char name[256];
    temp_dir_make(&dir);
    make_some(&t, 12);
    keep(&t, dir.path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 700;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum cpl_status status = cpl_plan_cache_keep(dir.path, &t.key, &t.set, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, CPL_ERR_IO);
    assert_non_null(strstr(error.text, "cannot be written"));
    assert_int_equal(n_files(dir.path, name, sizeof name), 1);
    expect_found(&t, dir.path, true);
    temp_dir_remove(&dir);
    unmake(&t);
    clear(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_flipped),     cmocka_unit_test(test_forged),
        cmocka_unit_test(test_other_keys),  cmocka_unit_test(test_other_formats),
        cmocka_unit_test(test_directory),   cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
