/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlink - the few rtnetlink requests that we make ourselves, in the network namespace of the
 * calling thread.  Synchronous; answers are local and immediate.
 */
#ifndef BASE_NETLINK_H
#define BASE_NETLINK_H
#include "base/error.h"

#include <stdbool.h>

enum err_code nl_link_up(const char *name, struct err *e) MUST_CHECK;
enum err_code nl_link_delete(const char *name, struct err *e) MUST_CHECK; /* missing is success */
bool nl_link_exists(const char *name);
bool nl_link_is(const char *name, const char *driver); /* "bridge", "veth" */
/*
 * First global IPv4 (and IPv6) address of the interface that holds the default route: the node's IP.  Without
 * a default route the first interface that is up and has one, bridges left out: pods make those, and the
 * node's IP would change with the first pod.
 */
enum err_code nl_default_addresses(char ipv4[16], char ipv6[46], struct err *e) MUST_CHECK;
#endif
