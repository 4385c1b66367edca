/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/claim/claims.h"

#include "agent/claim/internal.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/project/project.h"
#include "agent/pod/volume/volumes.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 5000 /* while a file of the folder has problems */

static void on_timer(struct boot_timer *t);

static void claims_wake(struct claims *c)
{
    if (c->begun && !c->stopped)
        boot_timer_start(&c->timer, clock_boot(), on_timer);
}

void claims_pod_changed(struct claims *c, const struct pod *p)
{
    /* Only the end of a pod can release a claim. Pods are notified only of released claims: a notification of
     * each change of an ending pod would wake that pod again and again. */
    for (size_t i = 0; p->state == POD_TERMINATED && i < p->api->spec.n_volumes; i++)
        if (p->api->spec.volumes[i].kind == API_VOL_CLAIM) {
            claims_wake(c);
            return;
        }
}

struct claim *claim_find(const struct claims *c, const char *namespace_, const char *name)
{
    char key[CLAIM_KEY_SIZE];
    struct claim *found;

    snprintf(key, sizeof(key), "%.63s/%.253s", namespace_, name);
    HASH_FIND_STR(c->all, key, found);
    return found;
}

const struct api_generic *claim_object(const struct claims *c, const struct claim *one)
{
    const char *slash = strchr(one->key, '/');
    char namespace_[64];

    snprintf(namespace_, sizeof(namespace_), "%.*s", (int)(slash - one->key), one->key);
    return src_store_generic(c->store, API_FROM_FOLDER, API_KIND_CLAIM, namespace_, slash + 1);
}

/* ---- users of a claim ---- */

static bool uses(const struct pod *p, const struct claim *one)
{
    size_t n = strlen(p->api->meta.namespace);
    char name[256];

    if (p->state == POD_TERMINATED || p->api->origin != API_FROM_FOLDER ||
        strncmp(one->key, p->api->meta.namespace, n) != 0 || one->key[n] != '/')
        return false;
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];

        if (v->kind != API_VOL_CLAIM)
            continue;
        claim_name(p, v, name, sizeof(name));
        if (strcmp(one->key + n + 1, name) == 0)
            return true;
    }
    return false;
}

const struct pod *claim_user(const struct claims *c, const struct claim *one, const struct pod *but)
{
    pods_each (c->o.node, p)
        if (p != but && p->state != POD_PENDING && uses(p, one))
            return p;
    return NULL;
}

bool claim_is_used(const struct claims *c, const struct claim *one)
{
    pods_each (c->o.node, p)
        if (uses(p, one))
            return true;
    return false;
}

/* Called when a pod has ended: pods that wait for its claims may continue. */
static void count_users(struct claims *c, struct claim *one)
{
    size_t n = 0;

    pods_each (c->o.node, p)
        n += uses(p, one);
    if (n < one->users)
        c->tell = true;
    one->users = n;
}

/* ---- claims that the agent creates ---- */

enum err_code claim_put(struct claims *c, enum api_kind kind, const json_t *object, struct err *e)
{
    json_auto_t *copy = json_deep_copy(object);
    struct api_object o = { .kind = kind, .document = 1 };

    if (copy == NULL)
        return err_nomem(e);
    if (api_make_generic(kind, copy, &o.generic, e) != ERR_OK)
        return e->code;
    c->putting = true;
    ERR_IGNORE(src_store_put(c->store, &o, e));
    c->putting = false;
    api_generic_unref(o.generic);
    return e->code;
}

static json_t *object_from(const json_t *template_, const char *namespace_, const char *name)
{
    const json_t *meta = json_object_get(template_, "metadata");
    json_t *o = json_pack("{s:s, s:s, s:{s:s, s:s}, s:O}", "apiVersion", "v1", "kind",
                          "PersistentVolumeClaim", "metadata", "name", name, "namespace", namespace_, "spec",
                          json_object_get(template_, "spec"));
    static const char *const kept[] = { "labels", "annotations" };

    for (size_t i = 0; o != NULL && i < ARRAY_LEN(kept); i++)
        if (json_object_get(meta, kept[i]) != NULL)
            json_object_set(json_object_get(o, "metadata"), kept[i], json_object_get(meta, kept[i]));
    return o;
}

