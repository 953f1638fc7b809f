/* MPI_Ineighbor_alltoallw as MPI_Ineighbor_alltoallv of packed data. MPICH's own (4.0.2) is wrong
 * and damages memory on ranks whose in- and out-degree differ; such ranks send and receive packed
 * bytes until the exchange is carried. The other ranks need not do so: in MPICH both calls are the
 * same loop of sends and receives. */
#include "shim/exchange/carrying.h"
#include "shim/state/context.h"

#include <stdlib.h>

struct packed {
    unsigned char *out, *in;
    MPI_Count *out_count, *in_count;
    MPI_Aint *out_at, *in_at;
};

static void free_packed(struct packed *p)
{
    free(p->out);
    free(p->in);
    free(p->out_count);
    free(p->in_count);
    free(p->out_at);
    free(p->in_at);
    free(p);
}

/* Packs n spans one after the other into a new buffer; NULL when that fails. The receive side is
 * packed, too, because a message may be shorter than its place. */
static unsigned char *pack_side(const struct cpl_span *spans, int n, MPI_Count *count, MPI_Aint *at)
{
    int64_t total = 0;
    for (int k = 0; k < n; k++) {
        count[k] = cpl_span_bytes(&spans[k]);
        at[k] = total;
        total += count[k];
    }
    unsigned char *buffer = malloc((size_t)total + 1);
    for (int k = 0; buffer && k < n; k++)
        if (count[k] > 0 && cpl_span_pack(&spans[k], buffer + at[k]) != MPI_SUCCESS) {
            free(buffer);
            return NULL;
        }
    return buffer;
}

static bool pack_sides(struct packed *p, const struct cpl_adjacency *a,
                       const struct cpl_neighbor_data *data)
{
    size_t n_out = (size_t)a->out.n + 1, n_in = (size_t)a->in.n + 1;
    p->out_count = calloc(n_out, sizeof *p->out_count);
    p->in_count = calloc(n_in, sizeof *p->in_count);
    p->out_at = calloc(n_out, sizeof *p->out_at);
    p->in_at = calloc(n_in, sizeof *p->in_at);
    if (!p->out_count || !p->in_count || !p->out_at || !p->in_at)
        return false;
    p->out = pack_side(data->out_span, a->out.n, p->out_count, p->out_at);
    p->in = pack_side(data->in_span, a->in.n, p->in_count, p->in_at);
    return p->out && p->in;
}

static int begin(struct cpl_neighbor_op *op)
{
    struct packed *p = calloc(1, sizeof *p);
    int result = MPI_ERR_NO_MEM;
    if (p && pack_sides(p, op->carrying.x->adjacency, &op->data))
        result = PMPI_Ineighbor_alltoallv_c(p->out, p->out_count, p->out_at, MPI_BYTE, p->in,
                                            p->in_count, p->in_at, MPI_BYTE,
                                            op->carrying.state->comm, op->data.requests);
    if (p && result != MPI_SUCCESS)
        free_packed(p);
    op->carrying.made = p;
    op->data.n_requests = 1;
    return result;
}

/* Local: the other ranks make MPI's own call, which it fits. */
static bool takes(const struct cpl_comm_state *state, const struct cpl_exchange *x)
{
    return x->kind == CPL_NEIGHBOR_ALLTOALLW && !cpl_exchange_is_served(x) && state->watched &&
           x->adjacency->in.n != x->adjacency->out.n &&
           cpl_context.settings.mode != CPL_MODE_PROFILE;
}

static bool progress(struct cpl_carrying *c)
{
    struct packed *p = c->made;
    if (!cpl_carrying_progress(c))
        return false;
    for (int k = 0; k < c->x->adjacency->in.n && c->result == MPI_SUCCESS; k++)
        c->result = cpl_span_unpack(&c->data->in_span[k], p->in + p->in_at[k], p->in_count[k]);
    free_packed(p);
    return true;
}

const struct cpl_way cpl_way_packed = {
    .name = "packed", .takes = takes, .begin = begin, .progress = progress};
