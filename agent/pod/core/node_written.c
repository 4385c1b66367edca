/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/node_written.h"

#include "agent/pod/core/node_labels.h"
#include "agent/pod/core/node_written_file.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

struct node_written {
    json_t *kept; /* as in the file */
    struct api_taint *taints;
    int64_t *since_ns;
    size_t n_taints;
};

/* ---- what is in force ---- */

static void taints_free(struct node_written *w)
{
    for (size_t i = 0; i < w->n_taints; i++) {
        free(w->taints[i].key);
        free(w->taints[i].value);
        free(w->taints[i].effect);
    }
    free(w->taints);
    free(w->since_ns);
    w->taints = NULL;
    w->since_ns = NULL;
    w->n_taints = 0;
}

static bool taint_add(struct node_written *w, const char *key, const char *value, const char *effect,
                      int64_t since_ns)
{
    struct api_taint *t = &w->taints[w->n_taints];

    for (size_t i = 0; i < w->n_taints; i++)
        if (strcmp(w->taints[i].key, key) == 0 && strcmp(w->taints[i].effect, effect) == 0)
            return true;
    *t = (struct api_taint){ strdup(key), strdup(value), strdup(effect) };
    w->since_ns[w->n_taints++] = since_ns;
    return t->key != NULL && t->value != NULL && t->effect != NULL;
}

static bool has_taint(const json_t *list, const char *key, const char *value, const char *effect)
{
    const json_t *t;
    size_t i;

    json_array_foreach (list, i, t) {
        const char *own = json_str(t, "value");

        if (str_eq(json_str(t, "key"), key) && str_eq(json_str(t, "effect"), effect) &&
            strcmp(own != NULL ? own : "", value) == 0)
            return true;
    }
    return false;
}

static bool is_configured(const struct node *n, const json_t *taint)
{
    const char *value = json_str(taint, "value");

    for (size_t i = 0; i < n->o.n_taints; i++)
        if (str_eq(json_str(taint, "key"), n->o.taints[i].key) &&
            str_eq(json_str(taint, "effect"), n->o.taints[i].effect) &&
            strcmp(value != NULL ? value : "", n->o.taints[i].value) == 0)
            return true;
    return false;
}

/* Written ones, but those that came from a setting which is gone; then those of newer settings. */
static bool taints_merge(const struct node *n, struct node_written *w)
{
    const json_t *list = json_object_get(w->kept, "taints"), *before = json_object_get(w->kept, "configured"),
                 *t;
    bool ok = true;
    size_t i;

    json_array_foreach (list, i, t) {
        const char *key = json_str(t, "key"), *value = json_str(t, "value"), *effect = json_str(t, "effect");

        value = value != NULL ? value : "";
        if (key == NULL || effect == NULL || (has_taint(before, key, value, effect) && !is_configured(n, t)))
            continue;
        ok = ok && taint_add(w, key, value, effect, json_int(t, "since", 0));
    }
    for (i = 0; i < n->o.n_taints; i++) {
        const struct api_taint *c = &n->o.taints[i];

        if (list == NULL || !has_taint(before, c->key, c->value, c->effect))
            ok = ok && taint_add(w, c->key, c->value, c->effect, 0);
    }
    if (json_flag(w->kept, "unschedulable"))
        ok = ok && taint_add(w, NODE_UNSCHEDULABLE, "", "NoSchedule", 0);
    return ok;
}

/* False: out of memory; the taints in force are unchanged. */
static bool taints_make(const struct node *n, struct node_written *w)
{
    const size_t room = json_array_size(json_object_get(w->kept, "taints")) + n->o.n_taints + 1;
    struct node_written made = { .kept = w->kept };

    made.taints = calloc(room, sizeof(*made.taints));
    made.since_ns = calloc(room, sizeof(*made.since_ns));
    if (made.taints == NULL || made.since_ns == NULL || !taints_merge(n, &made)) {
        taints_free(&made);
        return false;
    }
    taints_free(w);
    *w = made;
    return true;
}

void node_written_refresh(struct node *n)
{
    if (n->written != NULL && !taints_make(n, n->written))
        log_error("cannot store the node's taints: out of memory");
}

const struct api_taint *node_taints(const struct node *n, size_t *ret_n)
{
    *ret_n = n->written != NULL ? n->written->n_taints : n->o.n_taints;
    return n->written != NULL ? n->written->taints : n->o.taints;
}

