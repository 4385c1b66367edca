/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/net_watch.h"
#include "agent/pod/sandbox/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "cni/links.h"

#define SETTLE_MS 100 /* events come in bunches: addresses, then their interface */
#define MS INT64_C(1000000)

static void on_gone(void *arg, int32_t nsid)
{
    struct boot_time soon = clock_boot_in_ms(SETTLE_MS);
    struct node *n = arg;
    struct pod *p, *tmp;

    HASH_ITER (hh, n->pods, p, tmp)
        if (p->net == NET_READY && p->net_watched &&
            (!clock_boot_is_set(p->net_look_at) || clock_boot_is_before(soon, p->net_look_at)) &&
            (nsid == CNI_NSID_ANY || p->net_nsid == nsid)) {
            p->net_look_at = soon;
            pod_wake_at(p, p->net_look_at);
        }
}

void net_watch_start(struct node *n)
{
    struct sandbox_node *part = sandbox_node(n);
    struct err e = { 0 };

    if (part->heal.watch == NULL &&
        cni_link_watch_open(&part->heal.watch, n->o.loop, on_gone, n, &e) != ERR_OK)
        log_debug("interfaces that pods lose are not noticed at once", F_ERR(&e));
}

void net_watch_end(struct node *n)
{
    cni_link_watch_close(take_ptr(&sandbox_node(n)->heal.watch));
}

void net_watch_pod(struct pod *p)
{
    str_auto path = str_printf("%s/net", p->netns_dir);
    struct err e = { 0 };

    p->net_look_at = CLOCK_BOOT_NONE;
    p->net_watched = path != NULL && cni_links_nsid(path, &p->net_nsid, &e) == ERR_OK;
    if (!p->net_watched)
        log_debug("interfaces of a pod are not watched", F_STR("pod", p->key), F_ERR(&e));
}

bool net_watch_due(struct pod *p)
{
    if (!clock_boot_is_set(p->net_look_at))
        return false;
    if (!clock_boot_is_due(p->net_look_at)) {
        pod_wake_at(p, p->net_look_at);
        return false;
    }
    p->net_look_at = CLOCK_BOOT_NONE;
    return true;
}
