/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape - an answer to GET /metrics, made in pieces: with a hundred pods all of it takes some 40 ms, and the
 * loop has other things to do.  A turn of the loop reads a few pods, or makes the text of a few names, and
 * is at most SCRAPE_TURN_NS and one piece long; one answer is made at a time, others wait for it.
 *
 * Pods are known by name and looked up when it is their turn: who came after the question is left out, who
 * went before its turn, too.  What was read are copies.  A client that goes away ends its scrape.
 * Loop thread only.
 */
#ifndef AGENT_POD_USAGE_SCRAPE_H
#define AGENT_POD_USAGE_SCRAPE_H
#include "agent/pod/core/pod.h"

#define SCRAPE_TURN_NS UINT64_C(2000000)
#define SCRAPE_TURN_PIECES 8 /* pods, or names: also where they take no time, others get their turn */

/* Appends to `own` (taken) and answers `r`. */
void scrape_start(struct node *n, enum status_metrics which, struct buf *own, struct status_reply *r);
void scrapes_cancel(struct node *n);                         /* answers that are owed are refused */
void scrapes_close(struct node *n);                          /* from node_free() */
void scrapes_metrics(const struct node *n, struct buf *out); /* how long the last ones held the loop */
#endif
