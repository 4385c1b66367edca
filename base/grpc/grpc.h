/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc - what client and server of gRPC over HTTP/2 share: status, limits, names.
 *
 *   client.h, server.h   transports on the loop: sockets, deadlines, keep-alive, reconnects
 *   session.h            one HTTP/2 connection without I/O: bytes in, events and bytes out (nghttp2)
 *   frame.h              gRPC's message frames: five bytes of prefix, then the message
 *   status.h             grpc-status, grpc-message (percent-encoded), grpc-status-details-bin (base64)
 *
 * Messages are bytes here; the caller packs and unpacks them (protobuf-c). Compressed messages are refused: a
 * peer must not send them unless it was offered an encoding, and none is. Peers are hostile: headers,
 * messages, calls of a connection and what is queued for it are bounded. Codes and texts are grpc-go's, so
 * that what people find on the web about a message fits.
 *
 * A status has the numbers of enum err_code (base/error.h).
 */
#ifndef BASE_GRPC_GRPC_H
#define BASE_GRPC_GRPC_H
#include <stddef.h>
#include <stdint.h>

#define GRPC_MESSAGE_MAX (4 * 1024 * 1024) /* default of grpc-go for received messages, hence of kubelet */
#define GRPC_HEADERS_MAX (16 * 1024)       /* of a call: SETTINGS_MAX_HEADER_LIST_SIZE */
#define GRPC_DETAILS_MAX (8 * 1024)        /* more of grpc-status-details-bin is ignored */
#define GRPC_METADATA_MAX 32               /* headers kept of a call */
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
    int code;   /* enum err_code's numbers; any other from outside is ERR_UNKNOWN */
    int number; /* that other one; 0: none */
    char text[GRPC_TEXT_MAX];
    struct grpc_bytes details; /* google.rpc.Status, packed; n 0: none */
};

/* "DeadlineExceeded". */
const char *grpc_code_name(int code);
/* The same of a status, or "Code(42)" if it had a number that gRPC does not know. */
#define GRPC_CODE_SIZE 24
const char *grpc_status_name(const struct grpc_status *s, char room[GRPC_CODE_SIZE]);
#endif
