/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust_bundles - the ClusterTrustBundles that pods select, by name or by signer: watched while a pod selects
 * them. anchors.h produces the content of a volume.
 */
#include "agent/cluster/anchors.h"
#include "agent/cluster/internal.h"
#include "base/arena.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* For the signer's name (571 bytes at most) and a bundle's own name (253). */
#define NAME_SIZE 1024
#define LABELS_MAX 4096

struct cluster_trust { /* a bundle */
    UT_hash_handle hh;
    unsigned link; /* the last one on which it was put */
    struct arena arena;
    const char *name, *signer, *pem; /* signer "": of none */
    struct api_kvs labels;
};

struct cluster_trust_want {
    UT_hash_handle hh;
    bool told;                 /* `need` was sent on this link */
    bool known;                /* a first set was complete */
    bool kept;                 /* until then: the copies on disk are used */
    unsigned seen;             /* the last count that found a pod with it */
    char *denied;              /* the apiserver's refusal; NULL: none */
    const char *name, *signer; /* one of the two is NULL; the text is in `key` */
    char key[];
};

/* ---- selections of pods ---- */

static struct cluster_trust_want *trust_find_want(const struct cluster *c, const char *name,
                                                  const char *signer)
{
    char key[NAME_SIZE];
    struct cluster_trust_want *w = NULL;

    if (snprintf(key, sizeof(key), "%s%s", name != NULL ? "name " : "signer ", name != NULL ? name : signer) <
        (int)sizeof(key))
        HASH_FIND_STR(c->trust_wants, key, w);
    return w;
}

void trust_need(struct cluster *c, const struct api_payload_source *s)
{
    const char *kind = s->name != NULL ? "name " : "signer ", *text = s->name != NULL ? s->name : s->signer;
    struct cluster_trust_want *w = text != NULL ? trust_find_want(c, s->name, s->signer) : NULL;
    size_t size = text != NULL ? strlen(kind) + strlen(text) + 1 : 0;

    if (text == NULL || size > NAME_SIZE)
        return;
    if (w == NULL) {
        w = calloc(1, sizeof(*w) + size);
        if (w == NULL)
            return; /* the next pod causes another count */
        strcpy(w->key, kind);
        memcpy(w->key + strlen(kind), text, strlen(text) + 1);
        if (s->name != NULL)
            w->name = w->key + strlen(kind);
        else
            w->signer = w->key + strlen(kind);
        HASH_ADD_STR(c->trust_wants, key, w);
        if (w->hh.tbl == NULL) {
            free(w);
            return;
        }
    }
    w->seen = c->count;
}

static bool trust_is_wanted_by(const struct cluster_trust *v, const struct cluster_trust_want *w)
{
    return w->name != NULL ? strcmp(w->name, v->name) == 0 : strcmp(w->signer, v->signer) == 0;
}

static bool trust_is_wanted(const struct cluster *c, const struct cluster_trust *v)
{
    for (const struct cluster_trust_want *w = c->trust_wants; w != NULL; w = w->hh.next)
        if (trust_is_wanted_by(v, w))
            return true;
    return false;
}

static bool trust_tell(struct cluster *c, const struct cluster_trust_want *w, const char *type)
{
    return cluster_send(c, json_pack("{s:s, s:s, s:s*, s:s*}", "type", type, "kind", "ClusterTrustBundle",
                                     "name", w->name, "signer", w->signer));
}

static void trust_drop(struct cluster *c, struct cluster_trust *v)
{
    c->trust_bytes -= v->arena.used;
    HASH_DEL(c->trust, v);
    arena_done(&v->arena);
    free(v);
}

static void want_free(struct cluster *c, struct cluster_trust_want *w)
{
    HASH_DEL(c->trust_wants, w);
    free(w->denied);
    free(w);
}

static void trust_changed(struct cluster *c)
{
    kept_changed(c->kept, KEEP_TRUST, false);
    node_trust_changed(c->o.node);
}

void trust_count(struct cluster *c)
{
    struct cluster_trust_want *w, *next;
    struct cluster_trust *v, *after;
    bool gone = false;

    HASH_ITER (hh, c->trust_wants, w, next) {
        if (w->seen != c->count) {
            if (w->told)
                trust_tell(c, w, "drop");
            want_free(c, w);
            gone = true;
        } else if (!w->told) {
            w->told = trust_tell(c, w, "need");
        }
    }
    if (!gone)
        return;
    HASH_ITER (hh, c->trust, v, after)
        if (!trust_is_wanted(c, v))
            trust_drop(c, v);
    if (c->trust_wants == NULL)
        kept_drop(c->kept, KEEP_TRUST);
    else
        kept_changed(c->kept, KEEP_TRUST, false);
}

