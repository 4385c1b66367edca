/* SPDX-License-Identifier: Apache-2.0 */
/* Resources that no plugin offers: numbers of the configuration, and devices that files declare. */
#include "agent/declared/declared.h"
#include "agent/pod/core/events.h"
#include "agent/pod/device/internal.h"
#include "base/log.h"

#include <string.h>

/* ---- numbers of the configuration ---- */

static bool is_counted(const struct api_counts *all, const char *name)
{
    for (size_t i = 0; all != NULL && i < all->n; i++)
        if (strcmp(all->v[i].name, name) == 0)
            return true;
    return false;
}

/* A number that is no longer in the configuration; NULL: none. */
static const struct dp_resource *former(const struct node *n)
{
    const struct dp_resource *r = NULL;

    while ((r = dp_inventory_next(devices_inventory(n), r)) != NULL)
        if (r->count >= 0 && !is_counted(n->o.extended_resources, r->name))
            return r;
    return NULL;
}

static void report(struct node *n, const char *what, const char *text)
{
    str_auto event = str_printf("%s: %s", what, text);

    log_warn("a device declaration has an error", F_STR("of", what), F_STR("why", text));
    if (event != NULL)
        node_event(n, true, "DeviceDeclarationProblem", event);
}

static void count_resources(struct node *n)
{
    const struct api_counts *all = n->o.extended_resources;
    struct dp_inventory *v = devices_inventory_fill(n);
    const struct dp_resource *r;
    char name[DP_RESOURCE_NAME_MAX + 1];

    while ((r = former(n)) != NULL) {
        strcpy(name, r->name);
        ERR_IGNORE(dp_inventory_count(v, name, -1, ERR_IGNORED)); /* removing needs no memory */
    }
    for (size_t i = 0; all != NULL && i < all->n; i++) {
        struct err e = { 0 };
        if (dp_inventory_count(v, all->v[i].name, all->v[i].n, &e) != ERR_OK)
            report(n, "extendedResources", e.text);
    }
}

/* ---- declarations ---- */

static void on_problem(const char *what, const char *text, void *node)
{
    report(node, what, text);
}

static void on_ready(void *node)
{
    struct node *n = node;

    if (n->closing)
        return;
    pods_each (n, p)
        if (p->state == POD_PENDING)
            pod_wake(p, "declared devices are known");
}

bool sources_known(const struct node *n)
{
    return device_node(n)->declared == NULL || declared_ready(device_node(n)->declared);
}

static void follow_declarations(struct node *n)
{
    const struct declared_options o = { .loop = n->o.loop,
                                        .dir = n->o.device_dir,
                                        .inventory = devices_inventory_fill(n),
                                        CG_OPS(n->o.cgroups),
                                        .ready = on_ready,
                                        .problem = on_problem,
                                        .arg = n };
    struct err e = { 0 };

    if (declared_open(&device_node(n)->declared, &o, &e) != ERR_OK)
        report(n, o.dir, e.text);
}

void sources_begin(struct node *n)
{
    count_resources(n);
    if (n->o.device_dir != NULL && n->o.device_dir[0] != '\0')
        follow_declarations(n);
}

bool sources_busy(const struct node *n)
{
    return device_node(n)->declared != NULL && declared_busy(device_node(n)->declared);
}

void sources_cancel(struct node *n)
{
    if (device_node(n)->declared != NULL)
        declared_cancel(device_node(n)->declared);
}

void sources_close(struct node *n)
{
    declared_close(device_node(n)->declared);
    device_node(n)->declared = NULL;
}

void devices_options(struct node *n)
{
    if (devices_inventory(n) != NULL)
        count_resources(n);
}

const struct declared *devices_declared(const struct node *n)
{
    return device_node(n)->declared;
}
