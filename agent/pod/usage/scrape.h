/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape - answers GET /metrics in pieces: with a hundred pods everything takes about 40 ms, and the loop has
 * other work. Each turn of the loop reads a few pods, or writes the text of a few names, for at most
 * SCRAPE_TURN_NS and one piece; one answer is made at a time, others wait.
 *
 * Pods are looked up by name in their turn: those created after the request are omitted, as are those deleted
 * before their turn. Data is copied. A client that disconnects ends its scrape. Loop thread only.
 */
#ifndef AGENT_POD_USAGE_SCRAPE_H
#define AGENT_POD_USAGE_SCRAPE_H
#include "agent/pod/usage/usage.h"

#define SCRAPE_TURN_NS UINT64_C(2000000)
#define SCRAPE_TURN_PIECES 8 /* pods, or names: even if they take no time, others get their turn */

void scrapes_cancel(struct node *n);                         /* pending answers are refused */
void scrapes_close(struct node *n);                          /* from node_free() */
void scrapes_metrics(const struct node *n, struct buf *out); /* how long the last ones occupied the loop */
#endif
