/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame - gRPC's message frames: a byte with the compression flag, its length in four bytes (big endian), the
 * message. Frames are split over DATA frames in any way. No I/O.
 *
 * Memory grows with the bytes that arrived, not with the announced length. Readers and queues share a budget,
 * so many small peers together are bounded, too.
 */
#ifndef BASE_GRPC_FRAME_H
#define BASE_GRPC_FRAME_H
#include "base/grpc/grpc.h"

#include <stdbool.h>

#define GRPC_FRAME_HEAD 5

struct grpc_budget {
    size_t used, max; /* bytes */
};
/* NULL: unlimited. */
static inline bool grpc_budget_take(struct grpc_budget *b, size_t n)
{
    if (b != NULL && n > b->max - b->used)
        return false;
    if (b != NULL)
        b->used += n;
    return true;
}
static inline void grpc_budget_give(struct grpc_budget *b, size_t n)
{
    if (b != NULL)
        b->used -= n;
}

struct grpc_frames { /* initialize as { .max = ..., .budget = ... } */
    size_t max;      /* of a message */
    struct grpc_budget *budget;
    uint8_t head[GRPC_FRAME_HEAD];
    unsigned head_n;
    uint8_t *p; /* the message so far: n of size bytes */
    size_t n, size, room;
};

enum grpc_frame {
    GRPC_FRAME_MORE,       /* all bytes were taken, no message is complete */
    GRPC_FRAME_MESSAGE,    /* bytes may be left */
    GRPC_FRAME_TOO_LARGE,  /* f->size > f->max */
    GRPC_FRAME_COMPRESSED, /* the flag is not 0 */
    GRPC_FRAME_NO_ROOM,    /* the budget is used up */
    GRPC_FRAME_NO_MEMORY,
};

/* Takes bytes up to the end of one message, which is valid until the next call. After an error only
 * grpc_frames_done() is allowed. */
enum grpc_frame grpc_frames_take(struct grpc_frames *f, const uint8_t *data, size_t n, size_t *ret_used,
                                 struct grpc_bytes *ret_message);
bool grpc_frames_between(const struct grpc_frames *f); /* no message is incomplete */
void grpc_frames_done(struct grpc_frames *f);

void grpc_frame_head(uint8_t out[GRPC_FRAME_HEAD], size_t message_n);
#endif
