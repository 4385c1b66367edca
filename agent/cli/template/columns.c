/* SPDX-License-Identifier: Apache-2.0 */
/* Custom columns (k8s.io/kubectl/pkg/cmd/get/customcolumn.go). */
#include "agent/cli/template/template.h"

#include "base/scope.h"

#include <string.h>

#define BLANKS " \t\r\n"

struct column {
    struct str header, path; /* the path without braces, and without its first dot */
};

/* A column ends at a comma outside brackets. */
static size_t column_length(const char *p)
{
    unsigned open = 0;
    size_t n = 0;

    for (; p[n] != '\0' && (p[n] != ',' || open > 0); n++) {
        if (p[n] == '[')
            open++;
        else if (p[n] == ']' && open > 0)
            open--;
    }
    return n;
}

/* "NAME:{.metadata.name}" */
static enum err_code take_column(const char *p, size_t n, struct column *ret, struct err *e)
{
    const char *colon = memchr(p, ':', n), *path = colon != NULL ? colon + 1 : p + n;
    size_t left = (size_t)(p + n - path);

    if (left >= 2 && path[0] == '{' && path[left - 1] == '}') {
        path++;
        left -= 2;
    }
    if (left > 0 && path[0] == '.') {
        path++;
        left--;
    }
    if (colon == NULL || colon == p || left == 0 || memchr(path, '{', left) != NULL ||
        memchr(path, '}', left) != NULL)
        return err_set(e, ERR_INVALID,
                       "custom-columns: HEADER:PATH is expected, as NAME:.metadata.name, not \"%.*s\"",
                       (int)(n < 200 ? n : 200), p);
    ret->header = (struct str){ p, (size_t)(colon - p) };
    ret->path = (struct str){ path, left };
    return ERR_OK;
}

static enum err_code take_columns(const char *spec, struct column *v, size_t *ret_n, struct err *e)
{
    size_t n = 0, length;

    for (;; spec += length + 1) {
        length = column_length(spec);
        if (n == COLUMNS_MAX)
            return err_set(e, ERR_INVALID, "custom-columns: more than %d columns", COLUMNS_MAX);
        if (take_column(spec, length, &v[n++], e) != ERR_OK)
            return e->code;
        if (spec[length] == '\0')
            break;
    }
    *ret_n = n;
    return ERR_OK;
}

/* A tab or a line break would be one of the table. */
static void add_cell(struct buf *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\n' || p[i] == '\r' || p[i] == '\t' || p[i] == '\0')
            buf_addc(out, ' ');
        else
            buf_addc(out, p[i]);
    }
}

static enum err_code add_column(const struct column *c, const json_t *item, struct buf *out, struct err *e)
{
    buf_auto path = BUF_INIT(TEMPLATE_MAX), text = BUF_INIT(out->max);
    struct jsonpath_look look = { .root = item };
    json_auto_t *found = NULL;
    const json_t *value;
    size_t i;

    if (c->path.p[0] != '[')
        buf_addc(&path, '.');
    buf_add(&path, c->path.p, c->path.n);
    if (buf_check(&path, e) != ERR_OK || cli_jsonpath_find(&look, item, path.p, path.n, &found, e) != ERR_OK)
        return e->code;
    if (json_array_size(found) == 0)
        buf_adds(&text, "<none>");
    json_array_foreach (found, i, value) {
        if (i > 0)
            buf_addc(&text, ',');
        cli_add_go_value(&text, value);
    }
    add_cell(out, text.p, text.n);
    out->failed |= text.failed;
    return ERR_OK;
}

enum err_code cli_columns(const char *spec, const json_t *items, bool headers, struct buf *out, struct err *e)
{
    json_auto_t *nothing = json_object();
    struct column v[COLUMNS_MAX];
    buf_auto checked = BUF_INIT(64 * 1024);
    const json_t *item;
    size_t n = 0, i, k;

    if (take_columns(spec, v, &n, e) != ERR_OK)
        return e->code;
    for (k = 0; k < n; k++)
        if (add_column(&v[k], nothing, &checked, e) != ERR_OK) /* its syntax */
            return e->code;
    for (k = 0; headers && k < n; k++) {
        add_cell(out, v[k].header.p, v[k].header.n);
        buf_adds(out, k + 1 < n ? "\t" : "\n");
    }
    json_array_foreach (items, i, item) {
        for (k = 0; k < n; k++) {
            if (add_column(&v[k], item, out, e) != ERR_OK)
                return e->code;
            buf_adds(out, k + 1 < n ? "\t" : "\n");
        }
        if (out->failed)
            return buf_check(out, e);
    }
    return ERR_OK;
}

enum err_code cli_columns_of_file(const char *text, struct buf *spec, struct err *e)
{
    const char *header = text + strspn(text, BLANKS), *path = header + strcspn(header, "\n"), *end = path;

    path += strspn(path, BLANKS);
    for (;;) {
        const size_t n = strcspn(header, BLANKS), m = strcspn(path, BLANKS);

        if (n == 0 || m == 0 || header >= end)
            return err_set(
                e, ERR_INVALID,
                "custom-columns-file: a line of headers and a line with as many paths are expected");
        buf_addf(spec, "%.*s:%.*s", (int)n, header, (int)m, path);
        header += n + strspn(header + n, BLANKS);
        path += m + strspn(path + m, BLANKS);
        if (header >= end && *path == '\0')
            return buf_check(spec, e);
        buf_addc(spec, ',');
    }
}
