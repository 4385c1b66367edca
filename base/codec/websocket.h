/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket - RFC 6455 over libwslay's frames, for both ends: bytes in, pieces of messages and bytes out, no
 * I/O.
 *
 * Nothing is assembled: the payload of a message comes in pieces of 4 KiB at most as it arrives, so a message
 * may be of any length and costs no memory; `first` and `last` mark where it begins and ends.  Text is not
 * checked to be UTF-8.  Replies to pings, close frames and violations are written to `out`: send it after
 * each call and empty it.
 */
#ifndef BASE_CODEC_WEBSOCKET_H
#define BASE_CODEC_WEBSOCKET_H
#include "base/buf.h"

#include <wslay/wslay.h>

enum ws_role { WS_SERVER, WS_CLIENT };

struct ws_piece {
    const char *p;
    size_t n;
    bool first, last;
};

struct ws {
    struct buf out;      /* to be sent */
    unsigned close_code; /* of the received close frame; WSLAY_CODE_NO_STATUS_RCVD: without a code; 0: no
                            close frame yet */
    /* private */
    enum ws_role role;
    wslay_frame_context_ptr context;
    void (*on_piece)(const struct ws_piece *piece, void *owner);
    void *owner;
    const char *in;
    size_t in_n, control_n;
    uint64_t left; /* of the current frame */
    bool in_frame, in_message, first, over, closed;
    char control[125];
};

/* on_piece() must not free the struct.  False: out of memory. */
bool ws_init(struct ws *w, enum ws_role role, size_t out_max,
             void (*on_piece)(const struct ws_piece *piece, void *owner), void *owner) MUST_CHECK;
void ws_done(struct ws *w);

/* Consumes all bytes. False: the peer closed the connection or violated the protocol; nothing more is read.
 */
bool ws_receive(struct ws *w, const char *bytes, size_t n);

/* A binary message. */
void ws_send(struct ws *w, const void *p, size_t n);
/* A close frame; nothing is sent after it.  A reason that is too long is truncated. */
void ws_close(struct ws *w, uint16_t code, const char *reason);

/* Sec-WebSocket-Accept for a Sec-WebSocket-Key. */
void ws_add_accept_key(struct buf *out, const char *key);
/* 16 bytes in base64. */
bool ws_key_valid(const char *key);
#endif
