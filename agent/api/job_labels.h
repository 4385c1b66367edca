/* SPDX-License-Identifier: Apache-2.0 */
/* job_labels - the labels and the selector that an apiserver gives to a Job. They are in no file
 * (api_stored_strip), so that a Job which is copied from one begins as a Job of its own. Pure; any thread. */
#ifndef AGENT_API_JOB_LABELS_H
#define AGENT_API_JOB_LABELS_H
#include <jansson.h>

#define API_JOB_UID_LABEL "batch.kubernetes.io/controller-uid"

/* Adds them to the whole Job: `kubectl logs job/x` finds the pods by them. Without memory some are missing.
 */
void api_job_label(json_t *job, const char *name, const char *uid);
#endif
