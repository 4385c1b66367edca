/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uevent - the kernel's events about devices (netlink, NETLINK_KOBJECT_UEVENT), as a hint to scan again.
 *
 * Messages of processes (udev's, or forged ones of a container in the host's network) have the sender's port
 * and are ignored. The content of a message is not trusted: it is only a hint that a device may have changed.
 * Lost messages (ENOBUFS) are treated as an event. Loop thread only.
 */
#ifndef AGENT_DECLARED_UEVENT_H
#define AGENT_DECLARED_UEVENT_H
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct uevents;

/* fn is called for each event about a device node. ERR_UNAVAILABLE and other errors: the kernel refused. */
enum err_code uevents_open(struct uevents **ret, uv_loop_t *loop, void (*fn)(void *arg), void *arg,
                           struct err *e) MUST_CHECK;
void uevents_close(struct uevents *u); /* NULL is fine; closes on later turns */

/* Whether a message reports a device node that was added, removed, renamed or bound. Pure. */
bool uevent_matters(const char *message, size_t n);
#endif
