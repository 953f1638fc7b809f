/* Operations under way in calls_fuzz.c: a pool of requests, completed by random mixtures of MPI's
 * completion calls over arrays that also hold null requests, inactive persistent ones, and requests
 * that nobody waits for yet. Results are checked or go into the iteration's hash, whatever their
 * order. */
#include "calls_fuzz.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ARRAY 96

struct op *op_new(struct run *run, enum op_kind kind)
{
    struct op *op = calloc(1, sizeof *op);
    if (!op)
        abort();
    op->kind = kind;
    op->request = MPI_REQUEST_NULL;
    op->iteration = run->iteration;
    op->event = run->event;
    op->ready = run->event;
    return op;
}

void op_add(struct run *run, struct op *op)
{
    op->is_active = true;
    if (op->is_in_pool)
        return;
    if (run->n_pool == MAX_POOL)
        abort();
    op->is_in_pool = true;
    run->pool[run->n_pool++] = op;
}

void op_release(struct op *op)
{
    layout_free(&op->layout);
    layout_free(&op->second);
    free(op->in);
    free(op->out);
    free(op->more);
    free(op);
}

static void leave_pool(struct run *run, const struct op *op)
{
    int k = 0;
    while (k < run->n_pool && run->pool[k] != op)
        k++;
    if (k == run->n_pool)
        return;
    memmove(run->pool + k, run->pool + k + 1, (size_t)(run->n_pool - k - 1) * sizeof *run->pool);
    run->n_pool--;
}

void op_bury(struct run *run, struct op *op)
{
    leave_pool(run, op);
    op->next = run->graveyard;
    run->graveyard = op;
}

bool needs_status(const struct op *op)
{
    return op->kind == OP_CANCELLED || op->kind == OP_GREQUEST ||
           (op->kind == OP_RECV && (op->message.any_source || op->message.any_tag ||
                                    op->message.capacity < op->message.size));
}

static void check_status(struct run *run, struct op *op, const MPI_Status *status)
{
    const struct message *m = &op->message;
    int n_elements = -1, n_got = m->size / base_size(m->base);
    if (status->MPI_SOURCE != m->src)
        wrong(run, op, "source %d instead of %d", status->MPI_SOURCE, m->src);
    if (status->MPI_TAG != m->tag)
        wrong(run, op, "tag %d instead of %d", status->MPI_TAG, m->tag);
    if (m->src == MPI_PROC_NULL)
        n_got = 0;
    if (m->capacity < m->size)
        return; /* truncated: the count is MPI's affair */
    MPI_Get_elements(status, op->layout.base, &n_elements);
    if (n_elements != n_got)
        wrong(run, op, "%d elements instead of %d", n_elements, n_got);
}

/* A message from anybody: which one came is known from its status only. */
static void note_any(struct run *run, struct op *op, const MPI_Status *status)
{
    int n = -1;
    MPI_Get_elements(status, op->layout.base, &n);
    if (n < 0 || n > op->message.capacity) {
        wrong(run, op, "%d bytes of %d from anybody", n, op->message.capacity);
        return;
    }
    uint8_t *bytes = malloc((size_t)n + 1);
    if (!bytes)
        abort();
    layout_get(&op->layout, bytes, (size_t)n);
    uint64_t hash = hash_bytes(bytes, (size_t)n);
    uint64_t from = ((uint64_t)(uint32_t)status->MPI_SOURCE << 32) + (uint32_t)status->MPI_TAG;
    note(run, op->iteration, mix3(hash, from, op->event));
    free(bytes);
    if (!layout_is_intact(&op->layout, (size_t)n))
        wrong(run, op, "bytes beside the message were written");
}

static void check_bytes(struct run *run, struct op *op)
{
    size_t n = op->message.src == MPI_PROC_NULL ? 0 : (size_t)op->message.size;
    uint8_t *bytes = malloc(2 * n + 1);
    if (!bytes)
        abort();
    layout_get(&op->layout, bytes, n);
    fill_bytes(op->message.key, bytes + n, n);
    note(run, op->iteration, mix3(hash_bytes(bytes, n), op->message.key, op->event));
    if (memcmp(bytes, bytes + n, n) != 0)
        wrong(run, op, "other bytes than were sent");
    if (!layout_is_intact(&op->layout, n))
        wrong(run, op, "bytes beside the message were written");
    free(bytes);
}

void check_received(struct run *run, struct op *op, const MPI_Status *status, int code)
{
    const struct message *m = &op->message;
    bool is_truncated = m->capacity < m->size && m->src != MPI_PROC_NULL;
    int class = class_of(code);
    if (class != (is_truncated ? MPI_ERR_TRUNCATE : MPI_SUCCESS))
        wrong(run, op, "error class %d", class);
    if (m->any_source) {
        note_any(run, op, status);
        return;
    }
    if (status && !m->has_no_status)
        check_status(run, op, status);
    if (!is_truncated)
        check_bytes(run, op);
    else
        note(run, op->iteration, mix3((uint64_t) class, m->key, op->event));
}

