/* Cutting notes into windows (windows.h). */
#include "shim/plan/windows.h"

#include "planner/base/hash.h"

#include <stdlib.h>

static bool make_room(struct cpl_windows *windows, size_t n)
{
    *windows = (struct cpl_windows){.n = 0};
    windows->window = calloc(n, sizeof *windows->window);
    windows->sent = calloc(n, sizeof *windows->sent);
    windows->received = calloc(n, sizeof *windows->received);
    return windows->window && windows->sent && windows->received;
}

void cpl_windows_free(struct cpl_windows *windows)
{
    free(windows->window);
    free(windows->sent);
    free(windows->received);
    *windows = (struct cpl_windows){.n = 0};
}

static void note_end(struct cpl_windows *windows, const struct cpl_note *note, int32_t window)
{
    const struct cpl_message_end end = {note->peer, note->tag, window};
    struct cpl_window *w = &windows->window[window];
    if (note->kind != CPL_NOTE_SENT) {
        windows->received[windows->n_received++] = end;
        return;
    }
    if (w->n_sent++ == 0)
        w->tag = note->tag;
    windows->sent[windows->n_sent++] = end;
}

bool cpl_windows_cut(struct cpl_windows *windows, const struct cpl_note *notes, int64_t n)
{
    int32_t window = -1;
    bool blocking = false;
    if (!make_room(windows, (size_t)n + 1))
        return false;
    for (int64_t k = 0; k < n; k++) {
        const struct cpl_note *note = &notes[k];
        if (note->kind == CPL_NOTE_COLLECTIVE || note->kind == CPL_NOTE_WINDOW_END) {
            if (note->kind == CPL_NOTE_WINDOW_END && window >= 0 && !blocking) {
                windows->window[window].signature = note->peer;
                windows->window[window].end_note = k;
            }
            window = -1;
            continue;
        }
        if (window < 0 || (blocking && note->kind != CPL_NOTE_RECEIVED)) {
            window = windows->n++;
            windows->window[window] = (struct cpl_window){.signature = -1, .end_note = -1};
            blocking = note->kind == CPL_NOTE_RECEIVED;
        }
        note_end(windows, note, window);
    }
    return true;
}

uint64_t cpl_window_hash(int32_t rank, int32_t signature)
{
    return cpl_hash_word(CPL_HASH_START,
                         (uint64_t)(uint32_t)rank << 32 | (uint64_t)(uint32_t)signature);
}
