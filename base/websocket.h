/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket - the frames of RFC 6455, for both ends; bytes in, pieces out, no I/O.
 *
 *     struct ws_reader r;
 *     ws_reader_init(&r, WS_SERVER);
 *     while ((event = ws_read(&r, bytes + used, n - used, &step, &piece)) != WS_MORE) { used += step; ... }
 *
 * Nothing is assembled: the payload of a message comes in pieces as it arrives, unmasked in place, so a
 * message may be of any length and costs no memory; `first` and `last` tell where it begins and ends.  Text
 * and binary messages are treated alike (text is not checked to be UTF-8).  Control frames come whole.
 *
 * Strict: a server takes only masked frames and a client only unmasked ones; reserved bits and opcodes,
 * lengths that are not in their shortest form or have the top bit set, control frames that are fragmented or
 * longer than 125 bytes, continuations of nothing and messages inside messages are errors.  After WS_FAILED
 * the reader takes nothing more: send a close frame with r.close_code, and end the connection.
 */
#ifndef BASE_WEBSOCKET_H
#define BASE_WEBSOCKET_H
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ws_role { WS_SERVER, WS_CLIENT };

enum ws_opcode {
    WS_CONTINUATION = 0,
    WS_TEXT = 1,
    WS_BINARY = 2,
    WS_OP_CLOSE = 8,
    WS_OP_PING = 9,
    WS_OP_PONG = 10,
};

enum ws_event {
    WS_MORE,  /* all bytes are taken */
    WS_DATA,  /* a piece of a message; may be empty */
    WS_PING,  /* answer with a pong of the same payload */
    WS_PONG,  /* */
    WS_CLOSE, /* r.close_code says why; answer with a close frame, nothing follows */
    WS_FAILED,
};

enum { /* RFC 6455, 7.4.1 */
       WS_CODE_NORMAL = 1000,
       WS_CODE_PROTOCOL = 1002,
       WS_CODE_NONE = 1005, /* a close frame without a code; never sent */
       WS_CODE_TOO_BIG = 1009,
       WS_CODE_INTERNAL = 1011,
};

enum { WS_CONTROL_MAX = 125, WS_HEAD_MAX = 14 };

struct ws_piece {
    char *p; /* into the caller's bytes, or for control frames into the reader */
    size_t n;
    bool first, last;
};

struct ws_reader {
    uint16_t close_code; /* after WS_CLOSE and WS_FAILED */
    const char *error;   /* after WS_FAILED: constant */
    /* private */
    enum ws_role role;
    unsigned char head[WS_HEAD_MAX], mask[4];
    size_t head_n, mask_at, control_n;
    uint64_t left;
    unsigned opcode;
    bool in_frame, fin, in_message, first, over;
    char control[WS_CONTROL_MAX + 1];
};

void ws_reader_init(struct ws_reader *r, enum ws_role role);
/* One event; *ret_used bytes are done with, also with WS_MORE. */
enum ws_event ws_read(struct ws_reader *r, char *bytes, size_t n, size_t *ret_used, struct ws_piece *ret);

/* The head of an unfragmented frame; mask NULL: as a server.  Returns its length. */
size_t ws_head(unsigned char ret[WS_HEAD_MAX], enum ws_opcode opcode, uint64_t n, const unsigned char *mask);
/* In place; *at is the position within the payload modulo 4. */
void ws_mask(char *p, size_t n, const unsigned char mask[4], size_t *at);
/* A whole frame as a server sends it. */
void ws_add_frame(struct buf *b, enum ws_opcode opcode, const void *payload, size_t n);
/* A close frame as a server sends it; the reason is cut to what fits. */
void ws_add_close(struct buf *b, uint16_t code, const char *reason);

/* Sec-WebSocket-Accept for a Sec-WebSocket-Key. */
enum { WS_ACCEPT_SIZE = 29 };
void ws_accept_key(const char *key, char ret[WS_ACCEPT_SIZE]);
/* 16 bytes in base64: 24 characters. */
bool ws_key_valid(const char *key);
enum { WS_KEY_SIZE = 25 };
void ws_key_make(const unsigned char random[16], char ret[WS_KEY_SIZE]);
#endif
