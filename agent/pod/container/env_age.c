/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/container/env_age.h"
#include "agent/api/on_change.h"
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/siphash.h"

#include <stdlib.h>
#include <string.h>

#define ABSENT "-"
#define SOURCES_MAX 8192 /* per container: more than its lists can name */
#define KEY_CHECK ""     /* its value identifies the key */

/* ---- the key ---- */

/* Of this node, as long as its volumes' tmpfs exists. */
static const unsigned char *env_age_key_of(struct node *n)
{
    struct container_node *part = container_node(n);
    struct err e = { 0 };
    char path[512];

    if (part->env_key_known)
        return part->env_key;
    snprintf(path, sizeof(path), "%s/volumes/.environment-key", n->o.run_dir);
    siphash_key(path, part->env_key, &e);
    if (e.code != ERR_OK)
        log_warn("outdated environments will not be detected after a restart of the agent", F_ERR(&e));
    part->env_key_known = true;
    return part->env_key;
}

/* ---- the state of the sources ---- */

static const char *kind_name(enum api_config_kind kind)
{
    return kind == API_SECRET ? "Secret" : "ConfigMap";
}

/* A value with its name; the sum of these is independent of the order. */
static uint64_t hash_value(struct node *n, char how, const char *key, const struct api_datum *d)
{
    buf_auto b = BUF_INIT(4 * 1024 * 1024);
    uint64_t h;

    buf_addf(&b, "%c%s%c", how, key, d != NULL ? '=' : '-');
    if (d != NULL)
        buf_add(&b, d->data, d->size);
    h = siphash(env_age_key_of(n), b.p, b.n);
    if (b.n > 0)
        explicit_bzero(b.p, b.n);
    return h;
}

static void add_hash(json_t *sources, enum api_config_kind kind, const char *name, bool there, uint64_t h)
{
    str_auto id = str_printf("%s/%s", kind_name(kind), name);
    const char *before = id != NULL ? json_str(sources, id) : NULL;
    char text[17];

    if (id == NULL)
        return;
    if (before != NULL)
        h += strtoull(before, NULL, 16); /* "-" means none */
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)h);
    json_object_set_new(sources, id, json_string(there ? text : ABSENT));
}

static void env_age_add_key(struct pod *p, json_t *sources, enum api_config_kind kind,
                            const struct api_key_ref *ref)
{
    const struct api_config *c =
        src_store_config(p->node->o.store, p->api->origin, kind, p->api->meta.namespace, ref->name);

    add_hash(sources, kind, ref->name, c != NULL,
             c != NULL ? hash_value(p->node, 'k', ref->key, api_config_get(c, ref->key)) : 0);
}

static void env_age_add_all(struct pod *p, json_t *sources, enum api_config_kind kind, const char *name)
{
    const struct api_config *c =
        src_store_config(p->node->o.store, p->api->origin, kind, p->api->meta.namespace, name);
    uint64_t sum = 0;

    for (size_t i = 0; c != NULL && i < c->n_data; i++)
        if (!c->data[i].binary) /* not usable in environments */
            sum += hash_value(p->node, 'a', c->data[i].key, &c->data[i]);
    add_hash(sources, kind, name, c != NULL, sum);
}

json_t *env_age_sources(struct pod *p, const struct api_container *c)
{
    json_t *sources = json_object();
    char check[17];

    for (size_t i = 0; i < c->n_env_from; i++) {
        const struct api_env_from *f = &c->env_from[i];
        if (f->secret_ref != NULL)
            env_age_add_all(p, sources, API_SECRET, f->secret_ref);
        else if (f->config_map_ref != NULL)
            env_age_add_all(p, sources, API_CONFIG_MAP, f->config_map_ref);
    }
    for (size_t i = 0; i < c->n_env; i++) {
        if (c->env[i].secret_key_ref != NULL)
            env_age_add_key(p, sources, API_SECRET, c->env[i].secret_key_ref);
        else if (c->env[i].config_map_key_ref != NULL)
            env_age_add_key(p, sources, API_CONFIG_MAP, c->env[i].config_map_key_ref);
    }
    if (json_object_size(sources) == 0) {
        json_decref(sources);
        return NULL;
    }
    snprintf(check, sizeof(check), "%016llx", (unsigned long long)siphash(env_age_key_of(p->node), "", 0));
    json_object_set_new(sources, KEY_CHECK, json_string(check));
    return sources;
}

bool env_age_is_sane(const json_t *sources)
{
    const char *name;
    json_t *value;

    if (!json_is_object(sources) || json_object_size(sources) > SOURCES_MAX)
        return false;
    json_object_foreach ((json_t *)(uintptr_t)sources, name, value)
        if (!json_is_string(value) || json_string_length(value) > 16)
            return false;
    return true;
}

bool env_age_uses(const struct api_container *c, enum api_config_kind kind, const char *name)
{
    for (size_t i = 0; i < c->n_env_from; i++)
        if (str_eq(kind == API_SECRET ? c->env_from[i].secret_ref : c->env_from[i].config_map_ref, name))
            return true;
    for (size_t i = 0; i < c->n_env; i++) {
        const struct api_key_ref *ref =
            kind == API_SECRET ? c->env[i].secret_key_ref : c->env[i].config_map_key_ref;
        if (ref != NULL && str_eq(ref->name, name))
            return true;
    }
    return false;
}

/* ---- looking ---- */

