/* SPDX-License-Identifier: Apache-2.0 */
/* reply - parses an HTTP/1.x response byte by byte: status, Location, the beginning of the body. The bytes
 * come from a container and are hostile: heads and lines are bounded, only Location is kept of the head, and
 * a body is read only as far as needed. No I/O; errors are Go's texts. */
#ifndef AGENT_PROBE_REPLY_H
#define AGENT_PROBE_REPLY_H
#include "base/buf.h"

#include <llhttp.h>
#include <stdbool.h>

#define PROBE_BODY_MAX (10 * 1024) /* kubelet's maxRespBodyLength */
/* counted but not stored; Go reads 10 MiB, which would occupy our loop for too long */
#define PROBE_HEAD_MAX (256 * 1024)
#define PROBE_RAW_MAX (1024 * 1024)   /* whole response including chunk framing */
#define PROBE_LINE_MAX 4096           /* of the status line: Go's buffer */
#define PROBE_LOCATION_MAX (8 * 1024) /* longer ones are invalid */
#define PROBE_INFORMATIONAL_MAX 5     /* 1xx responses before the real one, as in Go */

enum probe_reply_state { REPLY_HEAD, REPLY_BODY, REPLY_COMPLETE, REPLY_BROKEN };

struct probe_reply {
    enum probe_reply_state state;
    int status;          /* after the head */
    struct buf location; /* "" : none */
    struct buf body;     /* the first PROBE_BODY_MAX bytes */
    char error[256];     /* REPLY_BROKEN */
    /* private */
    llhttp_t parser;
    struct buf line;
    size_t head_bytes, raw_bytes;
    unsigned informational;
    bool line_done, last_cr, in_location;
    char field[16];
    size_t field_n;
};

void probe_reply_init(struct probe_reply *r);
void probe_reply_done(struct probe_reply *r);
/* Adds bytes; returns the state. Bytes after a complete reply are ignored. */
enum probe_reply_state probe_reply_feed(struct probe_reply *r, const char *data, size_t n);
/* The connection has ended: a body without a length is complete, anything else is an error. */
enum probe_reply_state probe_reply_eof(struct probe_reply *r);
#endif
