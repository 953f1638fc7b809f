/* Finding duplicates (duplicates.h): every element has a hash of the values it had. Sorted by
 * these, equal ones are neighbours; the k-th of a message with a value belongs to the k-th of the
 * others, and together they are an item. Items of the same destinations are a part. */
#include "shim/carry/duplicates.h"

#include "planner/base/hash.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ELEMENTS (INT64_C(1) << 19) /* of all messages: 8 MiB to remember them */
#define LEAST_UNIT    4                  /* bytes: of smaller elements many are equal by chance */
#define MOST_UNIT     64
#define LEAST_SAVED   16 /* bytes: a part that saves less is not worth its handling */

struct element {
    uint64_t history; /* hash of the values in all exchanges */
    uint32_t last;    /* of the last one */
    bool changed;     /* not always the same value */
    bool forgotten;
};

struct cpl_duplicates {
    int32_t n_messages;
    int32_t unit;
    int64_t *bytes; /* per message; -1: not looked at */
    int64_t *first; /* per message: its elements */
    struct element *element;
    int64_t n_noted; /* exchanges */
};

static bool is_usable(const struct cpl_piece *piece, int32_t unit)
{
    return piece->data && !piece->straight && piece->bytes > 0 && piece->unit == unit &&
           piece->bytes % unit == 0;
}

/* The unit of the first message that has one. */
static int32_t find_unit(int32_t n, const struct cpl_piece *pieces)
{
    for (int32_t m = 0; m < n; m++)
        if (pieces[m].unit >= LEAST_UNIT && pieces[m].unit <= MOST_UNIT &&
            is_usable(&pieces[m], pieces[m].unit))
            return pieces[m].unit;
    return 0;
}

struct cpl_duplicates *cpl_duplicates_create(int32_t n, const struct cpl_piece *pieces)
{
    int32_t unit = find_unit(n, pieces), n_usable = 0;
    int64_t n_elements = 0;
    for (int32_t m = 0; unit > 0 && m < n; m++)
        if (is_usable(&pieces[m], unit)) {
            n_elements += pieces[m].bytes / unit;
            n_usable++;
        }
    if (n_usable < 2 || n_elements > MOST_ELEMENTS)
        return NULL;
    struct cpl_duplicates *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    *d = (struct cpl_duplicates){.n_messages = n, .unit = unit};
    d->bytes = calloc((size_t)n, sizeof *d->bytes);
    d->first = calloc((size_t)n, sizeof *d->first);
    d->element = calloc((size_t)n_elements, sizeof *d->element);
    if (!d->bytes || !d->first || !d->element) {
        cpl_duplicates_free(d);
        return NULL;
    }
    n_elements = 0;
    for (int32_t m = 0; m < n; m++) {
        bool usable = is_usable(&pieces[m], unit);
        d->bytes[m] = usable ? pieces[m].bytes : -1;
        d->first[m] = n_elements;
        n_elements += usable ? pieces[m].bytes / unit : 0;
    }
    return d;
}

void cpl_duplicates_free(struct cpl_duplicates *duplicates)
{
    if (!duplicates)
        return;
    free(duplicates->bytes);
    free(duplicates->first);
    free(duplicates->element);
    free(duplicates);
}

static uint64_t hash_value(const unsigned char *data, int32_t unit)
{
    uint64_t hash = CPL_HASH_START;
    for (int32_t k = 0; k < unit; k += 8) {
        uint64_t word = 0;
        memcpy(&word, data + k, unit - k < 8 ? (size_t)(unit - k) : 8);
        hash = cpl_hash_word(hash, word);
    }
    return cpl_hash_mix(hash);
}

static void note_message(struct cpl_duplicates *d, int32_t message, const unsigned char *data)
{
    struct element *element = &d->element[d->first[message]];
    for (int64_t k = 0; k < d->bytes[message] / d->unit; k++, element++) {
        uint64_t value = hash_value(data + k * d->unit, d->unit);
        element->changed |= d->n_noted > 0 && element->last != (uint32_t)value;
        element->last = (uint32_t)value;
        element->history = cpl_hash_word(element->history, value);
    }
}