void trust_again(struct cluster *c)
{
    c->trust_link++;
    for (struct cluster_trust_want *w = c->trust_wants; w != NULL; w = w->hh.next)
        w->told = false;
}

/* ---- bundles of the apiserver ---- */

static struct cluster_trust *trust_find(const struct cluster *c, const char *name)
{
    struct cluster_trust *v = NULL;

    HASH_FIND_STR(c->trust, name, v);
    return v;
}

static bool trust_labels(struct cluster_trust *v, const json_t *from)
{
    const char *key;
    json_t *value;

    v->labels.v = arena_alloc(&v->arena, (json_object_size(from) + 1) * sizeof(*v->labels.v));
    if (v->labels.v == NULL)
        return false;
    json_object_foreach ((json_t *)(uintptr_t)from, key, value) {
        struct api_kv *kv = &v->labels.v[v->labels.n];

        if (!json_is_string(value) || v->labels.n >= LABELS_MAX)
            continue;
        kv->key = arena_strdup(&v->arena, key);
        kv->value = arena_strdup(&v->arena, json_string_value(value));
        if (kv->key == NULL || kv->value == NULL)
            return false;
        v->labels.n++;
    }
    api_kvs_sort(&v->labels);
    return true;
}

static struct cluster_trust *trust_new(const json_t *object, const char *name)
{
    const json_t *spec = json_object_get(object, "spec");
    const char *signer = json_str(spec, "signerName"), *pem = json_str(spec, "trustBundle");
    struct cluster_trust *v = calloc(1, sizeof(*v));

    if (v == NULL)
        return NULL;
    v->name = arena_strdup(&v->arena, name);
    v->signer = arena_strdup(&v->arena, signer != NULL ? signer : "");
    v->pem = arena_strdup(&v->arena, pem != NULL ? pem : "");
    if (v->name != NULL && v->signer != NULL && v->pem != NULL &&
        trust_labels(v, json_object_get(json_object_get(object, "metadata"), "labels")))
        return v;
    arena_done(&v->arena);
    free(v);
    return NULL;
}

static const char *trust_add(struct cluster *c, struct cluster_trust *v)
{
    if (v == NULL)
        return "out of memory";
    v->link = c->trust_link;
    if (HASH_COUNT(c->trust) < CLUSTER_TRUST_MAX &&
        c->trust_bytes + v->arena.used <= CLUSTER_TRUST_BYTES_MAX) {
        HASH_ADD_KEYPTR(hh, c->trust, v->name, strlen(v->name), v);
        if (v->hh.tbl != NULL) {
            c->trust_bytes += v->arena.used;
            return NULL;
        }
    }
    arena_done(&v->arena);
    free(v);
    return "there are too many";
}

static void trust_take(struct cluster *c, const json_t *object)
{
    const char *name = json_str(json_object_get(object, "metadata"), "name"), *why;
    struct cluster_trust *old = name != NULL ? trust_find(c, name) : NULL;

    if (name == NULL || strlen(name) >= NAME_SIZE)
        return;
    if (old != NULL)
        trust_drop(c, old);
    why = trust_add(c, trust_new(object, name));
    if (why != NULL)
        log_error("cannot store a ClusterTrustBundle: volumes will lack it", F_STR("name", name),
                  F_STR("why", why));
}

void trust_put(struct cluster *c, const json_t *object)
{
    trust_take(c, object);
    trust_changed(c);
}

void trust_gone(struct cluster *c, const char *name)
{
    struct cluster_trust *v = trust_find(c, name);

    if (v == NULL)
        return;
    trust_drop(c, v);
    trust_changed(c);
}

void trust_synced(struct cluster *c, const json_t *message)
{
    const char *name = json_str(message, "name"), *signer = json_str(message, "signer");
    struct cluster_trust_want *w = name != NULL || signer != NULL ? trust_find_want(c, name, signer) : NULL;
    struct cluster_trust *v, *next;

    if (w == NULL)
        return;
    HASH_ITER (hh, c->trust, v, next)
        if (v->link != c->trust_link && trust_is_wanted_by(v, w)) /* deleted while coracle-kube did not run */
            trust_drop(c, v);
    w->known = true;
    free(take_ptr(&w->denied));
    trust_changed(c);
}

