/* Messages divided in parts (parts.h). */
#include "shim/carry/parts.h"

#include <string.h>

/* A record: the destination's place, what follows. */
struct record {
    uint32_t place;
    uint32_t what; /* number of an element, which follows, or */
};

#define WHAT_WHOLE    UINT32_MAX       /* the message: its length in 32 bits, its bytes */
#define WHAT_NOTHING  (UINT32_MAX - 1) /* nothing */
#define WHAT_STRAIGHT (UINT32_MAX - 2) /* nothing */

/* Words of a divided message: unit, bytes (two words), rows; then each row's number of elements,
 * place and first index; then the positions. */
enum { W_UNIT, W_LOW, W_HIGH, W_ROWS, HEADER_WORDS };
enum { ROW_N, ROW_PLACE, ROW_FIRST, ROW_WORDS };

/* --- building ----------------------------------------------------------------------------- */

static int64_t n_elements(const struct cpl_parts *parts, int32_t message)
{
    int64_t bytes = parts->message_bytes[message];
    return bytes < 0 ? 0 : bytes / parts->unit;
}

/* The number of parts that the places make, and of their destinations. */
static void survey(const struct cpl_place *places, int64_t n, int32_t *n_parts, int64_t *n_dests)
{
    *n_parts = 0;
    *n_dests = 0;
    for (int64_t k = 0; k < n; k++) {
        bool begins = k == 0 || places[k].part != places[k - 1].part;
        *n_parts += begins;
        *n_dests += begins || places[k].message != places[k - 1].message;
    }
}

static bool allocate(struct cpl_parts *p, int32_t n_shared_parts, int64_t n_shared_dests)
{
    int64_t n_positions = 0, n_rows = p->n_messages + n_shared_dests;
    for (int32_t m = 0; m < p->n_messages; m++)
        n_positions += n_elements(p, m);
    if (n_rows > INT32_MAX)
        return false;
    p->n_rows = (int32_t)n_rows;
    p->n_parts = p->n_messages + n_shared_parts;
    p->part = CPL_ARENA_ARRAY(&p->arena, struct cpl_part, p->n_parts);
    p->dest = CPL_ARENA_ARRAY(&p->arena, int32_t, n_rows);
    p->index = CPL_ARENA_ARRAY(&p->arena, int32_t, n_positions);
    p->first_row = CPL_ARENA_ARRAY(&p->arena, int32_t, (size_t)p->n_messages + 2);
    p->row_part = CPL_ARENA_ARRAY(&p->arena, int32_t, n_rows);
    p->row_place = CPL_ARENA_ARRAY(&p->arena, int32_t, n_rows);
    return p->part && p->dest && p->index && p->first_row && p->row_part && p->row_place;
}

/* The parts of one destination: all elements of the message that are in no other part. */
static bool add_own(struct cpl_parts *p, const struct cpl_place *places, int64_t n_places,
                    int64_t *n_indices)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int64_t *first = CPL_ARENA_ARRAY(&scratch, int64_t, (size_t)p->n_messages + 1), n_all = 0;
    for (int32_t m = 0; first && m < p->n_messages; m++) {
        first[m] = n_all;
        n_all += n_elements(p, m);
    }
    bool *taken = first ? CPL_ARENA_ARRAY(&scratch, bool, n_all) : NULL;
    for (int64_t k = 0; taken && k < n_places; k++)
        taken[first[places[k].message] + places[k].position] = true;
    for (int32_t m = 0; taken && m < p->n_messages; m++) {
        struct cpl_part *part = &p->part[m];
        *part = (struct cpl_part){.n_dests = 1, .first_dest = m, .first_index = *n_indices};
        p->dest[m] = m;
        for (int64_t k = 0; k < n_elements(p, m); k++)
            if (!taken[first[m] + k])
                p->index[part->first_index + part->n++] = (int32_t)k;
        *n_indices += part->n;
    }
    cpl_arena_free(&scratch);
    return taken;
}

static void add_shared(struct cpl_parts *p, const struct cpl_place *places, int64_t n_places,
                       int64_t n_indices)
{
    struct cpl_part *part = &p->part[p->n_messages - 1];
    int64_t n_dests = p->n_messages;
    for (int64_t k = 0; k < n_places; k++) {
        bool begins = k == 0 || places[k].part != places[k - 1].part;
        if (begins)
            *++part = (struct cpl_part){.first_dest = n_dests, .first_index = n_indices};
        if (begins || places[k].message != places[k - 1].message) {
            p->dest[n_dests++] = places[k].message;
            part->n_dests++;
        }
        part->n += part->n_dests == 1;
        p->index[n_indices++] = places[k].position;
    }
}

