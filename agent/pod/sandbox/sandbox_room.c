/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/net_heal.h"
#include "agent/pod/sandbox/node_users.h"
#include "agent/pod/sandbox/sandbox.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void sandbox_open(struct node *n)
{
    net_sandbox_tag(n->o.state_dir, sandbox_node(n)->tag);
    net_heal_open(n);
}

static bool sandbox_node_busy(const struct node *n)
{
    return node_users_live(n) || net_heal_live(n);
}

static void sandbox_node_cancel(struct node *n)
{
    node_users_cancel(n);
    net_heal_cancel(n);
}

static void sandbox_init(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    snprintf(box->netns_dir, sizeof(box->netns_dir), "%s/ns/%s", p->node->o.run_dir, p->uid);
    box->net_since_ns = clock_wall_ns();
}

static void sandbox_steps(struct pod *p)
{
    sandbox_step(p);
    pidns_step(p);
}

static bool sandbox_busy(const struct pod *p)
{
    const struct sandbox *box = sandbox_of(p);

    return op_live(&box->netns_call.op) || op_live(&box->pidns_call.op) || op_live(&box->cni_op.op);
}

static void sandbox_cancel(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    if (op_live(&box->pidns_call.op))
        op_cancel(&box->pidns_call.op);
    if (op_live(&box->netns_call.op))
        op_cancel(&box->netns_call.op);
    if (op_live(&box->cni_op.op))
        op_cancel(&box->cni_op.op);
}

static void sandbox_end(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    box->net_retry_at = CLOCK_BOOT_NONE;
    box->net_backoff_ms = 0;
    str_keep(&box->net_error, "");
}

static void sandbox_free(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    net_attach_free(p);
    free(take_ptr(&box->netns_spec));
    free(take_ptr(&box->net_timed));
    free(take_ptr(&box->net_error));
    free(take_ptr(&box->pidns_spec));
    pidns_forget(p);
}

/* The handler stays, as in its record: where the RuntimeClasses are not known, the pod starts again under it.
 */
static void sandbox_reset(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    char handler[sizeof(box->handler)];

    memcpy(handler, box->handler, sizeof(handler));
    sandbox_set_net(p, NET_NONE); /* which logs it */
    sandbox_set_pidns(p, PIDNS_NONE);
    sandbox_free(p);
    *box = (struct sandbox){ 0 };
    memcpy(box->handler, handler, sizeof(handler));
    sandbox_init(p);
}

static bool sandbox_knows(const struct pod *p, const char *id)
{
    return strcmp(p->sandbox_id, id) == 0;
}

static void sandbox_save(const struct pod *p, json_t *record)
{
    const struct sandbox *box = sandbox_of(p);
    json_t *ips = json_array();

    if (box->net_undo)
        json_object_set_new(record, "networkUndo", json_true());
    if (box->first_id != 0)
        json_object_set_new(record, "firstID", json_integer(box->first_id));
    /* For a pod that has not ended, they are in its attachment. */
    for (size_t i = 0; i < box->net_result.n_ips && p->state == POD_TERMINATED; i++)
        json_array_append_new(ips, json_string(box->net_result.ips[i]));
    json_object_set_new(record, "podIPs", ips);
    if (box->handler[0] != '\0')
        json_object_set_new(record, "runtimeHandler", json_string(box->handler));
}

static void sandbox_load(struct pod *p, const json_t *record)
{
    struct sandbox *box = sandbox_of(p);
    const json_t *ips = json_object_get(record, "podIPs");
    json_int_t first_id = json_int(record, "firstID", 0);
    const char *handler = json_str(record, "runtimeHandler");

    snprintf(box->handler, sizeof(box->handler), "%s", handler != NULL ? handler : "");
    box->net_undo = json_flag(record, "networkUndo");
    box->first_id = first_id > 0 && first_id <= UINT32_MAX ? (uint32_t)first_id : 0;
    for (size_t i = 0; p->state == POD_TERMINATED && i < json_array_size(ips) && i < CNI_IPS_MAX; i++) {
        const char *ip = json_string_value(json_array_get(ips, i));

        snprintf(box->net_result.ips[box->net_result.n_ips++], sizeof(box->net_result.ips[0]), "%s",
                 ip != NULL ? ip : "");
    }
}

const struct room sandbox_room = {
    .id = ROOM_SANDBOX,
    .name = "sandbox",
    .node = { .size = sizeof(struct sandbox_node),
              .open = sandbox_open,
              .busy = sandbox_node_busy,
              .cancel = sandbox_node_cancel,
              .free = net_heal_free },
    .pod = { .size = sizeof(struct sandbox),
             .init = sandbox_init,
             .step = sandbox_steps,
             .knows = sandbox_knows,
             .busy = sandbox_busy,
             .cancel = sandbox_cancel,
             .end = sandbox_end,
             .reset = sandbox_reset,
             .free = sandbox_free,
             .save = sandbox_save,
             .load = sandbox_load },
};
