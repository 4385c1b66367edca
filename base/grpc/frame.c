/* SPDX-License-Identifier: Apache-2.0 */
#include "base/grpc/frame.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4096 /* most messages are smaller */

static void drop(struct grpc_frames *f)
{
    free(f->p);
    grpc_budget_give(f->budget, f->room);
    f->p = NULL;
    f->n = f->size = f->room = 0;
    f->head_n = 0;
}

static enum grpc_frame make_room(struct grpc_frames *f, size_t n)
{
    size_t room = f->room == 0 ? FIRST_ROOM : f->room;
    uint8_t *p;

    while (room < n)
        room *= 2;
    if (room > f->size)
        room = f->size;
    if (room <= f->room)
        return GRPC_FRAME_MORE;
    if (!grpc_budget_take(f->budget, room - f->room))
        return GRPC_FRAME_NO_ROOM;
    p = realloc(f->p, room);
    if (p == NULL) {
        grpc_budget_give(f->budget, room - f->room);
        return GRPC_FRAME_NO_MEMORY;
    }
    f->p = p;
    f->room = room;
    return GRPC_FRAME_MORE;
}

enum grpc_frame grpc_frames_take(struct grpc_frames *f, const uint8_t *data, size_t n, size_t *ret_used,
                                 struct grpc_bytes *ret_message)
{
    enum grpc_frame room;
    size_t used = 0, take;

    if (f->head_n == GRPC_FRAME_HEAD && f->n == f->size) /* the message of the previous call */
        drop(f);
    while (f->head_n < GRPC_FRAME_HEAD && used < n)
        f->head[f->head_n++] = data[used++];
    *ret_used = used;
    if (f->head_n < GRPC_FRAME_HEAD)
        return GRPC_FRAME_MORE;
    f->size =
        (size_t)f->head[1] << 24 | (size_t)f->head[2] << 16 | (size_t)f->head[3] << 8 | (size_t)f->head[4];
    if (f->head[0] != 0)
        return GRPC_FRAME_COMPRESSED;
    if (f->size > f->max)
        return GRPC_FRAME_TOO_LARGE;
    take = n - used < f->size - f->n ? n - used : f->size - f->n;
    *ret_used = used + take;
    if (f->n == 0 && take == f->size) { /* the message is complete in the caller's bytes: no copy */
        *ret_message = (struct grpc_bytes){ data + used, take };
        f->n = f->size = 0;
        f->head_n = 0;
        return GRPC_FRAME_MESSAGE;
    }
    room = make_room(f, f->n + take);
    if (room != GRPC_FRAME_MORE)
        return room;
    if (take > 0)
        memcpy(f->p + f->n, data + used, take);
    f->n += take;
    if (f->n < f->size)
        return GRPC_FRAME_MORE;
    *ret_message = (struct grpc_bytes){ f->p, f->size };
    return GRPC_FRAME_MESSAGE;
}

bool grpc_frames_between(const struct grpc_frames *f)
{
    return f->head_n == 0 || (f->head_n == GRPC_FRAME_HEAD && f->n == f->size);
}

void grpc_frames_done(struct grpc_frames *f)
{
    drop(f);
}

void grpc_frame_head(uint8_t out[GRPC_FRAME_HEAD], size_t message_n)
{
    out[0] = 0;
    for (int i = 0; i < 4; i++)
        out[1 + i] = (uint8_t)(message_n >> (24 - 8 * i));
}
