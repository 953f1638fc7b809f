/* Edit distance (text_distance.h). */
#include "planner/base/text_distance.h"

#include <ctype.h>
#include <string.h>

static int lower(char letter)
{
    return tolower((unsigned char)letter);
}

size_t cpl_text_distance(const char *a, const char *b)
{
    size_t row[CPL_DISTANCE_MOST + 1], n = strlen(b);
    if (n > CPL_DISTANCE_MOST || strlen(a) > CPL_DISTANCE_MOST)
        return CPL_DISTANCE_MOST;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}
