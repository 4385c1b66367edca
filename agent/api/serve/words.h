/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words - problems that the daemon finds in an object, in the words of an apiserver, because clients evaluate
 * reasons and users search for known messages. A problem without a counterpart keeps the daemon's text after
 * "Invalid value: ...:". Pure; any thread.
 */
#ifndef AGENT_API_SERVE_WORDS_H
#define AGENT_API_SERVE_WORDS_H
#include <jansson.h>

/* Adds the causes of a Status for one problem of `object`, mostly one. `field` is the daemon's path of it,
 * and `message` the daemon's text. Without memory nothing is added. */
void words_add(json_t *causes, const json_t *object, const char *field, const char *message);
#endif
