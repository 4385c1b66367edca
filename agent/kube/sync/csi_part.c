/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_part - CSI drivers of this node at the apiserver: the CSINode, and ids and labels of drivers at the
 * Node. One request at a time. As with kubelet the Node has a driver's labels before the CSINode names the
 * driver, and a driver that is gone leaves the CSINode first.
 *
 * A node may read its CSINode, but not watch it: it is read again every CSI_LOOK_MS. What the apiserver
 * refuses of one driver does not hold up another, nor the node's heart-beats.
 */
#include "agent/kube/sync/internal.h"

#include "agent/kube/decide/csi_node.h"
#include "base/backoff.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <string.h>

#define CSI_NODES "/apis/storage.k8s.io/v1/csinodes"
#define CSI_LOOK_MS 600000
#define CSI_REFUSED_FIRST_MS 1000
#define CSI_REFUSED_MAX_MS 300000
/* Requests for one driver until its data are in place: labels, and an entry that is removed and added. More
 * of them mean that another client reverts each change. */
#define CSI_SAME_MAX 8

struct refused { /* a driver of which the apiserver refused something */
    UT_hash_handle hh;
    uint64_t wait_ms, until_ms; /* boot clock */
    char name[];
};

struct csi_part {
    struct kube_sync *sync;
    struct sync_call call;
    struct sync_timer timer;
    json_t *drivers, *gone; /* last sent by the daemon; NULL: nothing yet */
    json_t *object;         /* the CSINode; NULL: to be read */
    char node_uid[64];      /* of the Node that it belongs to */
    char driver[256];       /* that the request under way is about; "": none */
    struct refused *refused;
    uint64_t wait_ms, not_before_ms;
    unsigned same; /* requests about this driver in a row */
    enum { CSI_IDLE, CSI_GET, CSI_CREATE, CSI_PUT, CSI_NODE } step;
    bool started;
    bool fixed_counts; /* this apiserver does not let `allocatable` change */
};

static void csi_step(void *owner);
static void csi_answered(void *owner, const struct sync_answer *a);

/* ---- refused drivers ---- */

static struct refused *refused_of(const struct csi_part *c, const char *driver)
{
    struct refused *r = NULL;

    if (driver != NULL)
        HASH_FIND_STR(c->refused, driver, r);
    return r;
}

static void refused_drop(struct csi_part *c, struct refused *r)
{
    if (r == NULL)
        return;
    HASH_DEL(c->refused, r);
    free(r);
    if (c->refused == NULL)
        state_part_report(c->sync->state, "CSI drivers", NULL);
}

static void refused_all_drop(struct csi_part *c)
{
    struct refused *r, *next;

    HASH_ITER (hh, c->refused, r, next)
        refused_drop(c, r);
}

static void csi_refuse(struct csi_part *c, const char *driver, const char *why)
{
    struct refused *r = refused_of(c, driver);
    char text[700];

    if (r == NULL) {
        r = calloc(1, sizeof(*r) + strlen(driver) + 1);
        if (r == NULL)
            return;
        strcpy(r->name, driver);
        HASH_ADD_STR(c->refused, name, r);
        if (r->hh.tbl == NULL) {
            free(r);
            return;
        }
        log_warn("cannot announce a CSI driver to the cluster", F_STR("driver", driver), F_STR("why", why));
    }
    r->wait_ms = backoff_next_ms(r->wait_ms, CSI_REFUSED_FIRST_MS, CSI_REFUSED_MAX_MS);
    r->until_ms = clock_boot_ms() + r->wait_ms;
    snprintf(text, sizeof(text), "driver %.100s: %.500s", driver, why);
    state_part_report(c->sync->state, "CSI drivers", text);
}

static bool csi_is_put_off(const struct csi_part *c, const char *driver)
{
    const struct refused *r = refused_of(c, driver);

    return r != NULL && r->until_ms > clock_boot_ms();
}

/* ---- requests; each takes its body ---- */

