/* Edges in layers (layers.h). */
#include "planner/search/layers.h"

#include <string.h>

#define FIRST_LINKS   8
#define FIRST_NUMBERS 1023

enum cpl_status cpl_layers_init(struct cpl_layers *layers, int32_t n_ranks, int32_t n_waves,
                                struct cpl_arena *arena)
{
    *layers = (struct cpl_layers){.n_ranks = n_ranks, .n_waves = n_waves, .arena = arena};
    for (int32_t wave = 0; wave < n_waves; wave++) {
        layers->out[wave] = CPL_ARENA_ARRAY(arena, struct cpl_layer_links, n_ranks);
        layers->in[wave] = CPL_ARENA_ARRAY(arena, struct cpl_layer_links, n_ranks);
        if (!layers->out[wave] || !layers->in[wave] ||
            cpl_pair_map_init(&layers->number[wave], arena))
            return CPL_ERR_NOMEM;
    }
    return CPL_OK;
}

/* Makes room for one more link; the old memory stays in the arena. */
static bool reserve_link(struct cpl_layers *layers, struct cpl_layer_links *links)
{
    if (links->n < links->capacity)
        return true;
    int32_t capacity = links->capacity ? 2 * links->capacity : FIRST_LINKS;
    struct cpl_layer_link *link = CPL_ARENA_ARRAY(layers->arena, struct cpl_layer_link, capacity);
    if (!link)
        return false;
    if (links->n)
        memcpy(link, links->link, (size_t)links->n * sizeof *link);
    links->link = link;
    links->capacity = capacity;
    return true;
}

static bool reserve_number(struct cpl_layers *layers)
{
    if (layers->first_free || layers->n_numbers < layers->max_numbers)
        return true;
    int32_t max = layers->max_numbers ? 2 * layers->max_numbers + 1 : FIRST_NUMBERS;
    struct cpl_layer_edge *edge =
        CPL_ARENA_ARRAY(layers->arena, struct cpl_layer_edge, (size_t)max + 1);
    if (!edge)
        return false;
    if (layers->n_numbers)
        memcpy(edge, layers->edge, ((size_t)layers->n_numbers + 1) * sizeof *edge);
    layers->edge = edge;
    layers->max_numbers = max;
    return true;
}

static int32_t take_number(struct cpl_layers *layers)
{
    int32_t edge = layers->first_free;
    if (!edge)
        return ++layers->n_numbers;
    layers->first_free = layers->edge[edge].to;
    return edge;
}

int32_t cpl_layers_add(struct cpl_layers *layers, int32_t wave, int32_t from, int32_t to)
{
    struct cpl_layer_links *out = &layers->out[wave][from], *in = &layers->in[wave][to];
    if (!reserve_number(layers) || !reserve_link(layers, out) || !reserve_link(layers, in) ||
        cpl_pair_map_reserve(&layers->number[wave], 1))
        return 0;
    int32_t edge = take_number(layers);
    layers->edge[edge] = (struct cpl_layer_edge){
        .from = from, .to = to, .wave = wave, .out_at = out->n, .in_at = in->n};
    out->link[out->n++] = (struct cpl_layer_link){edge, to};
    in->link[in->n++] = (struct cpl_layer_link){edge, from};
    *cpl_pair_map_at(&layers->number[wave], from, to) = (uint64_t)edge;
    return edge;
}

void cpl_layers_remove(struct cpl_layers *layers, int32_t edge)
{
    struct cpl_layer_edge *e = &layers->edge[edge];
    struct cpl_layer_links *out = &layers->out[e->wave][e->from], *in = &layers->in[e->wave][e->to];
    /* The last link of a list takes the place of the one that goes. */
    out->link[e->out_at] = out->link[--out->n];
    layers->edge[out->link[e->out_at].edge].out_at = e->out_at;
    in->link[e->in_at] = in->link[--in->n];
    layers->edge[in->link[e->in_at].edge].in_at = e->in_at;
    cpl_pair_map_remove(&layers->number[e->wave], e->from, e->to);
    e->from = -1;
    e->to = layers->first_free;
    layers->first_free = edge;
}