void trust_denied(struct cluster *c, const json_t *message, const char *why)
{
    const char *name = json_str(message, "name"), *signer = json_str(message, "signer");
    struct cluster_trust_want *w = name != NULL || signer != NULL ? trust_find_want(c, name, signer) : NULL;

    if (w == NULL)
        return;
    free(w->denied);
    w->denied = strdup(why);
    node_trust_changed(c->o.node);
}

/* ---- the content of a volume ---- */

static bool trust_is_chosen(const struct cluster_trust *v, const struct api_payload_source *s)
{
    if (s->name != NULL)
        return strcmp(s->name, v->name) == 0;
    return s->labels != NULL && str_eq(s->signer, v->signer) &&
           api_label_selector_matches(s->labels, &v->labels);
}

enum err_code trust_anchors(const struct api_payload_source *s, const char *pod_uid, struct buf *ret,
                            struct err *e, void *cluster)
{
    const struct cluster *c = cluster;
    const struct cluster_trust_want *w =
        s->name != NULL || s->signer != NULL ? trust_find_want(c, s->name, s->signer) : NULL;
    struct anchors a;
    size_t found = 0;

    if (w == NULL || (!w->known && !w->kept))
        return err_set(e, ERR_PRECONDITION, "clustertrustbundle \"%.300s\": %s",
                       s->name != NULL ? s->name : s->signer,
                       w != NULL && w->denied != NULL ? w->denied : "the apiserver has not answered yet");
    anchors_init(&a, pod_uid);
    for (const struct cluster_trust *v = c->trust; v != NULL; v = v->hh.next)
        if (trust_is_chosen(v, s)) {
            anchors_add(&a, v->pem);
            found++;
        }
    if (found == 0 && !s->optional && s->name != NULL)
        err_set(e, ERR_PRECONDITION, "clustertrustbundle \"%.300s\" not found", s->name);
    else if (found == 0 && !s->optional)
        err_set(e, ERR_PRECONDITION,
                "combination of signerName and labelSelector matched zero ClusterTrustBundles");
    else if (anchors_write(&a, ret, e) != ERR_OK)
        err_wrap(e, "clustertrustbundle");
    anchors_done(&a);
    return e->code;
}

/* ---- on the disk ---- */

static json_t *trust_object(const struct cluster_trust *v)
{
    json_t *labels = json_object();

    for (size_t i = 0; i < v->labels.n; i++)
        json_object_set_new(labels, v->labels.v[i].key, json_string(v->labels.v[i].value));
    return json_pack("{s:{s:s, s:o}, s:{s:s, s:s}}", "metadata", "name", v->name, "labels", labels, "spec",
                     "signerName", v->signer, "trustBundle", v->pem);
}

json_t *trust_keep(const struct cluster *c)
{
    json_t *wants = json_array(), *list = json_array();

    for (const struct cluster_trust_want *w = c->trust_wants; w != NULL; w = w->hh.next)
        if (w->known || w->kept)
            json_array_append_new(wants, json_string(w->key));
    for (const struct cluster_trust *v = c->trust; v != NULL; v = v->hh.next)
        json_array_append_new(list, trust_object(v));
    return json_pack("{s:o, s:o}", "wants", wants, "bundles", list);
}

void trust_use(struct cluster *c, const json_t *kept)
{
    const json_t *wants = json_object_get(kept, "wants");
    bool used = false;
    json_t *v;
    size_t i;

    for (struct cluster_trust_want *w = c->trust_wants; w != NULL; w = w->hh.next) {
        w->kept = w->kept || (!w->known && json_has(wants, w->key));
        used = used || (w->kept && !w->known);
    }
    if (!used)
        return;
    c->trust_link--; /* removed by the first set that does not have them */
    json_array_foreach (json_object_get(kept, "bundles"), i, v) {
        const char *name = json_str(json_object_get(v, "metadata"), "name");

        if (name != NULL && trust_find(c, name) == NULL) /* otherwise the apiserver has just sent it */
            trust_take(c, v);
    }
    c->trust_link++;
    log_info("no answer of the apiserver about ClusterTrustBundles: using the kept ones",
             F_U64("bundles", HASH_COUNT(c->trust)));
    node_trust_changed(c->o.node);
}

bool trust_wanting(const struct cluster *c)
{
    for (const struct cluster_trust_want *w = c->trust_wants; w != NULL; w = w->hh.next)
        if (!w->known && !w->kept)
            return true;
    return false;
}

void trust_free(struct cluster *c)
{
    struct cluster_trust_want *w, *next;
    struct cluster_trust *v, *after;

    HASH_ITER (hh, c->trust_wants, w, next)
        want_free(c, w);
    HASH_ITER (hh, c->trust, v, after)
        trust_drop(c, v);
}
