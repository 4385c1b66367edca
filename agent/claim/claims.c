/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/claim/claims.h"

#include "agent/claim/internal.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/node_labels.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/project/project.h"
#include "agent/pod/volume/volumes.h"
#include "base/array.h"
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

static struct claim *find(const struct claims *c, const char *namespace_, const char *name)
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

/* A pod other than `but` that uses the claim and has begun to start; NULL: none. */
static const struct pod *user_of(const struct claims *c, const struct claim *one, const struct pod *but)
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

/* ---- binding ---- */

struct volumes {
    const struct claims *c;
    const struct claim *of; /* the claim to be bound */
    struct claim_volume *v;
    size_t n;
};

static bool is_taken(const struct claims *c, const struct claim *by, const char *volume)
{
    for (const struct claim *one = c->all; one != NULL; one = one->hh.next)
        if (one != by && str_eq(one->volume, volume))
            return true;
    return false;
}

static bool is_of_node(const struct node *n, const struct api_pv *pv)
{
    struct api_kvs labels = { 0 };
    mem_auto struct api_kv *v = labels.v = node_labels(n, &labels.n);

    return v != NULL && api_pv_fits_node(pv, n->o.node_name, &labels);
}

static void add_volume(const struct api_object *o, void *arg)
{
    struct volumes *all = arg;
    const struct api_generic *g = o->generic;
    struct claim_volume *v;

    if (g->origin != API_FROM_FOLDER || g->pv == NULL || !array_room(all->v, all->n))
        return;
    v = &all->v[all->n++];
    *v = (struct claim_volume){
        .object = g,
        .bound = is_taken(all->c, all->of, g->meta.name) || claims_released(all->c, g->meta.name) != NULL,
        .going = claim_deleted_at(g) != NULL,
        .foreign = !is_of_node(all->c->o.node, g->pv),
    };
}

static enum err_code bind_to(struct claims *c, struct claim *one, const struct claim_volume *v, struct err *e)
{
    char size[QUANTITY_TEXT_SIZE];

    quantity_format(api_resource_get(&v->object->pv->capacity, "storage"), size);
    one->volume = strdup(v->object->meta.name);
    one->size = strdup(size);
    one->pv = api_generic_ref((struct api_generic *)v->object);
    if (one->volume == NULL || one->size == NULL || claim_record_save(c, one, e) != ERR_OK) {
        free(take_ptr(&one->volume));
        free(take_ptr(&one->size));
        api_generic_unref(take_ptr(&one->pv));
        return e->code != ERR_OK ? e->code : err_nomem(e);
    }
    one->problem[0] = '\0';
    log_info("claim bound to a PersistentVolume", F_STR("claim", one->key), F_STR("volume", one->volume));
    return ERR_OK;
}

/* Binds the claim to a folder of the agent. */
static enum err_code bind_to_folder(struct claims *c, struct claim *one, const struct claim_wish *w,
                                    struct err *e)
{
    const struct quantity *size = api_resource_get(&w->claim->requests, "storage");
    char text[QUANTITY_TEXT_SIZE] = "0";

    if (size != NULL)
        quantity_format(size, text);
    one->volume = str_printf("pvc-%s", one->uid);
    one->size = strdup(text);
    if (one->volume == NULL || one->size == NULL || claim_record_save(c, one, e) != ERR_OK) {
        free(take_ptr(&one->volume));
        free(take_ptr(&one->size));
        return e->code != ERR_OK ? e->code : err_nomem(e);
    }
    one->problem[0] = '\0';
    log_info("claim gets a folder of this node", F_STR("claim", one->key), F_STR("folder", one->own_path));
    return ERR_OK;
}

static enum err_code no_volume(const struct claim_wish *w, const struct volumes *all, struct err *e)
{
    const char *named = w->claim->volume_name;

    for (size_t i = 0; named != NULL && i < all->n; i++)
        if (str_eq(named, all->v[i].object->meta.name))
            return claim_fits(w, &all->v[i], e);
    if (claim_may_be_made(w))
        return err_set(e, ERR_PRECONDITION, "waiting for first consumer to be created before binding");
    if (named != NULL)
        return err_set(e, ERR_PRECONDITION, "there is no PersistentVolume \"%.253s\"", named);
    return err_set(e, ERR_PRECONDITION,
                   "no persistent volumes available for this claim, and its %s allows no other",
                   w->claim->selector != NULL               ? "selector"
                   : str_eq(w->claim->volume_mode, "Block") ? "volumeMode"
                                                            : "storageClassName");
}

