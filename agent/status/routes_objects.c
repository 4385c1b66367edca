/* SPDX-License-Identifier: Apache-2.0 */
/* Paths for objects other than pods and events: lists, and single objects. */
#include "agent/status/internal.h"

#include <stdio.h>

static const struct kind {
    enum status_route route;
    enum status_kind kind;
    const char *api_version, *list, *resource;
} kinds[] = {
    { ROUTE_NODES, KIND_NODE, "v1", "NodeList", "nodes" },
    { ROUTE_CONFIG_MAPS, KIND_CONFIG_MAP, "v1", "ConfigMapList", "configmaps" },
    { ROUTE_SECRETS, KIND_SECRET, "v1", "SecretList", "secrets" },
    { ROUTE_PRIORITY_CLASSES, KIND_PRIORITY_CLASS, "scheduling.k8s.io/v1", "PriorityClassList",
      "priorityclasses.scheduling.k8s.io" },
};

void route_objects(struct conn *c, const struct status_match *m)
{
    const struct status_provider *p = &c->server->provider;
    const struct kind *k = kinds;
    struct err e = { 0 };
    char message[400];
    json_t *found;

    while (k->route != m->route)
        k++;
    found = p->objects(p->arg, k->kind, m->namespace_, m->name, &e);
    if (found != NULL && m->name == NULL)
        found = json_pack("{s:s, s:s, s:{}, s:o}", "kind", k->list, "apiVersion", k->api_version, "metadata",
                          "items", found);
    if (found == NULL && e.code == ERR_NOT_FOUND) {
        snprintf(message, sizeof(message), "%s \"%.253s\" not found", k->resource, m->name);
        conn_status(c, 404, "NotFound", k->resource, m->name, message);
    } else {
        conn_value(c, found, &e);
    }
}