int64_t node_taint_since_ns(const struct node *n, size_t index)
{
    return n->written != NULL && index < n->written->n_taints ? n->written->since_ns[index] : 0;
}

int64_t node_since_ns(const struct node *n)
{
    return n->written != NULL ? json_int(n->written->kept, "created", n->opened_ns) : n->opened_ns;
}

bool node_is_unschedulable(const struct node *n)
{
    return n->written != NULL && json_flag(n->written->kept, "unschedulable");
}

const json_t *node_written_labels(const struct node *n)
{
    return n->written != NULL ? json_object_get(n->written->kept, "labels") : NULL;
}

/* ---- beginning ---- */

/* The labels of the machine are determined by the machine. */
static void drop_own_labels(json_t *labels)
{
    for (size_t i = 0; i < NODE_OWN_LABELS; i++)
        json_object_del(labels, node_own_labels[i]);
}

enum err_code node_written_open(struct node *n, struct err *e)
{
    struct node_written *w = calloc(1, sizeof(*w));
    bool unknown = false;
    char uid[37];

    if (w == NULL)
        return err_nomem(e);
    n->written = w;
    w->kept = node_written_load(n, &unknown);
    if (w->kept == NULL) {
        struct err failed = { 0 };

        id_random_uuid(uid);
        w->kept = json_pack("{s:i, s:s, s:I}", "version", 1, "uid", uid, "created", (json_int_t)n->opened_ns);
        if (w->kept != NULL && !unknown && node_written_save(n, w->kept, &failed) != ERR_OK)
            log_warn("cannot store the node's uid", F_ERR(&failed));
    }
    drop_own_labels(json_object_get(w->kept, "labels"));
    return w->kept != NULL && taints_make(n, w) ? ERR_OK : err_nomem(e);
}

void node_written_free(struct node *n)
{
    if (n->written == NULL)
        return;
    taints_free(n->written);
    json_decref(n->written->kept);
    free(n->written);
    n->written = NULL;
}

/* ---- a write ---- */

/* What makes `own` into `wanted`: a merge patch. NULL: out of memory. */
static json_t *difference(const json_t *own, const json_t *wanted)
{
    json_t *d = json_object(), *v;
    const char *key;

    json_object_foreach ((json_t *)(uintptr_t)wanted, key, v) {
        const json_t *before = json_object_get(own, key);

        if (before == NULL || !json_equal(before, v))
            json_object_set(d, key, v);
    }
    json_object_foreach ((json_t *)(uintptr_t)own, key, v)
        if (json_object_get(wanted, key) == NULL)
            json_object_set_new(d, key, json_null());
    return d;
}

static json_t *own_labels_json(const struct node *n)
{
    size_t count = 0;
    mem_auto struct api_kv *v = node_labels_configured(n, &count);
    json_t *o = json_object();

    for (size_t i = 0; v != NULL && i < count; i++)
        json_put_str(o, v[i].key, v[i].value);
    return o;
}

/* Taints that controllers derive from the node's conditions; users did not request them. */
static bool is_told(const char *key)
{
    static const char *const told[] = { NODE_UNSCHEDULABLE, "node.kubernetes.io/memory-pressure",
                                        "node.kubernetes.io/disk-pressure",
                                        "node.kubernetes.io/pid-pressure" };

    for (size_t i = 0; i < ARRAY_LEN(told); i++)
        if (str_eq(key, told[i]))
            return true;
    return false;
}

static int64_t since_of(const struct node *n, const char *key, const char *value, const char *effect)
{
    const struct node_written *w = n->written;

    for (size_t i = 0; i < w->n_taints; i++)
        if (str_eq(w->taints[i].key, key) && str_eq(w->taints[i].effect, effect) &&
            strcmp(w->taints[i].value, value != NULL ? value : "") == 0)
            return w->since_ns[i];
    return clock_wall_ns();
}

static bool put_taints(const struct node *n, json_t *kept, const json_t *wanted)
{
    json_t *list = json_array(), *configured = json_array();
    const json_t *t;
    bool ok = true;
    size_t i;

    json_array_foreach (wanted, i, t) {
        const char *key = json_str(t, "key"), *value = json_str(t, "value"), *effect = json_str(t, "effect");

        if (!is_told(key))
            ok = json_array_append_new(list, json_pack("{s:s, s:s*, s:s, s:O*, s:I}", "key", key, "value",
                                                       value, "effect", effect, "timeAdded",
                                                       json_object_get(t, "timeAdded"), "since",
                                                       (json_int_t)since_of(n, key, value, effect))) == 0 &&
                 ok;
    }
    for (i = 0; i < n->o.n_taints; i++)
        ok = json_array_append_new(configured,
                                   json_pack("{s:s, s:s, s:s}", "key", n->o.taints[i].key, "value",
                                             n->o.taints[i].value, "effect", n->o.taints[i].effect)) == 0 &&
             ok;
    ok = json_object_set(kept, "taints", list) == 0 && json_object_set(kept, "configured", configured) == 0 &&
         ok;
    json_decref(list);
    json_decref(configured);
    return ok;
}

