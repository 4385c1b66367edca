/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/status/pod_status.h"

#include "agent/api/kept_meta.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/container/container.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/status/internal.h"
#include "agent/pod/status/status.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/siphash.h"

#include <string.h>

void status_put_time(json_t *o, const char *key, int64_t ns)
{
    char text[CLOCK_RFC3339_SIZE];

    clock_format_s(ns, text);
    json_object_set_new(o, key, json_string(text));
}

void status_put_generation(json_t *o, const struct api_pod *api)
{
    if (api->meta.generation != 0)
        json_object_set_new(o, "observedGeneration", json_integer(api->meta.generation));
}

/* ---- resources ---- */

/* The pod's sums, for each resource named by a container or the pod itself; `all`: extended ones, too. */
static json_t *pod_resource_list(const struct pod *p, bool limits, bool all)
{
    const struct api_pod_spec *s = &p->api->spec;
    json_t *o = json_object();

    for (size_t i = 0; i <= p->n_ctrs; i++) {
        const struct api_resources *r = i < p->n_ctrs ? &p->ctrs[i]->spec->resources : &s->resources;
        const struct api_resource_list *l = limits ? &r->limits : &r->requests;
        for (size_t k = 0; k < l->n; k++) {
            struct quantity q = limits ? resources_pod_limit(p->api, l->v[k].name, NULL)
                                       : resources_pod_request(p->api, l->v[k].name);
            char text[QUANTITY_TEXT_SIZE];
            if (!all && strchr(l->v[k].name, '/') != NULL)
                continue;
            quantity_format_stored(&q, text);
            json_put_str(o, l->v[k].name, text);
        }
    }
    return o;
}

static void put_unless_empty(json_t *o, const char *key, json_t *value)
{
    if (json_object_size(value) > 0)
        json_object_set(o, key, value);
    json_decref(value);
}

static void put_pod_resources(const struct pod *p, json_t *status)
{
    json_t *resources;

    put_unless_empty(status, "allocatedResources", pod_resource_list(p, false, true));
    if (p->state == POD_TERMINATED)
        return;
    resources = json_object();
    put_unless_empty(resources, "limits", pod_resource_list(p, true, false));
    put_unless_empty(resources, "requests", pod_resource_list(p, false, false));
    json_object_set_new(status, "resources", resources);
}

/* ---- the whole ---- */

static void put_ips(json_t *status, const char *one, const char *many, const char (*ips)[46], size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *o = json_object();
        json_put_str(o, "ip", ips[i]);
        json_array_append_new(list, o);
    }
    if (n > 0) {
        json_put_str(status, one, ips[0]);
        json_object_set(status, many, list);
    }
    json_decref(list);
}

static json_t *status_json(struct pod *p)
{
    json_t *s = json_object();
    char host[1][46];

    status_put_generation(s, p->api);
    json_put_str(s, "phase", pod_phase(p));
    if (!p->rejected)
        json_object_set_new(s, "conditions", pod_conditions_json(p));
    /* the result is shown together with its phase, when nothing runs any more */
    if (p->state != POD_TERMINATING) {
        json_put_str(s, "message", p->message);
        json_put_str(s, "reason", p->reason);
    }
    if (p->admitted && p->node->o.node_ip[0] != '\0') {
        snprintf(host[0], sizeof(host[0]), "%s", p->node->o.node_ip);
        put_ips(s, "hostIP", "hostIPs", (const char(*)[46])host, 1);
        /* also before its sandbox and after: they are the node's, as in kubelet */
        if (p->api->spec.host_network && pod_network_shown(p))
            put_ips(s, "podIP", "podIPs", (const char(*)[46])host, 1);
    }
    if (!p->api->spec.host_network && pod_network_shown(p))
        put_ips(s, "podIP", "podIPs", (const char(*)[46])sandbox_addresses(p)->ips,
                sandbox_addresses(p)->n_ips);
    if (p->start_time_ns != 0)
        status_put_time(s, "startTime", p->start_time_ns);
    if (!p->rejected && p->admitted)
        ctr_statuses_put(p, s);
    json_put_str(s, "qosClass", api_qos_name(p->api->qos));
    if (!p->rejected && p->admitted)
        put_pod_resources(p, s);
    return s;
}

/* The manifest's members for clients of the API. A pod that ends has no manifest any more, or another one. */
static void put_kept(const struct pod *p, json_t *meta)
{
    const struct api_pod *api =
        p->api->origin == API_FROM_FOLDER
            ? src_store_pod(p->node->o.store, API_FROM_FOLDER, p->api->meta.namespace, p->api->meta.name)
            : NULL;

    if (api != NULL && p->successor == NULL)
        ERR_IGNORE(api_kept_meta_add(meta, api->meta.kept));
}

json_t *pod_status_json(struct pod *p)
{
    json_t *o = NULL, *meta, *spec;
    struct err e = { 0 };

    const char *manifest = resize_desired(p)->json;

    if (json_parse(manifest, strlen(manifest), SIZE_MAX, &o, "manifest", &e) != ERR_OK)
        return NULL;
    meta = json_object_get(o, "metadata");
    spec = json_object_get(o, "spec");
    json_put_str(meta, "uid", p->uid);
    put_kept(p, meta);
    status_put_time(meta, "creationTimestamp", p->created_ns);
    if (p->deletion_ns != 0) {
        if (p->api->origin == API_FROM_FOLDER && p->api->meta.generation > 0) /* as an apiserver counts */
            json_object_set_new(meta, "generation", json_integer(p->api->meta.generation + 1));
        status_put_time(meta, "deletionTimestamp", p->deletion_ns + p->grace_seconds * INT64_C(1000000000));
        /* kubelet finally deletes with grace 0 */
        json_object_set_new(meta, "deletionGracePeriodSeconds",
                            json_integer(p->state == POD_TERMINATED ? 0 : p->grace_seconds));
    }
    if (!p->unscheduled)
        json_put_str(spec, "nodeName", p->node->o.node_name);
    if (p->priority != 0 || p->api->spec.priority_class_name != NULL)
        json_object_set_new(spec, "priority", json_integer(p->priority));
    json_object_set_new(o, "status", status_json(p));
    return o;
}

void pod_show(struct pod *p, const char *type)
{
    struct pod_shown *shown_part = shown_of(p);
    struct node *n = p->node;
    json_t *o;

    if (n->cluster != NULL && strcmp(type, "DELETED") == 0)
        n->cluster->pod_gone(p, n->cluster->arg);
    else if (n->cluster != NULL)
        n->cluster->pod_changed(p, n->cluster->arg);
    if (n->workloads != NULL)
        n->workloads->pod_changed(p, n->workloads->arg);
    if (n->server == NULL || !status_server_has_watchers(n->server))
        return;
    o = pod_status_json(p);
    if (o == NULL)
        return;
    if (strcmp(type, "MODIFIED") == 0) { /* no visible change: send nothing */
        str_auto text = json_text(o);
        uint64_t shown = siphash_part(0, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
        if (shown == shown_part->shown_hash) {
            json_decref(o);
            return;
        }
        shown_part->shown_hash = shown;
    }
    status_server_pod_event(n->server, type, o);
    json_decref(o);
}
