/*
 * In the manner of sparse matrix codes: every rank packs entries of its vector into the messages
 * for several others, the same ones in every exchange. Sometimes the copies of an entry are not
 * equal, or messages have other sizes than usual; values are such that only bytes tell them apart.
 *
 *   duplicates [--op alltoallv|alltoallw|alltoall|sparse] [--calls N] [--entries E] [--seed S]
 *              [--break never|seldom|often] [--vary] [--odd] [--gaps]
 *
 * --break seldom: every 7th call one element of one message of one rank; often: many, always the
 * same ones, after a while. --vary: some messages are shorter, empty or long in some calls. --odd:
 * the values are zeros of both signs and NaNs. --gaps: received elements do not lie side by side.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum op { OP_ALLTOALLV, OP_ALLTOALLW, OP_ALLTOALL, OP_SPARSE, N_OPS };
enum breaking { BREAK_NEVER, BREAK_SELDOM, BREAK_OFTEN, N_BREAKS };

enum { LEARNED = 12, LONG = 900 };

struct options {
    enum op op;
    enum breaking breaking;
    int n_calls, n_entries;
    bool vary, odd, gaps;
    uint64_t seed;
};

static struct options opt;

/* The messages of one direction; with op sparse one for every rank, else one for each neighbor. */
struct side {
    int n;
    int *peer, *count, *displ, *byte_displ;
    MPI_Datatype *type;
    uint64_t *words;
};

static bool are_neighbors(int from, int to)
{
    uint64_t key = test_key(test_key(test_key(opt.seed, from), to), 1);
    bool many = opt.op != OP_SPARSE; /* MPI_Alltoallv is planned where most messages are empty */
    return from != to && ((key % 3 == 0) != many || (from + 1) % test_size() == to);
}

static bool sends_entry(int from, int to, int entry)
{
    if (opt.op == OP_ALLTOALL) /* all messages have the same size: each lacks an entry */
        return entry != to % opt.n_entries;
    uint64_t common = test_key(test_key(opt.seed, from), entry), own = test_key(common, to);
    return are_neighbors(from, to) && (common % 3 == 0 || own % 3 == 0);
}

static uint64_t value(int call, int from, int entry)
{
    uint64_t key = test_key(test_key(test_key(opt.seed, from), entry), call);
    if (!opt.odd)
        return key;
    uint64_t nan = UINT64_C(0x7ff8000000000000) | (key >> 8) % 5;
    return key % 2 ? nan : (key >> 8) % 2 << 63; /* +0, -0 */
}

/* What is changed in element k of a message: bits of its value. */
static uint64_t damage(int call, int from, int to, int k, int n)
{
    uint64_t key = test_key(opt.seed, call), place = test_key(test_key(key, from), to);
    bool seldom = call % 7 == 0 && key % (uint64_t)test_size() == (uint64_t)from &&
                  test_key(place, 1) % 2 == 0 && (uint64_t)k == place % (uint64_t)n;
    bool often = call > LEARNED && test_key(test_key(opt.seed, to), k) % 3 == 0;
    if (opt.breaking == BREAK_SELDOM && call > LEARNED && seldom)
        return UINT64_C(1) << key % 64;
    return opt.breaking == BREAK_OFTEN && often ? UINT64_C(1) << to % 64 : 0;
}

/* Elements of a message that has n of them as a rule. */
static int count_now(int call, int from, int to, int n)
{
    uint64_t key = test_key(test_key(test_key(opt.seed, call / 3), from), to);
    if (!opt.vary || n == 0 || call <= LEARNED || call % 9 >= 3)
        return n;
    switch (key % 8) {
    case 0:
        return n - 1;
    case 1:
        return 0;
    case 2:
        return n + 3;
    case 3:
        return LONG;
    default:
        return n;
    }
}

/* Writes a message; returns its elements. words may be NULL. */
static int message(int call, int from, int to, uint64_t *words)
{
    int n = 0, k = 0;
    for (int entry = 0; entry < opt.n_entries; entry++)
        n += sends_entry(from, to, entry);
    int count = count_now(call, from, to, n);
    for (int entry = 0; words && entry < opt.n_entries && k < count; entry++)
        if (sends_entry(from, to, entry)) {
            words[k] = value(call, from, entry) ^ damage(call, from, to, k, n);
            k++;
        }
    for (; words && k < count; k++)
        words[k] = value(call, from, -k);
    return count;
}

static struct side make_side(bool sent)
{
    int size = test_size(), rank = test_rank();
    size_t n = (size_t)size;
    struct side side = {0};
    side.peer = test_alloc(n * sizeof *side.peer);
    side.count = test_alloc(n * sizeof *side.count);
    side.displ = test_alloc(n * sizeof *side.displ);
    side.byte_displ = test_alloc(n * sizeof *side.byte_displ);
    side.type = test_alloc(n * sizeof(MPI_Datatype));
    side.words = test_alloc(n * 2 * LONG * sizeof *side.words);
    for (int peer = 0; peer < size; peer++)
        if (opt.op == OP_SPARSE || (sent ? are_neighbors(rank, peer) : are_neighbors(peer, rank)))
            side.peer[side.n++] = peer;
    return side;
}

static void free_side(struct side *side)
{
    free(side->peer);
    free(side->count);
    free(side->displ);
    free(side->byte_displ);
    free(side->type);
    free(side->words);
}

/* Words between the elements of received messages: 1, or 2 with gaps. */
static int stride_of(bool sent)
{
    return !sent && opt.gaps ? 2 : 1;
}

