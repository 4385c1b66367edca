/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spdy - the server side of SPDY/3.1 as apiservers use it with nodes (exec, attach, port-forward): bytes in,
 * events of streams and bytes out, no I/O.
 *
 * The peer is moby/spdystream: it opens all streams, never sends WINDOW_UPDATE and ignores ours.  So windows
 * limit our data only after the first WINDOW_UPDATE of a stream; spdy_room() returns the number of bytes that
 * may be sent. Received data are acknowledged at once: a receiver that cannot take more stops reading the
 * connection.
 *
 * Hostile input: a control frame has at most SPDY_CONTROL_MAX bytes, its headers at most SPDY_HEADERS_MAX
 * decompressed, a session at most SPDY_STREAMS_MAX streams at a time.  Payload is never assembled.  What
 * breaks the protocol ends the session with GOAWAY.  Send `out` after each call and empty it.
 *
 * Source: SPDY Protocol, drafts 3 and 3.1 (chromium.org); moby/spdystream.
 */
#ifndef AGENT_KUBE_SERVER_SPDY_H
#define AGENT_KUBE_SERVER_SPDY_H
#include "base/buf.h"

#include <stdint.h>
#include <zlib.h>

#define SPDY_CONTROL_MAX (32u << 10)
#define SPDY_HEADERS_MAX (32u << 10)
#define SPDY_HEADERS_N 32
#define SPDY_STREAMS_MAX 256
#define SPDY_WINDOW 65536         /* of a stream at its beginning */
#define SPDY_DATA_MAX (32u << 10) /* payload of a frame of ours, as of kubelet */

enum spdy_status { SPDY_PROTOCOL_ERROR = 1, SPDY_INVALID_STREAM, SPDY_REFUSED_STREAM, SPDY_CANCEL = 5 };

struct spdy_header {
    const char *name, *value; /* without zero bytes; the name in lower case */
};

struct spdy_headers { /* borrowed during the call */
    struct spdy_header v[SPDY_HEADERS_N];
    size_t n;
};
/* "" if absent. */
const char *spdy_header(const struct spdy_headers *h, const char *name);

struct spdy_events { /* none may free the session */
    /* False: it is refused. Otherwise SYN_REPLY is added next; until then nothing may be sent on it. */
    bool (*on_stream)(uint32_t id, const struct spdy_headers *h, void *owner);
    void (*on_opened)(uint32_t id, void *owner); /* now it may */
    void (*on_data)(uint32_t id, const char *p, size_t n, void *owner);
    void (*on_fin)(uint32_t id, void *owner);   /* the peer sends no more on it */
    void (*on_reset)(uint32_t id, void *owner); /* the stream is gone */
};

struct spdy_stream {
    uint32_t id; /* 0: free */
    bool peer_done, own_done;
    bool flow; /* the peer keeps windows */
    int64_t window;
    uint32_t taken; /* not acknowledged yet */
};

struct spdy {
    struct buf out;
    /* private */
    const struct spdy_events *events;
    void *owner;
    z_stream inflate, deflate;
    struct spdy_stream streams[SPDY_STREAMS_MAX];
    uint32_t last_id;
    int64_t initial_window;
    unsigned char head[8];
    size_t head_n;
    uint32_t left;      /* of the frame that comes */
    struct buf control; /* of a control frame so far */
    struct buf text;    /* headers, decompressed */
    bool over;
};

/* ERR_EXHAUSTED: out of memory. */
enum err_code spdy_init(struct spdy *s, size_t out_max, const struct spdy_events *events, void *owner,
                        struct err *e) MUST_CHECK;
void spdy_done(struct spdy *s);

/* Takes all bytes. False: the session is over, nothing more is read. */
bool spdy_receive(struct spdy *s, const char *bytes, size_t n);

/* At most spdy_room() bytes; nothing happens for a stream that is gone. fin: the last of ours on it. */
void spdy_send(struct spdy *s, uint32_t id, const void *p, size_t n, bool fin);
size_t spdy_room(const struct spdy *s, uint32_t id);
void spdy_reset(struct spdy *s, uint32_t id, enum spdy_status status);
void spdy_goaway(struct spdy *s); /* nothing is received after it */
#endif
