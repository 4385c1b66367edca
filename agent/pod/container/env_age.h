/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_age - is a container's environment older than the ConfigMaps and Secrets it was made from?
 *
 * At each create the state of every source is noted with the instance, and kept in the pod's record: for each
 * object a hash of what the container uses of it.  The hash is keyed, and the key lies on the volumes' tmpfs
 * only, where Secrets themselves are: nobody who has the record can try guesses of a Secret.  A restart of
 * the agent compares again; a container that lost its key (its tmpfs is gone, so is it) counts as up to date.
 *
 * What follows from a change is the pod's annotation (agent/api/on_change.h).  An object that is removed
 * changes nothing, as with volumes.  On the loop's thread.
 */
#ifndef AGENT_POD_CONTAINER_ENV_AGE_H
#define AGENT_POD_CONTAINER_ENV_AGE_H
#include "agent/pod/core/pod.h"

/* {"ConfigMap/settings": "0123456789abcdef", ...}: as it is now; a new reference.  NULL: its environment
 * comes from no object (or there is no memory). */
json_t *env_age_sources(struct pod *p, const struct api_container *c);
/* Is it of that shape? */
bool env_age_is_sane(const json_t *sources);
/* Does the container's environment come from this object? */
bool env_age_uses(const struct api_container *c, enum api_config_kind kind, const char *name);
/* Looks where env_look is set, and does what the annotation asks for. */
void env_age_step(struct pod *p);
/* The pod's condition; NULL: every environment is what its sources say. */
json_t *env_age_condition(const struct pod *p);
void env_age_clear(struct ctr *c); /* frees what is kept with it */
#endif
