/* SPDX-License-Identifier: Apache-2.0 */
/* answer - the settings that a container gets with its devices: ContainerAllocateResponse, checked, as one
 * block of memory. */
#include "base/codec/protobuf.h"
#include "deviceplugin/message/messages.h"
#include "deviceplugin/proto/deviceplugin.pb-c.h"

#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef V1beta1__ContainerAllocateResponse Response;
typedef V1beta1__ContainerAllocateResponse__EnvsEntry Env;
typedef V1beta1__ContainerAllocateResponse__AnnotationsEntry Annotation;

static const struct protobuf_limit limits[] = {
    { &v1beta1__allocate_response__descriptor, 1, DP_ANSWER_ENTRIES_MAX },
    { &v1beta1__container_allocate_response__descriptor, 1, DP_ANSWER_ENTRIES_MAX },
    { &v1beta1__container_allocate_response__descriptor, 2, DP_ANSWER_ENTRIES_MAX },
    { &v1beta1__container_allocate_response__descriptor, 3, DP_ANSWER_ENTRIES_MAX },
    { &v1beta1__container_allocate_response__descriptor, 4, DP_ANSWER_ENTRIES_MAX },
    { &v1beta1__container_allocate_response__descriptor, 5, DP_ANSWER_ENTRIES_MAX },
};

/* ---- the check ---- */

static enum err_code wrong(struct err *e, const char *field, size_t i, const char *what, const char *value)
{
    return err_set(e, ERR_INTERNAL, "%s: %s[%zu]: %s (it is \"%.100s\")",
                   v1beta1__container_allocate_response__descriptor.name, field, i, what, value);
}

static bool path_ok(const char *path)
{
    return path[0] == '/' && strlen(path) <= DP_PATH_MAX;
}

static bool permissions_ok(const char *text)
{
    return strlen(text) <= 3 && strspn(text, "rwm") == strlen(text);
}

#define PATH_RULE "an absolute path of at most 4095 bytes"

/* Otherwise the OCI runtime would fail later, and its error would not name the plugin. */
static enum err_code check(const Response *m, struct err *e)
{
    for (size_t i = 0; i < m->n_envs; i++) {
        if (m->envs[i]->key[0] == '\0' || strchr(m->envs[i]->key, '=') != NULL)
            return wrong(e, "envs", i, "a name must not be empty or contain \"=\"", m->envs[i]->key);
    }
    for (size_t i = 0; i < m->n_annotations; i++) {
        if (m->annotations[i]->key[0] == '\0')
            return wrong(e, "annotations", i, "a name must not be empty", "");
    }
    for (size_t i = 0; i < m->n_mounts; i++) {
        if (!path_ok(m->mounts[i]->container_path))
            return wrong(e, "mounts", i, "container_path must be " PATH_RULE, m->mounts[i]->container_path);
        if (!path_ok(m->mounts[i]->host_path))
            return wrong(e, "mounts", i, "host_path must be " PATH_RULE, m->mounts[i]->host_path);
    }
    for (size_t i = 0; i < m->n_devices; i++) {
        /* An empty container_path means the host_path, as in containerd. */
        if (m->devices[i]->container_path[0] != '\0' && !path_ok(m->devices[i]->container_path))
            return wrong(e, "devices", i, "container_path must be " PATH_RULE, m->devices[i]->container_path);
        if (!path_ok(m->devices[i]->host_path))
            return wrong(e, "devices", i, "host_path must be " PATH_RULE, m->devices[i]->host_path);
        if (!permissions_ok(m->devices[i]->permissions))
            return wrong(e, "devices", i, "permissions are up to three letters of \"rwm\"",
                         m->devices[i]->permissions);
    }
    for (size_t i = 0; i < m->n_cdi_devices; i++) {
        if (m->cdi_devices[i]->name[0] == '\0')
            return wrong(e, "cdi_devices", i, "a name must not be empty", "");
    }
    return ERR_OK;
}

/* ---- the block ---- */

/* With p NULL, only the size is computed. */
struct block {
    char *p;
    size_t n;
};

static void *block_take(struct block *b, size_t n)
{
    void *p = b->p != NULL ? b->p + b->n : NULL;

    b->n += n;
    return p;
}

static const char *block_text(struct block *b, const char *text)
{
    size_t n = strlen(text) + 1;
    char *p = block_take(b, n);

    return p != NULL ? memcpy(p, text, n) : NULL;
}

/* Entries of the two maps have different types, but the same members. */
struct pair {
    const char *key, *value;
    size_t i; /* in the message */
};

static int by_key(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : (x->i > y->i) - (x->i < y->i);
}

/* Sorts by key (a map has no order), and keeps the last of equal ones. */
static size_t unique(struct pair *v, size_t n)
{
    size_t kept = 0;

    qsort(v, n, sizeof(v[0]), by_key);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && strcmp(v[kept - 1].key, v[i].key) == 0)
            v[kept - 1] = v[i];
        else
            v[kept++] = v[i];
    }
    return kept;
}

struct maps {
    struct pair *envs, *annotations;
    size_t n_envs, n_annotations;
};

