/* SPDX-License-Identifier: Apache-2.0 */
/* The target that the path of a request names. */
#include "agent/api/serve/internal.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum { PARTS_MAX = 9, PART_SIZE = 254 }; /* /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUB */

struct parts {
    char v[PARTS_MAX][PART_SIZE];
    size_t n;
};

static int hex(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c == '\0' ? NULL : strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);

    return at == NULL ? -1 : (int)(at - digits);
}

/* One part of the path, decoded. False: too long, a broken %XX, a NUL or a slash in it, no UTF-8. */
static bool decode_part(const char *text, size_t n, char ret[PART_SIZE])
{
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%') {
            const int high = i + 2 < n ? hex(text[i + 1]) : -1, low = i + 2 < n ? hex(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
            if (c == '\0' || c == '/')
                return false;
        }
        if (used + 1 >= PART_SIZE)
            return false;
        ret[used++] = c;
    }
    ret[used] = '\0';
    return used > 0 && utf8_is_valid(ret, used);
}

static bool split_path(const char *path, struct parts *ret)
{
    ret->n = 0;
    while (*path == '/') {
        const size_t n = strcspn(path + 1, "/");
        if (n == 0 && path[1] == '\0')
            break; /* a slash at the end */
        if (ret->n == PARTS_MAX || !decode_part(path + 1, n, ret->v[ret->n]))
            return false;
        ret->n++;
        path += 1 + n;
    }
    return *path == '\0' || path[1] == '\0';
}

/* After the group and the version: [namespaces NS] RESOURCE [NAME [SUB]]. */
static bool parse_resource(const struct parts *p, size_t at, const char *group, const char *version,
                           struct api_target *ret)
{
    if (at + 2 < p->n && strcmp(p->v[at], "namespaces") == 0) {
        const struct api_kind_row *inner = api_kind_of_resource(group, version, p->v[at + 2]);
        if (inner != NULL && inner->namespaced) {
            if (snprintf(ret->namespace, sizeof(ret->namespace), "%s", p->v[at + 1]) >=
                (int)sizeof(ret->namespace))
                return false;
            at += 2;
        }
    }
    if (at >= p->n || p->n - at > 3)
        return false;
    ret->kind = api_kind_of_resource(group, version, p->v[at]);
    if (ret->kind == NULL)
        return false;
    if (at + 1 < p->n) {
        if (ret->kind->namespaced && ret->namespace[0] == '\0')
            return false;
        strcpy(ret->name, p->v[at + 1]);
    }
    if (at + 2 < p->n)
        ret->sub = api_subresource_find(ret->kind, p->v[at + 2]);
    return at + 2 >= p->n || ret->sub != NULL;
}

bool api_target_parse(const char *path, struct api_target *ret)
{
    struct api_target t = { 0 };
    struct parts p;

    if (!split_path(path, &p) || p.n < 3)
        return false;
    if (strcmp(p.v[0], "api") == 0
            ? !parse_resource(&p, 2, "", p.v[1], &t)
            : strcmp(p.v[0], "apis") != 0 || !parse_resource(&p, 3, p.v[1], p.v[2], &t))
        return false;
    *ret = t;
    return true;
}