/* `make`: creates a folder if no volume fits. ERR_PRECONDITION: the claim stays unbound. */
static enum err_code claim_bind(struct claims *c, struct claim *one, const struct api_generic *g, bool make,
                                struct err *e)
{
    const struct claim_wish w = {
        .namespace_ = g->meta.namespace, .name = g->meta.name, .uid = one->uid, .claim = g->claim
    };
    struct volumes all = { .c = c, .of = one };
    const struct claim_volume *best;

    src_store_each(c->store, API_KIND_PERSISTENT_VOLUME, add_volume, &all);
    best = claim_best(&w, all.v, all.n);
    if (best != NULL)
        ERR_IGNORE(bind_to(c, one, best, e));
    else if (make && claim_may_be_made(&w))
        ERR_IGNORE(bind_to_folder(c, one, &w, e));
    else
        ERR_IGNORE(no_volume(&w, &all, e));
    free(all.v);
    snprintf(one->problem, sizeof(one->problem), "%.299s", e->text);
    return e->code;
}

/* ---- for pods ---- */

static enum err_code make_ephemeral(struct claims *c, const struct pod *p, const struct api_volume *v,
                                    const char *name, struct err *e)
{
    json_auto_t *pod = json_loads(p->api->json, 0, NULL);
    const json_t *template_ =
        json_at(json_named(json_at(pod, "spec.volumes"), v->name), "ephemeral.volumeClaimTemplate");

    if (template_ == NULL)
        return err_set(e, ERR_INTERNAL, "volume \"%s\" has no volumeClaimTemplate", v->name);
    if (claims_make(c, p->api->meta.namespace, name, template_, p->uid, e) != ERR_OK)
        return e->code;
    find(c, p->api->meta.namespace, name)->of_pod = true;
    return claim_record_save(c, find(c, p->api->meta.namespace, name), e);
}

/* The claim of a volume, which exists in the store. */
static enum err_code claim_of(struct claims *c, struct pod *p, const struct api_volume *v, const char *name,
                              struct claim **ret, struct err *e)
{
    const char *namespace_ = p->api->meta.namespace;
    struct claim *one = find(c, namespace_, name);

    if (one == NULL && v->ephemeral &&
        src_store_generic(c->store, API_FROM_FOLDER, API_KIND_CLAIM, namespace_, name) == NULL) {
        if (make_ephemeral(c, p, v, name, e) != ERR_OK)
            return e->code;
        one = find(c, namespace_, name);
    }
    if (v->ephemeral && (one == NULL || !one->of_pod || !str_eq(one->owner, p->uid)))
        return err_set(e, ERR_PRECONDITION, "PVC %s/%s was not created for pod %s (pod is not owner)",
                       namespace_, name, p->key);
    if (one == NULL)
        return err_set(e, ERR_PRECONDITION, "persistentvolumeclaim \"%s\" not found", name);
    *ret = one;
    return ERR_OK;
}

static enum err_code make_folder(const struct claim *one, struct err *e)
{
    /* All users may write, as in an emptyDir, because containers run as various users. */
    if (one->pv == NULL && fs_mkdirs(one->own_path, 0777, e) != ERR_OK)
        return err_wrap(e, "claim %s", one->key);
    return ERR_OK;
}

/* kubelet's text, from operation_generator.go. */
static enum err_code check_node(const struct claims *c, const struct claim *one, struct err *e)
{
    if (one->pv == NULL || is_of_node(c->o.node, one->pv->pv))
        return ERR_OK;
    return err_set(e, ERR_PRECONDITION,
                   "NodeAffinity check failed for volume \"%.253s\" : no matching NodeSelectorTerms",
                   one->volume);
}

static bool is_csi(const struct claim *one)
{
    return one->pv != NULL && one->pv->pv->storage.kind == API_STORAGE_CSI;
}