enum err_code claims_make(struct claims *c, const char *namespace_, const char *name, const json_t *template_,
                          const char *owner, struct err *e)
{
    struct claim *one = claim_find(c, namespace_, name);

    if (src_store_generic(c->store, API_FROM_FOLDER, API_KIND_CLAIM, namespace_, name) != NULL &&
        (one == NULL || !one->going))
        return ERR_OK;
    if (one == NULL)
        one = claim_new(c, namespace_, name);
    if (one == NULL)
        return err_nomem(e);
    json_decref(one->made);
    free(one->owner);
    one->made = object_from(template_, namespace_, name);
    one->owner = strdup(owner);
    one->going = false;
    if (one->made == NULL || one->owner == NULL)
        err_nomem(e);
    else if (claim_record_save(c, one, e) == ERR_OK)
        ERR_IGNORE(claim_put(c, API_KIND_CLAIM, one->made, e));
    if (e->code != ERR_OK && one->volume == NULL)
        claim_forget(c, one);
    return e->code;
}

/* Removes the claim's object; its folder is removed when no pod uses it. */
static void claim_release_object(struct claims *c, const struct claim *one)
{
    const struct api_generic *g = claim_object(c, one);

    if (g != NULL)
        src_store_remove(c->store, API_FROM_FOLDER, API_KIND_CLAIM, g->meta.namespace, g->meta.name);
}

void claims_drop(struct claims *c, const char *set_uid, unsigned from)
{
    struct claim *one, *tmp;

    HASH_ITER (hh, c->all, one, tmp) {
        const char *dash = strrchr(one->key, '-');
        struct err e = { 0 };

        if (one->made == NULL || one->of_pod || one->going || !str_eq(one->owner, set_uid) || dash == NULL ||
            strtoul(dash + 1, NULL, 10) < from)
            continue;
        one->going = true;
        if (claim_record_save(c, one, &e) != ERR_OK) /* after a kill the claim stays */
            log_warn("cannot record the removal of a claim", F_STR("claim", one->key), F_ERR(&e));
        claims_wake(c);
    }
}

/* ---- removal ---- */

static enum err_code remove_gone(void *arg, struct err *e)
{
    return fs_remove_tree(AT_FDCWD, arg, e);
}

static void on_removed(struct op *op, const struct err *result)
{
    struct claims *c = op->owner;

    if (result->code != ERR_OK && result->code != ERR_CANCELLED)
        log_warn("cannot remove the folder of a claim; the next removal will retry", F_ERR(result));
    if (c->stopped) {
        if (c->freed != NULL)
            c->freed(c);
        return;
    }
    project_gone(c->o.node, NULL);
    if (c->remove_again)
        claims_wake(c);
}

static void start_removal(struct claims *c)
{
    c->remove_again = op_live(&c->removal.op);
    if (!c->remove_again)
        work_start(&c->removal, "remove folders of claims", "claims", remove_gone, c->gone, c->o.node->o.loop,
                   on_removed, c);
}

static bool removes(struct claims *c, struct claim *one)
{
    struct err e = { 0 };

    if (claim_object(c, one) != NULL || claim_is_used(c, one))
        return false;
    if (claim_release(c, one, &e) != ERR_OK || claim_record_remove(c, one, &e) != ERR_OK) {
        log_error("cannot remove the folder of a claim", F_STR("claim", one->key), F_ERR(&e));
        return false;
    }
    log_info(one->pv == NULL && one->volume != NULL ? "claim removed, with its folder" : "claim removed",
             F_STR("claim", one->key));
    claim_forget(c, one);
    return true;
}

