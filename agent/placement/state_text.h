/* SPDX-License-Identifier: Apache-2.0 */
/* state_text - helpers of cpu_state_text.c and memory_state_text.c: members of the files, and their checksum.
 */
#ifndef AGENT_PLACEMENT_STATE_TEXT_H
#define AGENT_PLACEMENT_STATE_TEXT_H
#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

/* 32-bit FNV-1a. */
uint32_t pl_sum(const char *text, size_t n);
/* A member that must be a string of at most `max` bytes; NULL: *e has the problem. */
const char *pl_member_text(const json_t *object, const char *key, size_t max, struct err *e);
/*
 * ERR_DATA_LOSS: the file's checksum differs from the checksum of `hashed`, which begins with the name of
 * kubelet's type, as in "(*state.CPUManagerCheckpoint){". As in kubelet, the checksum may also be that of the
 * name followed by `version`; a file without a checksum, or with 0, is not checked.
 */
enum err_code pl_check_sum(const json_t *file, const struct buf *hashed, const char *version,
                           struct err *e) MUST_CHECK;
/* Adds "key:value" pairs of an object in the order of their keys, as Go prints a map: map[a:1 b:2]. */
enum err_code pl_add_map(struct buf *b, const json_t *object,
                         void (*add)(struct buf *b, const char *key, const json_t *value),
                         struct err *e) MUST_CHECK;
/* Whether text is the name of a container or the uid of a pod: not empty, at most PL_NAME_MAX bytes. */
bool pl_name_is_ok(const char *text);
#endif
