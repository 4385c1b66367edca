/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problems - the errors in a manifest, each with its position. They are printed in the format of compilers,
 * which editors understand:
 *   web.yaml:17:7: spec.containers[0].ports[1].hostPort: 70000 is out of range, allowed are 1 to 65535
 */
#ifndef AGENT_API_PROBLEMS_H
#define AGENT_API_PROBLEMS_H
#include "agent/api/places.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/scope.h"

#include <jansson.h>

#define API_PROBLEMS_MAX 200 /* per file; the last one contains the number of omitted ones */

struct api_problem {
    const char *file;       /* as the caller of the decode named it; NULL: the object is from no file */
    int document;           /* 1..; 0: the file as a whole */
    struct api_place place; /* of the field, or of the nearest position in the text */
    const char *field;      /* "spec.containers[0].image"; "": the document or the file as a whole */
    const char *message;
};

struct api_problems {
    struct arena arena;
    struct api_problem *v;
    size_t n;
    size_t dropped;
};

/* A problem of a file as a whole. */
void api_problems_add(struct api_problems *p, const char *file, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A problem at the place of `at`, whose message is not used; its texts are copied. */
void api_problems_add_at(struct api_problems *p, const struct api_problem *at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* In the order of the text; problems of one place stay as they are, those without one go last. */
void api_problems_sort(struct api_problems *p);
void api_problems_done(struct api_problems *p);

/* Appends "file:line:column: " + severity ("warning: ", or "") + "field: message"; unknown parts are
 * omitted. */
void api_problem_add_text(const struct api_problem *p, const char *severity, struct buf *out);
/* {"file", "line", "column", "document", "field", "message"}: without the numbers that are unknown. NULL: out
 * of memory. */
json_t *api_problem_json(const struct api_problem *p);
#endif
