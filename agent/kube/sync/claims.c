/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claims - the part of a PersistentVolumeClaim's status that a node writes: the progress of its volume's
 * resize (claim_resize.h). The latest message about a claim counts. The claim is read, and patched under the
 * resourceVersion that was read; after a conflict or a failure once more, for CLAIMS_TRIES tries: the daemon
 * sees that the claim did not change, and sends the message again.
 */
#include "agent/kube/sync/internal.h"

#include "agent/kube/decide/claim_resize.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

#define CLAIMS_MAX 512 /* under way */
#define CLAIMS_TRIES 6

struct claim_write {
    UT_hash_handle hh;
    struct claims_part *part;
    struct sync_call call;
    struct sync_timer timer;
    json_t *message; /* the message to write; NULL: written */
    json_t *sent;    /* the message of the request under way */
    char *namespace_, *name;
    unsigned tries;
    uint64_t wait_ms;
    bool patching;
    char key[];
};

struct claims_part {
    struct kube_sync *sync;
    struct claim_write *all;
    bool started;
};

static void claim_read(void *owner);

static void claim_free(struct claim_write *w)
{
    if (w->hh.tbl != NULL)
        HASH_DEL(w->part->all, w);
    sync_timer_stop(w->part->sync, &w->timer);
    json_decref(w->message);
    json_decref(w->sent);
    free(w->namespace_);
    free(w->name);
    free(w);
}

static void claim_answered(void *owner, const struct sync_answer *a);

static bool claim_request(struct claim_write *w, const char *method, const char *sub, const json_t *body)
{
    str_auto path =
        sync_path("/api/v1/namespaces", w->namespace_, "persistentvolumeclaims", w->name, sub, SYNC_PATH_END);
    struct kube_request_spec spec = { .method = method, .path = path, .subject = w->key, .body = body };

    if (path == NULL)
        return false;
    if (body != NULL)
        spec.content_type = JSON_PATCH_STRATEGIC;
    w->patching = body != NULL;
    sync_call(w->part->sync, &w->call, &spec, claim_answered, w);
    return true;
}

/* False: there is nothing to write, or not to this claim. */
static bool claim_patch(struct claim_write *w, const json_t *claim)
{
    const char *uid = json_str(w->message, "uid");
    char now[CLOCK_RFC3339_SIZE];
    json_t *body;
    bool sent;

    if (uid != NULL && !str_eq(uid, json_str(json_object_get(claim, "metadata"), "uid")))
        return false;
    clock_format_s(clock_wall_ns(), now);
    body = claim_resize_patch(claim, json_object_get(w->message, "resize"), now);
    if (body == NULL)
        return false;
    json_decref(w->sent);
    w->sent = json_incref(w->message);
    sent = claim_request(w, "PATCH", "status", body);
    json_decref(body);
    return sent;
}

static void claim_again(struct claim_write *w, const struct sync_answer *a)
{
    uint64_t wait_ms = sync_wait_ms(a, &w->wait_ms, 200, 30000);

    if (++w->tries < CLAIMS_TRIES) {
        sync_timer_start(w->part->sync, &w->timer, wait_ms, claim_read, w);
        return;
    }
    state_part_report(w->part->sync->state, "claims", a->error->text);
    claim_free(w);
}

static void claim_answered(void *owner, const struct sync_answer *a)
{
    struct claim_write *w = owner;
    const enum err_code code = a->error->code;

    if (code == ERR_CANCELLED || !w->part->started || code == ERR_NOT_FOUND) {
        claim_free(w);
    } else if (code != ERR_OK || a->object == NULL) {
        claim_again(w, a);
    } else if (!w->patching) {
        if (!claim_patch(w, a->object))
            claim_free(w);
    } else {
        state_part_report(w->part->sync->state, "claims", NULL);
        if (w->message == w->sent) {
            claim_free(w);
            return;
        }
        w->tries = 0; /* there was another message meanwhile */
        w->wait_ms = 0;
        if (!claim_patch(w, a->object))
            claim_free(w);
    }
}

static void claim_read(void *owner)
{
    struct claim_write *w = owner;

    if (!w->call.busy && !claim_request(w, "GET", NULL, NULL))
        claim_free(w);
}

static struct claim_write *claim_write_of(struct claims_part *p, const char *namespace_, const char *name)
{
    struct claim_write *w = NULL;
    char key[400];

    snprintf(key, sizeof(key), "%.63s/%.253s", namespace_, name);
    HASH_FIND_STR(p->all, key, w);
    if (w != NULL || HASH_COUNT(p->all) >= CLAIMS_MAX)
        return w;
    w = calloc(1, sizeof(*w) + strlen(key) + 1);
    if (w == NULL)
        return NULL;
    w->part = p;
    strcpy(w->key, key);
    w->namespace_ = strdup(namespace_);
    w->name = strdup(name);
    if (w->namespace_ != NULL && w->name != NULL)
        HASH_ADD_STR(p->all, key, w);
    if (w->hh.tbl != NULL)
        return w;
    claim_free(w);
    return NULL;
}

void claims_part_take(struct claims_part *p, json_t *message)
{
    const char *namespace_ = json_str(message, "namespace"), *name = json_str(message, "name");
    struct claim_write *w =
        namespace_ != NULL && name != NULL && p->started ? claim_write_of(p, namespace_, name) : NULL;

    if (w == NULL)
        return;
    json_decref(w->message);
    w->message = json_incref(message);
    if (!w->call.busy && !w->timer.runs)
        claim_read(w);
}

/* ---- the part ---- */

struct claims_part *claims_part_new(struct kube_sync *s)
{
    struct claims_part *p = calloc(1, sizeof(*p));

    if (p != NULL)
        p->sync = s;
    return p;
}

void claims_part_start(struct claims_part *p)
{
    p->started = true;
}

void claims_part_stop(struct claims_part *p)
{
    struct claim_write *w, *next;

    p->started = false;
    HASH_ITER (hh, p->all, w, next) {
        if (w->call.busy)
            sync_call_cancel(&w->call); /* freed in its end */
        else
            claim_free(w);
    }
}

void claims_part_free(struct claims_part *p)
{
    free(p);
}
