/* SPDX-License-Identifier: Apache-2.0 */
/* payload - the content of a ConfigMap, Secret, downwardAPI or projected volume: files made from the store
 * and the pod. Loop thread only. */
#ifndef AGENT_POD_VOLUME_PAYLOAD_H
#define AGENT_POD_VOLUME_PAYLOAD_H
#include "agent/pod/core/pod.h"
#include "base/arena.h"

struct payload { /* allocated in an arena */
    struct vol_file *files;
    size_t n_files;
    /* Paths provided by several sources, where the later source hides the earlier one's file, as in kubelet;
     * may be NULL. */
    char *overlaps;
    struct boot_time renew_at; /* when the first of its tokens is renewed; none: no tokens */
};

/* The files' data is borrowed from the store's objects and tokens: use it before the loop turns.
 * ERR_UNAVAILABLE: the pod's IP or a token is not known yet. ERR_PRECONDITION with kubelet's text: `configmap
 * "c" not found`, `references non-existent secret key: k`. */
enum err_code payload_build(const struct pod *p, const struct api_volume *v, struct arena *a,
                            struct payload *ret, struct err *e) MUST_CHECK;
#endif