static enum err_code take(struct pod *p, const struct api_volume *v, void *arg, struct err *e)
{
    struct claims *c = arg;
    const struct api_generic *g;
    const struct pod *other;
    struct claim *one = NULL;
    char name[256];

    if (p->api->origin != API_FROM_FOLDER)
        return err_set(e, ERR_PRECONDITION, "claims of the cluster need a storage driver");
    claim_name(p, v, name, sizeof(name));
    if (claim_of(c, p, v, name, &one, e) != ERR_OK)
        return e->code;
    g = claim_object(c, one);
    if (g == NULL) /* an earlier pod keeps using the claim */
        return one->volume != NULL && !clock_boot_is_set(p->seen_at)
                   ? make_folder(one, e)
                   : err_set(e, ERR_PRECONDITION, "persistentvolumeclaim \"%s\" not found", name);
    if (one->volume == NULL && claim_bind(c, one, g, one->made != NULL || !pod_is_new(p), e) != ERR_OK)
        return e->code == ERR_PRECONDITION ? err_wrap(e, "persistentvolumeclaim \"%s\" is not bound", name)
                                           : e->code;
    if (claim_deleted_at(g) != NULL && clock_boot_is_set(p->seen_at))
        return err_set(e, ERR_PRECONDITION, "persistentvolumeclaim \"%s\": PVC is being deleted", name);
    if (check_node(c, one, e) != ERR_OK)
        return e->code;
    /* The set-up of a CSI volume handles the change of users: the volume stays staged from one pod to the
     * next. */
    other = claim_is_for_one_pod(g->claim) && !is_csi(one) ? user_of(c, one, p) : NULL;
    if (other != NULL)
        return err_set(
            e, ERR_PRECONDITION,
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access "
            "mode: claim \"%s\", pod %s",
            name, other->key);
    return make_folder(one, e);
}

static enum err_code place(const struct pod *p, const struct api_volume *v, struct claim_place *ret,
                           void *arg, struct err *e)
{
    struct quantity size = { 0 };
    const struct claim *one;
    char name[256];

    claim_name(p, v, name, sizeof(name));
    one = find(arg, p->api->meta.namespace, name);
    if (one == NULL || one->volume == NULL)
        return err_set(e, ERR_NOT_FOUND, "persistentvolumeclaim \"%s\" is not bound", name);
    if (quantity_parse(one->size, &size, e) != ERR_OK)
        return e->code;
    *ret = (struct claim_place){ .volume = one->pv,
                                 .read_only = v->claim_readonly,
                                 .bytes = (uint64_t)quantity_value(&size) };
    if (one->pv == NULL)
        ret->path = one->own_path;
    else
        claim_place_of(one->pv, ret);
    return ERR_OK;
}

static void grown(const struct pod *p, const struct api_volume *v, uint64_t bytes, void *arg)
{
    struct claims *c = arg;
    struct claim *one;
    char name[256], text[QUANTITY_TEXT_SIZE], *size;
    struct err e = { 0 };

    claim_name(p, v, name, sizeof(name));
    one = find(c, p->api->meta.namespace, name);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
    size = one != NULL ? strdup(text) : NULL;
    if (size == NULL)
        return;
    free(one->size);
    one->size = size;
    if (claim_record_save(c, one, &e) !=
        ERR_OK) /* after a restart the volume is expanded again, which is harmless */
        log_warn("cannot record the size of a claim", F_STR("claim", one->key), F_ERR(&e));
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
    struct claim *one = find(c, namespace_, name);

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
        log_warn("cannot remove the folder of a claim; the next removal tries again", F_ERR(result));
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
        find(c, o->generic->meta.namespace, o->generic->meta.name) == NULL &&
        claim_new(c, o->generic->meta.namespace, o->generic->meta.name) == NULL)
        log_error("cannot take a claim: out of memory", F_STR("claim", o->generic->meta.name));
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
            log_error("cannot take a claim over", F_STR("claim", one->key), F_ERR(&e));
    }
}

enum err_code claims_open(struct claims **ret, const struct claims_options *o, struct err *e)
{
    struct claims *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_nomem(e);
    c->o = *o;
    c->store = o->node->o.store;
    c->link = (struct node_claims){ .take = take, .place = place, .grown = grown, .arg = c };
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
