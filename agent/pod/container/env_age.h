/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_age - whether a container's environment is older than the ConfigMaps and Secrets it was made from.
 *
 * Each create records the state of every source with the instance, and in the pod's record: for each object a
 * hash of the parts the container uses. The hash is keyed, and the key is only on the volumes' tmpfs, like
 * Secrets themselves, so the record does not help to guess a Secret. A restarted agent compares again;
 * without the key (if the tmpfs is gone, so is the container) it is considered up to date.
 *
 * The pod's annotation determines what happens on a change (agent/api/on_change.h). Removing an object
 * changes nothing, as with volumes. Loop thread only.
 */
#ifndef AGENT_POD_CONTAINER_ENV_AGE_H
#define AGENT_POD_CONTAINER_ENV_AGE_H
#include "agent/pod/core/pod.h"

/* {"ConfigMap/settings": "0123456789abcdef", ...}: the current state; a new reference. NULL: its environment
 * uses no objects (or out of memory). */
json_t *env_age_sources(struct pod *p, const struct api_container *c);
/* Whether it has this format. */
bool env_age_is_sane(const json_t *sources);
/* Whether the container's environment uses this object. */
bool env_age_uses(const struct api_container *c, enum api_config_kind kind, const char *name);
void env_age_clear(struct ctr *c);      /* forgets the result of the last check */
void env_age_forget_run(struct ctr *c); /* forgets the environment of its newest run */
#endif
