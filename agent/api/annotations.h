/* SPDX-License-Identifier: Apache-2.0 */
/* annotations - the pod annotations of this agent: one row for each, which the check of a manifest, the
 * manual page and docs/pod-fields.md are made from. What a value does is in on_change.h and oom_kill.h. */
#ifndef AGENT_API_ANNOTATIONS_H
#define AGENT_API_ANNOTATIONS_H
#include <stdbool.h>

#define API_OWN_DOMAIN "coracle.dev/" /* keys that begin with it are ours */

#define API_STORAGE_LIMITS "coracle.dev/storage-limits"

struct api_annotation {
    const char *key;
    const char *allowed;   /* "ignore, restart and signal=<name>" */
    const char *otherwise; /* without the annotation */
    const char *about;     /* sentences */
    bool (*valid)(const char *value);
};

extern const struct api_annotation api_annotations[]; /* ends with a NULL key */

/* The row of a key; NULL: unknown. */
const struct api_annotation *api_annotation_find(const char *key);
/* The key of ours that was probably meant: at most two letters differ; NULL: none. */
const char *api_annotation_near(const char *key);
#endif