static bool maps_of(struct maps *ret, const Response *m, struct arena *memory)
{
    ret->envs = arena_alloc(memory, m->n_envs * sizeof(ret->envs[0]));
    ret->annotations = arena_alloc(memory, m->n_annotations * sizeof(ret->annotations[0]));
    if (ret->envs == NULL || ret->annotations == NULL)
        return false;
    for (size_t i = 0; i < m->n_envs; i++)
        ret->envs[i] = (struct pair){ m->envs[i]->key, m->envs[i]->value, i };
    for (size_t i = 0; i < m->n_annotations; i++)
        ret->annotations[i] = (struct pair){ m->annotations[i]->key, m->annotations[i]->value, i };
    ret->n_envs = unique(ret->envs, m->n_envs);
    ret->n_annotations = unique(ret->annotations, m->n_annotations);
    return true;
}

static void fill_pairs(struct block *b, struct dp_kv *to, const struct pair *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = block_text(b, v[i].key), *value = block_text(b, v[i].value);

        if (to != NULL)
            to[i] = (struct dp_kv){ name, value };
    }
}

static void fill_mounts(struct block *b, struct dp_mount *to, const Response *m)
{
    for (size_t i = 0; i < m->n_mounts; i++) {
        const V1beta1__Mount *x = m->mounts[i];
        const char *inside = block_text(b, x->container_path), *outside = block_text(b, x->host_path);

        if (to != NULL)
            to[i] = (struct dp_mount){ inside, outside, x->read_only };
    }
}

static void fill_nodes(struct block *b, struct dp_node *to, const Response *m)
{
    for (size_t i = 0; i < m->n_devices; i++) {
        const V1beta1__DeviceSpec *x = m->devices[i];
        const char *inside = block_text(b, x->container_path[0] != '\0' ? x->container_path : x->host_path);
        const char *outside = block_text(b, x->host_path);
        const char *permissions = block_text(b, x->permissions);

        if (to != NULL)
            to[i] = (struct dp_node){ inside, outside, permissions };
    }
}

static void fill(struct block *b, const Response *m, const struct maps *maps)
{
    struct dp_answer *a = block_take(b, sizeof(*a));
    struct dp_kv *envs = block_take(b, maps->n_envs * sizeof(envs[0]));
    struct dp_kv *annotations = block_take(b, maps->n_annotations * sizeof(annotations[0]));
    struct dp_mount *mounts = block_take(b, m->n_mounts * sizeof(mounts[0]));
    struct dp_node *nodes = block_take(b, m->n_devices * sizeof(nodes[0]));
    const char **cdi = block_take(b, m->n_cdi_devices * sizeof(cdi[0]));

    /* Texts come last: they need no alignment. */
    fill_pairs(b, envs, maps->envs, maps->n_envs);
    fill_pairs(b, annotations, maps->annotations, maps->n_annotations);
    fill_mounts(b, mounts, m);
    fill_nodes(b, nodes, m);
    for (size_t i = 0; i < m->n_cdi_devices; i++) {
        const char *name = block_text(b, m->cdi_devices[i]->name);

        if (cdi != NULL)
            cdi[i] = name;
    }
    if (a != NULL)
        *a = (struct dp_answer){
            .envs = envs,
            .annotations = annotations,
            .mounts = mounts,
            .nodes = nodes,
            .cdi = cdi,
            .n_envs = maps->n_envs,
            .n_annotations = maps->n_annotations,
            .n_mounts = m->n_mounts,
            .n_nodes = m->n_devices,
            .n_cdi = m->n_cdi_devices,
        };
}

static enum err_code answer_of(struct dp_answer **ret, const Response *m, struct arena *memory, struct err *e)
{
    struct block b = { 0 };
    struct maps maps;

    if (check(m, e) != ERR_OK)
        return e->code;
    if (!maps_of(&maps, m, memory))
        return err_nomem(e);
    fill(&b, m, &maps);
    b = (struct block){ .p = malloc(b.n) };
    if (b.p == NULL)
        return err_nomem(e);
    fill(&b, m, &maps);
    *ret = (struct dp_answer *)b.p;
    return ERR_OK;
}

/* ---- unpacking ---- */

enum err_code dp_answer_unpack(struct dp_answer **ret, const uint8_t *p, size_t n, struct err *e)
{
    struct arena memory = { 0 };
    ProtobufCMessage *m;

    if (protobuf_unpack(&v1beta1__container_allocate_response__descriptor, limits, ARRAY_LEN(limits), p, n,
                        &memory, &m, e) == ERR_OK)
        ERR_IGNORE(answer_of(ret, (const Response *)m, &memory, e));
    arena_done(&memory);
    return e->code;
}

/* The bytes are kept as received. Packed again, they could differ from kubelet's. */
static enum err_code first_of(struct dp_answer **ret, uint8_t **ret_raw, size_t *ret_n, const uint8_t *p,
                              size_t n, const V1beta1__AllocateResponse *m, struct arena *memory,
                              struct err *e)
{
    const uint8_t *first = protobuf_first(p, n, 1, &n);
    mem_auto uint8_t *raw = NULL;

