/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch - the protocol between the agent and coracle-seal, with one process per batch. Pure.
 *
 *     request   the key (BATCH_KEY_SIZE bytes), then for each item: 's' seal or 'o' open, the sizes of head
 *               and data (32 bits each, this machine's order), head, data
 *     answer    for each item, in order: '+' or '-', the size of the data (32 bits), data; '-': the item
 *               failed; for 'o', key, head or data differ from those that were sealed
 *
 * Both sides come from one build on one machine; sizes are checked nevertheless.
 */
#ifndef AGENT_KEPT_BATCH_H
#define AGENT_KEPT_BATCH_H
#include "base/buf.h"

#define BATCH_KEY_SIZE 32            /* AES-256 */
#define BATCH_MAX ((size_t)64 << 20) /* of a request or an answer */
#define BATCH_SEALED_MORE 28         /* bytes: nonce and tag */
#define BATCH_SEAL 's'
#define BATCH_OPEN 'o'

struct batch_item {
    char what;
    struct str head, data; /* borrowed */
};

void batch_add(struct buf *b, char what, struct str head, struct str data);
/* Reads the item at *at and advances *at. ERR_DATA_LOSS: truncated. ERR_NOT_FOUND: the end. */
enum err_code batch_next(const char *text, size_t n, size_t *at, struct batch_item *ret,
                         struct err *e) MUST_CHECK;

/* data.p NULL: the item failed. */
void batch_answer_add(struct buf *b, struct str data);
enum err_code batch_answer_next(const char *text, size_t n, size_t *at, struct str *ret,
                                struct err *e) MUST_CHECK;
#endif
