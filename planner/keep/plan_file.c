/* Plans as bytes (plan_file.h). */
#include "planner/keep/plan_file.h"

#include "planner/plan/plan_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC           "CPLPLN2"
#define FORMAT          3
#define BYTE_ORDER_MARK 0x01020304

struct header {
    char magic[8];
    uint32_t format, byte_order;
    uint64_t n_bytes; /* of the file */
    uint64_t n_sections;
};

enum section_kind { SECTION_KEY = 1, SECTION_MAKING, SECTION_PLAN };

/* A row of the table behind the header; sections follow each other in its order. The table ends
 * with the hash of the header and its rows. */
struct section {
    uint64_t kind, offset, n_bytes, checksum;
};

#define MOST_SECTIONS (2 + CPL_MOST_KEPT)

struct kept_edge {
    int32_t from, to, wave, n_segments;
};

void cpl_plan_set_free(struct cpl_plan_set *set)
{
    for (int32_t k = 0; k < set->n; k++)
        cpl_plan_free(&set->plan[k]);
    set->n = 0;
}

static void put_pattern(const struct cpl_pattern *pattern, struct cpl_bytes *bytes)
{
    size_t n = (size_t)pattern->n_messages;
    cpl_bytes_put_integer(bytes, pattern->n_ranks);
    cpl_bytes_put_integer(bytes, pattern->n_messages);
    cpl_bytes_put_integer(bytes, pattern->payload_class != NULL);
    cpl_bytes_put(bytes, pattern->first, (size_t)pattern->n_ranks + 1, sizeof *pattern->first);
    cpl_bytes_put(bytes, pattern->dst, n, sizeof *pattern->dst);
    cpl_bytes_put(bytes, pattern->volume, n, sizeof *pattern->volume);
    if (pattern->payload_class)
        cpl_bytes_put(bytes, pattern->payload_class, n, sizeof *pattern->payload_class);
}

static void put_links(const struct cpl_link_cost *costs, int n, struct cpl_bytes *bytes)
{
    for (int k = 0; k < n; k++) {
        cpl_bytes_put_real(bytes, costs[k].send_us);
        cpl_bytes_put_real(bytes, costs[k].recv_us);
        cpl_bytes_put_real(bytes, costs[k].latency_us);
        cpl_bytes_put_real(bytes, costs[k].ns_per_byte);
    }
}

static void put_machine(const struct cpl_machine *machine, struct cpl_bytes *bytes)
{
    size_t n = (size_t)machine->n_ranks;
    const struct cpl_costs *costs = &machine->costs;
    cpl_bytes_put_integer(bytes, machine->cores_per_node);
    cpl_bytes_put(bytes, machine->node, n, sizeof *machine->node);
    cpl_bytes_put(bytes, machine->socket, n, sizeof *machine->socket);
    cpl_bytes_put(bytes, machine->numa, n, sizeof *machine->numa);
    put_links(costs->link, CPL_N_LINKS, bytes);
    put_links(costs->lane, CPL_LINK_NETWORK, bytes);
    cpl_bytes_put_integer(bytes, machine->lanes);
    cpl_bytes_put_real(bytes, costs->node_ns_per_byte);
    cpl_bytes_put_real(bytes, costs->combined_ns);
    cpl_bytes_put_real(bytes, costs->segment_ns);
    cpl_bytes_put_real(bytes, costs->packed_ns_per_byte);
    cpl_bytes_put_real(bytes, costs->item_ns);
    cpl_bytes_put_real(bytes, costs->switch_us);
    cpl_bytes_put_integer(bytes, machine->distance_us != NULL);
    if (machine->distance_us)
        cpl_bytes_put(bytes, machine->distance_us, n * n, sizeof *machine->distance_us);
    cpl_bytes_put_integer(bytes, machine->distance_ns_per_byte != NULL);
    if (machine->distance_ns_per_byte)
        cpl_bytes_put(bytes, machine->distance_ns_per_byte, n * n,
                      sizeof *machine->distance_ns_per_byte);
}

void cpl_plan_key_put(const struct cpl_plan_key *key, struct cpl_bytes *key_bytes)
{
    cpl_bytes_put_text(key_bytes, key->version);
    cpl_bytes_put_text(key_bytes, key->strategy);
    cpl_bytes_put_integer(key_bytes, key->most);
    cpl_bytes_put_real(key_bytes, key->input->unit_bytes);
    cpl_bytes_put_real(key_bytes, key->input->budget_ms);
    put_pattern(key->input->pattern, key_bytes);
    put_machine(key->input->machine, key_bytes);
}

