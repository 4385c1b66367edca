/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch - what the agent and coracle-seal say to each other, one process for a batch. Pure.
 *
 *     request   the key (BATCH_KEY_SIZE bytes), then for each item: 's' seal or 'o' open, the sizes of head
 *               and data (32 bits each, this machine's order), head, data
 *     answer    for each item, in order: '+' or '-', the size of the data (32 bits), data; '-': it could not
 *               be done, which for 'o' says that key, head or data are others than those that were sealed
 *
 * Both are of one build on one machine; sizes are checked nevertheless.
 */
#ifndef AGENT_KEPT_BATCH_H
#define AGENT_KEPT_BATCH_H
#include "base/buf.h"

#define BATCH_KEY_SIZE 32            /* AES-256 */
#define BATCH_MAX ((size_t)64 << 20) /* of either */
#define BATCH_SEALED_MORE 28         /* bytes: nonce and tag */
#define BATCH_SEAL 's'
#define BATCH_OPEN 'o'

struct batch_item {
    char what;
    struct str head, data; /* borrowed */
};

void batch_add(struct buf *b, char what, struct str head, struct str data);
/* The item at *at, which is advanced. ERR_DATA_LOSS: it is cut off. At the end: ERR_NOT_FOUND. */
enum err_code batch_next(const char *text, size_t n, size_t *at, struct batch_item *ret,
                         struct err *e) MUST_CHECK;

/* data.p NULL: it could not be done. */
void batch_answer_add(struct buf *b, struct str data);
enum err_code batch_answer_next(const char *text, size_t n, size_t *at, struct str *ret,
                                struct err *e) MUST_CHECK;
#endif
