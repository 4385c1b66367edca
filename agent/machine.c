/* SPDX-License-Identifier: Apache-2.0 */
/* machine - the daemon's machine: name and address, shutdowns, the CPU weight of the pods' unit. */
#include "agent/internal.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/worker/shutdown.h"

#include "agent/pod/limits/allocatable.h"
#include "base/log.h"
#include "base/netlink.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void machine_identify(struct agent *a)
{
    struct err e = { 0 };
    char ipv6[46] = "", ipv4[16] = "";
    bool prefer_v6;

    if (a->config.node_name[0] != '\0') {
        snprintf(a->node_name, sizeof(a->node_name), "%s", a->config.node_name);
    } else {
        gethostname(a->node_name, sizeof(a->node_name) - 1);
        for (char *c = a->node_name; *c != '\0'; c++) /* node names are lower case */
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    }
    prefer_v6 = strcmp(a->config.node_ip, "::") == 0; /* kubelet's --node-ip: the preferred family */
    if (a->config.node_ip[0] != '\0' && !prefer_v6 && strcmp(a->config.node_ip, "0.0.0.0") != 0) {
        snprintf(a->node_ip, sizeof(a->node_ip), "%s", a->config.node_ip);
        return;
    }
    if (nl_default_addresses(ipv4, ipv6, &e) != ERR_OK)
        log_warn("this node's address is unknown; pods will not show one", F_ERR(&e));
    snprintf(a->node_ip, sizeof(a->node_ip), "%s",
             ipv4[0] != '\0' && (!prefer_v6 || ipv6[0] == '\0') ? ipv4 : ipv6);
}

/* ---- shutdowns ---- */

void machine_plan_shutdown(struct agent *a)
{
    const struct agent_config *c = &a->config;

    for (size_t i = 0; i < c->n_shutdown_priorities; i++)
        a->shutdown_groups[i] = (struct node_shutdown_group){ c->shutdown_priorities[i].priority,
                                                              c->shutdown_priorities[i].grace_ms };
    a->n_shutdown_groups =
        c->n_shutdown_priorities > 0
            ? c->n_shutdown_priorities
            : shutdown_plan_simple(c->shutdown_grace_ms, c->shutdown_critical_ms, a->shutdown_groups);
}

static void on_pods_over(void *arg)
{
    struct agent *a = arg;

    inhibit_release(&a->inhibit);
}

static void on_preparing(bool preparing, void *arg)
{
    struct agent *a = arg;

    if (preparing)
        node_shutdown_begin(a->node, on_pods_over, a);
    else
        node_shutdown_cancel(a->node);
}

static void on_inhibitor(bool failed, const char *text, void *arg)
{
    struct agent *a = arg;

    node_shutdown_inhibitor(a->node, failed, text);
}

static void open_inhibitor(struct agent *a)
{
    const struct inhibit_options o = { .loop = &a->loop,
                                       .program = a->pre.shutdown,
                                       .wait_ms =
                                           shutdown_plan_total_ms(a->shutdown_groups, a->n_shutdown_groups),
                                       CG_OPS(a->cgroups),
                                       .on_preparing = on_preparing,
                                       .on_state = on_inhibitor,
                                       .arg = a };

    if (a->n_shutdown_groups > 0)
        inhibit_open(&a->inhibit, &o);
}

/* ---- the unit ---- */

static void open_unit_weight(struct agent *a)
{
    const struct unit_weight_options o = { .loop = &a->loop,
                                           .cgroup_root = a->config.cgroup_root,
                                           .weight = allocatable_unit_weight(a->node),
                                           CG_OPS(a->cgroups) };

    if (cg_layout(a->cgroups) == CG_V2)
        unit_weight_open(&a->unit_weight, &o);
}

void machine_open(struct agent *a)
{
    open_inhibitor(a);
    open_unit_weight(a);
}
