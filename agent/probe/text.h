/* SPDX-License-Identifier: Apache-2.0 */
/* text - the texts of a check's result. They are kubelet's, which come from Go (net, net/url), because users
 * search for them. Pure. */
#ifndef AGENT_PROBE_TEXT_H
#define AGENT_PROBE_TEXT_H
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* At most `max` bytes of a text, whole characters, invalid bytes as U+FFFD. */
void probe_add_utf8(struct buf *b, const char *text, size_t n, size_t max);

/* "10.0.0.1:80", "[fd00::1]:80". */
void probe_add_address(struct buf *b, const char *host, unsigned port);

/* The system's text for an errno in Go's form: "connection refused". */
#define PROBE_ERRNO_SIZE 96
void probe_errno(int sys, char ret[PROBE_ERRNO_SIZE]);

/* Whether a host is an IPv4 or IPv6 address (a zone after % is allowed) and needs no resolver. */
bool probe_host_is_address(const char *host);
#endif
