/* Whether JSON files hold to a JSON schema: schema SCHEMA FILE...
 *
 * Knows the keywords of doc/report.schema.json, and refuses others: type, properties, required,
 * additionalProperties, items, minItems, maxItems, enum, minimum, $ref (to #/definitions/NAME) and
 * the annotations. Prints what is wrong with its place. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define PLACE 256

static const json_t *root;
static int n_wrong;

static void wrong(const char *place, const char *what, const char *name)
{
    if (n_wrong++ < 20)
        printf("%s: %s%s%s\n", place[0] ? place : "/", what, name[0] ? " " : "", name);
}

static int is_type(const json_t *value, const char *type)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return strcmp(type, "object") == 0;
    case JSON_ARRAY:
        return strcmp(type, "array") == 0;
    case JSON_STRING:
        return strcmp(type, "string") == 0;
    case JSON_INTEGER:
        return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
    case JSON_REAL:
        return strcmp(type, "number") == 0;
    case JSON_NULL:
        return strcmp(type, "null") == 0;
    default:
        return strcmp(type, "boolean") == 0;
    }
}

/* The type is a name, or an array of names. */
static int has_type(const json_t *value, const json_t *type)
{
    if (json_is_string(type))
        return is_type(value, json_string_value(type));
    for (size_t k = 0; k < json_array_size(type); k++)
        if (is_type(value, json_string_value(json_array_get(type, k))))
            return 1;
    return 0;
}

static void known_keywords(const json_t *schema, const char *place)
{
    static const char known[] =
        " $schema $id $ref title description definitions type properties required "
        "additionalProperties items minItems maxItems enum minimum ";
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)schema, key, value)
    {
        char word[64];
        snprintf(word, sizeof word, " %s ", key);
        if (!strstr(known, word))
            wrong(place, "the schema has an unknown keyword", key);
    }
}

static void look(const json_t *value, const json_t *schema, const char *place);

static void look_at_members(const json_t *value, const json_t *schema, const char *place)
{
    const json_t *properties = json_object_get(schema, "properties"),
                 *required = json_object_get(schema, "required"),
                 *others = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *member;
    for (size_t k = 0; k < json_array_size(required); k++) {
        key = json_string_value(json_array_get(required, k));
        if (!json_object_get(value, key))
            wrong(place, "lacks", key);
    }
    json_object_foreach((json_t *)value, key, member)
    {
        char inner[PLACE];
        const json_t *one = json_object_get(properties, key);
        snprintf(inner, sizeof inner, "%.200s/%.50s", place, key);
        if (one || json_is_object(others))
            look(member, one ? one : others, inner);
        else if (json_is_false(others))
            wrong(place, "has an unknown member", key);
    }
}

static void look_at_items(const json_t *value, const json_t *schema, const char *place)
{
    const json_t *items = json_object_get(schema, "items"),
                 *least = json_object_get(schema, "minItems"),
                 *most = json_object_get(schema, "maxItems");
    size_t n = json_array_size(value);
    if ((least && (json_int_t)n < json_integer_value(least)) ||
        (most && (json_int_t)n > json_integer_value(most)))
        wrong(place, "has another number of items", "");
    for (size_t k = 0; items && k < n; k++) {
        char inner[PLACE];
        snprintf(inner, sizeof inner, "%.230s/%zu", place, k);
        look(json_array_get(value, k), items, inner);
    }
}

static void look_at_value(const json_t *value, const json_t *schema, const char *place)
{
    const json_t *type = json_object_get(schema, "type"),
                 *least = json_object_get(schema, "minimum"),
                 *choice = json_object_get(schema, "enum");
    int found = !choice;
    if (type && !has_type(value, type))
        wrong(place, "is of another type", "");
    if (least && json_is_number(value) && json_number_value(value) < json_number_value(least))
        wrong(place, "is below the minimum", "");
    for (size_t k = 0; k < json_array_size(choice); k++)
        found = found || json_equal(value, json_array_get(choice, k));
    if (!found)
        wrong(place, "is none of the values", "");
}

static void look(const json_t *value, const json_t *schema, const char *place)
{
    const char *link = json_string_value(json_object_get(schema, "$ref"));
    static const char to[] = "#/definitions/";
    known_keywords(schema, place);
    if (link && strncmp(link, to, sizeof to - 1) == 0) {
        const json_t *target =
            json_object_get(json_object_get(root, "definitions"), link + sizeof to - 1);
        if (target)
            look(value, target, place);
        else
            wrong(place, "the schema has no", link);
        return;
    }
    look_at_value(value, schema, place);
    if (json_is_object(value))
        look_at_members(value, schema, place);
    if (json_is_array(value))
        look_at_items(value, schema, place);
}

int main(int argc, char **argv)
{
    json_error_t error;
    if (argc < 3) {
        fprintf(stderr, "usage: schema SCHEMA FILE...\n");
        return 2;
    }
    root = json_load_file(argv[1], 0, &error);
    for (int k = 2; root && k < argc; k++) {
        json_t *value = json_load_file(argv[k], 0, &error);
        if (!value)
            wrong(argv[k], "cannot be read:", error.text);
        else
            look(value, root, argv[k]);
        json_decref(value);
    }
    if (!root)
        wrong(argv[1], "cannot be read:", error.text);
    json_decref((json_t *)root);
    return n_wrong > 0;
}
