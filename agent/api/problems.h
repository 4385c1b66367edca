/* SPDX-License-Identifier: Apache-2.0 */
/* problems - what is wrong in a manifest: all problems of a file, in their order. */
#ifndef AGENT_API_PROBLEMS_H
#define AGENT_API_PROBLEMS_H
#include "base/arena.h"
#include "base/scope.h"

#define API_PROBLEMS_MAX 200 /* per file; the last one says how many were left out */

struct api_problem {
    char *where; /* "web.yaml:2:spec.containers[0].image" */
    char *what;
};

struct api_problems {
    struct arena arena;
    struct api_problem *v;
    size_t n;
    size_t dropped;
};

void api_problems_add(struct api_problems *p, const char *where, const char *fmt, ...) PRINTF_LIKE(3, 4);
void api_problems_done(struct api_problems *p);
#endif
