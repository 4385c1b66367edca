/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/devices.h"

#include "agent/pod/device/devices.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

/* ---- names ---- */

/* "/example.com/dev<tab>dev-0": a resource's name has no tab, a device's may have any character. */
static bool add_key(json_t *list, const char *resource, const char *id)
{
    return json_array_append_new(list, json_sprintf("/%s\t%s", resource, id)) == 0;
}

static bool add_keys(const struct node *n, const struct dp_resource *r, bool held_only, json_t *list)
{
    const struct dp_owned *held = NULL;
    bool ok = true;

    for (size_t i = 0; i < r->n_devices && !held_only; i++)
        ok = add_key(list, r->name, r->devices[i].id) && ok;
    while ((held = dp_holdings_owned_next(devices_holdings(n), r->name, held)) != NULL)
        if (held_only || dp_resource_device(r, held->id) == NULL)
            ok = add_key(list, r->name, held->id) && ok;
    return ok;
}

json_t *devices_keys(struct node *n, bool held_only)
{
    const struct dp_inventory *all = devices_inventory(n);
    const struct dp_resource *r = NULL;
    json_t *list = json_array();
    bool ok = list != NULL;

    while (all != NULL && (r = dp_inventory_next(all, r)) != NULL)
        ok = add_keys(n, r, held_only, list) && ok;
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

/* ---- one device ---- */

static bool has_device(const struct dp_holding *h, const char *id)
{
    for (size_t i = 0; h != NULL && i < h->n_devices; i++)
        if (strcmp(h->devices[i].id, id) == 0)
            return true;
    return false;
}

static void put_holder(json_t *o, struct node *n, const char *resource, const char *id)
{
    const char *uid = dp_holdings_owner(devices_holdings(n), resource, id);
    struct pod *p = uid != NULL ? pods_by_uid(n, uid) : NULL;
    json_t *containers;

    if (uid == NULL)
        return;
    if (p == NULL) { /* held by kubelet's checkpoint: the pod's manifest has not been read yet */
        json_object_set_new(o, "pod", json_pack("{s:s, s:s, s:s}", "namespace", "", "name", "", "uid", uid));
        return;
    }
    json_object_set_new(o, "pod",
                        json_pack("{s:s, s:s, s:s}", "namespace", p->api->meta.namespace, "name",
                                  p->api->meta.name, "uid", uid));
    containers = json_array();
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const char *name = p->ctrs[i]->spec->name;

        if (has_device(dp_holdings_find(devices_holdings(n), uid, name, resource), id))
            json_array_append_new(containers, json_string(name));
    }
    json_object_set_new(o, "containers", containers);
}

static void put_numa(json_t *o, const struct dp_device *d)
{
    json_t *nodes = json_array();

    for (size_t i = 0; i < d->n_numa; i++)
        json_array_append_new(nodes, json_integer(d->numa[i]));
    json_object_set_new(o, "numaNodes", nodes);
}

/* As in allocatedResourcesStatus. */
static enum dp_health health_of(const struct dp_resource *r, const struct dp_device *d)
{
    if (r->provider == NULL || !r->listed)
        return DP_HEALTH_UNKNOWN;
    return d != NULL && d->healthy ? DP_HEALTHY : DP_UNHEALTHY;
}

static void put_provider(json_t *o, const struct dp_resource *r)
{
    char text[512] = "";
    str_auto all = NULL;

    if (r->provider == NULL)
        return;
    r->provider->describe(r->provider, text, sizeof(text));
    all = str_printf("%s%s%s", r->provider->kind, text[0] != '\0' ? ": " : "", text);
    json_put_str(o, "provider", all);
}

json_t *device_json(struct node *n, const char *name)
{
    const char *tab = strchr(name, '\t'), *id = tab != NULL ? tab + 1 : "";
    str_auto resource = tab != NULL ? strndup(name, (size_t)(tab - name)) : NULL;
    const struct dp_resource *r = resource != NULL && devices_inventory(n) != NULL
                                      ? dp_inventory_find(devices_inventory(n), resource)
                                      : NULL;
    const struct dp_device *d = r != NULL ? dp_resource_device(r, id) : NULL;
    json_t *o;

    if (r == NULL || (d == NULL && dp_holdings_owner(devices_holdings(n), resource, id) == NULL))
        return NULL;
    o = json_object();
    json_put_str(o, "resource", resource);
    json_put_str(o, "id", id);
    json_put_str(o, "health", dp_health_name(health_of(r, d)));
    if (d != NULL && d->n_numa > 0)
        put_numa(o, d);
    put_provider(o, r);
    put_holder(o, n, resource, id);
    return o;
}
