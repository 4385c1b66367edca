/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gifts - the additions that a container gets with its devices: the answers for all its resources become one.
 * By kubelet's rule the first value wins. kubelet's order is that of a Go map and differs each time; here it
 * is the order of the resources' names.
 */
#include "agent/pod/core/events.h"
#include "agent/pod/device/internal.h"
#include "base/log.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

struct merge {
    struct arena *arena;
    struct dp_answer *ret;
    /* the resource that each value is from, in the order of the lists of *ret */
    const char **env_of, **annotation_of, **mount_of, **node_of;
    struct strs *conflicts;
    bool no_memory;
};

static const char *copy(struct merge *m, const char *text)
{
    const char *c = arena_strdup(m->arena, text);

    m->no_memory = m->no_memory || c == NULL;
    return c;
}

static void conflict(struct merge *m, const char *what, const char *name, const char *kept, const char *lost)
{
    if (m->conflicts == NULL)
        return;
    if (!strs_take(m->conflicts,
                   str_printf("%s %.200s: that of %s is used, that of %s differs", what, name, kept, lost)))
        m->no_memory = true;
}

static void merge_kvs(struct merge *m, const char *what, struct dp_kv *to, size_t *n, const char **of,
                      const struct dp_kv *from, size_t n_from, const char *resource)
{
    for (size_t i = 0; i < n_from; i++) {
        size_t k = 0;
        while (k < *n && strcmp(to[k].name, from[i].name) != 0)
            k++;
        if (k == *n) {
            of[*n] = resource;
            to[(*n)++] = (struct dp_kv){ copy(m, from[i].name), copy(m, from[i].value) };
        } else if (strcmp(to[k].value, from[i].value) != 0) {
            conflict(m, what, from[i].name, of[k], resource);
        }
        if (m->no_memory)
            return;
    }
}

static void merge_mounts(struct merge *m, const struct dp_answer *a, const char *resource)
{
    struct dp_answer *r = m->ret;

    for (size_t i = 0; i < a->n_mounts && !m->no_memory; i++) {
        const struct dp_mount *x = &a->mounts[i];
        size_t k = 0;
        while (k < r->n_mounts && strcmp(r->mounts[k].container_path, x->container_path) != 0)
            k++;
        if (k == r->n_mounts) {
            m->mount_of[k] = resource;
            r->mounts[r->n_mounts++] = (struct dp_mount){ .container_path = copy(m, x->container_path),
                                                          .host_path = copy(m, x->host_path),
                                                          .read_only = x->read_only };
        } else if (strcmp(r->mounts[k].host_path, x->host_path) != 0) {
            conflict(m, "mount", x->container_path, m->mount_of[k], resource);
        }
    }
}

static void merge_nodes(struct merge *m, const struct dp_answer *a, const char *resource)
{
    struct dp_answer *r = m->ret;

    for (size_t i = 0; i < a->n_nodes && !m->no_memory; i++) {
        const struct dp_node *x = &a->nodes[i];
        size_t k = 0;
        while (k < r->n_nodes && strcmp(r->nodes[k].container_path, x->container_path) != 0)
            k++;
        if (k == r->n_nodes) {
            m->node_of[k] = resource;
            r->nodes[r->n_nodes++] = (struct dp_node){ .container_path = copy(m, x->container_path),
                                                       .host_path = copy(m, x->host_path),
                                                       .permissions = copy(m, x->permissions) };
        } else if (strcmp(r->nodes[k].host_path, x->host_path) != 0) {
            conflict(m, "device", x->container_path, m->node_of[k], resource);
        }
    }
}

static void merge_cdi(struct merge *m, const struct dp_answer *a)
{
    struct dp_answer *r = m->ret;

    for (size_t i = 0; i < a->n_cdi && !m->no_memory; i++) {
        size_t k = 0;
        while (k < r->n_cdi && strcmp(r->cdi[k], a->cdi[i]) != 0)
            k++;
        if (k == r->n_cdi)
            r->cdi[r->n_cdi++] = copy(m, a->cdi[i]);
    }
}

static void *list(struct merge *m, size_t n, size_t size)
{
    void *p = arena_alloc(m->arena, (n + 1) * size);

    m->no_memory = m->no_memory || p == NULL;
    return p;
}

enum err_code device_merge(const struct device_gift *v, size_t n, struct arena *arena, struct dp_answer *ret,
                           struct strs *conflicts, struct err *e)
{
    struct merge m = { .arena = arena, .ret = ret, .conflicts = conflicts };
    struct dp_answer most = { 0 };

