/* Kinds of exchanges and reasons (names.h). */
#include "shim/base/names.h"

const char *cpl_exchange_kind_name(int kind)
{
    static const char *const names[] = {
        "Neighbor_alltoall",   "Neighbor_alltoallv", "Neighbor_alltoallw", "Neighbor_allgather",
        "Neighbor_allgatherv", "Alltoallv",          "Alltoallw",          "pt2pt",
        "Allgather",           "Allgatherv"};
    return names[kind];
}

const char *cpl_left_alone_text(enum cpl_left_alone reason)
{
    static const char *const texts[] = {
#define ROW(NAME, text) text,
        CPL_LEFT_REASONS(ROW)};
    return texts[reason];
}
