/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_held - finalizers (metadata.finalizers) hold an object back, as in an apiserver: a DELETE only marks
 * it, in its file, and the write that takes the last of them away removes it. Pure.
 */
#ifndef AGENT_POD_SHOW_WRITE_HELD_H
#define AGENT_POD_SHOW_WRITE_HELD_H
#include "agent/api/schema/kinds.h"

#include <jansson.h>
#include <stdbool.h>

/* The object with the mark of its deletion, for its file; NULL: out of memory. */
json_t *write_held_marked(const struct api_kind_row *kind, const json_t *now);
bool write_held(const json_t *object);
/* `now` is marked, and what becomes of it is not held any longer. */
bool write_held_released(const json_t *now, const json_t *object);
#endif
