/* Tests of the matching engine (shim/carry/match.h): each of MPI's rules by hand, then random
 * messages and receives against a naive matching. */
#include "shim/carry/match.h"

#include "mock_mpi.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ME = 0, N_SOURCES = 4 };

struct engine {
    struct cpl_match match; /* must be first */
    int n_dropped;
};

static void drop(struct cpl_receive *receive)
{
    struct engine *engine = (struct engine *)(void *)receive->match;
    assert_true(receive->done);
    engine->n_dropped++;
}

static struct engine *begin(void)
{
    struct engine *engine = calloc(1, sizeof *engine);
    assert_non_null(engine);
    mock_begin(N_SOURCES, 1);
    assert_true(cpl_match_init(&engine->match, N_SOURCES, mock_comm(ME)));
    engine->match.drop = drop;
    return engine;
}

static void end(struct engine *engine)
{
    cpl_match_free(&engine->match);
    free(engine);
    mock_end();
}

/* Number n of a source comes; its text is its payload. */
static void deliver_flagged(struct engine *engine, int source, int tag, uint32_t number,
                            const char *text, uint32_t flags)
{
    struct cpl_segment segment = {.source = source,
                                  .dest = ME,
                                  .tag = tag,
                                  .number = number,
                                  .flags = flags,
                                  .slot = CPL_NO_SLOT,
                                  .payload_bytes = (uint32_t)strlen(text),
                                  .bytes = (int64_t)strlen(text)};
    cpl_match_deliver(&engine->match, &segment, (const unsigned char *)text);
}

static void deliver(struct engine *engine, int source, int tag, uint32_t number, const char *text)
{
    deliver_flagged(engine, source, tag, number, text, 0);
}

struct receive {
    struct cpl_receive receive;
    char text[32];
};

static void post_room(struct engine *engine, struct receive *r, int source, int tag, int room)
{
    *r = (struct receive){.receive = {.source = source, .tag = tag, .inner = MPI_REQUEST_NULL}};
    r->receive.span = mock_span(r->text, room);
    cpl_match_post(&engine->match, &r->receive);
}

static void post(struct engine *engine, struct receive *r, int source, int tag)
{
    post_room(engine, r, source, tag, (int)sizeof r->text - 1);
}

static void assert_received(const struct receive *r, int source, int tag, const char *text)
{
    assert_true(r->receive.done);
    assert_int_equal(r->receive.error, MPI_SUCCESS);
    assert_int_equal(r->receive.from, source);
    assert_int_equal(r->receive.from_tag, tag);
    assert_int_equal(r->receive.bytes, strlen(text));
    assert_string_equal(r->text, text);
    assert_false(r->receive.span.type.kept);
}

static void test_posted_before_and_after(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive early, late;
    post(engine, &early, 1, 5);
    assert_false(early.receive.done);
    assert_false(cpl_match_is_idle(&engine->match));
    deliver(engine, 1, 5, 0, "first");
    assert_received(&early, 1, 5, "first");
    deliver(engine, 1, 5, 1, "second");
    assert_false(cpl_match_is_idle(&engine->match));
    post(engine, &late, 1, 5);
    assert_received(&late, 1, 5, "second");
    assert_true(cpl_match_is_idle(&engine->match));
    end(engine);
}

static void test_messages_in_order_of_numbers(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive r[3];
    for (int k = 0; k < 3; k++)
        post(engine, &r[k], 2, MPI_ANY_TAG);
    deliver(engine, 2, 7, 2, "c");
    deliver(engine, 2, 8, 1, "b");
    assert_false(r[0].receive.done);
    assert_false(cpl_match_is_idle(&engine->match));
    deliver(engine, 2, 9, 0, "a");
    assert_received(&r[0], 2, 9, "a");
    assert_received(&r[1], 2, 8, "b");
    assert_received(&r[2], 2, 7, "c");
    end(engine);
}

/* What came before its turn is not to be seen by receives and probes. */
static void test_early_is_invisible(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive r;
    deliver(engine, 1, 3, 1, "early");
    assert_null(cpl_match_probe(&engine->match, MPI_ANY_SOURCE, MPI_ANY_TAG));
    assert_null(cpl_match_probe(&engine->match, 1, 3));
    post(engine, &r, 1, 3);
    assert_false(r.receive.done);
    deliver(engine, 1, 4, 0, "other tag");
    assert_received(&r, 1, 3, "early");
    assert_non_null(cpl_match_probe(&engine->match, 1, 4));
    end(engine);
}

