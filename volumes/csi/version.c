/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/version.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS_MAX = 6 };

static bool version_parse(const char *text, struct csi_version *ret)
{
    struct csi_version v = { 0 };
    size_t parts = 0;

    text += text[0] == 'v';
    while (parts < 3) {
        size_t n = strspn(text, "0123456789");

        if (n == 0 || n > DIGITS_MAX)
            return false;
        for (size_t i = 0; i < n; i++)
            v.part[parts] = v.part[parts] * 10 + (uint32_t)(text[i] - '0');
        text += n;
        parts++;
        if (*text != '.')
            break;
        text++;
    }
    *ret = v;
    return true;
}

int csi_version_compare(const struct csi_version *a, const struct csi_version *b)
{
    for (size_t i = 0; i < 3; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i] ? -1 : 1;
    return 0;
}

void csi_version_print(const struct csi_version *v, char ret[CSI_VERSION_SIZE])
{
    snprintf(ret, CSI_VERSION_SIZE, "%" PRIu32 ".%" PRIu32 ".%" PRIu32, v->part[0], v->part[1], v->part[2]);
}

/* Go's %v of a list: "[1.0 2.0]". */
static void print_list(const char *const *versions, size_t n, char *ret, size_t size)
{
    size_t at = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < n && at + 1 < size; i++)
        at += (size_t)snprintf(ret + at, size - at, "%s%.40s", i > 0 ? " " : "", versions[i]);
}

enum err_code csi_version_highest(const char *const *versions, size_t n, struct csi_version *ret,
                                  struct err *e)
{
    struct csi_version highest = { 0 }, one;
    const char *unreadable = NULL;
    char list[160], text[CSI_VERSION_SIZE];
    bool found = false;

    if (n == 0)
        return err_set(e, ERR_INVALID, "driver reporting empty array for supported versions");
    for (size_t i = n; i-- > 0;) {
        if (!version_parse(versions[i], &one)) {
            unreadable = versions[i];
        } else if (one.part[0] <= 1 && (!found || csi_version_compare(&highest, &one) < 0)) {
            highest = one;
            found = true;
        }
    }
    if (!found) {
        print_list(versions, n, list, sizeof(list));
        if (unreadable == NULL)
            return err_set(e, ERR_INVALID,
                           "could not find a highest supported version from versions ([%s]) reported: <nil>",
                           list);
        return err_set(e, ERR_INVALID,
                       "could not find a highest supported version from versions ([%s]) reported: could not "
                       "parse \"%.40s\" as version",
                       list, unreadable);
    }
    if (highest.part[0] != 1) {
        csi_version_print(&highest, text);
        return err_set(e, ERR_INVALID, "highest supported version reported is %s, must be v1.x", text);
    }
    *ret = highest;
    return ERR_OK;
}