static void add_rows(struct cpl_parts *p)
{
    int32_t *next = p->first_row + 1; /* shifted while filling, so that first_row ends up right */
    for (int32_t k = 0; k < p->n_parts; k++)
        for (int32_t j = 0; j < p->part[k].n_dests; j++)
            next[p->dest[p->part[k].first_dest + j] + 1]++;
    for (int32_t m = 0; m < p->n_messages; m++)
        next[m + 1] += next[m];
    for (int32_t k = 0; k < p->n_parts; k++)
        for (int32_t j = 0; j < p->part[k].n_dests; j++) {
            int32_t row = next[p->dest[p->part[k].first_dest + j]]++;
            p->row_part[row] = k;
            p->row_place[row] = j;
        }
}

bool cpl_parts_build(int32_t n_messages, const int64_t *message_bytes, int32_t unit,
                     const struct cpl_place *places, int64_t n_places, struct cpl_parts *parts)
{
    struct cpl_parts p = {.n_messages = n_messages, .unit = unit, .arena = CPL_ARENA_EMPTY};
    int64_t n_dests, n_indices = 0;
    int32_t n_parts;
    survey(places, n_places, &n_parts, &n_dests);
    p.message_bytes = CPL_ARENA_ARRAY(&p.arena, int64_t, n_messages);
    if (p.message_bytes) {
        for (int32_t m = 0; m < n_messages; m++)
            p.message_bytes[m] = message_bytes[m];
        if (allocate(&p, n_parts, n_dests) && add_own(&p, places, n_places, &n_indices)) {
            add_shared(&p, places, n_places, n_indices);
            add_rows(&p);
            for (int32_t k = n_messages; k < p.n_parts; k++) {
                p.n_shared += p.part[k].n;
                p.saved += (p.part[k].n_dests - 1) * cpl_parts_volume(&p, k);
            }
            *parts = p;
            return true;
        }
    }
    cpl_arena_free(&p.arena);
    return false;
}

void cpl_parts_free(struct cpl_parts *parts)
{
    cpl_arena_free(&parts->arena);
    *parts = (struct cpl_parts){.arena = CPL_ARENA_EMPTY};
}

int32_t cpl_parts_class(const struct cpl_parts *parts, int32_t row)
{
    int32_t part = parts->row_part[row];
    return part < parts->n_messages ? -1 : part - parts->n_messages;
}

int64_t cpl_parts_volume(const struct cpl_parts *parts, int32_t part)
{
    return (int64_t)parts->part[part].n * parts->unit;
}

/* --- sending ------------------------------------------------------------------------------ */

static uint64_t load64(const unsigned char *data, int32_t position)
{
    uint64_t word;
    memcpy(&word, data + (size_t)position * sizeof word, sizeof word);
    return word;
}

static uint32_t load32(const unsigned char *data, int32_t position)
{
    uint32_t word;
    memcpy(&word, data + (size_t)position * sizeof word, sizeof word);
    return word;
}

static bool differs(const unsigned char *a, int32_t at_a, const unsigned char *b, int32_t at_b,
                    int32_t unit)
{
    return memcmp(a + (size_t)at_a * (size_t)unit, b + (size_t)at_b * (size_t)unit, (size_t)unit) !=
           0;
}

/* Whether all n elements of two copies are equal; the loops for usual units have no branches. */
static bool are_equal(const unsigned char *a, const int32_t *at_a, const unsigned char *b,
                      const int32_t *at_b, int32_t n, int32_t unit)
{
    uint64_t difference = 0;
    if (unit == 8)
        for (int32_t k = 0; k < n; k++)
            difference |= load64(a, at_a[k]) ^ load64(b, at_b[k]);
    else if (unit == 4)
        for (int32_t k = 0; k < n; k++)
            difference |= load32(a, at_a[k]) ^ load32(b, at_b[k]);
    else
        for (int32_t k = 0; k < n && !difference; k++)
            difference = differs(a, at_a[k], b, at_b[k], unit);
    return difference == 0;
}

static const int32_t *positions(const struct cpl_parts *p, const struct cpl_part *part,
                                int32_t place)
{
    return p->index + part->first_index + (int64_t)place * part->n;
}

static int32_t message_of(const struct cpl_parts *p, const struct cpl_part *part, int32_t place)
{
    return p->dest[part->first_dest + place];
}

