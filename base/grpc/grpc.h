/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc - shared by client and server of gRPC over HTTP/2: status, limits, names.
 *
 *   client.h, server.h   transports on the loop: sockets, deadlines, keep-alive, reconnects
 *   session.h            one HTTP/2 connection without I/O: bytes in, events and bytes out (nghttp2)
 *   frame.h              gRPC's message frames: five bytes of prefix, then the message
 *   status.h             grpc-status, grpc-message (percent-encoded), grpc-status-details-bin (base64)
 *
 * Messages are bytes; the caller packs and unpacks them (protobuf-c). Compressed messages are refused: a peer
 * must not send them unless it was offered an encoding, and none is offered. Peers are hostile: headers,
 * messages, the calls of a connection and the bytes queued for it are bounded. Codes and texts are grpc-go's,
 * so that an error can be looked up on the web.
 *
 * A status has the numbers of enum err_code (base/error.h).
 */
#ifndef BASE_GRPC_GRPC_H
#define BASE_GRPC_GRPC_H
#include <stddef.h>
#include <stdint.h>

#define GRPC_MESSAGE_MAX (4 * 1024 * 1024) /* grpc-go's default for received messages, and so kubelet's */
#define GRPC_HEADERS_MAX (16 * 1024)       /* of a call: SETTINGS_MAX_HEADER_LIST_SIZE */
#define GRPC_DETAILS_MAX (8 * 1024)        /* bytes; a longer grpc-status-details-bin is ignored */
#define GRPC_METADATA_MAX 32               /* headers of a call that are kept */
#define GRPC_TEXT_MAX 1024                 /* of grpc-message; the rest is cut off, at a whole character */

struct grpc_bytes {
    const uint8_t *p;
    size_t n;
};

struct grpc_metadata {
    const char *name, *value; /* lower case; a value of "...-bin" is decoded and may hold any byte */
    size_t value_n;
};

struct grpc_status {
    int code;   /* a number of enum err_code; any other number from outside is ERR_UNKNOWN */
    int number; /* the received number if `code` replaced it; 0: none */
    char text[GRPC_TEXT_MAX];
    struct grpc_bytes details; /* google.rpc.Status, packed; n 0: none */
};

/* "DeadlineExceeded". */
const char *grpc_code_name(int code);
/* The same for a status; "Code(42)" if its number is not one of gRPC's. */
#define GRPC_CODE_SIZE 24
const char *grpc_status_name(const struct grpc_status *s, char room[GRPC_CODE_SIZE]);
#endif
