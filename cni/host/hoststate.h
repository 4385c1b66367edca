/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hoststate - links, and the sysctls that CNI plugins change for the whole host, as JSON.
 *
 * bridge with isGateway sets ip_forward (and IPv6 forwarding), whereupon the kernel also changes
 * accept_redirects and the forwarding of every interface; portmap sets route_localnet of an interface.
 * Network namespace of the calling thread; synchronous.
 */
#ifndef CNI_HOST_HOSTSTATE_H
#define CNI_HOST_HOSTSTATE_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

/* ["lo", "eth0", ...] */
json_t *cni_hoststate_links(struct err *e) MUST_CHECK;
bool cni_hoststate_link_exists(const char *name);
/* Path of a program, malloc'ed, in the PATH used for plugins; NULL if not installed (or out of memory). */
char *cni_hoststate_program(const char *name) MUST_CHECK;
/* {"net/ipv4/ip_forward": "0", ...}: the sysctls that exist in this kernel. */
json_t *cni_hoststate_sysctls(struct err *e) MUST_CHECK;
/* Restores the sysctls that differ; ignores sysctls that vanished with their interface. Tries all and returns
 * the first failure. */
enum err_code cni_hoststate_restore(const json_t *sysctls, struct err *e) MUST_CHECK;
#endif