static void test_numbers_wrap_around(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive r[2];
    engine->match.sources[1].expected = UINT32_MAX;
    post(engine, &r[0], 1, 0);
    post(engine, &r[1], 1, 0);
    deliver(engine, 1, 0, 0, "after");
    deliver(engine, 1, 0, UINT32_MAX, "before");
    assert_received(&r[0], 1, 0, "before");
    assert_received(&r[1], 1, 0, "after");
    end(engine);
}

/* The first receive that fits, by order of posting, whether it names the source or not. */
static void test_first_posted_wins(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive any, named, later_any;
    post(engine, &any, MPI_ANY_SOURCE, 1);
    post(engine, &named, 2, 1);
    post(engine, &later_any, MPI_ANY_SOURCE, MPI_ANY_TAG);
    deliver(engine, 2, 1, 0, "x");
    assert_received(&any, 2, 1, "x");
    deliver(engine, 3, 1, 0, "y");
    assert_received(&later_any, 3, 1, "y");
    deliver(engine, 2, 1, 1, "z");
    assert_received(&named, 2, 1, "z");
    post(engine, &named, 2, MPI_ANY_TAG);
    post(engine, &any, MPI_ANY_SOURCE, 4);
    deliver(engine, 2, 4, 2, "named");
    assert_received(&named, 2, 4, "named");
    assert_false(any.receive.done);
    assert_true(cpl_match_cancel(&any.receive));
    end(engine);
}

/* The oldest message that fits, among all sources for MPI_ANY_SOURCE. */
static void test_oldest_message_wins(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive r;
    deliver(engine, 3, 1, 0, "3 first");
    deliver(engine, 1, 1, 0, "1 second");
    deliver(engine, 1, 2, 1, "1 third");
    deliver(engine, 2, 2, 0, "2 fourth");
    post(engine, &r, MPI_ANY_SOURCE, 2);
    assert_received(&r, 1, 2, "1 third");
    post(engine, &r, 2, MPI_ANY_TAG);
    assert_received(&r, 2, 2, "2 fourth");
    post(engine, &r, MPI_ANY_SOURCE, MPI_ANY_TAG);
    assert_received(&r, 3, 1, "3 first");
    post(engine, &r, 1, 1);
    assert_received(&r, 1, 1, "1 second");
    assert_true(cpl_match_is_idle(&engine->match));
    end(engine);
}

static void test_truncation(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive r;
    for (int before = 0; before < 2; before++) {
        if (before)
            post_room(engine, &r, 1, 0, 3);
        deliver(engine, 1, 0, (uint32_t)before, "longer");
        if (!before)
            post_room(engine, &r, 1, 0, 3);
        assert_true(r.receive.done);
        assert_int_equal(r.receive.error, MPI_ERR_TRUNCATE);
        assert_int_equal(r.receive.bytes, 3);
        assert_string_equal(r.text, "lon");
        MPI_Status status;
        cpl_match_receive_status(&r.receive, &status);
        assert_int_equal(status.count_lo, MOCK_TRUNCATED);
    }
    post_room(engine, &r, 1, 0, 0);
    deliver(engine, 1, 0, 2, "");
    assert_received(&r, 1, 0, "");
    end(engine);
}

static bool is_acknowledged(MPI_Request *request)
{
    int matched = 0;
    mock_progress(ME);
    PMPI_Test(request, &matched, MPI_STATUS_IGNORE);
    return matched;
}

