/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - the words in which a check reports: people search for them, so they are those of kubelet, which are
 * Go's (net, net/url, strconv, time).  Pure.
 */
#ifndef AGENT_PROBE_TEXT_H
#define AGENT_PROBE_TEXT_H
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* A Go string literal: quotes around, control characters, quotes and bytes that are no UTF-8 escaped. */
void probe_add_quoted(struct buf *b, const char *text, size_t n);

/* At most `max` bytes of a text, whole characters, each byte that is no UTF-8 as U+FFFD. */
void probe_add_utf8(struct buf *b, const char *text, size_t n, size_t max);

/* "10.0.0.1:80", "[fd00::1]:80". */
void probe_add_address(struct buf *b, const char *host, unsigned port);

#define PROBE_DURATION_SIZE 32
void probe_duration(uint64_t ms, char ret[PROBE_DURATION_SIZE]); /* "1s", "1m30s", "1h0m0s", "1.5s" */

/* The system's words for an errno as Go spells them: "connection refused". */
#define PROBE_ERRNO_SIZE 96
void probe_errno(int sys, char ret[PROBE_ERRNO_SIZE]);

/* Whether a host needs no resolver: an IPv4 or IPv6 address (a zone after % is allowed). */
bool probe_host_is_address(const char *host);
#endif
