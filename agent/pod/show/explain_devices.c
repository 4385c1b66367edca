/* SPDX-License-Identifier: Apache-2.0 */
/* The extended resources of the node for `coracle explain node`: the provider of each, and its problems. */
#include "agent/declared/declared.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/show/devices.h"

#include <inttypes.h>
#include <stdio.h>

static void describe_resource(const struct dp_resource *r, char *ret, size_t size)
{
    char provider[256] = "";

    if (r->provider != NULL) {
        r->provider->describe(r->provider, provider, sizeof(provider));
        snprintf(ret, size,
                 r->listed ? "%s: %s; %zu devices, %zu of them healthy"
                           : "%s: %s; it has not listed its devices yet",
                 r->provider->kind, provider, r->n_devices, r->n_healthy);
    } else if (r->count >= 0) {
        snprintf(ret, size, "%" PRId64 ", a number of the configuration", r->count);
    } else if (r->forgotten) {
        snprintf(ret, size, "its provider has been gone for more than %d minutes", DP_FORGET_MS / 60000);
    } else if (r->n_devices > 0) {
        snprintf(ret, size, "its provider is gone: none of its %zu devices can be given to pods",
                 r->n_devices);
    } else {
        snprintf(ret, size, "its provider is gone, or has not registered since the agent started");
    }
}

static void add_resource(const struct dp_resource *r, json_t *steps)
{
    const bool offered = r->provider != NULL ? r->listed : r->count >= 0;
    str_auto name = str_printf("resource %s", r->name);
    char text[400];

    describe_resource(r, text, sizeof(text));
    if (name != NULL)
        explain_step(steps, name, offered ? "done" : "waiting", clock_boot_to_wall_ns(r->gone_at), text, 0);
}

static void add_conflict(const char *resource, const char *text, void *steps)
{
    str_auto name = str_printf("resource %s", resource);

    if (name != NULL)
        explain_step(steps, name, "ignored", 0, text, 0);
}

static void add_plugin_problem(const char *what, const char *text, void *steps)
{
    str_auto name = str_printf("device plugin %s", what);

    if (name != NULL)
        explain_step(steps, name, "failed", 0, text, 0);
}

static void add_declaration_problem(const char *what, const char *text, void *steps)
{
    str_auto name = str_printf("declared devices: %s", what);

    if (name != NULL)
        explain_step(steps, name, "failed", 0, text, 0);
}

void devices_explain_node(const struct node *n, json_t *steps)
{
    const struct dp_inventory *all = devices_inventory(n);
    const struct dp_resource *r = NULL;

    while (all != NULL && (r = dp_inventory_next(all, r)) != NULL)
        add_resource(r, steps);
    if (all != NULL)
        dp_inventory_problems(all, add_conflict, steps);
    if (devices_plugins(n) != NULL)
        dp_plugins_problems(devices_plugins(n), add_plugin_problem, steps);
    if (devices_declared(n) != NULL)
        declared_problems(devices_declared(n), add_declaration_problem, steps);
}
