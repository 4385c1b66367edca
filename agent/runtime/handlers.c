/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/handlers.h"

#include "agent/runtime/container_internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- one runtime ---- */

static void handler_free(struct rt_handler *h)
{
    for (size_t i = 0; h->options != NULL && i < h->n_options; i++)
        free(h->options[i]);
    free(h->options);
    free(h->name);
    free(h->program);
    free(h);
}

/* `name`: NULL for a runtime that cannot be chosen. NULL: out of memory. */
static struct rt_handler *handler_new(const char *name, const char *program, const char *const *options)
{
    struct rt_handler *h = calloc(1, sizeof(*h));
    size_t n = 0;

    while (options != NULL && options[n] != NULL)
        n++;
    if (h == NULL)
        return NULL;
    h->name = name != NULL ? strdup(name) : NULL;
    h->program = strdup(program);
    h->options = calloc(n + 1, sizeof(*h->options));
    if ((name != NULL && h->name == NULL) || h->program == NULL || h->options == NULL) {
        handler_free(h);
        return NULL;
    }
    for (; h->n_options < n; h->n_options++)
        if ((h->options[h->n_options] = strdup(options[h->n_options])) == NULL) {
            handler_free(h);
            return NULL;
        }
    return h;
}

static enum err_code check_program(const char *program, struct err *e)
{
    if (program[0] != '/' || strlen(program) >= PATH_MAX)
        return err_set(e, ERR_INVALID, "program \"%s\": not an absolute path", program);
    if (access(program, X_OK) != 0)
        return err_sys(e, errno, "program %s", program);
    return ERR_OK;
}

static enum err_code check_option(const struct rt_handler_option *o, struct err *e)
{
    size_t n = 0;

    for (; o->options != NULL && o->options[n] != NULL; n++)
        if (o->options[n][0] == '\0' || strlen(o->options[n]) > RT_HANDLER_OPTION_MAX)
            return err_set(e, ERR_INVALID,
                           "runtime handler \"%s\": an option is empty or longer than %d bytes", o->name,
                           RT_HANDLER_OPTION_MAX);
    if (n > RT_HANDLER_OPTIONS_MAX)
        return err_set(e, ERR_INVALID, "runtime handler \"%s\": more than %d options", o->name,
                       RT_HANDLER_OPTIONS_MAX);
    return ERR_OK;
}

enum err_code rt_handlers_copy(struct rt *rt, const struct rt_options *o, struct err *e)
{
    struct rt_handler **end = &rt->handlers;

    if (check_program(o->runtime_path, e) != ERR_OK)
        return e->code;
    *end = handler_new("", o->runtime_path, NULL);
    if (*end == NULL)
        return err_nomem(e);
    if (o->n_handlers > RT_HANDLERS_MAX)
        return err_set(e, ERR_INVALID, "more than %d runtime handlers", RT_HANDLERS_MAX);
    for (size_t i = 0; i < o->n_handlers; i++) {
        end = &(*end)->next;
        if (check_option(&o->handlers[i], e) != ERR_OK || check_program(o->handlers[i].program, e) != ERR_OK)
            return e->code;
        *end = handler_new(o->handlers[i].name, o->handlers[i].program, o->handlers[i].options);
        if (*end == NULL)
            return err_nomem(e);
    }
    return ERR_OK;
}

static void list_free(struct rt_handler *h)
{
    while (h != NULL) {
        struct rt_handler *next = h->next;

        handler_free(h);
        h = next;
    }
}

void rt_handlers_free(struct rt *rt)
{
    list_free(take_ptr(&rt->handlers));
    list_free(take_ptr(&rt->old_handlers));
}

const struct rt_handler *rt_handler_find(const struct rt *rt, const char *name)
{
    const struct rt_handler *h = rt->handlers;

    while (h != NULL && strcmp(h->name, name != NULL ? name : "") != 0)
        h = h->next;
    return h;
}

void rt_handler_drop(struct rt *rt, struct rt_handler *h)
{
    struct rt_handler **at = &rt->handlers;

    while (*at != NULL && *at != h)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    *at = h->next;
    handler_free(h);
}

/* ---- for other folders ---- */

