/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal - AES-256-GCM (NIST SP 800-38D) with OpenSSL: a random nonce of 12 bytes, the text, a tag of 16 bytes.
 * `head` is additional data: it is not part of the result, and must be the same to open it.
 *
 * A random nonce may repeat by chance after some 2^32 texts under one key (SP 800-38D, 8.3), which a node
 * that writes one a second reaches in 136 years. Any thread.
 */
#ifndef AGENT_SEAL_SEAL_H
#define AGENT_SEAL_SEAL_H
#include "base/buf.h"

#define SEAL_KEY_SIZE 32
#define SEAL_NONCE_SIZE 12
#define SEAL_TAG_SIZE 16

/* Both functions append to *ret, and leave it unchanged on failure. */
enum err_code seal_text(const unsigned char key[SEAL_KEY_SIZE], struct str head, struct str text,
                        struct buf *ret, struct err *e) MUST_CHECK;
/* ERR_DATA_LOSS: key, head or data differ from those that were sealed. */
enum err_code seal_open(const unsigned char key[SEAL_KEY_SIZE], struct str head, struct str sealed,
                        struct buf *ret, struct err *e) MUST_CHECK;
#endif
