/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull_secrets - a pod's imagePullSecrets as what the image store takes.
 *
 * Both types count: kubernetes.io/dockerconfigjson and the older dockercfg.  As with kubelet a Secret that is
 * not there holds nothing up: the pull is tried without it, and an event says so.
 * Loop thread only.
 */
#ifndef AGENT_POD_IMAGE_PULL_SECRETS_H
#define AGENT_POD_IMAGE_PULL_SECRETS_H
#include "agent/pod/core/pod.h"

struct pull_secrets {
    struct buf json;     /* an array of Docker config.json objects; empty: there are none */
    struct buf missing;  /* names, with commas */
    struct buf unusable; /* names of Secrets of another type, with commas */
};

/* Fills in *ret; pull_secrets_done() is due in any case.  ERR_EXHAUSTED: none can be used. */
enum err_code pull_secrets_collect(const struct pod *p, struct pull_secrets *ret, struct err *e) MUST_CHECK;
void pull_secrets_done(struct pull_secrets *s); /* overwrites them */
bool pull_secrets_uses(const struct pod *p, const char *name);
#endif
