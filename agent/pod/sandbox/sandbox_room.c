/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/net_heal.h"
#include "agent/pod/sandbox/node_users.h"
#include "agent/pod/sandbox/sandbox.h"
#include "base/clock.h"

static void sandbox_open(struct node *n)
{
    net_sandbox_tag(n->o.state_dir, sandbox_node(n)->tag);
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
    snprintf(p->netns_dir, sizeof(p->netns_dir), "%s/ns/%s", p->node->o.run_dir, p->uid);
    p->net_since_ns = clock_wall_ns();
}

static void sandbox_steps(struct pod *p)
{
    sandbox_step(p);
    pidns_step(p);
}

static bool sandbox_busy(const struct pod *p)
{
    return op_live(&p->netns_call.op) || op_live(&p->pidns_call.op) || op_live(&p->cni_op.op);
}

static void sandbox_cancel(struct pod *p)
{
    if (op_live(&p->pidns_call.op))
        op_cancel(&p->pidns_call.op);
    if (op_live(&p->netns_call.op))
        op_cancel(&p->netns_call.op);
    if (op_live(&p->cni_op.op))
        op_cancel(&p->cni_op.op);
}

static void sandbox_end(struct pod *p)
{
    p->net_retry_at = CLOCK_BOOT_NONE;
    p->net_backoff_ms = 0;
    p->net_error[0] = '\0';
}

static void sandbox_reset(struct pod *p)
{
    pod_set_net(p, NET_NONE);
    p->net_result.n_ips = 0;
    p->net_undo = p->net_detached = p->net_lost = p->files_written = p->net_sysctls_set = false;
    p->net_error[0] = '\0';
    p->net_retry_at = CLOCK_BOOT_NONE;
    p->net_backoff_ms = 0;
    p->pidns = PIDNS_NONE;
    p->pidns_retry_at = CLOCK_BOOT_NONE;
}

static void sandbox_free(struct pod *p)
{
    net_attach_free(p);
    free(take_ptr(&p->netns_spec));
    free(take_ptr(&p->pidns_spec));
    pidns_forget(p);
}

const struct room sandbox_room = {
    .id = ROOM_SANDBOX,
    .name = "sandbox",
    .node = { .size = sizeof(struct sandbox_node),
              .open = sandbox_open,
              .busy = sandbox_node_busy,
              .cancel = sandbox_node_cancel },
    .pod = { .init = sandbox_init,
             .step = sandbox_steps,
             .busy = sandbox_busy,
             .cancel = sandbox_cancel,
             .end = sandbox_end,
             .reset = sandbox_reset,
             .free = sandbox_free },
};
