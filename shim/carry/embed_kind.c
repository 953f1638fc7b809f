/* Kinds of small reductions (embed.h). */
#include "shim/carry/embed.h"

#include "shim/carry/line.h"
#include "shim/state/comm_state.h"
#include "shim/state/datatype.h"

#include <stddef.h>

static bool is_small(int64_t count, MPI_Datatype type, int64_t *extent)
{
    struct cpl_type described = {.handle = type};
    if (count < 0 || count > CPL_EMBED_VECTOR || !cpl_type_describe(type, &described))
        return false;
    *extent = described.extent;
    return count * described.extent <= CPL_EMBED_VECTOR;
}

static bool is_integer(MPI_Datatype type)
{
    const MPI_Datatype integers[] = {
        MPI_INT,           MPI_LONG,           MPI_SHORT,     MPI_UNSIGNED,
        MPI_UNSIGNED_LONG, MPI_UNSIGNED_SHORT, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG,
        MPI_SIGNED_CHAR,   MPI_UNSIGNED_CHAR,  MPI_BYTE,      MPI_INT8_T,
        MPI_INT16_T,       MPI_INT32_T,        MPI_INT64_T,   MPI_UINT8_T,
        MPI_UINT16_T,      MPI_UINT32_T,       MPI_UINT64_T,  MPI_C_BOOL,
        MPI_AINT,          MPI_OFFSET,         MPI_COUNT,     MPI_INTEGER,
        MPI_LOGICAL};
    for (size_t k = 0; k < sizeof integers / sizeof *integers; k++)
        if (type == integers[k])
            return true;
    return false;
}

static bool is_among(MPI_Op op, const MPI_Op *ops, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (op == ops[k])
            return true;
    return false;
}

static bool is_pair_of_integers(MPI_Datatype type)
{
    return type == MPI_2INT || type == MPI_SHORT_INT || type == MPI_LONG_INT ||
           type == MPI_2INTEGER;
}

/* Even minima and maxima of floating-point numbers depend on the order: of two zeros either may be
 * the result, and a NaN is neither larger nor smaller. */
static bool is_exact(MPI_Op op, MPI_Datatype type)
{
    const MPI_Op always[] = {MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
    const MPI_Op of_integers[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD};
    return is_among(op, always, sizeof always / sizeof *always) ||
           (is_among(op, of_integers, sizeof of_integers / sizeof *of_integers) &&
            is_integer(type)) ||
           ((op == MPI_MAXLOC || op == MPI_MINLOC) && is_pair_of_integers(type));
}

/* With `all` sums and products are not compared: their last bits may differ. Which of two zeros, or
 * of two equal ranks, a minimum names is not a matter of last bits, so it is compared with `all`,
 * too.
 *
 * The program's own functions are MPI's: a handle may stand for another function the next time, and
 * on one rank only. */
enum cpl_embed_verdict cpl_embed_judge(int64_t count, MPI_Datatype type, MPI_Op op)
{
    bool all = cpl_context.settings.embed == CPL_EMBED_ALL;
    int64_t extent;
    if (cpl_context.settings.embed == CPL_EMBED_OFF || !is_small(count, type, &extent) ||
        !cpl_type_named(type) || (!is_exact(op, MPI_INT) && !is_exact(op, MPI_2INT)))
        return CPL_EMBED_REFUSED;
    if (is_exact(op, type) || (all && (op == MPI_SUM || op == MPI_PROD)))
        return CPL_EMBED_ANY_ORDER;
    return cpl_embed_can_probe(type) ? CPL_EMBED_COMPARING : CPL_EMBED_REFUSED;
}

/* The kind is added if it is new, and there are not too many. All ranks have the same, because they
 * make the same reductions. The program's own operations, whose handles may differ between ranks,
 * take no place. */
struct cpl_embed_kind *cpl_embed_takes(struct cpl_comm_state *state, int64_t count,
                                       MPI_Datatype type, MPI_Op op, bool blocking)
{
    struct cpl_embed_kinds *kinds = &state->line->embed.kinds;
    struct cpl_embed_kind *kind = kinds->kind, *end = kind + kinds->n;
    while (kind < end && (kind->op != op || kind->type != type || kind->count != count ||
                          kind->blocking != blocking))
        kind++;
    if (kind == end) {
        enum cpl_embed_verdict verdict = cpl_embed_judge(count, type, op);
        if (verdict == CPL_EMBED_REFUSED || kinds->n == CPL_EMBED_KINDS)
            return NULL;
        *kind = (struct cpl_embed_kind){op, type, count, blocking, .verdict = verdict};
        is_small(count, type, &kind->extent);
        if (verdict == CPL_EMBED_COMPARING && !blocking)
            kind->verdict = CPL_EMBED_UNDECIDED;
        kinds->n++;
    }
    return kind->verdict == CPL_EMBED_REFUSED || kind->verdict == CPL_EMBED_UNDECIDED ? NULL : kind;
}
