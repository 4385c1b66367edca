/* SPDX-License-Identifier: Apache-2.0 */
/* netlink - the few rtnetlink requests we make ourselves, in the network namespace of the calling thread.
 * Synchronous: the kernel answers immediately. */
#ifndef BASE_NETLINK_H
#define BASE_NETLINK_H
#include "base/error.h"

#include <stdbool.h>

enum err_code nl_link_up(const char *name, struct err *e) MUST_CHECK;
enum err_code nl_link_delete(const char *name, struct err *e) MUST_CHECK; /* success if it does not exist */
bool nl_link_exists(const char *name);
bool nl_link_is(const char *name, const char *driver); /* "bridge", "veth" */
/* The node's IP: the first global IPv4 (and IPv6) address of the interface with the default route. Without a
 * default route, of the first interface that is up and has one, except bridges: pods create those, and the
 * node's IP would change with the first pod. */
enum err_code nl_default_addresses(char ipv4[16], char ipv6[46], struct err *e) MUST_CHECK;
#endif