static void test_probe_and_take(void **state)
{
    (void)state;
    struct engine *engine = begin();
    MPI_Request sent = mock_synchronous(2, ME, cpl_synchronous_tag(0));
    struct receive r;
    deliver_flagged(engine, 2, 6, 0, "probed", CPL_SEGMENT_SYNCHRONOUS);
    deliver(engine, 2, 6, 1, "next");
    assert_null(cpl_match_probe(&engine->match, 1, 6));
    assert_null(cpl_match_probe(&engine->match, MPI_ANY_SOURCE, 7));
    struct cpl_arrival *arrival = cpl_match_probe(&engine->match, MPI_ANY_SOURCE, 6);
    assert_non_null(arrival);
    assert_false(is_acknowledged(&sent));
    cpl_match_take(&engine->match, arrival);
    assert_true(is_acknowledged(&sent));
    sent = mock_synchronous(2, ME, cpl_synchronous_tag(0));
    assert_false(cpl_match_is_idle(&engine->match));
    post(engine, &r, 2, 6);
    assert_received(&r, 2, 6, "next");
    r = (struct receive){.receive.inner = MPI_REQUEST_NULL};
    r.receive.span = mock_span(r.text, (int)sizeof r.text - 1);
    cpl_match_receive_taken(&engine->match, &r.receive, arrival);
    assert_received(&r, 2, 6, "probed");
    assert_false(is_acknowledged(&sent)); /* not once more */
    assert_true(cpl_match_is_idle(&engine->match));
    PMPI_Cancel(&sent);
    PMPI_Wait(&sent, MPI_STATUS_IGNORE);
    mock_discard();
    end(engine);
}

static void test_synchronous_when_matched(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive r;
    deliver_flagged(engine, 3, 2, 0, "s", CPL_SEGMENT_SYNCHRONOUS);
    MPI_Request sent = mock_synchronous(3, ME, cpl_synchronous_tag(0));
    assert_false(is_acknowledged(&sent));
    post(engine, &r, 3, 2);
    assert_true(is_acknowledged(&sent));
    end(engine);
}

static void test_cancel(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive r[3];
    for (int k = 0; k < 3; k++)
        post(engine, &r[k], k == 1 ? MPI_ANY_SOURCE : 1, 0);
    assert_true(cpl_match_cancel(&r[0].receive));
    assert_true(r[0].receive.done && r[0].receive.cancelled);
    assert_false(r[0].receive.span.type.kept);
    assert_false(cpl_match_cancel(&r[0].receive));
    deliver(engine, 1, 0, 0, "a");
    assert_received(&r[1], 1, 0, "a");
    assert_false(cpl_match_cancel(&r[1].receive));
    assert_true(cpl_match_cancel(&r[2].receive));
    assert_true(cpl_match_is_idle(&engine->match));
    end(engine);
}

/* A receive that outlives its communicator can still be cancelled. */
static void test_cancel_after_the_end(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive named, any;
    post(engine, &named, 1, 0);
    post(engine, &any, MPI_ANY_SOURCE, 0);
    end(engine);
    assert_true(cpl_match_cancel(&named.receive));
    assert_true(cpl_match_cancel(&any.receive));
    assert_true(named.receive.cancelled && any.receive.done);
}

static void test_abandoned(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive r;
    post(engine, &r, 1, 0);
    r.receive.abandoned = true;
    assert_int_equal(engine->n_dropped, 0);
    deliver(engine, 1, 0, 0, "a");
    assert_int_equal(engine->n_dropped, 1);
    assert_string_equal(r.text, "a");
    end(engine);
}

/* The payload of a straight message comes by MPI, to the receive that its envelope has matched. */
static void test_straight(void **state)
{
    (void)state;
    struct engine *engine = begin();
    struct receive r;
    struct cpl_segment envelope = {.source = 1,
                                   .dest = ME,
                                   .tag = 4,
                                   .flags = CPL_SEGMENT_STRAIGHT,
                                   .slot = CPL_NO_SLOT,
                                   .bytes = 5};
    MPI_Request sent;
    post(engine, &r, MPI_ANY_SOURCE, 4);
    cpl_match_deliver(&engine->match, &envelope, NULL);
    assert_false(r.receive.done);
    assert_int_equal(cpl_match_poll(&engine->match), 0);
    assert_false(cpl_match_is_idle(&engine->match));
    PMPI_Isend("large", 5, MPI_BYTE, ME, CPL_STRAIGHT_TAG, mock_comm(1), &sent);
    while (cpl_match_poll(&engine->match) == 0)
        continue;
    assert_received(&r, 1, 4, "large");
    PMPI_Cancel(&sent);
    PMPI_Wait(&sent, MPI_STATUS_IGNORE);
    end(engine);
}

/* Straight messages of one source that wait for their receives, which are posted in any order: each
 * gets its own payload, though all have one tag. */