static void csi_request(struct csi_part *c, int step, const char *method, const char *path, json_t *body,
                        const char *driver)
{
    struct kube_request_spec spec = {
        .method = method, .path = path, .subject = step == CSI_NODE ? "node" : "CSINode", .body = body
    };

    if (step == CSI_NODE)
        spec.content_type = JSON_PATCH_STRATEGIC;
    c->step = step;
    c->same = driver != NULL && strcmp(driver, c->driver) == 0 ? c->same + 1 : 0;
    snprintf(c->driver, sizeof(c->driver), "%s", driver != NULL ? driver : "");
    sync_call(c->sync, &c->call, &spec, csi_answered, c);
    json_decref(body);
}

static bool csi_own(struct csi_part *c, int step, const char *method, json_t *body, const char *driver)
{
    str_auto path =
        sync_path(CSI_NODES, step == CSI_CREATE ? SYNC_PATH_END : c->sync->node_name, SYNC_PATH_END);

    if (path == NULL || (body == NULL && step != CSI_GET)) {
        json_decref(body);
        return false;
    }
    csi_request(c, step, method, path, body, driver);
    return true;
}

static bool csi_patch_node(struct csi_part *c, json_t *body, const char *driver)
{
    str_auto path = sync_path("/api/v1/nodes", c->sync->node_name, "status", SYNC_PATH_END);

    if (path == NULL) {
        json_decref(body);
        return false;
    }
    csi_request(c, CSI_NODE, "PATCH", path, body, driver);
    return true;
}

/* ---- the next step; true: a request is in progress ---- */

static bool csi_remove(struct csi_part *c, const char *driver)
{
    json_t *patch;

    if (csi_node_names(c->object, driver))
        return csi_own(c, CSI_PUT, "PUT", csi_node_without(c->object, driver), driver);
    patch = csi_node_metadata_without(node_part_known(c->sync->node), driver);
    return patch != NULL && csi_patch_node(c, patch, driver);
}

static bool csi_replace(struct csi_part *c, const json_t *driver)
{
    const char *name = json_str(driver, "name");

    if (csi_node_has(c->object, driver)) {
        refused_drop(c, refused_of(c, name));
        return false;
    }
    if (csi_node_clashes(c->object, driver) || (c->fixed_counts && csi_node_names(c->object, name)))
        return csi_own(c, CSI_PUT, "PUT", csi_node_without(c->object, name), name);
    return csi_own(c, CSI_PUT, "PUT", csi_node_with(c->object, driver), name);
}

static bool csi_add(struct csi_part *c, const json_t *driver)
{
    const char *name = json_str(driver, "name");
    json_t *patch = NULL;
    struct err e = { 0 };

    if (name == NULL || csi_is_put_off(c, name))
        return false;
    if (csi_node_metadata(node_part_known(c->sync->node), driver, &patch, &e) != ERR_OK) {
        csi_refuse(c, name, e.text);
        return false;
    }
    if (json_object_size(patch) > 0)
        return csi_patch_node(c, patch, name);
    json_decref(patch);
    return csi_replace(c, driver);
}

static bool csi_next(struct csi_part *c)
{
    const json_t *v;
    size_t i;

    json_array_foreach (c->gone, i, v)
        if (!csi_is_put_off(c, json_string_value(v)) && csi_remove(c, json_string_value(v)))
            return true;
    json_array_foreach (c->drivers, i, v)
        if (csi_add(c, v))
            return true;
    return false;
}

static uint64_t csi_rest_ms(const struct csi_part *c)
{
    uint64_t now_ms = clock_boot_ms(), rest_ms = sync_jitter_ms(CSI_LOOK_MS, 0.2);

    for (const struct refused *r = c->refused; r != NULL; r = r->hh.next) {
        uint64_t left_ms = r->until_ms > now_ms ? r->until_ms - now_ms : 1;

        rest_ms = left_ms < rest_ms ? left_ms : rest_ms;
    }
    return rest_ms;
}

static void csi_has_volumes(void *owner)
{
    struct csi_part *c = owner;

    json_decref(c->object);
    c->object = NULL;
    csi_step(c);
}

static void csi_step(void *owner)
{
    struct csi_part *c = owner;
    const uint64_t now_ms = clock_boot_ms();

    if (!c->started || c->call.busy || node_part_uid(c->sync->node) == NULL)
        return;
    if (now_ms < c->not_before_ms)
        sync_timer_start(c->sync, &c->timer, c->not_before_ms - now_ms, csi_step, c);
    else if (c->object == NULL)
        csi_own(c, CSI_GET, "GET", NULL, NULL);
    else if (!csi_next(c))
        sync_timer_start(c->sync, &c->timer, csi_rest_ms(c), csi_has_volumes, c);
}