size_t rt_handler_names(const struct rt *rt, const char *ret[], size_t max)
{
    size_t n = 0;

    for (const struct rt_handler *h = rt->handlers; h != NULL && n < max; h = h->next)
        ret[n++] = h->name;
    return n;
}

const struct rt_features *rt_handler_features(const struct rt *rt, const char *name)
{
    const struct rt_handler *h = rt_handler_find(rt, name);

    return h != NULL ? &h->features : NULL;
}

const struct rt_features *rt_features(const struct rt *rt)
{
    return &rt->handlers->features;
}

/* ---- the record in a bundle ---- */

json_t *rt_handler_record(const struct rt_handler *h)
{
    json_t *options = json_array();

    for (size_t i = 0; i < h->n_options; i++)
        if (json_array_append_new(options, json_string(h->options[i])) != 0) {
            json_decref(options);
            return NULL;
        }
    return json_pack("{s:s, s:s, s:s, s:o}", "handler", h->name, "kind", h->features.runtime_name, "program",
                     h->program, "options", options);
}

struct recorded { /* borrowed from the JSON */
    const char *kind, *program;
    const char *options[RT_HANDLER_OPTIONS_MAX + 1];
};

/* False: not a valid record. */
static bool record_read(const json_t *meta, struct recorded *ret)
{
    const json_t *o = json_object_get(meta, "runtime"), *options = json_object_get(o, "options");
    size_t n = json_array_size(options);

    *ret = (struct recorded){ .kind = json_str(o, "kind"), .program = json_str(o, "program") };
    if (ret->kind == NULL || ret->program == NULL || ret->program[0] != '/' || n > RT_HANDLER_OPTIONS_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        ret->options[i] = json_string_value(json_array_get(options, i));
        if (ret->options[i] == NULL || strlen(ret->options[i]) > RT_HANDLER_OPTION_MAX)
            return false;
    }
    return true;
}

static bool is_recorded(const struct rt_handler *h, const struct recorded *r)
{
    size_t i = 0;

    if (strcmp(h->program, r->program) != 0)
        return false;
    while (i < h->n_options && r->options[i] != NULL && strcmp(h->options[i], r->options[i]) == 0)
        i++;
    return i == h->n_options && r->options[i] == NULL;
}

static const struct rt_handler *list_find(const struct rt_handler *h, const struct recorded *r)
{
    while (h != NULL && !is_recorded(h, r))
        h = h->next;
    return h;
}

/* A handler that is no longer configured is kept while `rt` is open, because it has containers. */
static enum err_code handler_intern(struct rt *rt, const struct recorded *r, const struct rt_handler **ret,
                                    struct err *e)
{
    const struct rt_handler *known = list_find(rt->handlers, r);
    struct rt_handler *h;

    if (known == NULL)
        known = list_find(rt->old_handlers, r);
    if (known != NULL) {
        *ret = known;
        return ERR_OK;
    }
    h = handler_new(NULL, r->program, r->options);
    if (h == NULL)
        return err_nomem(e);
    snprintf(h->features.runtime_name, sizeof(h->features.runtime_name), "%s", r->kind);
    h->next = rt->old_handlers;
    rt->old_handlers = h;
    *ret = h;
    return ERR_OK;
}

enum err_code rt_handler_of(struct rt *rt, const char *id, const struct rt_handler **ret, struct err *e)
{
    struct rt_path path = rt_container_file(rt, id, "meta.json");
    struct presence there;
    struct recorded r;
    str_auto text = NULL;
    json_auto_t *meta = NULL;
    size_t n = 0;

    there = fs_read_if_there(AT_FDCWD, path.s, RT_META_MAX, &text, &n, e);
    if (presence_is_unknown(there))
        return e->code;
    if (!presence_is_absent(there) && json_parse(text, n, RT_META_MAX, &meta, "meta.json", e) != ERR_OK) {
        if (e->code != ERR_INVALID)
            return e->code;
        *e = (struct err){ 0 };
    }
    if (meta != NULL && record_read(meta, &r))
        return handler_intern(rt, &r, ret, e);
    *ret = rt->handlers;
    return ERR_OK;
}
