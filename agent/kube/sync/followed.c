/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/followed.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

/* The node authorizer learns through its own watch that a pod refers to an object, so for a moment it refuses
 * requests that it permits later. */
#define FIRST_DELAY_MS 100

/* Objects that are only read are requested at least this often while they are missing: pods wait for them. */
#define READ_AGAIN_MS 8000

/* Where a kind is when its own prefix is unknown to the apiserver. */
static const char trust_later[] = "/apis/certificates.k8s.io/v1";

/* ---- to the daemon ---- */

void objects_deny(struct kube_sync *s, const char *kind, const char *namespace_, const char *name, int code,
                  const char *why)
{
    sync_send(s, json_pack("{s:s, s:s, s:s*, s:s*, s:i, s:o}", "type", "denied", "kind", kind, "namespace",
                           namespace_, "name", name, "code", code, "message", json_string_of(why)));
}

/* `type`: "synced" or "denied", of bundles that a pod chooses by name or signer. */
static void followed_tell_chosen(struct followed *f, const char *type, int code, const char *why)
{
    sync_send(f->part->sync, json_pack("{s:s, s:s, s:s*, s:s*, s:i, s:o}", "type", type, "kind",
                                       f->kind->kind, "name", f->name, "signer", f->signer, "code", code,
                                       "message", json_string_of(why != NULL ? why : "")));
}

static void followed_tell_gone(struct followed *f, const char *namespace_, const char *name, const char *uid)
{
    sync_send(f->part->sync, json_pack("{s:s, s:s, s:s*, s:s*, s:s*}", "type", "gone", "kind", f->kind->kind,
                                       "namespace", namespace_, "name", name, "uid", uid));
}

static void followed_put(struct followed *f, json_t *object)
{
    json_object_del(json_object_get(object, "metadata"), "managedFields");
    /* A LIST leaves them out. */
    if (json_object_get(object, "kind") == NULL)
        json_object_set_new(object, "kind", json_string(f->kind->kind));
    f->there = true;
    free(take_ptr(&f->denied));
    sync_send(f->part->sync, json_pack("{s:s, s:O}", "type", "put", "object", object));
}

static void followed_deny(struct followed *f, int http, const char *why)
{
    if (f->denied != NULL && strcmp(f->denied, why) == 0)
        return;
    free(f->denied);
    f->denied = strdup(why);
    if (f->kind->how == OBJECT_CHOSEN)
        followed_tell_chosen(f, "denied", http, why);
    else
        objects_deny(f->part->sync, f->kind->kind, f->namespace_, f->name, http, why);
}

/* ---- watched ---- */

static void followed_on_put(json_t *object, void *arg)
{
    followed_put(arg, object);
}

static void followed_on_gone(const char *namespace_, const char *name, const char *uid, void *arg)
{
    struct followed *f = arg;

    f->there = false;
    followed_tell_gone(f, namespace_ != NULL && *namespace_ != '\0' ? namespace_ : NULL, name, uid);
}

static void followed_on_synced(void *arg)
{
    struct followed *f = arg;

    if (f->kind->how == OBJECT_WHOLE)
        sync_send(f->part->sync, json_pack("{s:s, s:s}", "type", "synced", "kind", f->kind->kind));
    else if (f->kind->how == OBJECT_CHOSEN)
        followed_tell_chosen(f, "synced", 0, NULL);
    else if (!f->there)
        followed_tell_gone(f, f->namespace_, f->name, NULL);
}

static void followed_watch(struct followed *f);

/* An apiserver has certificates.k8s.io in one version, or in another. */
static void followed_try_prefix(struct followed *f)
{
    f->prefixes_tried = f->prefix != NULL;
    f->prefix = f->prefix == NULL ? trust_later : NULL;
    kube_reflector_close(take_ptr(&f->reflector));
    followed_watch(f);
}

static void followed_on_trouble(const struct err *why, int http, void *arg)
{
    struct followed *f = arg;

    if (f->kind->how == OBJECT_WHOLE)
        state_part_report(f->part->sync->state, f->kind->kind, why != NULL ? why->text : NULL);
    else if (why == NULL)
        free(take_ptr(&f->denied));
    else if (http == 404 && f->kind->how == OBJECT_CHOSEN && !f->prefixes_tried)
        followed_try_prefix(f);
    else if (http == 403 || http == 404)
        followed_deny(f, http, why->text);
}

