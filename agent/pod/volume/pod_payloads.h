/* SPDX-License-Identifier: Apache-2.0 */
/* pod_payloads - the ConfigMap, Secret, downwardAPI and projected volumes of a pod: written when it starts
 * (pod_volumes.c), and whenever their content changed. Loop thread; everything is on the node's own tmpfs. */
#ifndef AGENT_POD_VOLUME_POD_PAYLOADS_H
#define AGENT_POD_VOLUME_POD_PAYLOADS_H
#include "agent/pod/core/pod.h"
#include "base/buf.h"

/* Makes the volume show the current content of its sources. Files hidden by a later source are added to
 * *overlaps. Errors as for payload_build() and vol_payload_publish(); the volume is then unchanged. */
enum err_code payloads_publish(struct pod *p, const struct api_volume *v, struct buf *overlaps,
                               bool *ret_changed, struct err *e) MUST_CHECK;
bool payloads_have_token(const struct api_volume *v);
/* After a publish failed with *e: true, with *e cleared, if an earlier run's content is kept instead. */
bool payloads_keep_content(struct pod *p, const struct api_volume *v, struct err *e);
/* `found`: of all volumes, from payloads_publish(); condition, log and event report a change. */
void payloads_note_overlaps(struct pod *p, const struct buf *found);

/* Writes outdated ones, if possible now; nothing else. */
void payloads_follow(struct pod *p);
/* Also renews tokens and removes superseded versions, and schedules the necessary wake-ups. */
void payloads_step(struct pod *p);
#endif