/* The new content; NULL: out of memory. */
static json_t *kept_of(const struct node *n, const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata"), *spec = json_object_get(object, "spec");
    json_auto_t *own = own_labels_json(n);
    json_t *kept = json_copy(n->written->kept), *labels = difference(own, json_object_get(meta, "labels"));
    const struct {
        const char *name;
        json_t *value;
    } members[] = { { "annotations", json_object_get(meta, "annotations") },
                    { "managedFields", json_object_get(meta, "managedFields") },
                    { "finalizers", json_object_get(meta, "finalizers") },
                    { "ownerReferences", json_object_get(meta, "ownerReferences") },
                    { "providerID", json_object_get(spec, "providerID") } };
    bool ok = kept != NULL && own != NULL && json_object_set_new(kept, "labels", labels) == 0 &&
              put_taints(n, kept, json_object_get(spec, "taints"));

    for (size_t i = 0; ok && i < ARRAY_LEN(members); i++) {
        json_object_del(kept, members[i].name);
        if (members[i].value != NULL)
            ok = json_object_set(kept, members[i].name, members[i].value) == 0;
    }
    json_object_del(kept, "unschedulable");
    if (ok && json_flag(spec, "unschedulable"))
        ok = json_object_set_new(kept, "unschedulable", json_true()) == 0;
    if (!ok) {
        json_decref(kept);
        return NULL;
    }
    return kept;
}

enum err_code node_written_take(struct node *n, const json_t *object, struct err *e)
{
    struct node_written *w = n->written;
    json_t *kept = w != NULL ? kept_of(n, object) : NULL, *before;

    if (w == NULL)
        return err_set(e, ERR_UNIMPLEMENTED, "on a node of a cluster, change the Node in the cluster");
    if (kept == NULL)
        return err_nomem(e);
    if (node_written_save(n, kept, e) != ERR_OK) {
        json_decref(kept);
        return e->code;
    }
    before = w->kept;
    w->kept = kept;
    json_decref(before);
    node_written_refresh(n);
    return ERR_OK;
}

/* ---- showing ---- */

json_t *node_taints_json(const struct node *n)
{
    const json_t *written = n->written != NULL ? json_object_get(n->written->kept, "taints") : NULL, *one;
    json_t *list = json_array();
    size_t n_taints = 0, k;
    const struct api_taint *taints = node_taints(n, &n_taints);

    for (size_t i = 0; i < n_taints; i++) {
        const struct api_taint *t = &taints[i];
        json_t *shown = json_pack("{s:s, s:s}", "key", t->key, "effect", t->effect);

        if (t->value[0] != '\0')
            json_put_str(shown, "value", t->value);
        json_array_foreach (written, k, one)
            if (str_eq(json_str(one, "key"), t->key) && str_eq(json_str(one, "effect"), t->effect))
                json_put_str(shown, "timeAdded", json_str(one, "timeAdded"));
        json_array_append_new(list, shown);
    }
    return list;
}

void node_written_show(const struct node *n, json_t *object)
{
    static const char *const members[] = { "annotations", "managedFields", "finalizers", "ownerReferences" };
    json_t *meta = json_object_get(object, "metadata"), *spec = json_object_get(object, "spec");
    const struct node_written *w = n->written;
    char created[CLOCK_RFC3339_SIZE];

    if (w == NULL)
        return;
    clock_format_s(node_since_ns(n), created);
    json_put_str(meta, "uid", json_str(w->kept, "uid"));
    json_put_str(meta, "creationTimestamp", created);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        json_t *v = json_object_get(w->kept, members[i]);

        if (v != NULL)
            json_object_set_new(meta, members[i], json_deep_copy(v));
    }
    json_put_str(spec, "providerID", json_str(w->kept, "providerID"));
    if (json_flag(w->kept, "unschedulable"))
        json_object_set_new(spec, "unschedulable", json_true());
}