static void test_straight_order(void **state)
{
    (void)state;
    enum { N = 6 };
    static const int order[N] = {3, 0, 5, 1, 4, 2};
    static const char *const payload[N] = {"alpha", "bravo", "chuck", "delta", "eight", "fetch"};
    struct engine *engine = begin();
    struct receive r[N];
    MPI_Request sent[N];
    post(engine, &r[2], 1, 2); /* the third one's receive is there before it */
    for (int k = 0; k < N; k++) {
        struct cpl_segment envelope = {.source = 1,
                                       .dest = ME,
                                       .tag = k,
                                       .number = (uint32_t)k,
                                       .flags = CPL_SEGMENT_STRAIGHT,
                                       .slot = CPL_NO_SLOT,
                                       .bytes = 5};
        PMPI_Isend(payload[k], 5, MPI_BYTE, ME, CPL_STRAIGHT_TAG, mock_comm(1), &sent[k]);
        cpl_match_deliver(&engine->match, &envelope, NULL);
    }
    for (int k = 0; k < N; k++)
        if (order[k] != 2)
            post(engine, &r[order[k]], order[k] % 2 ? 1 : MPI_ANY_SOURCE, order[k]);
    while (!cpl_match_is_idle(&engine->match))
        cpl_match_poll(&engine->match);
    for (int k = 0; k < N; k++) {
        assert_received(&r[k], 1, k, payload[k]);
        PMPI_Cancel(&sent[k]);
        PMPI_Wait(&sent[k], MPI_STATUS_IGNORE);
    }
    end(engine);
}

/* Memory for messages that wait is used again, and messages of any size may wait. */
static void test_unexpected_sizes(void **state)
{
    (void)state;
    struct engine *engine = begin();
    static char text[3000], received[sizeof text];
    uint32_t number = 0;
    for (uint32_t size = 0; size < sizeof text - 1; size += 97, number += 2) {
        struct receive small;
        struct cpl_receive receive = {.source = 1, .tag = 0, .inner = MPI_REQUEST_NULL};
        receive.span = mock_span(received, sizeof received - 1);
        memset(text, 'a' + (int)(size % 26), size);
        text[size] = 0;
        memset(received, 0, sizeof received);
        deliver(engine, 1, 0, number, text);
        deliver(engine, 1, 1, number + 1, "small");
        cpl_match_post(&engine->match, &receive);
        assert_true(receive.done);
        assert_string_equal(received, text);
        post(engine, &small, 1, 1);
        assert_received(&small, 1, 1, "small");
    }
    end(engine);
}

/* ---- random traffic against the plain rules ---- */

enum { MOST = 400 };

/* Everything in the order of time; a message's time is its turn. */
struct plain {
    int n_receives, n_messages;
    struct {
        int source, tag, got; /* message, -1: none */
        bool cancelled;
    } receive[MOST];
    struct {
        int source, tag;
        bool taken;
    } message[MOST];
};

static bool fits(int source, int tag, int of_source, int of_tag)
{
    return (source == MPI_ANY_SOURCE || source == of_source) &&
           (tag == MPI_ANY_TAG || tag == of_tag);
}

static void plain_message(struct plain *plain, int source, int tag)
{
    int m = plain->n_messages++;
    plain->message[m].source = source;
    plain->message[m].tag = tag;
    for (int k = 0; k < plain->n_receives && !plain->message[m].taken; k++) {
        if (plain->receive[k].got >= 0 || plain->receive[k].cancelled ||
            !fits(plain->receive[k].source, plain->receive[k].tag, source, tag))
            continue;
        plain->receive[k].got = m;
        plain->message[m].taken = true;
    }
}

static int plain_probe(const struct plain *plain, int source, int tag)
{
    for (int m = 0; m < plain->n_messages; m++)
        if (!plain->message[m].taken &&
            fits(source, tag, plain->message[m].source, plain->message[m].tag))
            return m;
    return -1;
}

static void plain_post(struct plain *plain, int source, int tag)
{
    int k = plain->n_receives++, m = plain_probe(plain, source, tag);
    plain->receive[k].source = source;
    plain->receive[k].tag = tag;
    plain->receive[k].got = m;
    if (m >= 0)
        plain->message[m].taken = true;
}

