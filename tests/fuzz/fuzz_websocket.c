/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames from a peer.  The first byte chooses the side and how the bytes are cut; however they are cut, the
 * same messages must come out.
 */
#include "base/codec/websocket.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    uint64_t sum; /* of payloads in order */
    size_t bytes, messages;
    bool open;
    unsigned close_code;
};

static void add(const struct ws_piece *piece, void *arg)
{
    struct outcome *o = arg;

    for (size_t i = 0; i < piece->n; i++)
        o->sum = o->sum * 31 + (unsigned char)piece->p[i];
    o->bytes += piece->n;
    o->messages += piece->last;
}

static struct outcome feed(const uint8_t *data, size_t size, size_t step, enum ws_role role)
{
    struct outcome o = { .open = true };
    struct ws w;

    if (!ws_init(&w, role, 1 << 20, add, &o))
        abort();
    for (size_t at = 0; at < size; at += step) {
        size_t n = size - at < step ? size - at : step;
        char *copy = malloc(n); /* exactly as long: a sanitizer sees what reads past it */

        memcpy(copy, data + at, n);
        o.open = ws_receive(&w, copy, n);
        buf_reset(&w.out);
        free(copy);
    }
    o.close_code = w.close_code;
    ws_done(&w);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum ws_role role;
    struct outcome whole, cut;

    if (size == 0)
        return 0;
    role = (data[0] & 1) != 0 ? WS_CLIENT : WS_SERVER;
    whole = feed(data + 1, size - 1, size, role);
    cut = feed(data + 1, size - 1, 1 + (data[0] >> 1) % 7, role);
    assert(whole.sum == cut.sum && whole.bytes == cut.bytes && whole.messages == cut.messages &&
           whole.open == cut.open && whole.close_code == cut.close_code);
    return 0;
}