static void check_cancelled(struct run *run, struct op *op, const MPI_Status *status)
{
    int flag = 0;
    MPI_Test_cancelled(status, &flag);
    if (!flag)
        wrong(run, op, "a receive without a message was not cancelled");
}

/* What was observed of a completed operation; status may be NULL when it needs none. */
void op_finish(struct run *run, struct op *op, const MPI_Status *status, int code)
{
    int flag = 0;
    op->is_active = op->is_needed = false;
    if (op->kind == OP_RECV)
        check_received(run, op, status, code);
    else if (code != MPI_SUCCESS)
        wrong(run, op, "error class %d", class_of(code));
    if (op->kind == OP_COLLECTIVE && op->n_out > 0)
        note(run, op->iteration, mix3(hash_bytes(op->out, op->n_out), op->event, 7));
    if (op->kind == OP_CANCELLED)
        check_cancelled(run, op, status);
    if (op->kind == OP_GREQUEST) {
        MPI_Get_elements(status, MPI_BYTE, &flag);
        if (flag != op->message.size || status->MPI_TAG != op->message.tag)
            wrong(run, op, "the status of a generalized request");
    }
    if (op->is_persistent)
        return;
    if (op->request != MPI_REQUEST_NULL)
        wrong(run, op, "completed, and its request is not null");
    leave_pool(run, op);
    op_release(op);
}

/* --- arrays of requests */
struct array {
    int n;
    struct op *op[MAX_ARRAY]; /* NULL: a null request */
    MPI_Request request[MAX_ARRAY];
    MPI_Status status[MAX_ARRAY];
    int index[MAX_ARRAY];
    bool ignores; /* the statuses */
};

static void put(struct array *array, struct op *op)
{
    if (array->n == MAX_ARRAY)
        return;
    array->op[array->n] = op;
    array->request[array->n++] = op ? op->request : MPI_REQUEST_NULL;
}

/* Needed ones, of which there is at least one; others too, unless only those may be waited for. */
static void choose(struct run *run, struct array *array, bool only_needed, bool everything)
{
    struct draw *loose = &run->loose;
    int share = everything ? 100 : 20 + below(loose, 80), n_needed = 0;
    array->n = 0;
    array->ignores = chance(loose, 30);
    for (int k = 0; k < run->n_pool; k++) {
        struct op *op = run->pool[k];
        bool has_room = array->n < MAX_ARRAY - 2;
        if (op->is_needed && has_room && (n_needed == 0 || chance(loose, share))) {
            put(array, op);
            n_needed++;
        } else if (!everything && !op->is_needed && array->n < MAX_ARRAY / 2 &&
                   (!op->is_active || !only_needed) && chance(loose, 30)) {
            put(array, op);
        }
        if (!everything && chance(loose, 5))
            put(array, NULL);
    }
    for (int k = array->n - 1; !everything && k > 0; k--) {
        int other = below(loose, k + 1);
        struct op *op = array->op[k];
        MPI_Request request = array->request[k];
        array->op[k] = array->op[other];
        array->request[k] = array->request[other];
        array->op[other] = op;
        array->request[other] = request;
    }
    for (int k = 0; k < array->n; k++)
        array->ignores = array->ignores && !(array->op[k] && needs_status(array->op[k]));
}

static void take_back(struct array *array)
{
    for (int k = 0; k < array->n; k++)
        if (array->op[k])
            array->op[k]->request = array->request[k];
}

static void done_one(struct run *run, struct array *array, int k, const MPI_Status *status,
                     int code)
{
    struct op *op = array->op[k];
    array->op[k] = NULL;
    if (!op || !op->is_active)
        wrong(run, NULL, "completed a request that was not active");
    else
        op_finish(run, op, array->ignores ? NULL : status, code);
}

static int code_at(const struct array *array, int k, int code)
{
    return class_of(code) == MPI_ERR_IN_STATUS && !array->ignores ? array->status[k].MPI_ERROR
                                                                  : MPI_SUCCESS;
}

static void done_all(struct run *run, struct array *array, int code)
{
    if (code != MPI_SUCCESS && class_of(code) != MPI_ERR_IN_STATUS)
        wrong(run, NULL, "a call for all requests returns class %d", class_of(code));
    for (int k = 0; k < array->n; k++)
        if (array->op[k] && array->op[k]->is_active &&
            class_of(code_at(array, k, code)) != MPI_ERR_PENDING)
            done_one(run, array, k, &array->status[k], code_at(array, k, code));
}