/* Objects removed in the meantime are treated as unchanged. */
static void fill_absent(json_t *now, const json_t *before)
{
    const char *name;
    json_t *value;

    json_object_foreach (now, name, value) {
        json_t *was = json_object_get(before, name);
        if (was != NULL && str_eq(json_string_value(value), ABSENT))
            json_object_set(now, name, was);
    }
}

/* `ConfigMap "a", Secret "b"`; NULL if nothing differs. */
static char *differences(const json_t *now, const json_t *then)
{
    buf_auto b = BUF_INIT(64 * 1024);
    const char *name;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)now, name, value) {
        const json_t *was = json_object_get(then, name);
        const char *slash = strchr(name, '/');
        if (slash != NULL && was != NULL && !json_equal(value, was))
            buf_addf(&b, "%s%.*s \"%s\"", b.n > 0 ? ", " : "", (int)(slash - name), name, slash + 1);
    }
    return b.n > 0 && !b.failed ? strdup(b.p) : NULL;
}

static void env_age_look(struct ctr *c)
{
    struct ctr_own *own = own_of(c);
    const json_t *then = own->env_sources, *told = own->env_told != NULL ? own->env_told : then;
    json_auto_t *now = NULL;
    char *old = NULL;

    env_age_clear(c);
    if (then == NULL || !ctr_alive(c) || (now = env_age_sources(c->pod, c->spec)) == NULL ||
        !json_equal(json_object_get(now, KEY_CHECK), json_object_get(then, KEY_CHECK)))
        return;
    fill_absent(now, told);
    old = differences(now, then);
    if (old == NULL)
        return;
    own->env_old = old;
    if (!json_equal(now, told))
        own->env_now = json_incref(now);
    if (own->env_old_ns == 0)
        own->env_old_ns = clock_wall_ns();
}

/* ---- effects ---- */

static void restart(struct ctr *c)
{
    struct ctr_own *own = own_of(c);
    struct pod *p = c->pod;

    log_info("restarting a container because the sources of its environment changed", F_STR("pod", p->key),
             F_STR("containerName", c->spec->name), F_STR("sources", own->env_old));
    ctr_replace(c, "%.60s changed, container %.60s will be restarted", own->env_old, c->spec->name);
}

static void env_age_tell(struct ctr *c, const char *name)
{
    struct ctr_own *own = own_of(c);
    struct pod *p = c->pod;
    struct err e = { 0 };

    json_decref(own->env_told);
    own->env_told = take_ptr(&own->env_now);
    p->record_dirty = true;
    if (rt_signal(p->node->rt, c->cur.id, rt_signal_number(name), &e) != ERR_OK) {
        if (e.code != ERR_NOT_FOUND)
            log_warn("cannot signal a container that its configuration changed", F_STR("pod", p->key),
                     F_STR("containerName", c->spec->name), F_ERR(&e));
        return;
    }
    pod_event(p, c, false, "ConfigChanged", "%s changed, signal %s sent", own->env_old, name);
    log_info("signalled a container that its configuration changed", F_STR("pod", p->key),
             F_STR("containerName", c->spec->name), F_STR("signal", name), F_STR("sources", own->env_old));
}

static void act(struct ctr *c)
{
    struct ctr_own *own = own_of(c);
    enum api_on_change what;
    const char *signo;

    if (own->env_old == NULL || c->state != CTR_RUNNING || own->post != POST_NONE ||
        !ctr_kind_lasts(c->kind) || c->replace ||
        !api_on_change_parse(api_kvs_get(&c->pod->api->meta.annotations, API_ON_CHANGE), &what, &signo))
        return;
    switch (what) {
    case API_ON_CHANGE_IGNORE:
        return;
    case API_ON_CHANGE_RESTART:
        restart(c);
        return;
    case API_ON_CHANGE_SIGNAL:
        if (own->env_now != NULL)
            env_age_tell(c, signo);
        return;
    }
}

void env_age_step(struct pod *p)
{
    bool due = containers_of(p)->env_look;

    containers_of(p)->env_look = false;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];
        struct ctr_own *own = own_of(c);
        if (due)
            env_age_look(c);
        else if (own->env_old != NULL && !ctr_alive(c))
            env_age_clear(c);
        if (own->env_old == NULL)
            own->env_old_ns = 0;
        act(c);
    }
}

json_t *env_age_condition(const struct pod *p)
{
    buf_auto text = BUF_INIT(64 * 1024);
    char since[CLOCK_RFC3339_SIZE];
    int64_t since_ns = 0;
    json_t *o;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        const struct ctr_own *own = own_of(c);
        if (own->env_old == NULL || !ctr_alive(c))
            continue;
        buf_addf(&text, "%scontainer \"%s\" runs with an environment that is older than %s",
                 text.n > 0 ? "; " : "", c->spec->name, own->env_old);
        if (since_ns == 0 || own->env_old_ns < since_ns)
            since_ns = own->env_old_ns;
    }
    if (text.n == 0 || text.failed)
        return NULL;
    o = json_object();
    clock_format_s(since_ns, since);
    json_put_str(o, "type", "coracle.dev/EnvironmentOutdated");
    json_put_str(o, "status", "True");
    json_put_str(o, "lastTransitionTime", since);
    json_put_str(o, "reason", "SourceChanged");
    json_put_str(o, "message", text.p);
    return o;
}

void env_age_clear(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    free(take_ptr(&own->env_old));
    json_decref(take_ptr(&own->env_now));
}

void env_age_forget_run(struct ctr *c)
{
    json_decref(take_ptr(&own_of(c)->env_sources));
    json_decref(take_ptr(&own_of(c)->env_told));
}
