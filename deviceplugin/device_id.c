/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/device_id.h"

#include "base/utf8.h"

#include <stddef.h>
#include <string.h>

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares the numbers at *a and *b, and moves both behind them. Without leading zeros, the longer number is
 * greater. */
static int compare_numbers(const char **a, const char **b)
{
    size_t n_a = 0, n_b = 0;
    int order;

    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    while (digit((*a)[n_a]))
        n_a++;
    while (digit((*b)[n_b]))
        n_b++;
    order = n_a != n_b ? (n_a < n_b ? -1 : 1) : memcmp(*a, *b, n_a);
    *a += n_a;
    *b += n_b;
    return order;
}

int dp_id_compare(const char *a, const char *b)
{
    const char *p = a, *q = b;
    int order;

    while (*p != '\0' && *q != '\0') {
        if (digit(*p) && digit(*q)) {
            order = compare_numbers(&p, &q);
            if (order != 0)
                return order;
        } else if (*p != *q) {
            break;
        } else {
            p++;
            q++;
        }
    }
    if (*p != *q)
        return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
    return strcmp(a, b); /* the same numbers, with different leading zeros */
}

bool dp_id_ok(const char *id)
{
    size_t n = strnlen(id, DP_ID_MAX + 1);

    return n > 0 && n <= DP_ID_MAX && utf8_is_valid(id, n);
}