static void step(struct claims *c)
{
    bool complete = c->o.complete(c->o.arg), removed = c->remove_again, waits = false;
    struct claim *one, *tmp;

    if (complete)
        claims_protect(c);
    HASH_ITER (hh, c->all, one, tmp)
        if (one->of_pod ? pods_by_uid(c->o.node, one->owner) == NULL : one->going && !claim_is_used(c, one))
            claim_release_object(c, one);
    HASH_ITER (hh, c->all, one, tmp) {
        const struct api_generic *g = claim_object(c, one);

        count_users(c, one);
        if (g != NULL && one->volume == NULL)
            ERR_IGNORE(claim_bind(c, one, g, false, ERR_IGNORED));
        if (g == NULL && !complete && one->made == NULL)
            waits = true;
        else if (g == NULL)
            removed = removes(c, one) || removed;
    }
    if (removed)
        start_removal(c);
    if (c->tell)
        pods_each (c->o.node, p)
            volumes_claims_changed(p);
    c->tell = false;
    if (waits)
        boot_timer_start(&c->timer, clock_boot_in_ms(LOOK_MS), on_timer);
}

static void on_timer(struct boot_timer *t)
{
    struct claims *c = container_of(t, struct claims, timer);

    if (!c->stopped && !c->o.node->closing && !c->o.node->draining)
        step(c);
}

/* ---- the store ---- */

static void on_store(enum src_change change, const struct api_object *o, void *arg)
{
    struct claims *c = arg;

    if (api_object_origin(o) != API_FROM_FOLDER ||
        (o->kind != API_KIND_CLAIM && o->kind != API_KIND_PERSISTENT_VOLUME))
        return;
    if (!c->putting && change == SRC_REMOVED && o->kind == API_KIND_PERSISTENT_VOLUME)
        claims_unrelease(c, o->generic->meta.name);
    if (!c->putting && change == SRC_ADDED && o->kind == API_KIND_CLAIM &&
        claim_find(c, o->generic->meta.namespace, o->generic->meta.name) == NULL &&
        claim_new(c, o->generic->meta.namespace, o->generic->meta.name) == NULL)
        log_error("cannot add a claim: out of memory", F_STR("claim", o->generic->meta.name));
    c->tell = true;
    claims_wake(c);
}

/* ---- life ---- */

static void put_made(struct claims *c)
{
    struct claim *one, *tmp;

    HASH_ITER (hh, c->all, one, tmp) {
        struct err e = { 0 };

        if (one->made != NULL && claim_put(c, API_KIND_CLAIM, one->made, &e) != ERR_OK)
            log_error("cannot adopt a claim", F_STR("claim", one->key), F_ERR(&e));
    }
}

enum err_code claims_open(struct claims **ret, const struct claims_options *o, struct err *e)
{
    struct claims *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_nomem(e);
    c->o = *o;
    c->store = o->node->o.store;
    c->link = claim_functions(c);
    boot_timer_init(o->node->timers, &c->timer);
    *ret = c;
    c->dir = str_printf("%s/claims", o->node->o.state_dir);
    c->gone = str_printf("%s/.gone", c->dir != NULL ? c->dir : "");
    if (c->dir == NULL || c->gone == NULL)
        return err_nomem(e);
    if (claim_records_load(c, e) != ERR_OK)
        return e->code;
    claims_released_load(c);
    src_store_watch(c->store, on_store, c);
    put_made(c);
    return ERR_OK;
}

const struct node_claims *claims_link(struct claims *c)
{
    return &c->link;
}

void claims_begin(struct claims *c)
{
    c->begun = true;
    c->remove_again = true; /* leftovers of an earlier run */
    step(c);
}

void claims_stop(struct claims *c)
{
    c->stopped = true;
    boot_timer_stop(&c->timer);
}

static void free_now(struct claims *c)
{
    free(c->dir);
    free(c->gone);
    free(c);
}

static void on_closed(struct boot_timer *t)
{
    struct claims *c = container_of(t, struct claims, timer);

    if (op_live(&c->removal.op))
        c->freed = free_now;
    else
        free_now(c);
}

void claims_free(struct claims *c)
{
    struct claim *one, *tmp;

    if (c == NULL)
        return;
    c->stopped = true;
    HASH_ITER (hh, c->all, one, tmp)
        claim_forget(c, one);
    claims_released_done(c);
    boot_timer_close(&c->timer, on_closed);
}
