/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload - the content of a ConfigMap, Secret, downwardAPI or projected volume: files made from the store
 * and the pod. Loop thread only, unless stated otherwise.
 */
#ifndef AGENT_POD_VOLUME_PAYLOAD_H
#define AGENT_POD_VOLUME_PAYLOAD_H
#include "agent/pod/core/pod.h"
#include "base/arena.h"

struct payload { /* allocated in an arena; call payload_done() before freeing that */
    struct vol_file *files;
    size_t *source; /* source[i]: the index of files[i]'s source in the volume */
    size_t n_files;
    struct api_config **configs; /* that the files' data is borrowed from */
    size_t n_configs;
    char **tokens; /* texts that files borrow; wiped by payload_done() */
    size_t n_tokens;
    struct boot_time renew_at; /* when the first of its tokens is renewed; none: no tokens */
};

/* The files are valid until payload_done(), their paths as long as the pod's manifest.
 * ERR_UNAVAILABLE: the pod's IP or a token is not known yet. ERR_PRECONDITION with kubelet's text: `configmap
 * "c" not found`, `references non-existent secret key: k`. */
enum err_code payload_build(const struct pod *p, const struct api_volume *v, struct arena *a,
                            struct payload *ret, struct err *e) MUST_CHECK;
void payload_done(struct payload *made); /* { 0 } is fine */
/* Paths provided by several sources, where the later source hides the earlier one's file, as in kubelet;
 * *ret NULL: none. Any thread. */
enum err_code payload_find_overlaps(const struct api_volume *v, const struct payload *made, struct arena *a,
                                    char **ret, struct err *e) MUST_CHECK;
#endif
