/* Ends of edges (ends.h). */
#include "shim/carry/ends.h"

#include "shim/base/log.h"
#include "shim/state/memory.h"

#include <limits.h>
#include <stdlib.h>

#define SMALLEST_ROOM 64 /* bytes of payload that an edge has room for at least */

/* Room for payloads of about `bytes`, with space to grow. */
static int64_t room_for(int64_t bytes)
{
    return bytes < SMALLEST_ROOM / 2 ? SMALLEST_ROOM : 2 * bytes;
}

static bool set_buffer(struct cpl_end *end, int64_t room)
{
    int64_t bytes = cpl_end_message_bytes(end, room);
    unsigned char *buffer = bytes <= INT_MAX ? realloc(end->buffer, (size_t)bytes) : NULL;
    if (!buffer)
        return false;
    end->buffer = buffer;
    end->buffered = room;
    return true;
}

bool cpl_end_make(struct cpl_end *end, int64_t volume, int32_t n_segments)
{
    *end = (struct cpl_end){.n_segments = n_segments, .room = room_for(volume)};
    return set_buffer(end, end->room);
}

void cpl_end_free(struct cpl_end *end)
{
    free(end->buffer);
    end->buffer = NULL;
    end->buffered = 0;
}

bool cpl_end_enlarge(struct cpl_end *end, int64_t bytes)
{
    int64_t room = room_for(bytes);
    int tries = 0;
    if (cpl_end_message_bytes(end, room) > INT_MAX) {
        cpl_log(CPL_LOG_ERROR, "execute", "a combined message of %lld bytes is too large",
                (long long)bytes);
        return false;
    }
    while (end->buffered < room && !set_buffer(end, room))
        cpl_memory_wait(&tries, "a combined message");
    if (!end->lane.shared)
        end->room = room;
    return true;
}

/* The ends of edges as those of lanes; none when memory ran out. */
static struct cpl_lane_ends list(const struct cpl_end *ends, int32_t n, const int32_t *ranks,
                                 const int32_t *waves)
{
    struct cpl_lane_end *end = calloc((size_t)n + 1, sizeof *end);
    for (int32_t e = 0; end && e < n; e++)
        end[e] = (struct cpl_lane_end){
            ranks[e], waves[e], {.room = cpl_end_message_bytes(&ends[e], ends[e].room)}};
    return (struct cpl_lane_ends){end ? n : 0, end};
}

/* What a lane carries needs no buffer. */
static void use_lanes(struct cpl_end *ends, const struct cpl_lane_ends *with)
{
    for (int32_t e = 0; e < with->n; e++) {
        ends[e].lane = with->end[e].lane;
        if (ends[e].lane.shared)
            cpl_end_free(&ends[e]);
    }
}

void cpl_ends_open_lanes(const struct cpl_rank_plan *slice, struct cpl_end *out, struct cpl_end *in,
                         MPI_Comm comm, struct cpl_lanes *lanes)
{
    struct cpl_lane_ends to = list(out, slice->n_out, slice->out_to, slice->out_wave);
    struct cpl_lane_ends from = list(in, slice->n_in, slice->in_from, slice->in_wave);
    if (cpl_lanes_open(lanes, comm, to.end && from.end, &to, &from)) {
        use_lanes(out, &to);
        use_lanes(in, &from);
    }
    free(to.end);
    free(from.end);
}
