/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/net_watch.h"
#include "agent/pod/sandbox/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "cni/links.h"

#define SETTLE_MS 100 /* events come in bursts: addresses, then their interface */
#define MS INT64_C(1000000)

static void on_gone(void *arg, int32_t nsid)
{
    struct boot_time soon = clock_boot_in_ms(SETTLE_MS);
    struct node *n = arg;

    pods_each (n, p)
        if (sandbox_of(p)->net == NET_READY && sandbox_of(p)->net_watched &&
            (!clock_boot_is_set(sandbox_of(p)->net_look_at) ||
             clock_boot_is_before(soon, sandbox_of(p)->net_look_at)) &&
            (nsid == CNI_NSID_ANY || sandbox_of(p)->net_nsid == nsid)) {
            sandbox_of(p)->net_look_at = soon;
            pod_wake_at(p, sandbox_of(p)->net_look_at, "network changed");
        }
}

void net_watch_start(struct node *n)
{
    struct sandbox_node *part = sandbox_node(n);
    struct err e = { 0 };

    if (part->heal.watch == NULL &&
        cni_link_watch_open(&part->heal.watch, n->o.loop, on_gone, n, &e) != ERR_OK)
        log_debug("loss of pods' interfaces will not be noticed immediately", F_ERR(&e));
}

void net_watch_end(struct node *n)
{
    cni_link_watch_close(take_ptr(&sandbox_node(n)->heal.watch));
}

void net_watch_pod(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);
    str_auto path = str_printf("%s/net", box->netns_dir);
    struct err e = { 0 };

    box->net_look_at = CLOCK_BOOT_NONE;
    box->net_watched = path != NULL && cni_links_nsid(path, &box->net_nsid, &e) == ERR_OK;
    if (!box->net_watched)
        log_debug("cannot watch the interfaces of a pod", F_STR("pod", p->key), F_ERR(&e));
}

bool net_watch_due(struct pod *p)
{
    struct sandbox *box = sandbox_of(p);

    if (!clock_boot_is_set(box->net_look_at))
        return false;
    if (!clock_boot_is_due(box->net_look_at)) {
        pod_wake_at(p, box->net_look_at, "network changed");
        return false;
    }
    box->net_look_at = CLOCK_BOOT_NONE;
    return true;
}
