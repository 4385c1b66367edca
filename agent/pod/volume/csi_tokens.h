/* SPDX-License-Identifier: Apache-2.0 */
/* csi_tokens - the service account tokens that a CSIDriver wants for a pod (tokenRequests). Loop thread only.
 */
#ifndef AGENT_POD_VOLUME_CSI_TOKENS_H
#define AGENT_POD_VOLUME_CSI_TOKENS_H
#include "agent/pod/core/pod.h"
#include "agent/pod/volume/csi_object.h"

/*
 * *ret is their JSON, as drivers get it, malloc'ed; NULL: it wants none. ERR_UNAVAILABLE: one is being
 * requested. ERR_UNIMPLEMENTED: there is no issuer of tokens, as on a lone node.
 */
enum err_code csi_tokens_get(const struct pod *p, const struct csi_object *object, char **ret,
                             struct err *e) MUST_CHECK;
void csi_tokens_free(char *tokens); /* wipes it; NULL is fine */
#endif