void cpl_duplicates_note(struct cpl_duplicates *duplicates, const struct cpl_piece *pieces)
{
    struct cpl_duplicates *d = duplicates;
    for (int32_t m = 0; m < d->n_messages; m++) {
        if (d->bytes[m] >= 0 && (!is_usable(&pieces[m], d->unit) || pieces[m].bytes != d->bytes[m]))
            d->bytes[m] = -1;
        if (d->bytes[m] >= 0)
            note_message(d, m, pieces[m].data);
    }
    d->n_noted++;
}

void cpl_duplicates_forget(struct cpl_duplicates *duplicates, int32_t message, int32_t position)
{
    if (duplicates->bytes[message] >= 0)
        duplicates->element[duplicates->first[message] + position].forgotten = true;
}

/* An element while dividing. */
struct seen {
    uint64_t history;
    struct cpl_place place;
};

/* Places of the same element of the program. */
struct item {
    const struct cpl_place *place;
    int32_t n;
};

/* What dividing works with. */
struct division {
    const struct cpl_duplicates *d;
    const struct cpl_piece *pieces;
    int64_t *bytes; /* of the messages that can be divided, else -1 */
    struct seen *seen;
    int64_t n_seen;
    struct cpl_place *place; /* of items, one after another; part is the item's number */
    int64_t n_places;
    struct item *item;
    int64_t n_items;
    struct cpl_place *sorted; /* by part, message and item */
    struct cpl_arena arena;
};

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_seen(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    if (x->history != y->history)
        return x->history < y->history ? -1 : 1;
    if (x->place.message != y->place.message)
        return order(x->place.message, y->place.message);
    return order(x->place.position, y->place.position);
}

static int compare_places(const void *a, const void *b)
{
    const struct cpl_place *x = a, *y = b;
    if (x->part != y->part)
        return order(x->part, y->part);
    return order(x->message, y->message);
}

static int compare_destinations(const struct item *a, const struct item *b)
{
    if (a->n != b->n)
        return order(a->n, b->n);
    for (int32_t k = 0; k < a->n; k++)
        if (a->place[k].message != b->place[k].message)
            return order(a->place[k].message, b->place[k].message);
    return 0;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int by_destinations = compare_destinations(x, y);
    return by_destinations ? by_destinations : order(x->place->position, y->place->position);
}

static void list_seen(struct division *v)
{
    const struct cpl_duplicates *d = v->d;
    for (int32_t m = 0; m < d->n_messages; m++)
        for (int64_t k = 0; v->bytes[m] >= 0 && k < v->bytes[m] / d->unit; k++) {
            const struct element *element = &d->element[d->first[m] + k];
            if (!element->forgotten)
                v->seen[v->n_seen++] = (struct seen){element->history, {0, m, (int32_t)k}};
        }
    if (v->n_seen > 0)
        qsort(v->seen, (size_t)v->n_seen, sizeof *v->seen, compare_seen);
}

static const unsigned char *value_of(const struct division *v, const struct cpl_place *place)
{
    return v->pieces[place->message].data + (size_t)place->position * (size_t)v->d->unit;
}

static bool has_changed(const struct cpl_duplicates *d, const struct cpl_place *place)
{
    return d->element[d->first[place->message] + place->position].changed;
}

/* The elements begin .. end - 1 of equal histories: the k-th ones of their messages are an item.
 * Returns by how many item numbers they may be known. */
static int32_t add_group(struct division *v, int64_t begin, int64_t end, int32_t first_item)
{
    const unsigned char *value = value_of(v, &v->seen[begin].place);
    int32_t n_most = 0, n = 0;
    for (int64_t k = begin; k < end; k++) {
        struct cpl_place place = v->seen[k].place;
        n = k > begin && v->seen[k - 1].place.message == place.message ? n : 0;
        if (memcmp(value, value_of(v, &place), (size_t)v->d->unit) != 0)
            continue;
        place.part = first_item + n++;
        n_most = n > n_most ? n : n_most;
        v->place[v->n_places++] = place;
    }
    return n_most;
}

