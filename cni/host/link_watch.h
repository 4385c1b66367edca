/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_watch - reports when an interface or an address disappears in another network namespace, by rtnetlink.
 *
 * One socket receives the events of all namespaces that have an id in ours (NETLINK_LISTEN_ALL_NSID, Linux
 * 4.2), as those of pods do. A filter in the kernel passes only removals (RTM_DELLINK, RTM_DELADDR), so that
 * starting pods cause no wake-ups. Loop thread only.
 */
#ifndef CNI_HOST_LINK_WATCH_H
#define CNI_HOST_LINK_WATCH_H
#include "base/error.h"

#include <stdint.h>
#include <uv.h>

#define CNI_NSID_ANY (-1) /* events were lost: any namespace may be affected */

struct cni_link_watch;

/* fn: something was removed in the namespace with this id (cni_links_nsid()). ERR_PERMISSION: no
 * CAP_NET_BROADCAST. */
enum err_code cni_link_watch_open(struct cni_link_watch **ret, uv_loop_t *loop,
                                  void (*fn)(void *arg, int32_t nsid), void *arg, struct err *e) MUST_CHECK;
/* Stops all events; the loop frees the memory on a later turn. NULL is fine. */
void cni_link_watch_close(struct cni_link_watch *w);
#endif
