/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/events.h"
#include "agent/pod/device/internal.h"
#include "agent/pod/placement/placement.h"
#include "base/log.h"
#include "volumes/csi/csi.h"

#include <stdlib.h>
#include <string.h>

#define NUMA_DIR "/sys/devices/system/node"

/* ---- the node ---- */

const struct dp_inventory *devices_inventory(const struct node *n)
{
    return device_node(n)->inventory;
}

struct dp_inventory *devices_inventory_fill(struct node *n)
{
    return device_node(n)->inventory;
}

const struct dp_holdings *devices_holdings(const struct node *n)
{
    return device_node(n)->holdings;
}

const struct admissions *devices_admissions(const struct node *n)
{
    return &device_node(n)->admissions;
}

const struct dp_plugins *devices_plugins(const struct node *n)
{
    return device_node(n)->plugins;
}

const char *devices_plugins_error(const struct node *n)
{
    const char *error = device_node(n)->plugins_error;

    return error[0] != '\0' ? error : NULL;
}

static void device_open(struct node *n)
{
    struct device_node *node = device_node(n);
    struct err e = { 0 };

    checkpoint_open(n);
    if (dp_holdings_new(&node->holdings, &e) == ERR_OK) /* devices_opened() has the error */
        ERR_IGNORE(dp_inventory_new(&node->inventory, n->timers, device_on_change, n, &e));
}

static void on_problem(const char *resource, const struct err *e, void *node)
{
    str_auto text = str_printf("device plugin%s%s: %s", resource != NULL ? " of " : "",
                               resource != NULL ? resource : "", e->text);

    log_warn("a device plugin has failed", F_STR("resource", resource != NULL ? resource : ""), F_ERR(e));
    if (text != NULL)
        node_event(node, true, "DevicePluginProblem", text);
}

static void open_plugins(struct node *n)
{
    struct device_node *node = device_node(n);
    struct err e = { 0 };

    node->plugins_dir = str_printf("%s/device-plugins", n->o.root_dir);
    node->registry_dir = str_printf("%s/plugins_registry", n->o.root_dir);
    if (node->plugins_dir == NULL || node->registry_dir == NULL) {
        err_nomem(&e);
    } else {
        const struct dp_plugins_options o = {
            .loop = n->o.loop,
            .dir = node->plugins_dir,
            .registry_dir = node->registry_dir,
            .inventory = node->inventory,
            .handlers = n->csi != NULL ? csi_plugin_handler(n->csi) : NULL,
            .n_handlers = n->csi != NULL,
            .problem = on_problem,
            .arg = n,
        };
        ERR_IGNORE(dp_plugins_open(&node->plugins, &o, &e));
    }
    if (e.code == ERR_OK)
        return;
    log_error("device plugins cannot be served", F_ERR(&e));
    node_event(n, true, "DevicePluginProblem", e.text);
    snprintf(node->plugins_error, sizeof(node->plugins_error), "%s", e.text);
}

enum err_code devices_opened(const struct node *n, struct err *e)
{
    return device_node(n)->holdings != NULL && device_node(n)->inventory != NULL ? ERR_OK : err_nomem(e);
}

enum err_code devices_begin(struct node *n, struct err *e)
{
    struct device_node *node = device_node(n);

    if (dp_machine_read(&node->machine, NUMA_DIR, e) != ERR_OK) {
        if (placement_topology(n)->policy != PL_POLICY_NONE)
            return err_wrap(e, "topologyManagerPolicy");
        *e = (struct err){ 0 };
        node->machine.nodes = 1;
    }
    checkpoint_begin(n);
    open_plugins(n);
    sources_begin(n);
    return ERR_OK;
}

static bool device_busy(const struct node *n)
{
    const struct device_node *node = device_node(n);

    return checkpoint_busy(n) || sources_busy(n) || (node->plugins != NULL && dp_plugins_busy(node->plugins));
}

static void device_cancel(struct node *n)
{
    checkpoint_cancel(n);
    sources_cancel(n);
    if (device_node(n)->plugins != NULL)
        dp_plugins_cancel(device_node(n)->plugins);
}

static void device_free(struct node *n)
{
    struct device_node *node = device_node(n);

    checkpoint_close(n);
    sources_close(n);
    if (node->plugins != NULL)
        dp_plugins_close(node->plugins);
    free(node->plugins_dir);
    free(node->registry_dir);
    dp_inventory_free(node->inventory);
    dp_holdings_free(node->holdings);
}

/* ---- a pod ---- */

static bool device_pod_busy(const struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (op_live(&device_ctr_of(p->ctrs[i])->pre_start.op))
            return true;
    return op_live(&device_of(p)->ask.op);
}

static void device_pod_cancel(struct pod *p)
{
    if (op_live(&device_of(p)->ask.op))
        op_cancel(&device_of(p)->ask.op);
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (op_live(&device_ctr_of(p->ctrs[i])->pre_start.op))
            op_cancel(&device_ctr_of(p->ctrs[i])->pre_start.op);
}

/* The pod keeps its devices. */
static void device_reset(struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct device_ctr *own = device_ctr_of(p->ctrs[i]);
        device_drop_answer(&own->pre_start);
        own->at = 0;
        own->answered = false;
    }
}

static void device_forget(struct pod *p)
{
    device_drop_answer(&device_of(p)->ask);
    for (size_t i = 0; i < p->n_ctrs; i++) {
        device_drop_answer(&device_ctr_of(p->ctrs[i])->pre_start);
        json_decref(device_ctr_of(p->ctrs[i])->last);
    }
    /* Only in memory: devices of a pod that ended were released before, and those of a pod that continues to
     * run stay in the files. */
    if (pods_by_uid(p->node, p->uid) == NULL)
        dp_holdings_drop(device_node(p->node)->holdings, p->uid, NULL, NULL);
}

const struct room device_room = {
    .id = ROOM_DEVICE,
    .name = "device",
    .node = { .size = sizeof(struct device_node),
              .open = device_open,
              .busy = device_busy,
              .cancel = device_cancel,
              .free = device_free },
    .pod = { .size = sizeof(struct device_pod),
             .ctr_size = sizeof(struct device_ctr),
             .busy = device_pod_busy,
             .cancel = device_pod_cancel,
             .end = device_pod_cancel,
             .reset = device_reset,
             .free = device_forget,
             .save = device_save,
             .load = device_load },
};
