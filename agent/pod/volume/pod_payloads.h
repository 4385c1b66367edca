/* SPDX-License-Identifier: Apache-2.0 */
/* pod_payloads - the ConfigMap, Secret, downwardAPI and projected volumes of a pod: written when it starts
 * (pod_volumes.c), and whenever their content changed. Loop thread; everything is on the node's own tmpfs. */
#ifndef AGENT_POD_VOLUME_POD_PAYLOADS_H
#define AGENT_POD_VOLUME_POD_PAYLOADS_H
#include "agent/pod/volume/volumes.h"
#include "base/buf.h"

struct payload_result;

struct payload_set;
/* NULL: it was not written, because that was cancelled. */
typedef void (*payloads_written_fn)(struct pod *p, const struct payload_set *s);

/* Makes the pod's volumes show the current content of their sources; `written` gets the result of each,
 * before this returns, or from the loop when a large set was written on the pool (payloads_working()).
 * ERR_UNAVAILABLE: there is no place on the pool; the pod is woken when there is one. */
enum err_code payloads_write(struct pod *p, payloads_written_fn written, struct err *e) MUST_CHECK;
bool payloads_working(const struct pod *p);
/* True while the pod waits for a place on the pool and none is free. */
bool payloads_wait(struct pod *p);
/*
 * Notes the result of a written volume: tokens to renew and versions to tidy.  Files hidden by a later source
 * are added to *overlaps.
 */
void payloads_note(struct pod *p, const struct api_volume *v, const struct payload_result *r,
                   struct buf *overlaps);
bool payloads_have_token(const struct api_volume *v);
/* After a publish failed with *e: true, with *e cleared, if an earlier run's content is kept instead. */
bool payloads_keep_content(struct pod *p, const struct api_volume *v, struct err *e);
/* `found` covers all volumes; payloads_note() returns it.  Condition, log and event report a change. */
void payloads_note_overlaps(struct pod *p, const struct buf *found);

/* Also renews tokens and removes superseded versions, and schedules the necessary wake-ups. */
void payloads_step(struct pod *p);
#endif