/* ---- answers ---- */

static void csi_create(struct csi_part *c)
{
    const char *uid = node_part_uid(c->sync->node);

    if (uid != NULL)
        csi_own(c, CSI_CREATE, "POST", csi_node_new(c->sync->node_name, uid), NULL);
}

static void csi_done(struct csi_part *c, int step, json_t *object)
{
    c->wait_ms = 0;
    state_part_report(c->sync->state, "CSINode", NULL);
    if (step == CSI_NODE) {
        node_part_see(c->sync->node, object);
        return;
    }
    json_incref(object);
    json_decref(c->object);
    c->object = object;
}

static bool is_refusal(enum err_code code)
{
    return code == ERR_PERMISSION || code == ERR_INVALID;
}

static void csi_failed(struct csi_part *c, int step, const struct sync_answer *a)
{
    const enum err_code code = a->error->code;

    if (step == CSI_PUT && code == ERR_INVALID && !c->fixed_counts &&
        csi_node_names(c->object, c->driver)) { /* of before 1.34: the entry has to go first */
        c->fixed_counts = true;
        return;
    }
    if (c->driver[0] != '\0' && is_refusal(code)) {
        csi_refuse(c, c->driver, a->error->text);
        return;
    }
    json_decref(c->object); /* another client changed it, or it is gone */
    c->object = NULL;
    if (code == ERR_ABORTED || code == ERR_EXISTS || (step == CSI_PUT && code == ERR_NOT_FOUND))
        return;
    c->not_before_ms = clock_boot_ms() + sync_wait_ms(a, &c->wait_ms, 200, 60000);
    state_part_report(c->sync->state, "CSINode", a->error->text);
}

static void csi_answered(void *owner, const struct sync_answer *a)
{
    struct csi_part *c = owner;
    const enum err_code code = a->error->code;
    const int step = c->step;

    c->step = CSI_IDLE;
    if (code == ERR_CANCELLED || !c->started)
        return;
    if (step == CSI_GET && code == ERR_NOT_FOUND) {
        csi_create(c);
        return;
    }
    if (code == ERR_OK && a->object != NULL)
        csi_done(c, step, a->object);
    if (code == ERR_OK && c->same >= CSI_SAME_MAX) {
        c->same = 0;
        csi_refuse(c, c->driver, "the apiserver takes it, and does not keep it");
    }
    if (code != ERR_OK || a->object == NULL)
        csi_failed(c, step, a);
    csi_step(c);
}

/* ---- the part ---- */

struct csi_part *csi_part_new(struct kube_sync *s)
{
    struct csi_part *c = calloc(1, sizeof(*c));

    if (c != NULL)
        c->sync = s;
    return c;
}

void csi_part_start(struct csi_part *c)
{
    const char *uid = node_part_uid(c->sync->node);

    c->started = true;
    if (uid != NULL && strcmp(uid, c->node_uid) != 0) { /* entries of another Node are removed with it */
        snprintf(c->node_uid, sizeof(c->node_uid), "%s", uid);
        json_decref(c->object);
        c->object = NULL;
    }
    csi_step(c);
}

void csi_part_take(struct csi_part *c, const json_t *message)
{
    json_decref(c->drivers);
    json_decref(c->gone);
    c->drivers = json_incref(json_object_get(message, "drivers"));
    c->gone = json_incref(json_object_get(message, "gone"));
    refused_all_drop(c);
    csi_step(c);
}

void csi_part_anew(struct csi_part *c)
{
    c->not_before_ms = 0;
    csi_step(c);
}

void csi_part_stop(struct csi_part *c)
{
    c->started = false;
    sync_timer_stop(c->sync, &c->timer);
    sync_call_cancel(&c->call);
}

void csi_part_free(struct csi_part *c)
{
    struct refused *r, *next;

    if (c == NULL)
        return;
    HASH_ITER (hh, c->refused, r, next) {
        HASH_DEL(c->refused, r);
        free(r);
    }
    json_decref(c->drivers);
    json_decref(c->gone);
    json_decref(c->object);
    free(c);
}
