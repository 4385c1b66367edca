/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_record - the part of a pod's record about its devices:
 *
 *     "devices": [{"container", "resource", "answer": base64, "devices": [{"id", "numa": [0]}]}]
 *     "deviceStatus": {container: [...]}   allocatedResourcesStatus of a pod that has ended
 *     "devicesRefused": true               it was rejected for lack of devices
 *     "devicesRefusedForGood": true        by a provider: it is not judged again
 *
 * Reservations without an answer are not recorded: after a restart the agent allocates again. A record is
 * hostile input: an entry that does not fit the pod, or cannot be used, is dropped and logged.
 */
#include "agent/pod/device/internal.h"
#include "base/buf.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "deviceplugin/resource_name.h"

#include <stdlib.h>
#include <string.h>

#define STATUS_RESOURCES_MAX 64 /* of a container */

/* ---- saving ---- */

static json_t *device_json(const struct dp_held *d)
{
    json_t *o = json_object(), *numa = json_array();

    json_put_str(o, "id", d->id);
    for (size_t i = 0; i < d->n_numa; i++)
        json_array_append_new(numa, json_integer(d->numa[i]));
    if (d->n_numa > 0)
        json_object_set(o, "numa", numa);
    json_decref(numa);
    return o;
}

static json_t *holding_json(const struct dp_holding *x)
{
    json_t *o = json_object(), *devices = json_array();
    buf_auto answer = BUF_INIT(2 * x->n_answer + 16);

    base64_add(&answer, x->answer, x->n_answer);
    json_put_str(o, "container", x->container);
    json_put_str(o, "resource", x->resource);
    if (!answer.failed) /* out of memory: an entry without an answer is ignored when it is read; the
                           checkpoint has it, too */
        json_object_set_new(o, "answer", json_string(answer.p));
    for (size_t i = 0; i < x->n_devices; i++)
        json_array_append_new(devices, device_json(&x->devices[i]));
    json_object_set_new(o, "devices", devices);
    return o;
}

void device_save(const struct pod *p, json_t *record)
{
    const struct dp_holdings *h = devices_holdings(p->node);
    json_t *list = json_array(), *status = json_object();

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct device_ctr *own = device_ctr_of(p->ctrs[i]);
        if (own->last != NULL)
            json_object_set(status, p->ctrs[i]->spec->name, own->last);
    }
    if (device_of(p)->state == DEVICES_HELD)
        for (const struct dp_holding *x = dp_holdings_pod_next(h, p->uid, NULL); x != NULL;
             x = dp_holdings_pod_next(h, p->uid, x))
            if (x->answer != NULL)
                json_array_append_new(list, holding_json(x));
    if (json_array_size(list) > 0)
        json_object_set(record, "devices", list);
    if (json_object_size(status) > 0)
        json_object_set(record, "deviceStatus", status);
    if (device_of(p)->state == DEVICES_REFUSED)
        json_object_set_new(record, "devicesRefused", json_true());
    if (device_of(p)->state == DEVICES_REFUSED && device_of(p)->refused_for_good)
        json_object_set_new(record, "devicesRefusedForGood", json_true());
    json_decref(list);
    json_decref(status);
}

/* ---- loading ---- */

struct loading { /* one entry; all of it is freed with the arena */
    struct arena arena;
    struct dp_holding x;
    struct dp_held *devices;
};

/* Texts with a NUL inside are left out. */
static const char *whole_string(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    const char *text = json_string_value(v);

    return text != NULL && strlen(text) == json_string_length(v) ? text : NULL;
}