/* Whether a message still is as it was divided. */
static bool is_whole(const struct cpl_parts *p, const struct cpl_piece *pieces, int32_t message)
{
    const struct cpl_piece *piece = &pieces[message];
    return piece->data && !piece->straight && piece->bytes == p->message_bytes[message];
}

/* The word that tells what became of a message that is not whole: it is in the part of its own. */
static uint32_t instead(const struct cpl_parts *p, const struct cpl_piece *piece,
                        const struct cpl_part *part)
{
    if (piece->straight)
        return WHAT_STRAIGHT;
    return part < p->part + p->n_messages ? WHAT_WHOLE : WHAT_NOTHING;
}

/* Bytes of the record for one that is not whole. An empty one that is never divided needs none. */
static int64_t instead_bytes(const struct cpl_parts *p, const struct cpl_piece *piece,
                             const struct cpl_part *part)
{
    bool whole = instead(p, piece, part) == WHAT_WHOLE;
    if (whole && piece->bytes == 0 && p->message_bytes[part - p->part] < 0)
        return 0;
    return (int64_t)sizeof(struct record) + (whole ? (int64_t)sizeof(uint32_t) + piece->bytes : 0);
}

/* The records for a destination whose elements are not all those of the base. */
static int64_t count_broken(const struct cpl_parts *p, const struct cpl_part *part, int32_t place,
                            const struct cpl_piece *pieces, cpl_parts_broken *broken, void *context)
{
    const int32_t *at = positions(p, part, place), *base_at = positions(p, part, part->base);
    const unsigned char *base = pieces[message_of(p, part, part->base)].data;
    int32_t message = message_of(p, part, place);
    int64_t n = 0;
    for (int32_t k = 0; k < part->n; k++)
        if (differs(base, base_at[k], pieces[message].data, at[k], p->unit)) {
            broken(context, message, at[k]);
            n++;
        }
    return n;
}

static void measure(const struct cpl_parts *p, struct cpl_part *part,
                    const struct cpl_piece *pieces, struct cpl_parts_tally *tally,
                    cpl_parts_broken *broken, void *context)
{
    int64_t bytes = (int64_t)part->n * p->unit, n_broken = 0;
    part->base = -1;
    part->bytes = bytes;
    for (int32_t j = 0; j < part->n_dests; j++) {
        int32_t message = message_of(p, part, j);
        if (!is_whole(p, pieces, message)) {
            part->bytes += instead_bytes(p, &pieces[message], part);
        } else if (part->base < 0) {
            part->base = j;
        } else {
            int32_t base = message_of(p, part, part->base);
            if (!are_equal(pieces[base].data, positions(p, part, part->base), pieces[message].data,
                           positions(p, part, j), part->n, p->unit))
                n_broken += count_broken(p, part, j, pieces, broken, context);
        }
    }
    int64_t broken_bytes = n_broken * ((int64_t)sizeof(struct record) + p->unit);
    part->bytes += broken_bytes;
    tally->broken += n_broken;
    tally->lost_broken += broken_bytes;
    if (p->message_bytes[message_of(p, part, 0)] >= 0)
        tally->lost += part->bytes - bytes;
}

void cpl_parts_measure(struct cpl_parts *parts, const struct cpl_piece *pieces,
                       struct cpl_parts_tally *tally, cpl_parts_broken *broken, void *context)
{
    *tally = (struct cpl_parts_tally){0, 0, 0};
    for (int32_t k = 0; k < parts->n_parts; k++)
        measure(parts, &parts->part[k], pieces, tally, broken, context);
}

static void gather(const unsigned char *data, const int32_t *at, int32_t n, int32_t unit,
                   unsigned char *to)
{
    if (unit == 8)
        for (int32_t k = 0; k < n; k++, to += 8)
            memcpy(to, data + (size_t)at[k] * 8, 8);
    else if (unit == 4)
        for (int32_t k = 0; k < n; k++, to += 4)
            memcpy(to, data + (size_t)at[k] * 4, 4);
    else
        for (int32_t k = 0; k < n; k++, to += unit)
            memcpy(to, data + (size_t)at[k] * (size_t)unit, (size_t)unit);
}

static unsigned char *put_record(unsigned char *to, int32_t place, uint32_t what)
{
    struct record record = {(uint32_t)place, what};
    memcpy(to, &record, sizeof record);
    return to + sizeof record;
}