static void done_some(struct run *run, struct array *array, int n, int code)
{
    if (code != MPI_SUCCESS && class_of(code) != MPI_ERR_IN_STATUS)
        wrong(run, NULL, "a call for some requests returns class %d", class_of(code));
    for (int k = 0; k < n && n != MPI_UNDEFINED; k++)
        done_one(run, array, array->index[k], &array->status[k], code_at(array, k, code));
}

static void for_all(struct run *run, bool tests, bool everything)
{
    struct array array;
    int flag = 1, code;
    choose(run, &array, true, everything);
    MPI_Status *statuses = array.ignores ? MPI_STATUSES_IGNORE : array.status;
    if (tests)
        code = MPI_Testall(array.n, array.request, &flag, statuses);
    else
        code = MPI_Waitall(array.n, array.request, statuses);
    take_back(&array);
    if (flag || code != MPI_SUCCESS)
        done_all(run, &array, code);
}

static void for_any(struct run *run, bool tests)
{
    struct array array;
    int flag = 1, index = MPI_UNDEFINED, code;
    choose(run, &array, false, false);
    MPI_Status *status = array.ignores ? MPI_STATUS_IGNORE : array.status;
    if (tests)
        code = MPI_Testany(array.n, array.request, &index, &flag, status);
    else
        code = MPI_Waitany(array.n, array.request, &index, status);
    take_back(&array);
    if (code == MPI_SUCCESS && flag && index == MPI_UNDEFINED && array.n > 0)
        wrong(run, NULL, "any: undefined, with active requests");
    else if ((flag || code != MPI_SUCCESS) && index != MPI_UNDEFINED)
        done_one(run, &array, index, array.status, code);
}

static void for_some(struct run *run, bool tests)
{
    struct array array;
    int n = 0, code;
    choose(run, &array, false, false);
    MPI_Status *statuses = array.ignores ? MPI_STATUSES_IGNORE : array.status;
    if (tests)
        code = MPI_Testsome(array.n, array.request, &n, array.index, statuses);
    else
        code = MPI_Waitsome(array.n, array.request, &n, array.index, statuses);
    take_back(&array);
    if (n == MPI_UNDEFINED)
        wrong(run, NULL, "some: undefined, with active requests");
    else
        done_some(run, &array, n, code);
}

static void for_one(struct run *run, bool tests, bool peeks)
{
    struct array array;
    int flag = 1, code = MPI_SUCCESS, k = 0;
    choose(run, &array, true, false);
    while (k < array.n && !(array.op[k] && array.op[k]->is_needed))
        k++;
    if (k == array.n)
        return;
    MPI_Status *status = array.ignores ? MPI_STATUS_IGNORE : array.status;
    if (peeks)
        MPI_Request_get_status(array.request[k], &flag, status);
    if (tests)
        code = MPI_Test(&array.request[k], &flag, status);
    else
        code = MPI_Wait(&array.request[k], status);
    take_back(&array);
    if (flag || code != MPI_SUCCESS)
        done_one(run, &array, k, array.status, code);
}

static bool has_needed(const struct run *run)
{
    for (int k = 0; k < run->n_pool; k++)
        if (run->pool[k]->is_needed)
            return true;
    return false;
}

static void step(struct run *run)
{
    switch (below(&run->loose, 12)) {
    case 0:
        for_one(run, false, false);
        break;
    case 1:
        for_one(run, true, false);
        break;
    case 2:
        for_one(run, true, true);
        break;
    case 3:
        for_any(run, false);
        break;
    case 4:
        for_any(run, true);
        break;
    case 5:
    case 6:
        for_some(run, false);
        break;
    case 7:
        for_some(run, true);
        break;
    case 8:
        for_all(run, true, false);
        break;
    case 9:
        for_all(run, true, true);
        break;
    default:
        for_all(run, false, false);
    }
}

void complete_needed(struct run *run)
{
    bool is_plain = chance(&run->loose, 60) || !is_on(run, KIND_completions);
    run->where = "completing";
    while (has_needed(run)) {
        if (is_plain)
            for_all(run, false, true);
        else
            step(run);
    }
}

void complete_all(struct run *run)
{
    for (int k = 0; k < run->n_pool; k++)
        if (run->pool[k]->is_active && run->pool[k]->ready <= run->event)
            run->pool[k]->is_needed = true;
    complete_needed(run);
}

void complete_some(struct run *run)
{
    for (int k = 0; k < run->n_pool; k++)
        if (run->pool[k]->is_active && run->pool[k]->ready <= run->event && chance(&run->loose, 30))
            run->pool[k]->is_needed = true;
    complete_needed(run);
}