static MPI_Datatype make_type(int stride)
{
    MPI_Datatype type;
    MPI_Type_create_resized(MPI_DOUBLE, 0, stride * (MPI_Aint)sizeof(double), &type);
    MPI_Type_commit(&type);
    return type;
}

static void lay_out(struct side *side, int call, bool sent, MPI_Datatype type)
{
    int next = 0, stride = stride_of(sent);
    for (int i = 0; i < side->n; i++) {
        int peer = side->peer[i], rank = test_rank();
        uint64_t *words = sent ? side->words + next : NULL;
        side->count[i] = sent ? message(call, rank, peer, words) : message(call, peer, rank, words);
        side->displ[i] = next / stride;
        side->byte_displ[i] = next * (int)sizeof(uint64_t);
        side->type[i] = stride == 1 && i % 2 ? MPI_DOUBLE : type;
        next += side->count[i] * stride;
    }
    if (!sent)
        memset(side->words, 0x5a, (size_t)next * sizeof *side->words);
}

static void exchange(const struct side *s, const struct side *r, MPI_Datatype type, MPI_Comm comm)
{
    MPI_Aint send_at[64], receive_at[64];
    switch (opt.op) {
    case OP_ALLTOALLV:
        MPI_Neighbor_alltoallv(s->words, s->count, s->displ, MPI_DOUBLE, r->words, r->count,
                               r->displ, type, comm);
        break;
    case OP_ALLTOALLW:
        for (int i = 0; i < s->n; i++)
            send_at[i] = s->byte_displ[i];
        for (int i = 0; i < r->n; i++)
            receive_at[i] = r->byte_displ[i];
        MPI_Neighbor_alltoallw(s->words, s->count, send_at, s->type, r->words, r->count, receive_at,
                               r->type, comm);
        break;
    case OP_ALLTOALL:
        MPI_Neighbor_alltoall(s->words, s->count[0], MPI_DOUBLE, r->words, r->count[0], type, comm);
        break;
    default:
        MPI_Alltoallv(s->words, s->count, s->displ, MPI_DOUBLE, r->words, r->count, r->displ, type,
                      MPI_COMM_WORLD);
    }
}

/* Compares all that was received, gaps too; returns its hash. */
static uint64_t check(const struct side *r, int call)
{
    uint64_t hash = TEST_HASH_START, expected[2 * LONG];
    int stride = stride_of(false);
    const uint64_t *words = r->words;
    for (int i = 0; i < r->n; i++) {
        int n = message(call, r->peer[i], test_rank(), expected);
        for (int k = 0; k < n; k++, words += stride) {
            uint64_t gap = UINT64_C(0x5a5a5a5a5a5a5a5a);
            if (*words != expected[k] || (stride == 2 && words[1] != gap))
                test_fail("call %d: wrong element %d from %d", call, k, r->peer[i]);
            hash = test_hash(hash, words, sizeof *words);
        }
    }
    return hash;
}

static MPI_Comm make_graph(const struct side *s, const struct side *r)
{
    MPI_Comm comm;
    if (opt.op == OP_SPARSE)
        return MPI_COMM_NULL;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, r->n, r->peer, MPI_UNWEIGHTED, s->n, s->peer,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

static int find(const char *name, const char *const names[])
{
    for (int k = 0; names[k]; k++)
        if (strcmp(name, names[k]) == 0)
            return k;
    fprintf(stderr, "unknown name %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 0;
}

static void read_options(int argc, char **argv)
{
    static const char *const ops[] = {"alltoallv", "alltoallw", "alltoall", "sparse", NULL};
    static const char *const breaks[] = {"never", "seldom", "often", NULL};
    opt.op = (enum op)find(test_option_text(argc, argv, "--op", "alltoallv"), ops);
    opt.breaking = (enum breaking)find(test_option_text(argc, argv, "--break", "never"), breaks);
    opt.n_calls = (int)test_option(argc, argv, "--calls", 40);
    opt.n_entries = (int)test_option(argc, argv, "--entries", 60);
    opt.vary = test_flag(argc, argv, "--vary");
    opt.odd = test_flag(argc, argv, "--odd");
    opt.gaps = test_flag(argc, argv, "--gaps");
    opt.seed = test_key((uint64_t)test_option(argc, argv, "--seed", 1), 0);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--op",   "--break", "--calls", "--entries", "--seed",
                                        "--vary", "--odd",   "--gaps",  NULL};
    test_start(&argc, &argv, known);
    read_options(argc, argv);
    struct side s = make_side(true), r = make_side(false);
    MPI_Comm comm = make_graph(&s, &r);
    MPI_Datatype sent = make_type(1), received = make_type(stride_of(false));
    uint64_t *mine = test_alloc((size_t)opt.n_calls * sizeof *mine);
    for (int call = 0; call < opt.n_calls; call++) {
        lay_out(&s, call, true, sent);
        lay_out(&r, call, false, received);
        exchange(&s, &r, received, comm);
        mine[call] = check(&r, call);
    }
    uint64_t *hashes = test_hash_ranks(opt.n_calls, mine);
    for (int call = 0; call < opt.n_calls; call++)
        test_print("call %d %016llx\n", call, (unsigned long long)hashes[call]);
    free(hashes);
    free(mine);
    free_side(&s);
    free_side(&r);
    MPI_Type_free(&sent);
    MPI_Type_free(&received);
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
    return test_finish();
}