static void put_choice(const struct cpl_strategy_choice *choice, struct cpl_bytes *bytes)
{
    char text[CPL_STRATEGY_TEXT];
    cpl_strategy_format(choice, text);
    cpl_bytes_put_text(bytes, text);
}

static void put_making(const struct cpl_plan_set *set, struct cpl_bytes *bytes)
{
    cpl_bytes_put_real(bytes, set->ms);
    cpl_bytes_put_integer(bytes, set->n);
    for (int32_t k = 0; k < set->n; k++)
        put_choice(&set->choice[k], bytes);
}

static void put_plan(const struct cpl_plan *plan, struct cpl_bytes *bytes)
{
    cpl_bytes_put_integer(bytes, plan->n_waves);
    cpl_bytes_put_integer(bytes, plan->n_edges);
    cpl_bytes_put_integer(bytes, plan->n_segments);
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        const struct kept_edge kept = {edge->from, edge->to, edge->wave, edge->n_segments};
        cpl_bytes_put(bytes, &kept, 1, sizeof kept);
    }
    cpl_bytes_put(bytes, plan->segments, (size_t)plan->n_segments, sizeof *plan->segments);
}

static size_t table_bytes(uint64_t n_sections)
{
    return sizeof(struct header) + n_sections * sizeof(struct section) + sizeof(uint64_t);
}

/* Ends the section that began behind the one before, or behind the table. */
static void end_section(struct section *sections, uint64_t *n, enum section_kind kind,
                        const struct cpl_bytes *file, size_t begin)
{
    uint64_t offset = *n > 0 ? sections[*n - 1].offset + sections[*n - 1].n_bytes : begin;
    sections[*n] = (struct section){.kind = kind, .offset = offset, .n_bytes = file->n - offset};
    if (!file->failed)
        sections[*n].checksum = cpl_bytes_hash(file->at + offset, file->n - offset);
    (*n)++;
}

/* Fills the space that was reserved for the header and the table. */
static void write_table(const struct section *sections, uint64_t n, struct cpl_bytes *file)
{
    struct header header = {.magic = MAGIC,
                            .format = FORMAT,
                            .byte_order = BYTE_ORDER_MARK,
                            .n_bytes = file->n,
                            .n_sections = n};
    size_t end = table_bytes(n) - sizeof(uint64_t);
    memcpy(file->at, &header, sizeof header);
    memcpy(file->at + sizeof header, sections, n * sizeof *sections);
    uint64_t checksum = cpl_bytes_hash(file->at, end);
    memcpy(file->at + end, &checksum, sizeof checksum);
}

void cpl_plan_file_put(const struct cpl_bytes *key_bytes, const struct cpl_plan_set *set,
                       struct cpl_bytes *file)
{
    static const unsigned char
        nothing[sizeof(struct header) + MOST_SECTIONS * sizeof(struct section) + sizeof(uint64_t)];
    struct section sections[MOST_SECTIONS];
    uint64_t n = 0;
    size_t begin = table_bytes((uint64_t)set->n + 2);
    cpl_bytes_put(file, nothing, begin, 1);
    cpl_bytes_put(file, key_bytes->at, key_bytes->n, 1);
    end_section(sections, &n, SECTION_KEY, file, begin);
    put_making(set, file);
    end_section(sections, &n, SECTION_MAKING, file, begin);
    for (int32_t k = 0; k < set->n; k++) {
        put_plan(&set->plan[k], file);
        end_section(sections, &n, SECTION_PLAN, file, begin);
    }
    if (!file->failed)
        write_table(sections, n, file);
}

