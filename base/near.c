/* SPDX-License-Identifier: Apache-2.0 */
#include "base/near.h"

#include <string.h>
#include <strings.h>

enum { NEAR_MAX = 120, NEAR_DISTANCE = 2 };

/* Number of letters inserted, omitted, replaced, or swapped with the next; NEAR_MAX if a name is too long. */
static size_t base_near_distance(const char *a, const char *b)
{
    size_t rows[3][NEAR_MAX + 1], n = strlen(a), m = strlen(b);
    size_t *two_up = rows[0], *up = rows[1], *row = rows[2];

    if (n > NEAR_MAX || m > NEAR_MAX)
        return NEAR_MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *spare = two_up;

        two_up = up;
        up = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < row[j])
                row[j] = up[j] + 1;
            if (row[j - 1] + 1 < row[j])
                row[j] = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_up[j - 2] + 1 < row[j])
                row[j] = two_up[j - 2] + 1;
        }
    }
    return row[m];
}

void near_try(struct near *n, const char *candidate)
{
    size_t d = strcasecmp(n->name, candidate) == 0 ? 0 : base_near_distance(n->name, candidate);

    if (d > NEAR_DISTANCE || d > strlen(n->name) / 2 || (n->found != NULL && d >= n->distance))
        return;
    n->found = candidate;
    n->distance = d;
}
