/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto - objects as Kubernetes' protobuf, which kubectl sends for those that it makes itself (kubectl create
 * and others): "k8s\0", then runtime.Unknown with the type and the bytes of the object. Pure; any thread.
 *
 * Bounds: PROTO_DEPTH levels; the size of the text is the caller's. A field that is not known here is an
 * error, not left out.
 */
#ifndef AGENT_KUBE_APISERVER_PROTO_H
#define AGENT_KUBE_APISERVER_PROTO_H
#include "base/error.h"

#include <jansson.h>
#include <stddef.h>

#define PROTO_DEPTH 32 /* a Pod needs 10, a JSON schema would be deeper */

struct proto_message {
    const char *name, *fields; /* proto_messages.c */
};
extern const struct proto_message proto_messages[];
extern const size_t proto_n_messages;

/* *ret: a new object with its apiVersion and kind. ERR_INVALID: it cannot be read; ERR_UNIMPLEMENTED: of a
 * kind that is not known here. */
enum err_code proto_to_json(const void *data, size_t n, json_t **ret, struct err *e) MUST_CHECK;
#endif