    if (first == NULL || m->n_container_responses == 0)
        return err_set(e, ERR_INTERNAL, "no containers return in allocation response");
    if (n > DP_ANSWER_BYTES_MAX)
        return err_set(e, ERR_EXHAUSTED, "%s: an answer of %zu bytes, at most %d are allowed",
                       v1beta1__allocate_response__descriptor.name, n, DP_ANSWER_BYTES_MAX);
    raw = malloc(n + 1);
    if (raw == NULL)
        return err_nomem(e);
    memcpy(raw, first, n);
    if (answer_of(ret, m->container_responses[0], memory, e) != ERR_OK)
        return e->code;
    *ret_raw = take_ptr(&raw);
    *ret_n = n;
    return ERR_OK;
}

enum err_code dp_allocated_unpack(struct dp_answer **ret, uint8_t **ret_raw, size_t *ret_n, const uint8_t *p,
                                  size_t n, struct err *e)
{
    struct arena memory = { 0 };
    ProtobufCMessage *m;

    if (protobuf_unpack(&v1beta1__allocate_response__descriptor, limits, ARRAY_LEN(limits), p, n, &memory, &m,
                        e) == ERR_OK)
        ERR_IGNORE(first_of(ret, ret_raw, ret_n, p, n, (const V1beta1__AllocateResponse *)m, &memory, e));
    arena_done(&memory);
    return e->code;
}

/* ---- packing ---- */

static bool pack_maps(Response *m, const struct dp_answer *a, struct arena *memory)
{
    Env *envs = arena_alloc(memory, a->n_envs * sizeof(envs[0]));
    Annotation *annotations = arena_alloc(memory, a->n_annotations * sizeof(annotations[0]));

    m->envs = arena_alloc(memory, a->n_envs * sizeof(m->envs[0]));
    m->annotations = arena_alloc(memory, a->n_annotations * sizeof(m->annotations[0]));
    if (envs == NULL || annotations == NULL || m->envs == NULL || m->annotations == NULL)
        return false;
    for (size_t i = 0; i < a->n_envs; i++) {
        v1beta1__container_allocate_response__envs_entry__init(&envs[i]);
        envs[i].key = (char *)a->envs[i].name;
        envs[i].value = (char *)a->envs[i].value;
        m->envs[m->n_envs++] = &envs[i];
    }
    for (size_t i = 0; i < a->n_annotations; i++) {
        v1beta1__container_allocate_response__annotations_entry__init(&annotations[i]);
        annotations[i].key = (char *)a->annotations[i].name;
        annotations[i].value = (char *)a->annotations[i].value;
        m->annotations[m->n_annotations++] = &annotations[i];
    }
    return true;
}

static bool pack_paths(Response *m, const struct dp_answer *a, struct arena *memory)
{
    V1beta1__Mount *mounts = arena_alloc(memory, a->n_mounts * sizeof(mounts[0]));
    V1beta1__DeviceSpec *nodes = arena_alloc(memory, a->n_nodes * sizeof(nodes[0]));
    V1beta1__CDIDevice *cdi = arena_alloc(memory, a->n_cdi * sizeof(cdi[0]));

    m->mounts = arena_alloc(memory, a->n_mounts * sizeof(m->mounts[0]));
    m->devices = arena_alloc(memory, a->n_nodes * sizeof(m->devices[0]));
    m->cdi_devices = arena_alloc(memory, a->n_cdi * sizeof(m->cdi_devices[0]));
    if (mounts == NULL || nodes == NULL || cdi == NULL || m->mounts == NULL || m->devices == NULL ||
        m->cdi_devices == NULL)
        return false;
    for (size_t i = 0; i < a->n_mounts; i++) {
        v1beta1__mount__init(&mounts[i]);
        mounts[i].container_path = (char *)a->mounts[i].container_path;
        mounts[i].host_path = (char *)a->mounts[i].host_path;
        mounts[i].read_only = a->mounts[i].read_only;
        m->mounts[m->n_mounts++] = &mounts[i];
    }
    for (size_t i = 0; i < a->n_nodes; i++) {
        v1beta1__device_spec__init(&nodes[i]);
        nodes[i].container_path = (char *)a->nodes[i].container_path;
        nodes[i].host_path = (char *)a->nodes[i].host_path;
        nodes[i].permissions = (char *)a->nodes[i].permissions;
        m->devices[m->n_devices++] = &nodes[i];
    }
    for (size_t i = 0; i < a->n_cdi; i++) {
        v1beta1__cdidevice__init(&cdi[i]);
        cdi[i].name = (char *)a->cdi[i];
        m->cdi_devices[m->n_cdi_devices++] = &cdi[i];
    }
    return true;
}

enum err_code dp_answer_pack(const struct dp_answer *a, uint8_t **ret, size_t *ret_n, struct err *e)
{
    Response m = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    struct arena memory = { 0 };
    bool ok = pack_maps(&m, a, &memory) && pack_paths(&m, a, &memory);

    if (!ok)
        err_nomem(e);
    else
        ERR_IGNORE(protobuf_pack(&m.base, ret, ret_n, e));
    arena_done(&memory);
    return e->code;
}
