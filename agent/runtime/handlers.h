/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handlers - the OCI runtimes of this node. The first one, whose name is "", is the default; pods choose
 * another one by the name of its handler (RuntimeClass).
 *
 * A bundle's meta.json records the program and the options with which the container was created. Every later
 * command for it (start, exec, delete) uses these, also after the configuration or the default has changed.
 * Private to agent/runtime.
 */
#ifndef AGENT_RUNTIME_HANDLERS_H
#define AGENT_RUNTIME_HANDLERS_H
#include "agent/runtime/container.h"

#include <jansson.h>

struct rt_handler {
    char *name;     /* "": the default; NULL: used by existing containers only */
    char *program;  /* absolute */
    char **options; /* before the command; NULL-terminated */
    size_t n_options;
    struct rt_features features;
    struct rt_handler *next;
};

/* Copies the programs of the options; nothing is probed. rt_handlers_free() after a failure, too. */
enum err_code rt_handlers_copy(struct rt *rt, const struct rt_options *o, struct err *e) MUST_CHECK;
void rt_handlers_free(struct rt *rt);
/* NULL or "": the default. NULL: no handler has that name. May be called in any thread. */
const struct rt_handler *rt_handler_find(const struct rt *rt, const char *name);
/* Removes a handler that cannot be used; its name is then unknown. */
void rt_handler_drop(struct rt *rt, struct rt_handler *h);

/* The value of "runtime" in meta.json; NULL: out of memory. */
json_t *rt_handler_record(const struct rt_handler *h);
/* The runtime that created the container. The default, if there is no record because the bundle is missing or
 * incomplete. An error: the record could not be read. *ret is valid while `rt` is open. */
enum err_code rt_handler_of(struct rt *rt, const char *id, const struct rt_handler **ret,
                            struct err *e) MUST_CHECK;
#endif
