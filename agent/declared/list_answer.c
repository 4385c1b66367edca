/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the answers for a container's devices: nodes, mounts and variables of several devices are listed
 * once. */
#include "agent/declared/list.h"

#include <stdlib.h>
#include <string.h>

struct sums {
    size_t nodes, mounts, envs, chars;
};

static enum err_code clash(const char *path, const char *a, const char *b, struct err *e)
{
    return err_set(e, ERR_INVALID,
                   "%.100s and %.100s would both be %.100s in the container; a mountPath that ends with a "
                   "slash keeps their names",
                   a, b, path);
}

/* ERR_OK and *ret_i == n: not in the answer yet. */
static enum err_code find_node(const struct dp_answer *a, const struct dp_node *x, size_t *ret_i,
                               struct err *e)
{
    for (*ret_i = 0; *ret_i < a->n_nodes; ++*ret_i) {
        const struct dp_node *old = &a->nodes[*ret_i];
        if (strcmp(old->container_path, x->container_path) == 0)
            return strcmp(old->host_path, x->host_path) == 0
                       ? ERR_OK
                       : clash(x->container_path, old->host_path, x->host_path, e);
    }
    return ERR_OK;
}

static enum err_code find_mount(const struct dp_answer *a, const struct dp_mount *x, size_t *ret_i,
                                struct err *e)
{
    for (*ret_i = 0; *ret_i < a->n_mounts; ++*ret_i) {
        const struct dp_mount *old = &a->mounts[*ret_i];
        if (strcmp(old->container_path, x->container_path) == 0)
            return strcmp(old->host_path, x->host_path) == 0
                       ? ERR_OK
                       : clash(x->container_path, old->host_path, x->host_path, e);
    }
    return ERR_OK;
}

static void sum(const struct decl_device *d, struct sums *s)
{
    s->nodes += d->n_nodes;
    s->mounts += d->n_mounts;
    s->envs += d->n_envs;
    for (size_t i = 0; i < d->n_nodes; i++)
        s->chars += strlen(d->nodes[i].container_path) + strlen(d->nodes[i].host_path) + 8;
    for (size_t i = 0; i < d->n_mounts; i++)
        s->chars += strlen(d->mounts[i].container_path) + strlen(d->mounts[i].host_path) + 2;
    for (size_t i = 0; i < d->n_envs; i++)
        s->chars += strlen(d->envs[i].name) + strlen(d->envs[i].value) + 2;
}

static enum err_code add_nodes(struct dp_answer *a, const struct decl_device *d, char **at, struct err *e)
{
    for (size_t i = 0; i < d->n_nodes; i++) {
        const struct dp_node *x = &d->nodes[i];
        size_t k;

        if (find_node(a, x, &k, e) != ERR_OK)
            return e->code;
        if (k < a->n_nodes)
            continue;
        a->nodes[a->n_nodes++] = (struct dp_node){ .container_path = str_pack(at, x->container_path),
                                                   .host_path = str_pack(at, x->host_path),
                                                   .permissions = str_pack(at, x->permissions) };
    }
    return ERR_OK;
}

static enum err_code add_mounts(struct dp_answer *a, const struct decl_device *d, char **at, struct err *e)
{
    for (size_t i = 0; i < d->n_mounts; i++) {
        const struct dp_mount *x = &d->mounts[i];
        size_t k;

        if (find_mount(a, x, &k, e) != ERR_OK)
            return e->code;
        if (k < a->n_mounts)
            continue;
        a->mounts[a->n_mounts++] = (struct dp_mount){ .container_path = str_pack(at, x->container_path),
                                                      .host_path = str_pack(at, x->host_path),
                                                      .read_only = x->read_only };
    }
    return ERR_OK;
}

/* A variable of several devices contains their paths, separated by commas. */
static void add_envs(struct dp_answer *a, const struct decl_list *l, const char *const *ids, size_t n,
                     char **at)
{
    for (size_t i = 0; i < n; i++) {
        const struct decl_device *d = decl_list_find(l, ids[i]);

        for (size_t k = 0; k < d->n_envs; k++) {
            const char *name = d->envs[k].name;
            char *value;
            bool had = false;

            for (size_t old = 0; old < a->n_envs; old++)
                had = had || strcmp(a->envs[old].name, name) == 0;
            if (had)
                continue;
            a->envs[a->n_envs].name = str_pack(at, name);
            a->envs[a->n_envs++].value = value = *at;
            for (size_t j = i; j < n; j++) {
                const struct decl_device *other = decl_list_find(l, ids[j]);
                for (size_t x = 0; x < other->n_envs; x++)
                    if (strcmp(other->envs[x].name, name) == 0) {
                        if (*at > value)
                            *(*at)++ = ',';
                        *at = stpcpy(*at, other->envs[x].value);
                    }
            }
            ++*at; /* the NUL */
        }
    }
}

enum err_code decl_list_answer(const struct decl_list *l, const char *const *ids, size_t n,
                               struct dp_answer **ret, struct err *e)
{
    struct sums s = { 0 };
    struct dp_answer *a;
    char *at;

    for (size_t i = 0; i < n; i++) {
        const struct decl_device *d = decl_list_find(l, ids[i]);
        if (d == NULL)
            return err_set(e, ERR_NOT_FOUND, "the device %.300s is gone", ids[i]);
        if (d->ambiguous)
            return err_set(e, ERR_UNAVAILABLE, "two devices are %.300s", ids[i]);
        sum(d, &s);
    }
    a = calloc(1, sizeof(*a) + s.nodes * sizeof(struct dp_node) + s.mounts * sizeof(struct dp_mount) +
                      s.envs * sizeof(struct dp_kv) + s.chars);
    if (a == NULL)
        return err_nomem(e);
    a->nodes = (struct dp_node *)(a + 1);
    a->mounts = (struct dp_mount *)(a->nodes + s.nodes);
    a->envs = (struct dp_kv *)(a->mounts + s.mounts);
    at = (char *)(a->envs + s.envs);
    for (size_t i = 0; i < n; i++) {
        const struct decl_device *d = decl_list_find(l, ids[i]);
        if (add_nodes(a, d, &at, e) != ERR_OK || add_mounts(a, d, &at, e) != ERR_OK) {
            free(a);
            return e->code;
        }
    }
    add_envs(a, l, ids, n, &at);
    *ret = a;
    return ERR_OK;
}
