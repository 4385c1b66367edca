/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull_secrets - a pod's imagePullSecrets in the format of the image store.
 *
 * Supports kubernetes.io/dockerconfigjson and the older dockercfg. As in kubelet, a missing Secret blocks
 * nothing: the pull is tried without it, and there is an event. Loop thread only.
 */
#ifndef AGENT_POD_IMAGE_PULL_SECRETS_H
#define AGENT_POD_IMAGE_PULL_SECRETS_H
#include "agent/pod/core/pod.h"

struct pull_secrets {
    struct buf json;     /* an array of Docker config.json objects; may be empty */
    struct buf missing;  /* names, comma-separated */
    bool unknown;        /* the existence of some is not known yet: wait for the apiserver */
    struct buf unusable; /* names of Secrets of another type, comma-separated */
};

/* Fills in *ret; always call pull_secrets_done(). ERR_EXHAUSTED: none can be used. */
enum err_code pull_secrets_collect(const struct pod *p, struct pull_secrets *ret, struct err *e) MUST_CHECK;
void pull_secrets_done(struct pull_secrets *s); /* overwrites them */
bool pull_secrets_uses(const struct pod *p, const char *name);
#endif