static enum cpl_status check_header(const struct header *header, size_t n, struct cpl_error *error)
{
    if (n < sizeof *header || memcmp(header->magic, MAGIC, sizeof header->magic) != 0)
        return cpl_fail(error, CPL_ERR_FORMAT, "is no file of plans");
    if (header->byte_order != BYTE_ORDER_MARK)
        return cpl_fail(error, CPL_ERR_UNFIT, "was written on a machine of another byte order");
    if (header->format != FORMAT)
        return cpl_fail(error, CPL_ERR_UNFIT, "has format %" PRIu32 ", expected %d", header->format,
                        FORMAT);
    if (header->n_bytes != n)
        return cpl_fail(error, CPL_ERR_FORMAT,
                        "is damaged: %zu bytes long, expected %" PRIu64 " bytes", n,
                        header->n_bytes);
    if (header->n_sections < 3 || header->n_sections > MOST_SECTIONS ||
        n < table_bytes(header->n_sections) ||
        cpl_bytes_hash(header, table_bytes(header->n_sections) - sizeof(uint64_t)) !=
            *(const uint64_t *)((const struct section *)(header + 1) + header->n_sections))
        return cpl_fail(error, CPL_ERR_FORMAT, "is damaged: its header is not as it was written");
    return CPL_OK;
}

/* Whether the sections are those of a file, one after another up to its end, as they were
 * written. */
static enum cpl_status check_sections(const unsigned char *file, const struct header *header,
                                      const struct section *sections, struct cpl_error *error)
{
    uint64_t offset = table_bytes(header->n_sections);
    for (uint64_t k = 0; k < header->n_sections; k++) {
        uint64_t kind = k < SECTION_PLAN ? k + 1 : SECTION_PLAN;
        if (sections[k].kind != kind || sections[k].offset != offset ||
            sections[k].n_bytes % sizeof(uint64_t) ||
            sections[k].n_bytes > header->n_bytes - offset)
            return cpl_fail(error, CPL_ERR_FORMAT, "is damaged: section %" PRIu64 " is misplaced",
                            k + 1);
        if (cpl_bytes_hash(file + offset, sections[k].n_bytes) != sections[k].checksum)
            return cpl_fail(error, CPL_ERR_FORMAT,
                            "is damaged: section %" PRIu64 " is not as it was written", k + 1);
        offset += sections[k].n_bytes;
    }
    if (offset != header->n_bytes)
        return cpl_fail(error, CPL_ERR_FORMAT, "is damaged: it goes on behind its sections");
    return CPL_OK;
}

/* A strategy's name as the file has it. Reading fails when there is no such strategy. */
static void take_choice(struct cpl_byte_reader *reader, struct cpl_strategy_choice *choice)
{
    char text[CPL_STRATEGY_TEXT];
    cpl_bytes_take_text(reader, text, sizeof text);
    if (!reader->failed && (cpl_strategy_parse(text, choice, NULL) || !choice->strategy))
        reader->failed = true;
}

static enum cpl_status take_making(struct cpl_byte_reader reader, struct cpl_plan_set *set,
                                   uint64_t n_plans, struct cpl_error *error)
{
    set->ms = cpl_bytes_take_real(&reader);
    cpl_bytes_take_integer(&reader, (int64_t)n_plans, (int64_t)n_plans);
    for (uint64_t k = 0; k < n_plans; k++)
        take_choice(&reader, &set->choice[k]);
    if (reader.failed || reader.n > 0)
        return cpl_fail(error, CPL_ERR_FORMAT, "is damaged: it does not tell how it was made");
    return CPL_OK;
}

/* Sets edges, segments and volumes, and checks that nothing is out of bounds. cpl_plan_check later
 * checks whether they make a plan. */
static enum cpl_status copy_edges(const struct kept_edge *kept, const int32_t *segments,
                                  struct cpl_plan *plan, struct cpl_error *error)
{
    int64_t n = 0;
    plan->edges = CPL_ARENA_ARRAY(&plan->arena, struct cpl_edge, plan->n_edges);
    plan->segments = CPL_ARENA_ARRAY(&plan->arena, int32_t, plan->n_segments);
    if (!plan->edges || !plan->segments)
        return cpl_fail_memory(error, "the plan's edges");
    for (int64_t e = 0; e < plan->n_edges; e++) {
        struct cpl_edge *edge = &plan->edges[e];
        *edge = (struct cpl_edge){.from = kept[e].from,
                                  .to = kept[e].to,
                                  .wave = kept[e].wave,
                                  .n_segments = kept[e].n_segments,
                                  .first_segment = n};
        if (edge->n_segments < 1 || edge->n_segments > plan->n_segments - n)
            return cpl_fail(error, CPL_ERR_BROKEN, "holds no plan: a message has no segments");
        for (int64_t end = n + edge->n_segments; n < end; n++) {
            int32_t bundle = segments[n];
            if (bundle < 0 || bundle >= plan->n_bundles ||
                plan->bundles[bundle].volume > INT64_MAX - edge->volume)
                return cpl_fail(error, CPL_ERR_BROKEN, "holds no plan: a segment is no bundle");
            plan->segments[n] = bundle;
            edge->volume += plan->bundles[bundle].volume;
        }
    }
    return CPL_OK;
}