static unsigned char *put_broken(const struct cpl_parts *p, const struct cpl_part *part,
                                 int32_t place, const struct cpl_piece *pieces, unsigned char *to)
{
    const int32_t *at = positions(p, part, place), *base_at = positions(p, part, part->base);
    const unsigned char *base = pieces[message_of(p, part, part->base)].data;
    const unsigned char *data = pieces[message_of(p, part, place)].data;
    for (int32_t k = 0; k < part->n; k++) {
        if (!differs(base, base_at[k], data, at[k], p->unit))
            continue;
        to = put_record(to, place, (uint32_t)k);
        memcpy(to, data + (size_t)at[k] * (size_t)p->unit, (size_t)p->unit);
        to += p->unit;
    }
    return to;
}

/* The record for a destination whose message is not whole. */
static int put_instead(const struct cpl_parts *p, const struct cpl_part *part, int32_t place,
                       const struct cpl_piece *pieces, unsigned char **to,
                       cpl_parts_pack_whole *pack_whole, void *context)
{
    int32_t message = message_of(p, part, place);
    const struct cpl_piece *piece = &pieces[message];
    uint32_t what = instead(p, piece, part), length = (uint32_t)piece->bytes;
    if (instead_bytes(p, piece, part) == 0)
        return 0;
    *to = put_record(*to, place, what);
    if (what != WHAT_WHOLE)
        return 0;
    memcpy(*to, &length, sizeof length);
    *to += sizeof length;
    int result = pack_whole(context, message, *to);
    *to += piece->bytes;
    return result;
}

int cpl_parts_pack(const struct cpl_parts *parts, int32_t number, const struct cpl_piece *pieces,
                   unsigned char *to, cpl_parts_pack_whole *pack_whole, void *context)
{
    const struct cpl_part *part = &parts->part[number];
    int64_t bytes = cpl_parts_volume(parts, number);
    int result = 0;
    if (part->base >= 0)
        gather(pieces[message_of(parts, part, part->base)].data, positions(parts, part, part->base),
               part->n, parts->unit, to);
    else
        memset(to, 0, (size_t)bytes);
    if (part->bytes == bytes)
        return 0;
    to += bytes;
    for (int32_t j = 0; j < part->n_dests; j++) {
        if (!is_whole(parts, pieces, message_of(parts, part, j))) {
            int code = put_instead(parts, part, j, pieces, &to, pack_whole, context);
            result = result ? result : code;
        } else if (j > part->base) {
            to = put_broken(parts, part, j, pieces, to);
        }
    }
    return result;
}

int32_t cpl_parts_n_words(const struct cpl_parts *parts, int32_t message)
{
    int64_t n = HEADER_WORDS + n_elements(parts, message) +
                (int64_t)ROW_WORDS * (parts->first_row[message + 1] - parts->first_row[message]);
    return n <= INT32_MAX ? (int32_t)n : -1;
}

void cpl_parts_write(const struct cpl_parts *parts, int32_t message, int32_t *words)
{
    int32_t first = parts->first_row[message], n_rows = parts->first_row[message + 1] - first;
    uint64_t bytes = (uint64_t)parts->message_bytes[message];
    int32_t *index = words + HEADER_WORDS + (size_t)n_rows * ROW_WORDS, n_indices = 0;
    words[W_UNIT] = parts->unit;
    words[W_LOW] = (int32_t)(uint32_t)(bytes & UINT32_MAX);
    words[W_HIGH] = (int32_t)(uint32_t)(bytes >> 32);
    words[W_ROWS] = n_rows;
    for (int32_t r = 0; r < n_rows; r++) {
        const struct cpl_part *part = &parts->part[parts->row_part[first + r]];
        int32_t *row = words + HEADER_WORDS + (size_t)r * ROW_WORDS;
        row[ROW_N] = part->n;
        row[ROW_PLACE] = parts->row_place[first + r];
        row[ROW_FIRST] = n_indices;
        if (part->n > 0)
            memcpy(index + n_indices, positions(parts, part, row[ROW_PLACE]),
                   (size_t)part->n * sizeof *index);
        n_indices += part->n;
    }
}

/* --- receiving ---------------------------------------------------------------------------- */

static const int32_t *row_of(const struct cpl_divided *d, int32_t row)
{
    return d->row + (size_t)row * ROW_WORDS;
}

