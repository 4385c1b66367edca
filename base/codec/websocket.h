/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket - RFC 6455 over libwslay's frames, for both ends: bytes in, pieces of messages and bytes out, no
 * I/O.
 *
 * Nothing is assembled: the payload of a message comes in pieces of 4 KiB at most as it arrives, so a message
 * may be of any length and costs no memory; `first` and `last` mark where it begins and ends.  Text is not
 * checked to be UTF-8.  Pings, close frames and violations are answered here: send `out` after each call and
 * empty it.
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
    struct buf out; /* to be sent */
    unsigned
        close_code; /* of the close frame that came; WSLAY_CODE_NO_STATUS_RCVD: it had none; 0: none came */
    /* private */
    enum ws_role role;
    wslay_frame_context_ptr context;
    void (*on_piece)(const struct ws_piece *piece, void *owner);
    void *owner;
    const char *in;
    size_t in_n, control_n;
    uint64_t left; /* of the frame that comes */
    bool in_frame, in_message, first, over, closed;
    char control[125];
};

/* on_piece() must not free the struct.  False: out of memory. */
bool ws_init(struct ws *w, enum ws_role role, size_t out_max,
             void (*on_piece)(const struct ws_piece *piece, void *owner), void *owner) MUST_CHECK;
void ws_done(struct ws *w);

/* Takes all of the bytes.  False: nothing more is read, the peer closed or broke the protocol. */
bool ws_receive(struct ws *w, const char *bytes, size_t n);

/* A binary message. */
void ws_send(struct ws *w, const void *p, size_t n);
/* A close frame; nothing is sent after it.  The reason is cut to what fits. */
void ws_close(struct ws *w, uint16_t code, const char *reason);

/* Sec-WebSocket-Accept for a Sec-WebSocket-Key. */
void ws_add_accept_key(struct buf *out, const char *key);
/* 16 bytes in base64. */
bool ws_key_valid(const char *key);
#endif