/* As client-go escapes it (apimachinery pkg/fields, EscapeValue). */
static char *selector_of(const struct followed *f)
{
    const char *value = f->signer != NULL ? f->signer : f->name;
    struct buf b = BUF_INIT(4096);

    if (f->kind->how == OBJECT_WHOLE)
        return strdup(strcmp(f->kind->kind, "Service") == 0 ? "spec.clusterIP!=None" : "");
    buf_adds(&b, f->signer != NULL ? "spec.signerName=" : "metadata.name=");
    for (; value != NULL && *value != '\0'; value++) {
        if (*value == '\\' || *value == ',' || *value == '=')
            buf_addc(&b, '\\');
        buf_addc(&b, *value);
    }
    return buf_detach(&b);
}

static size_t followed_most(const struct followed *f)
{
    if (f->kind->how == OBJECT_WHOLE)
        return OBJECTS_SERVICES_MAX;
    return f->signer != NULL ? OBJECTS_TRUST_MAX : 1;
}

static void followed_watch(struct followed *f)
{
    struct object_kind at = *f->kind;
    str_auto selector = selector_of(f);
    str_auto path = NULL;
    struct err e = { 0 };
    struct kube_reflector_options o = {
        .loop = f->part->sync->o.loop,
        .client = f->part->sync->o.client,
        .subject = f->key,
        .objects_max = followed_most(f),
        .first_delay_ms = FIRST_DELAY_MS,
        .on_put = followed_on_put,
        .on_gone = followed_on_gone,
        .on_synced = followed_on_synced,
        .on_trouble = followed_on_trouble,
        .arg = f,
    };

    if (f->prefix != NULL)
        at.prefix = f->prefix;
    o.path = path = object_path(&at, f->namespace_, NULL);
    o.field_selector = selector != NULL && selector[0] != '\0' ? selector : NULL;
    if (path == NULL || selector == NULL)
        followed_deny(f, 0, "out of memory");
    else if (kube_reflector_open(&f->reflector, &o, &e) != ERR_OK)
        followed_deny(f, 0, e.text);
}

/* ---- read ---- */

static void followed_free(struct followed *f)
{
    free(f->key);
    free(f->namespace_);
    free(f->name);
    free(f->signer);
    free(f->denied);
    free(f);
}

static void followed_answered(void *owner, const struct sync_answer *a)
{
    struct followed *f = owner;

    if (f->dropped) {
        followed_free(f);
        return;
    }
    if (a->error->code == ERR_CANCELLED || !f->part->started)
        return;
    if (a->error->code == ERR_OK && a->object != NULL) {
        f->wait_ms = 0;
        followed_put(f, a->object);
        return;
    }
    if (a->error->code == ERR_NOT_FOUND) {
        f->there = false;
        followed_tell_gone(f, f->namespace_, f->name, NULL);
    } else if (a->error->code == ERR_PERMISSION) {
        followed_deny(f, a->http, a->error->text);
    }
    sync_timer_start(f->part->sync, &f->timer, sync_wait_ms(a, &f->wait_ms, 800, READ_AGAIN_MS),
                     followed_read, f);
}

void followed_read(void *owner)
{
    struct followed *f = owner;
    str_auto path = object_path(f->kind, f->namespace_, f->name);

    if (!f->call.busy && path != NULL)
        sync_call(f->part->sync, &f->call,
                  &(struct kube_request_spec){ .method = "GET", .path = path, .subject = f->key },
                  followed_answered, f);
}

/* ---- beginning and end ---- */

void followed_begin(struct followed *f)
{
    if (!f->part->started)
        return;
    if (f->kind->how == OBJECT_READ)
        followed_read(f);
    else if (f->reflector == NULL)
        followed_watch(f);
}

struct followed *followed_new(struct objects_part *p, const char *key, const struct object_kind *kind,
                              const char *namespace_, const char *name, const char *signer)
{
    struct followed *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    *f = (struct followed){ .key = strdup(key),
                            .kind = kind,
                            .namespace_ = namespace_ != NULL ? strdup(namespace_) : NULL,
                            .name = name != NULL ? strdup(name) : NULL,
                            .signer = signer != NULL ? strdup(signer) : NULL,
                            .part = p };
    if (f->key != NULL && (namespace_ == NULL || f->namespace_ != NULL) &&
        (name == NULL || f->name != NULL) && (signer == NULL || f->signer != NULL))
        HASH_ADD_KEYPTR(hh, p->all, f->key, strlen(f->key), f);
    if (f->hh.tbl == NULL) {
        followed_free(f);
        return NULL;
    }
    return f;
}

void followed_end(struct objects_part *p, struct followed *f)
{
    HASH_DEL(p->all, f);
    kube_reflector_close(f->reflector);
    f->reflector = NULL;
    sync_timer_stop(p->sync, &f->timer);
    f->dropped = true;
    if (f->call.busy)
        sync_call_cancel(&f->call);
    else
        followed_free(f);
}