struct traffic {
    struct engine *engine;
    struct plain plain;
    struct receive receive[MOST];
    int n_made[N_SOURCES], n_turned[N_SOURCES]; /* messages made; of these, whose turn came */
    int tag[N_SOURCES][MOST];
    bool came[N_SOURCES][MOST];
    int id[N_SOURCES][MOST]; /* of messages, in the plain matching */
};

/* One of the next few messages of a source comes; those whose turn it is then are matched. */
static void random_message(struct traffic *t, uint64_t *random)
{
    int source = random_below(random, N_SOURCES), n = t->n_turned[source];
    int number = n + random_below(random, 3);
    char text[32];
    while (t->came[source][number])
        number++;
    while (t->n_made[source] <= number)
        t->tag[source][t->n_made[source]++] = random_below(random, 3);
    t->came[source][number] = true;
    for (; t->came[source][n]; n++) {
        t->id[source][n] = t->plain.n_messages;
        plain_message(&t->plain, source, t->tag[source][n]);
    }
    t->n_turned[source] = n;
    snprintf(text, sizeof text, "%d/%d", source, number);
    deliver(t->engine, source, t->tag[source][number], (uint32_t)number, text);
}

static void random_receive(struct traffic *t, uint64_t *random)
{
    int source = random_below(random, 4) == 0 ? MPI_ANY_SOURCE : random_below(random, N_SOURCES);
    int tag = random_below(random, 4) == 0 ? MPI_ANY_TAG : random_below(random, 3);
    post(t->engine, &t->receive[t->plain.n_receives], source, tag);
    plain_post(&t->plain, source, tag);
}

static void random_cancel(struct traffic *t, uint64_t *random)
{
    if (t->plain.n_receives == 0)
        return;
    int k = random_below(random, t->plain.n_receives);
    bool open = t->plain.receive[k].got < 0 && !t->plain.receive[k].cancelled;
    assert_int_equal(cpl_match_cancel(&t->receive[k].receive), open);
    t->plain.receive[k].cancelled |= open;
}

static void check_receive(const struct traffic *t, int k)
{
    const struct receive *r = &t->receive[k];
    int m = t->plain.receive[k].got;
    char text[32] = "";
    assert_int_equal(r->receive.done, m >= 0 || t->plain.receive[k].cancelled);
    if (m < 0)
        return;
    int source = t->plain.message[m].source, number = 0;
    while (t->id[source][number] != m)
        number++;
    snprintf(text, sizeof text, "%d/%d", source, number);
    assert_received(r, source, t->plain.message[m].tag, text);
}

static void check_probe(const struct traffic *t, uint64_t *random)
{
    int source = random_below(random, 2) ? MPI_ANY_SOURCE : random_below(random, N_SOURCES);
    int tag = random_below(random, 2) ? MPI_ANY_TAG : random_below(random, 3);
    int m = plain_probe(&t->plain, source, tag);
    const struct cpl_arrival *arrival = cpl_match_probe(&t->engine->match, source, tag);
    assert_int_equal(arrival != NULL, m >= 0);
    if (arrival)
        assert_int_equal(t->id[arrival->segment.source][arrival->segment.number], m);
}

static void test_random_traffic(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint64_t random = seed;
        struct traffic *t = calloc(1, sizeof *t);
        assert_non_null(t);
        t->engine = begin();
        int share = 1 + random_below(&random, 9); /* of messages in ten */
        for (int step = 0; step < MOST / 2; step++) {
            if (random_below(&random, 10) < share)
                random_message(t, &random);
            else
                random_receive(t, &random);
            if (random_below(&random, 8) == 0)
                random_cancel(t, &random);
            check_probe(t, &random);
        }
        for (int k = 0; k < t->plain.n_receives; k++)
            check_receive(t, k);
        end(t->engine);
        free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posted_before_and_after),
        cmocka_unit_test(test_messages_in_order_of_numbers),
        cmocka_unit_test(test_early_is_invisible),
        cmocka_unit_test(test_numbers_wrap_around),
        cmocka_unit_test(test_first_posted_wins),
        cmocka_unit_test(test_oldest_message_wins),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_probe_and_take),
        cmocka_unit_test(test_synchronous_when_matched),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_after_the_end),
        cmocka_unit_test(test_abandoned),
        cmocka_unit_test(test_straight),
        cmocka_unit_test(test_straight_order),
        cmocka_unit_test(test_unexpected_sizes),
        cmocka_unit_test(test_random_traffic),
    };
    return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