static enum cpl_status make_bundles(const struct cpl_pattern *pattern, struct cpl_plan *plan,
                                    struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int64_t *leader = CPL_ARENA_ARRAY(&scratch, int64_t, pattern->n_messages);
    int32_t *bundle_of = CPL_ARENA_ARRAY(&scratch, int32_t, pattern->n_messages);
    enum cpl_status status = CPL_OK;
    if (!leader || !bundle_of || cpl_pattern_leaders(pattern, leader))
        status = cpl_fail_memory(error, "the plan's bundles");
    if (!status)
        status = cpl_plan_make_bundles(pattern, leader, plan, bundle_of, error);
    cpl_arena_free(&scratch);
    return status;
}

static enum cpl_status take_plan(struct cpl_byte_reader reader, const struct cpl_pattern *pattern,
                                 struct cpl_plan *plan, struct cpl_error *error)
{
    struct cpl_error why;
    struct cpl_plan made = {
        .n_ranks = pattern->n_ranks, .has_parts = pattern->pairs, .arena = CPL_ARENA_EMPTY};
    made.n_waves = (int32_t)cpl_bytes_take_integer(&reader, 0, INT32_MAX);
    made.n_edges = cpl_bytes_take_integer(&reader, 0, INT64_MAX);
    made.n_segments = cpl_bytes_take_integer(&reader, 0, INT64_MAX);
    const struct kept_edge *edges = cpl_bytes_take(&reader, (uint64_t)made.n_edges, sizeof *edges);
    const int32_t *segments = cpl_bytes_take(&reader, (uint64_t)made.n_segments, sizeof *segments);
    if (reader.failed || reader.n > 0)
        return cpl_fail(error, CPL_ERR_FORMAT, "is damaged: a plan is cut off");
    enum cpl_status status = make_bundles(pattern, &made, error);
    if (!status)
        status = copy_edges(edges, segments, &made, error);
    if (!status) {
        made.pattern_fingerprint = cpl_pattern_fingerprint(pattern);
        made.fingerprint = cpl_plan_compute_fingerprint(&made);
        status = cpl_plan_check(&made, pattern, &why);
        if (status)
            cpl_fail(error, status, "holds no plan of this pattern: %s", why.text);
    }
    if (status)
        cpl_plan_free(&made);
    else
        *plan = made;
    return status;
}

static struct cpl_byte_reader reader_of(const unsigned char *file, const struct section *section)
{
    return (struct cpl_byte_reader){file + section->offset, section->n_bytes, false};
}

enum cpl_status cpl_plan_file_take(const unsigned char *file, size_t n,
                                   const struct cpl_plan_key *key,
                                   const struct cpl_bytes *key_bytes, struct cpl_plan_set *set,
                                   struct cpl_error *error)
{
    const struct header *header = (const void *)file;
    const struct section *sections = (const void *)(header + 1);
    struct cpl_plan_set taken = {.n = 0};
    enum cpl_status status = check_header(header, n, error);
    if (!status)
        status = check_sections(file, header, sections, error);
    if (status)
        return status;
    if (header->n_sections - 2 > (uint64_t)key->most)
        return cpl_fail(error, CPL_ERR_FORMAT, "holds more plans than were asked for");
    if (sections[0].n_bytes != key_bytes->n ||
        memcmp(file + sections[0].offset, key_bytes->at, key_bytes->n) != 0)
        return cpl_fail(error, CPL_ERR_UNFIT,
                        "holds plans of another pattern, machine, setting or version");
    status = take_making(reader_of(file, &sections[1]), &taken, header->n_sections - 2, error);
    for (uint64_t k = 2; k < header->n_sections && !status; k++) {
        status = take_plan(reader_of(file, &sections[k]), key->input->pattern, &taken.plan[taken.n],
                           error);
        taken.n += !status;
    }
    if (status)
        cpl_plan_set_free(&taken);
    else
        *set = taken;
    return status;
}
