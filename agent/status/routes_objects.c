/* SPDX-License-Identifier: Apache-2.0 */
/* Paths for objects other than pods and events: lists, and single objects. */
#include "agent/status/internal.h"

#include <stdio.h>
#include <string.h>

static const struct kind {
    enum status_route route;
    struct listing_of of;
    const char *resource;
} kinds[] = {
    { ROUTE_NODES, { KIND_NODE, "NodeList", "v1", false }, "nodes" },
    { ROUTE_CONFIG_MAPS, { KIND_CONFIG_MAP, "ConfigMapList", "v1", false }, "configmaps" },
    { ROUTE_SECRETS, { KIND_SECRET, "SecretList", "v1", false }, "secrets" },
    { ROUTE_PRIORITY_CLASSES,
      { KIND_PRIORITY_CLASS, "PriorityClassList", "scheduling.k8s.io/v1", false },
      "priorityclasses.scheduling.k8s.io" },
};

static void list_objects(struct conn *c, const struct listing_of *of, const char *namespace_)
{
    struct selection selection;
    struct err e = { 0 };

    if (selection_parse(&c->parser.request, SELECT_OBJECTS, namespace_, &selection, &e) != ERR_OK) {
        conn_err(c, &e);
        return;
    }
    listing_begin(c, of, &selection);
    selection_done(&selection);
}

/* Removes the objects from an array that the request does not select. */
static enum err_code select_nodes(struct conn *c, json_t *nodes, struct err *e)
{
    struct selection selection;

    if (selection_parse(&c->parser.request, SELECT_OBJECTS, NULL, &selection, e) != ERR_OK)
        return e->code;
    for (size_t i = json_array_size(nodes); i-- > 0;)
        if (!selection_matches(&selection, json_array_get(nodes, i)))
            json_array_remove(nodes, i);
    if (selection.failed)
        err_nomem(e);
    selection_done(&selection);
    return e->code;
}

void route_devices(struct conn *c, const struct status_match *m)
{
    static const struct listing_of all = { KIND_DEVICE, "DeviceList", "coracle.dev/v1", false },
                                   held_ones = { KIND_DEVICE_HELD, "DeviceList", "coracle.dev/v1", false };
    struct err e = { 0 };
    bool held = false;

    (void)m;
    if (http_param_flag(&c->parser.request, "held", &held, &e) != ERR_OK)
        conn_err(c, &e);
    else
        list_objects(c, held ? &held_ones : &all, NULL);
}

void route_objects(struct conn *c, const struct status_match *m)
{
    const struct status_provider *p = &c->server->provider;
    const struct kind *k = kinds;
    struct err e = { 0 };
    char message[400];
    json_t *found;

    while (k->route != m->route)
        k++;
    if (m->name == NULL && k->of.kind != KIND_NODE) {
        list_objects(c, &k->of, m->namespace_);
        return;
    }
    found = p->objects(p->arg, k->of.kind, m->namespace_, m->name, &e);
    if (found != NULL && m->name == NULL && select_nodes(c, found, &e) != ERR_OK) {
        json_decref(found);
        conn_err(c, &e);
        return;
    }
    if (found != NULL && m->name == NULL)
        found = json_pack("{s:s, s:s, s:{}, s:o}", "kind", k->of.list, "apiVersion", k->of.api_version,
                          "metadata", "items", found);
    if (found == NULL && e.code == ERR_NOT_FOUND) {
        snprintf(message, sizeof(message), "%s \"%.253s\" not found", k->resource, m->name);
        conn_status(c, 404, "NotFound", k->resource, m->name, message);
    } else {
        conn_value(c, found, &e);
    }
}

/* "DeploymentList"; constant once created. Loop thread only. */
static const struct listing_of *list_of(enum api_kind kind)
{
    static struct listing_of lists[API_KINDS];
    static char names[API_KINDS][40];
    const struct api_kind_row *row = &api_kinds[kind];

    snprintf(names[kind], sizeof(names[kind]), "%sList", row->kind);
    lists[kind] = (struct listing_of){ (enum status_kind)(KIND_GENERIC + (int)kind), names[kind],
                                       row->api_version, false };
    return &lists[kind];
}

void route_generic(struct conn *c, const struct status_match *m)
{
    const struct status_provider *p = &c->server->provider;
    const struct api_kind_row *row = &api_kinds[m->kind];
    struct err e = { 0 };
    char message[400];
    json_t *found;

    if (m->name == NULL) {
        list_objects(c, list_of(m->kind), m->namespace_);
        return;
    }
    found = p->objects(p->arg, (enum status_kind)(KIND_GENERIC + (int)m->kind), m->namespace_, m->name, &e);
    if (found == NULL && e.code == ERR_NOT_FOUND) {
        snprintf(message, sizeof(message), "%s \"%.253s\" not found", row->plural, m->name);
        conn_status(c, 404, "NotFound", row->plural, m->name, message);
    } else {
        conn_value(c, found, &e);
    }
}
