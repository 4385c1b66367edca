/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_payloads - the ConfigMap, Secret, downwardAPI and projected volumes of a pod: written when it starts
 * (pod_volumes.c), and again whenever what they show has changed.  Loop thread; everything is on the node's
 * own tmpfs.
 */
#ifndef AGENT_POD_VOLUME_POD_PAYLOADS_H
#define AGENT_POD_VOLUME_POD_PAYLOADS_H
#include "agent/pod/core/pod.h"
#include "base/buf.h"

/*
 * Makes the volume show what its sources say now.  Files that a later source hides are added to *overlaps.
 * Errors as payload_build()'s and vol_payload_publish()'s; the volume is then as it was.
 */
enum err_code payloads_publish(struct pod *p, const struct api_volume *v, struct buf *overlaps,
                               bool *ret_changed, struct err *e) MUST_CHECK;
bool payloads_have_token(const struct api_volume *v);
/* After a publish that failed with *e: true, and *e is over, when an earlier run's content stays instead. */
bool payloads_keep_content(struct pod *p, const struct api_volume *v, struct err *e);
/* `found`: of all volumes, as payloads_publish() added it; condition, log and event tell of a change. */
void payloads_note_overlaps(struct pod *p, const struct buf *found);

/* What is stale is written, if it may be by now; nothing else happens. */
void payloads_follow(struct pod *p);
/* That, the renewal of tokens, and the end of superseded versions, with the wake-ups they need. */
void payloads_step(struct pod *p);
#endif
