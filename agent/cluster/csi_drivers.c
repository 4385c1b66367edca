/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_drivers - CSI drivers between the node and the cluster: the settings of all CSIDriver objects, which
 * coracle-kube watches from the first pod on; and the drivers that registered on this node, for the CSINode.
 */
#include "agent/cluster/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "volumes/csi/csi.h"

#include <stdlib.h>
#include <string.h>

#define PERIOD_MIN_S 10 /* the apiserver's minimum */

/* ---- objects ---- */

static struct cluster_driver *driver_find(const struct cluster *c, const char *name)
{
    struct cluster_driver *d = NULL;

    HASH_FIND_STR(c->drivers, name, d);
    return d;
}

static struct cluster_driver *driver_note(struct cluster *c, const char *name)
{
    struct cluster_driver *d = driver_find(c, name);

    if (d != NULL || HASH_COUNT(c->drivers) >= CLUSTER_DRIVERS_MAX)
        return d;
    d = calloc(1, sizeof(*d) + strlen(name) + 1);
    if (d == NULL)
        return NULL;
    strcpy(d->name, name);
    HASH_ADD_STR(c->drivers, name, d);
    if (d->hh.tbl != NULL)
        return d;
    free(d);
    return NULL;
}

static void drivers_changed(struct cluster *c)
{
    if (c->drivers_known)
        kept_changed(c->kept, KEEP_DRIVERS, false);
}

static void plan_asks(struct cluster *c);

static void driver_set(struct cluster *c, struct cluster_driver *d, json_t *object)
{
    const json_t *spec = json_object_get(object, "spec"), *required = json_object_get(spec, "attachRequired");
    json_int_t period_s = json_int(spec, "nodeAllocatableUpdatePeriodSeconds", 0);

    json_decref(d->object);
    d->object = object;
    d->link = c->driver_link;
    d->attach = !json_is_false(required);
    if (period_s > 0 && period_s < PERIOD_MIN_S)
        period_s = PERIOD_MIN_S;
    if (d->period_s != period_s && period_s > 0)
        d->ask_at = clock_boot_in_ms((uint64_t)period_s * 1000);
    d->period_s = period_s;
    plan_asks(c);
}

void csi_drivers_put(struct cluster *c, const json_t *object)
{
    const char *name = json_str(json_object_get(object, "metadata"), "name");
    json_t *copy = json_deep_copy(object);
    struct cluster_driver *d =
        copy != NULL && name != NULL && strlen(name) <= CLUSTER_NAME_MAX ? driver_note(c, name) : NULL;

    if (d == NULL) {
        log_error("ignoring a CSIDriver: there are too many, or its name is invalid");
        json_decref(copy);
        return;
    }
    json_object_del(json_object_get(copy, "metadata"), "managedFields");
    driver_set(c, d, copy);
    drivers_changed(c);
    objects_to_store(c, copy);
    reports_wake(c); /* the need for attachments may have changed */
}

static void driver_free(struct cluster *c, struct cluster_driver *d)
{
    HASH_DEL(c->drivers, d);
    json_decref(d->object);
    free(d);
}

static void driver_drop(struct cluster *c, struct cluster_driver *d)
{
    src_store_remove(c->o.store, API_FROM_SERVER, API_KIND_CSI_DRIVER, NULL, d->name);
    driver_free(c, d);
    drivers_changed(c);
    reports_wake(c);
}

void csi_drivers_gone(struct cluster *c, const char *name)
{
    struct cluster_driver *d = driver_find(c, name);

    if (d != NULL)
        driver_drop(c, d);
}

void csi_drivers_synced(struct cluster *c)
{
    struct cluster_driver *d, *next;

    HASH_ITER (hh, c->drivers, d, next)
        if (d->link != c->driver_link) /* deleted while coracle-kube did not run */
            driver_drop(c, d);
    if (c->drivers_known)
        return;
    c->drivers_known = true;
    drivers_changed(c);
    storage_wake(c);
}

bool csi_drivers_known(const struct cluster *c)
{
    return c->drivers_known || c->drivers_kept;
}

bool csi_drivers_attach(const struct cluster *c, const char *driver)
{
    const struct cluster_driver *d = driver_find(c, driver);

    return d == NULL || d->attach;
}

bool csi_drivers_limits_change(const struct cluster *c, const char *driver)
{
    const struct cluster_driver *d = driver_find(c, driver);

    return d != NULL && d->period_s > 0;
}

/* ---- on the disk ---- */

json_t *csi_drivers_keep(const struct cluster *c)
{
    json_t *list = json_array();

    for (const struct cluster_driver *d = c->drivers; d != NULL; d = d->hh.next)
        json_array_append(list, d->object);
    if (c->drivers_known)
        return json_pack("{s:o}", "drivers", list);
    json_decref(list);
    return NULL;
}

