/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template - text made from a JSON value by a template of the user, in kubectl's languages: jsonpath and Go
 * templates, each in a stated subset.
 *
 * A template and a value are bytes from outside. Both are bounded: the template by TEMPLATE_MAX, the work by
 * a number of steps or values, the output by the buffer. An error names the position and the allowed syntax.
 * Pure computation, callable on any thread.
 */
#ifndef AGENT_CLI_TEMPLATE_TEMPLATE_H
#define AGENT_CLI_TEMPLATE_TEMPLATE_H
#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define TEMPLATE_MAX (1024 * 1024) /* bytes, kubectl has no limit; also of a file with a template */

/* ---- jsonpath.c ----
 *
 * k8s.io/client-go/util/jsonpath: text, and in braces a path, a "string" or {range PATH} ... {end}. A path
 * has the steps .key, .*, ['key'], [n], [from:to:step], [*], [a,b], ..key and [?(@.a=="x")] with == != < <= >
 * >= or none (the path exists). Missing values print nothing, several values are separated by blanks.
 */
/* ERR_INVALID: a syntax error in the template, or more than JSONPATH_VALUES_MAX values. */
enum err_code cli_jsonpath(const char *text, const json_t *value, struct buf *out, struct err *e) MUST_CHECK;
#define CLI_JSONPATH "jsonpath=" /* prefix of such a format */

/* ---- jsonpath_path.c ---- */
/* Values that the paths of one template visit; a list of 1,000 pods has some 300,000. */
#define JSONPATH_VALUES_MAX 2000000
struct jsonpath_look {
    const json_t *root; /* of paths that begin with "$" */
    size_t values;      /* so far */
    unsigned depth;     /* of filters; 0 */
};
/* The values at a path without braces, as a new array; *ret is set on success only. */
enum err_code cli_jsonpath_find(struct jsonpath_look *l, const json_t *current, const char *path, size_t n,
                                json_t **ret, struct err *e) MUST_CHECK;
enum err_code cli_jsonpath_bad(struct err *e, const char *what, const char *at, size_t n);

/* ---- go_run.c ----
 *
 * Go's text/template: {{.a.b}}, {{$x := ...}}, {{if}} {{else if}} {{else}}, {{range $i, $x := ...}},
 * {{with}},
 * {{end}}, comments, trimming with {{- and -}}, pipelines, parentheses, literals, and the functions and,
 * base64decode, eq, exists, ge, gt, index, le, len, lt, ne, not, or, print, printf and println. Not:
 * {{template}}, {{define}}, {{block}}, {{break}} and {{continue}}. A missing value prints "<no value>".
 */
#define GO_STEPS_MAX 2000000 /* commands and turns of ranges; 1,000 pods take some 50,000 */
/* ERR_INVALID: "go-template: line 1 column 7: ...". `out` may have the text before the error. */
enum err_code cli_go_template(const char *text, const json_t *value, struct buf *out,
                              struct err *e) MUST_CHECK;
enum err_code cli_go_template_check(const char *text, struct err *e) MUST_CHECK; /* its syntax */
void cli_add_go_value(struct buf *out, const json_t *v); /* as Go prints it: "map[a:1]" */
#define CLI_GO_TEMPLATE "go-template="

/* ---- columns.c ----
 *
 * kubectl's custom columns: "NAME:.metadata.name,IP:{.status.podIP}". A path is one of jsonpath, with or
 * without braces and first dot; several values are joined by commas, none is "<none>". A file has the headers
 * in its first line and the paths in the second, separated by blanks.
 */
#define CLI_CUSTOM_COLUMNS "custom-columns="
#define COLUMNS_MAX 64
/* Lines of cells that end with tabs, as for cli_align(). ERR_INVALID: a syntax error. */
enum err_code cli_columns(const char *spec, const json_t *items, bool headers, struct buf *out,
                          struct err *e) MUST_CHECK;
/* The text of such a file as `spec`, appended. ERR_INVALID. */
enum err_code cli_columns_of_file(const char *text, struct buf *spec, struct err *e) MUST_CHECK;
#endif
