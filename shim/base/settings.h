/* Settings: what the user may tune by CARPOOL_* environment variables. The struct, the parser and
 * the listing are made from settings.def. In the shim rank 0's values are broadcast. Leaf module:
 * the carpool command uses it too. */
#ifndef CARPOOL_SETTINGS_H
#define CARPOOL_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPL_SETTINGS_TEXT 1024 /* bytes of a text value, with the final 0 */

enum cpl_mode { CPL_MODE_OFF, CPL_MODE_PROFILE, CPL_MODE_AUTO, CPL_MODE_FORCE };
enum cpl_planning { CPL_PLANNING_AUTO, CPL_PLANNING_ROOT, CPL_PLANNING_DISTRIBUTED };
enum cpl_embed_choice { CPL_EMBED_OFF, CPL_EMBED_EXACT, CPL_EMBED_ALL };

/* Behind these the algorithms, in the order of enum cpl_allgather_algorithm. */
enum cpl_allgather_choice {
    CPL_ALLGATHER_CHOICE_OFF,
    CPL_ALLGATHER_CHOICE_AUTO,
    CPL_ALLGATHER_CHOICE_ALGORITHMS
};

enum cpl_reorder { CPL_REORDER_OFF, CPL_REORDER_AUTO };

typedef char cpl_setting_text[CPL_SETTINGS_TEXT];

#define CPL_SETTING_TYPE_CHOICE(...)      int32_t
#define CPL_SETTING_TYPE_STRATEGY         cpl_setting_text
#define CPL_SETTING_TYPE_TEXT             cpl_setting_text
#define CPL_SETTING_TYPE_COUNT(low, high) int64_t
#define CPL_SETTING_TYPE_BYTES(low, high) int64_t

/* One member per row of settings.def. Plain data without pointers: may be copied and broadcast as
 * bytes. */
struct cpl_settings {
#define SETTING(field, name, for_whom, type, preset, doc) CPL_SETTING_TYPE_##type field;
#include "shim/base/settings.def"
};

/* Calls that go through MPI before an exchange is planned. */
static inline int64_t cpl_settings_learn(const struct cpl_settings *settings)
{
    return settings->learn > 0 ? settings->learn : 1;
}

/* Called for every problem with a variable; text is one sentence that names the variable and the
 * remedy. */
typedef void cpl_settings_warn(void *context, const char *text);

/* Fills settings from the variables in environment (as environ). A variable with an unusable value
 * keeps its default; an unknown CARPOOL_ variable is reported with the nearest known one, and so is
 * one whose prefix is mistyped. warn may be NULL. */
void cpl_settings_read(struct cpl_settings *settings, char *const *environment,
                       cpl_settings_warn *warn, void *context);

/* The variable whose name is nearest to a mistyped one; *distance (unless NULL) becomes the number
 * of letters in which they differ (text_distance.h). */
const char *cpl_settings_nearest(const char *name, size_t *distance);

/* Row i of the table, of so many, as text for listings. */
size_t cpl_settings_count(void);
struct cpl_setting_info {
    const char *variable; /* "CARPOOL_MODE" */
    const char *preset;   /* the default as a user would write it */
    const char *doc;
    const char *heading; /* heading of the group that begins with this row, else NULL */
};
struct cpl_setting_info cpl_settings_info(size_t i);

/* What row i accepts ("off|profile|auto|force", "1 to 1000000"). Writes at most size bytes. */
void cpl_settings_accepts(size_t i, char *text, size_t size);

/* The value of row i as a user would write it. Writes at most size bytes. */
void cpl_settings_value(const struct cpl_settings *settings, size_t i, char *text, size_t size);

/* Makes a directory that a setting names unless it exists, but not its parents. Returns false, with
 * errno set, when there is no such directory afterwards. */
bool cpl_settings_make_directory(const char *name);

#endif