void csi_drivers_use(struct cluster *c, const json_t *kept)
{
    json_t *v;
    size_t i;

    if (c->drivers_known || c->drivers_kept)
        return;
    c->drivers_kept = true;
    c->driver_link--; /* removed by the first set that does not have them */
    json_array_foreach (json_object_get(kept, "drivers"), i, v) {
        const char *name = json_str(json_object_get(v, "metadata"), "name");

        if (name != NULL && driver_find(c, name) == NULL) /* otherwise the apiserver has just sent it */
            csi_drivers_put(c, v);
    }
    c->driver_link++;
    storage_wake(c);
}

/* ---- registered drivers ---- */

static json_t *topology_of(const struct csi_node_info *info)
{
    json_t *o = json_object();

    for (size_t i = 0; i < info->topology.n; i++)
        json_object_set_new(o, info->topology.v[i].key, json_string_of(info->topology.v[i].value));
    return o;
}

static void add_driver(const struct csi_driver_info *d, void *arg)
{
    json_t *list = arg, *one = json_pack("{s:s, s:o, s:o}", "name", d->name, "nodeID",
                                         json_string_of(d->node->node_id), "topology", topology_of(d->node));

    if (one != NULL && d->node->max_volumes > 0)
        json_object_set_new(one, "count", json_integer(d->node->max_volumes));
    json_array_append_new(list, one);
}

/* Names of drivers that were registered in this run and no longer are. */
static json_t *gone_drivers(struct cluster *c, const json_t *here)
{
    json_t *gone = json_array(), *v;
    const char *name;
    size_t i;

    json_array_foreach (here, i, v)
        json_object_set_new(c->drivers_seen, json_str(v, "name"), json_true());
    json_object_foreach (c->drivers_seen, name, v)
        if (json_named(here, name) == NULL)
            json_array_append_new(gone, json_string(name));
    return gone;
}

void csi_drivers_report(struct cluster *c)
{
    json_t *here = json_array();

    if (c->o.node->csi != NULL)
        csi_each_driver(c->o.node->csi, add_driver, here);
    cluster_send(
        c, json_pack("{s:s, s:o, s:o}", "type", "drivers", "drivers", here, "gone", gone_drivers(c, here)));
}

void csi_drivers_registered(void *cluster)
{
    csi_drivers_report(cluster);
}

/* ---- limits of volumes ---- */

void csi_drivers_ask(struct cluster *c, const char *driver)
{
    if (c->o.node->csi != NULL)
        csi_ask_again(c->o.node->csi, driver);
}

static void on_ask_timer(uv_timer_t *timer)
{
    struct cluster *c = timer->data;

    for (struct cluster_driver *d = c->drivers; d != NULL; d = d->hh.next)
        if (d->period_s > 0 && clock_boot_is_due(d->ask_at)) {
            d->ask_at = clock_boot_in_ms((uint64_t)d->period_s * 1000);
            csi_drivers_ask(c, d->name);
        }
    plan_asks(c);
}

static void plan_asks(struct cluster *c)
{
    int64_t next_ns = INT64_MAX;

    if (c->closing)
        return;
    for (const struct cluster_driver *d = c->drivers; d != NULL; d = d->hh.next)
        if (d->period_s > 0 && clock_boot_left_ns(d->ask_at) < next_ns)
            next_ns = clock_boot_left_ns(d->ask_at);
    if (next_ns == INT64_MAX)
        uv_timer_stop(&c->ask_timer);
    else
        uv_timer_start(&c->ask_timer, on_ask_timer, next_ns > 0 ? (uint64_t)(next_ns / 1000000) + 1 : 0, 0);
}

/* ---- life ---- */

void csi_drivers_again(struct cluster *c)
{
    c->driver_link++;
    csi_drivers_report(c);
}

enum err_code csi_drivers_open(struct cluster *c, struct err *e)
{
    c->drivers_seen = json_object();
    if (c->drivers_seen == NULL)
        return err_nomem(e);
    uv_timer_init(c->o.loop, &c->ask_timer);
    c->ask_timer.data = c;
    c->open_handles++;
    return ERR_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct cluster *c = handle->data;

    c->open_handles--;
}

void csi_drivers_close(struct cluster *c)
{
    uv_close((uv_handle_t *)&c->ask_timer, on_closed);
}

void csi_drivers_free(struct cluster *c)
{
    struct cluster_driver *d, *next;

    HASH_ITER (hh, c->drivers, d, next)
        driver_free(c, d);
    json_decref(c->drivers_seen);
}
