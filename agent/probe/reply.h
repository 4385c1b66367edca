/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply - an HTTP/1.x response, byte by byte: status, Location, the beginning of the body.  Bytes come from a
 * container and are hostile: heads and lines are bounded, nothing of a head but Location is kept, a body is
 * read up to what a check needs.  No input or output; errors are Go's words.
 */
#ifndef AGENT_PROBE_REPLY_H
#define AGENT_PROBE_REPLY_H
#include "base/buf.h"

#include <llhttp.h>
#include <stdbool.h>

#define PROBE_BODY_MAX (10 * 1024)    /* kubelet's maxRespBodyLength */
#define PROBE_HEAD_MAX (256 * 1024)   /* counted, not kept; Go reads 10 MiB, at our loop's expense */
#define PROBE_RAW_MAX (1024 * 1024)   /* whole response with its chunks' framing */
#define PROBE_LINE_MAX 4096           /* of the status line: Go's buffer */
#define PROBE_LOCATION_MAX (8 * 1024) /* longer ones count as broken */
#define PROBE_INFORMATIONAL_MAX 5     /* 1xx responses before the real one, as in Go */

enum probe_reply_state { REPLY_HEAD, REPLY_BODY, REPLY_COMPLETE, REPLY_BROKEN };

struct probe_reply {
    enum probe_reply_state state;
    int status;          /* once the head is there */
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
/* More bytes; returns the state.  What follows a complete reply is not looked at. */
enum probe_reply_state probe_reply_feed(struct probe_reply *r, const char *data, size_t n);
/* The connection has ended: a body without a length is complete, anything else is broken. */
enum probe_reply_state probe_reply_eof(struct probe_reply *r);
#endif