static bool read_device(struct loading *l, const json_t *o, struct dp_held *ret)
{
    const json_t *numa = json_object_get(o, "numa");
    size_t n = json_array_size(numa);
    int64_t *nodes;

    ret->id = whole_string(o, "id");
    if (ret->id == NULL || !dp_id_ok(ret->id) || n > DP_HELD_NUMA_MAX)
        return false;
    nodes = arena_alloc(&l->arena, (n + 1) * sizeof(*nodes));
    if (nodes == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        nodes[i] = json_integer_value(json_array_get(numa, i));
    for (size_t i = 1; i < n; i++)
        if (nodes[i - 1] >= nodes[i])
            return false;
    ret->numa = nodes;
    ret->n_numa = n;
    return true;
}

static bool read_devices(struct loading *l, const json_t *list)
{
    size_t n = json_array_size(list);

    if (n == 0 || n > DP_DEVICES_MAX)
        return false;
    l->devices = arena_alloc(&l->arena, n * sizeof(*l->devices));
    for (size_t i = 0; l->devices != NULL && i < n; i++)
        if (!read_device(l, json_array_get(list, i), &l->devices[i]))
            return false;
    l->x.devices = l->devices;
    l->x.n_devices = n;
    return l->devices != NULL;
}

static bool read_answer(struct loading *l, const json_t *o)
{
    const char *text = whole_string(o, "answer");
    size_t n = text != NULL ? strlen(text) : 0, size = 0;
    unsigned char *p;
    struct dp_answer *answer = NULL;
    bool ok;

    if (text == NULL)
        return false;
    p = arena_alloc(&l->arena, BASE64_DECODED_MAX(n));
    if (p == NULL || !base64_decode(text, n, p, &size))
        return false;
    ok = dp_answer_unpack(&answer, p, size, ERR_IGNORED) == ERR_OK;
    free(answer);
    l->x.answer = p;
    l->x.n_answer = size;
    return ok;
}

static const struct ctr *find_ctr(const struct pod *p, const char *name)
{
    for (size_t i = 0; name != NULL && i < p->n_ctrs; i++)
        if (strcmp(p->ctrs[i]->spec->name, name) == 0)
            return p->ctrs[i];
    return NULL;
}

static void load_one(struct pod *p, const json_t *o)
{
    struct loading l = { .x = { .pod_uid = p->uid,
                                .container = whole_string(o, "container"),
                                .resource = whole_string(o, "resource") } };
    struct err e = { 0 };

    if (find_ctr(p, l.x.container) == NULL || l.x.resource == NULL || !dp_resource_name_ok(l.x.resource) ||
        !read_devices(&l, json_object_get(o, "devices")) || !read_answer(&l, o))
        err_set(&e, ERR_INVALID, "it does not fit the pod, or is damaged");
    else
        ERR_IGNORE(dp_holdings_put(device_node(p->node)->holdings, &l.x, &e));
    if (e.code != ERR_OK)
        log_error("ignoring devices in a pod's record", F_STR("pod", p->key),
                  F_STR("containerName", l.x.container != NULL ? l.x.container : ""),
                  F_STR("resource", l.x.resource != NULL ? l.x.resource : ""), F_ERR(&e));
    arena_done(&l.arena);
}

/* Only the form that the agent writes, because it is shown unchanged. */
static bool is_status(const json_t *list)
{
    const json_t *o, *x;
    size_t i, k;

    if (!json_is_array(list) || json_array_size(list) > STATUS_RESOURCES_MAX)
        return false;
    json_array_foreach (list, i, o) {
        const json_t *resources = json_object_get(o, "resources");
        if (json_object_size(o) != 2 || json_str(o, "name") == NULL || !json_is_array(resources))
            return false;
        json_array_foreach (resources, k, x)
            if (json_object_size(x) != 2 || json_str(x, "resourceID") == NULL ||
                json_str(x, "health") == NULL)
                return false;
    }
    return true;
}

void device_load(struct pod *p, const json_t *record)
{
    struct device_pod *part = device_of(p);
    const json_t *list = json_object_get(record, "devices"),
                 *status = json_object_get(record, "deviceStatus");
    bool ended = device_has_ended(p);
    const json_t *o;
    size_t i;

    for (i = 0; i < p->n_ctrs; i++) {
        json_t *last = json_object_get(status, p->ctrs[i]->spec->name);
        if (p->state == POD_TERMINATED && is_status(last))
            device_ctr_of(p->ctrs[i])->last = json_incref(last);
    }
    if (!ended)
        json_array_foreach (list, i, o)
            load_one(p, o);
    part->refused_for_good = p->rejected && json_flag(record, "devicesRefusedForGood");
    if (p->rejected && json_flag(record, "devicesRefused"))
        part->state = DEVICES_REFUSED;
    else if (ended)
        part->state = DEVICES_RELEASED;
    else if (p->admitted)
        part->state = DEVICES_HELD;
}
