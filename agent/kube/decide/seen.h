/* SPDX-License-Identifier: Apache-2.0 */
/* seen - objects of the apiserver: which is newer, and whether one differs where it matters. Pure. */
#ifndef AGENT_KUBE_DECIDE_SEEN_H
#define AGENT_KUBE_DECIDE_SEEN_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Both are the same object (uid), and `object` has the lower resourceVersion: an event of the watch that was
 * overtaken by the answer to a request. Versions that are no numbers are never older. */
bool seen_is_older(const json_t *object, const json_t *known);
bool seen_version_is_older(const char *version, const char *known);

/* Of the object without metadata.resourceVersion and managedFields, and without `skip` of its top level
 * (NULL: none). 0: none, or no memory. */
uint64_t seen_hash(const json_t *object, const char *skip);
/* A text's hash, of this process. */
uint64_t seen_text_hash(const char *text);
#endif