    *ret = (struct dp_answer){ 0 };
    for (size_t i = 0; i < n; i++) {
        most.n_envs += v[i].answer->n_envs;
        most.n_annotations += v[i].answer->n_annotations;
        most.n_mounts += v[i].answer->n_mounts;
        most.n_nodes += v[i].answer->n_nodes;
        most.n_cdi += v[i].answer->n_cdi;
    }
    ret->envs = list(&m, most.n_envs, sizeof(*ret->envs));
    ret->annotations = list(&m, most.n_annotations, sizeof(*ret->annotations));
    ret->mounts = list(&m, most.n_mounts, sizeof(*ret->mounts));
    ret->nodes = list(&m, most.n_nodes, sizeof(*ret->nodes));
    ret->cdi = list(&m, most.n_cdi, sizeof(*ret->cdi));
    m.env_of = list(&m, most.n_envs, sizeof(char *));
    m.annotation_of = list(&m, most.n_annotations, sizeof(char *));
    m.mount_of = list(&m, most.n_mounts, sizeof(char *));
    m.node_of = list(&m, most.n_nodes, sizeof(char *));
    for (size_t i = 0; i < n && !m.no_memory; i++) {
        const struct dp_answer *a = v[i].answer;
        merge_kvs(&m, "environment variable", ret->envs, &ret->n_envs, m.env_of, a->envs, a->n_envs,
                  v[i].resource);
        merge_kvs(&m, "annotation", ret->annotations, &ret->n_annotations, m.annotation_of, a->annotations,
                  a->n_annotations, v[i].resource);
        merge_mounts(&m, a, v[i].resource);
        merge_nodes(&m, a, v[i].resource);
        merge_cdi(&m, a);
    }
    return m.no_memory ? err_nomem(e) : ERR_OK;
}

/* ---- of a container ---- */

static enum err_code unpack_all(const struct ctr *c, const struct device_want *v, size_t n,
                                struct device_gift *ret, size_t *ret_n, struct err *e)
{
    const struct pod *p = c->pod;

    for (size_t i = 0; i < n; i++) {
        const struct dp_holding *h =
            dp_holdings_find(devices_holdings(p->node), p->uid, c->spec->name, v[i].resource);
        struct dp_answer *answer;
        if (p->ctrs[v[i].ctr] != c || h == NULL || h->answer == NULL)
            continue;
        if (dp_answer_unpack(&answer, h->answer, h->n_answer, e) != ERR_OK)
            return err_wrap(e, "stored answer for %s", v[i].resource);
        ret[(*ret_n)++] = (struct device_gift){ v[i].resource, answer };
    }
    return ERR_OK;
}

enum err_code device_gifts_of(const struct ctr *c, struct arena *arena, struct dp_answer *ret,
                              struct strs *conflicts, struct err *e)
{
    mem_auto struct device_want *v = NULL;
    mem_auto struct device_gift *gifts = NULL;
    size_t n, n_gifts = 0;

    *ret = (struct dp_answer){ 0 };
    if (device_wants(c->pod, &v, &n, e) != ERR_OK)
        return e->code;
    gifts = calloc(n + 1, sizeof(*gifts));
    if (gifts == NULL)
        return err_nomem(e);
    if (unpack_all(c, v, n, gifts, &n_gifts, e) == ERR_OK && n_gifts > 0)
        ERR_IGNORE(device_merge(gifts, n_gifts, arena, ret, conflicts, e));
    for (size_t i = 0; i < n_gifts; i++)
        free((void *)(uintptr_t)gifts[i].answer);
    return e->code;
}

enum err_code devices_of_ctr(struct ctr *c, struct arena *arena, struct dp_answer *ret, struct err *e)
{
    struct device_ctr *own = device_ctr_of(c);
    struct strs conflicts = { 0 };

    if (device_gifts_of(c, arena, ret, &conflicts, e) == ERR_OK && !own->conflicts_reported)
        for (size_t i = 0; i < conflicts.n; i++) {
            text_printable(conflicts.v[i]);
            log_warn("device plugins return conflicting answers", F_STR("pod", c->pod->key),
                     F_STR("containerName", c->spec->name), F_STR("conflict", conflicts.v[i]));
            pod_event(c->pod, c, true, "DeviceConflict", "%s", conflicts.v[i]);
            own->conflicts_reported = true;
        }
    strs_done(&conflicts);
    return e->code;
}
