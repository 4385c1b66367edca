/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_look - reads JSON text for facts that its parsed values have lost: why it cannot be parsed, in the
 * words of Go's encoding/json, and which members are given twice. Pure; any thread. Depth: JSON_LOOK_DEPTH.
 */
#ifndef AGENT_KUBE_APISERVER_JSON_LOOK_H
#define AGENT_KUBE_APISERVER_JSON_LOOK_H
#include <jansson.h>
#include <stddef.h>

#define JSON_LOOK_DEPTH 2048   /* jansson's limit */
#define JSON_LOOK_TWICE_MAX 32 /* duplicate members that are reported */

/* `why` becomes "" or "unexpected end of JSON input" and the like. `twice`, a list or NULL, gets the paths
 * ("data.x", "spec.containers[0].name") of members that an object has again, in the order of the text. */
void json_look(const char *text, size_t n, char *why, size_t size, json_t *twice);
#endif