/* Finds the items; returns the elements that might be copies of others but never changed. */
static int64_t find_places(struct division *v)
{
    int64_t n_undecided = 0, end;
    int32_t n_items = 0;
    for (int64_t begin = 0; begin < v->n_seen; begin = end) {
        end = begin + 1;
        while (end < v->n_seen && v->seen[end].history == v->seen[begin].history)
            end++;
        if (v->seen[begin].place.message == v->seen[end - 1].place.message)
            continue;
        if (has_changed(v->d, &v->seen[begin].place))
            n_items += add_group(v, begin, end, n_items);
        else
            n_undecided += end - begin - 1;
    }
    if (v->n_places > 0)
        qsort(v->place, (size_t)v->n_places, sizeof *v->place, compare_places);
    return n_undecided;
}

static void list_items(struct division *v)
{
    int64_t end;
    for (int64_t k = 0; k < v->n_places; k = end) {
        end = k + 1;
        while (end < v->n_places && v->place[end].part == v->place[k].part)
            end++;
        if (end > k + 1)
            v->item[v->n_items++] = (struct item){&v->place[k], (int32_t)(end - k)};
    }
    if (v->n_items > 0)
        qsort(v->item, (size_t)v->n_items, sizeof *v->item, compare_items);
}

/* The places of items with the same destinations, as a part. */
static void add_part(struct division *v, int64_t begin, int64_t end, int32_t part, int64_t *n)
{
    for (int32_t j = 0; j < v->item[begin].n; j++)
        for (int64_t k = begin; k < end; k++) {
            v->sorted[*n] = v->item[k].place[j];
            v->sorted[(*n)++].part = part;
        }
}

/* Returns the number of places in parts. */
static int64_t join_items(struct division *v)
{
    int64_t n = 0, end;
    int32_t n_parts = 0;
    for (int64_t k = 0; k < v->n_items; k = end) {
        end = k + 1;
        while (end < v->n_items && compare_destinations(&v->item[end], &v->item[k]) == 0)
            end++;
        if ((end - k) * (v->item[k].n - 1) * v->d->unit >= LEAST_SAVED)
            add_part(v, k, end, n_parts++, &n);
    }
    return n;
}

bool cpl_duplicates_divide(const struct cpl_duplicates *duplicates, const struct cpl_piece *pieces,
                           struct cpl_parts *parts, struct cpl_duplicates_found *found)
{
    const struct cpl_duplicates *d = duplicates;
    struct division v = {.d = d, .pieces = pieces, .arena = CPL_ARENA_EMPTY};
    int64_t n = 0;
    v.bytes = CPL_ARENA_ARRAY(&v.arena, int64_t, d->n_messages);
    *found = (struct cpl_duplicates_found){0, 0};
    for (int32_t m = 0; v.bytes && m < d->n_messages; m++) {
        bool same = is_usable(&pieces[m], d->unit) && pieces[m].bytes == d->bytes[m];
        v.bytes[m] = same ? d->bytes[m] : -1;
        n += same ? v.bytes[m] / d->unit : 0;
        found->bytes += pieces[m].bytes;
        if (!same && is_usable(&pieces[m], d->unit))
            found->undecided += pieces[m].bytes;
    }
    v.seen = CPL_ARENA_ARRAY(&v.arena, struct seen, n);
    v.place = CPL_ARENA_ARRAY(&v.arena, struct cpl_place, n);
    v.item = CPL_ARENA_ARRAY(&v.arena, struct item, n);
    v.sorted = CPL_ARENA_ARRAY(&v.arena, struct cpl_place, n);
    bool done = v.bytes && v.seen && v.place && v.item && v.sorted;
    if (done) {
        list_seen(&v);
        found->undecided += find_places(&v) * d->unit;
        list_items(&v);
        done = cpl_parts_build(d->n_messages, v.bytes, d->unit, v.sorted, join_items(&v), parts);
    }
    cpl_arena_free(&v.arena);
    return done;
}