bool cpl_divided_view(const int32_t *words, int32_t n_words, struct cpl_divided *divided)
{
    if (n_words < HEADER_WORDS || words[W_UNIT] < 1 || words[W_ROWS] < 0 ||
        words[W_ROWS] > (n_words - HEADER_WORDS) / ROW_WORDS)
        return false;
    struct cpl_divided d = {
        .unit = words[W_UNIT],
        .n_rows = words[W_ROWS],
        .bytes = (int64_t)((uint64_t)(uint32_t)words[W_HIGH] << 32 | (uint32_t)words[W_LOW]),
        .row = words + HEADER_WORDS};
    d.index = d.row + (size_t)d.n_rows * ROW_WORDS;
    int64_t n_indices = words + n_words - d.index, n = 0;
    for (int32_t r = 0; r < d.n_rows; r++) {
        const int32_t *row = row_of(&d, r);
        if (row[ROW_N] < 0 || row[ROW_PLACE] < 0 || row[ROW_FIRST] != n)
            return false;
        n += row[ROW_N];
    }
    if (n != n_indices || n != (d.bytes < 0 ? 0 : d.bytes / d.unit))
        return false;
    for (int64_t k = 0; k < n; k++)
        if (d.index[k] < 0 || d.index[k] >= n)
            return false;
    *divided = d;
    return true;
}

/* The next record of a payload of n bytes; *at moves behind it, *content is what follows it, of
 * *bytes. Returns false at the end, and when it is cut off (*at is then not n). */
static bool next_record(const struct cpl_divided *d, const unsigned char *data, int64_t n,
                        int64_t *at, struct record *record, const unsigned char **content,
                        int64_t *bytes)
{
    uint32_t length = 0;
    int64_t next = *at + (int64_t)sizeof *record;
    if (next > n)
        return false;
    memcpy(record, data + *at, sizeof *record);
    if (record->what == WHAT_WHOLE) {
        if (next + (int64_t)sizeof length > n)
            return false;
        memcpy(&length, data + next, sizeof length);
        next += (int64_t)sizeof length;
    } else if (record->what < WHAT_STRAIGHT) {
        length = (uint32_t)d->unit;
    }
    if (length > n - next)
        return false;
    *content = data + next;
    *bytes = length;
    *at = next + length;
    return true;
}

enum cpl_row_kind cpl_divided_read(const struct cpl_divided *divided, int32_t row,
                                   const unsigned char *data, int64_t n,
                                   const unsigned char **whole, int64_t *bytes)
{
    if (row < 0 || row >= divided->n_rows)
        return CPL_ROW_DAMAGED;
    const int32_t *mine = row_of(divided, row);
    int64_t at = (int64_t)mine[ROW_N] * divided->unit;
    enum cpl_row_kind kind = CPL_ROW_ELEMENTS;
    struct record record;
    const unsigned char *content;
    int64_t length;
    while (next_record(divided, data, n, &at, &record, &content, &length)) {
        if (record.place != (uint32_t)mine[ROW_PLACE])
            continue;
        if (record.what == WHAT_NOTHING)
            kind = CPL_ROW_NOTHING;
        else if (record.what == WHAT_STRAIGHT)
            kind = row == 0 ? CPL_ROW_STRAIGHT : CPL_ROW_NOTHING;
        else if (record.what != WHAT_WHOLE && record.what >= (uint32_t)mine[ROW_N])
            return CPL_ROW_DAMAGED;
        if (record.what != WHAT_WHOLE)
            continue;
        kind = CPL_ROW_WHOLE;
        *whole = content;
        *bytes = length;
    }
    return at == n ? kind : CPL_ROW_DAMAGED;
}

static void scatter(const unsigned char *from, const int32_t *at, int32_t n, int32_t unit,
                    unsigned char *to)
{
    if (unit == 8)
        for (int32_t k = 0; k < n; k++, from += 8)
            memcpy(to + (size_t)at[k] * 8, from, 8);
    else if (unit == 4)
        for (int32_t k = 0; k < n; k++, from += 4)
            memcpy(to + (size_t)at[k] * 4, from, 4);
    else
        for (int32_t k = 0; k < n; k++, from += unit)
            memcpy(to + (size_t)at[k] * (size_t)unit, from, (size_t)unit);
}

void cpl_divided_scatter(const struct cpl_divided *divided, int32_t row, const unsigned char *data,
                         int64_t n, unsigned char *to)
{
    const int32_t *mine = row_of(divided, row), *index = divided->index + mine[ROW_FIRST];
    int64_t at = (int64_t)mine[ROW_N] * divided->unit, length;
    struct record record;
    const unsigned char *content;
    scatter(data, index, mine[ROW_N], divided->unit, to);
    while (next_record(divided, data, n, &at, &record, &content, &length))
        if (record.place == (uint32_t)mine[ROW_PLACE])
            memcpy(to + (size_t)index[record.what] * (size_t)divided->unit, content,
                   (size_t)length);
}
