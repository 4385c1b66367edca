/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames from a peer.  The first byte chooses the side and how the bytes are cut; however they are cut, the
 * same messages must come out.
 */
#include "base/websocket.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    uint64_t sum; /* of payloads in order */
    size_t bytes, messages, pings;
    enum ws_event last;
    uint16_t close_code;
};

static void add(struct outcome *o, const struct ws_piece *piece)
{
    for (size_t i = 0; i < piece->n; i++)
        o->sum = o->sum * 31 + (unsigned char)piece->p[i];
    o->bytes += piece->n;
}

static struct outcome feed(const uint8_t *data, size_t size, size_t step, enum ws_role role)
{
    struct outcome o = { 0 };
    struct ws_reader r;

    ws_reader_init(&r, role);
    for (size_t at = 0; at < size; at += step) {
        size_t n = size - at < step ? size - at : step, done = 0;
        char *copy = malloc(n); /* exactly as long: a sanitizer sees what reads past it */

        memcpy(copy, data + at, n);
        while (done < n) {
            struct ws_piece piece;
            size_t used;
            enum ws_event event = ws_read(&r, copy + done, n - done, &used, &piece);

            assert(used <= n - done);
            assert(event != WS_MORE || used == n - done);
            done += used;
            if (event == WS_DATA) {
                add(&o, &piece);
                o.messages += piece.last;
            } else if (event == WS_PING || event == WS_PONG) {
                assert(piece.n <= WS_CONTROL_MAX);
                add(&o, &piece);
                o.pings++;
            }
            if (event != WS_MORE && event != WS_DATA)
                o.last = event;
            assert(event != WS_FAILED || (r.error != NULL && r.close_code == WS_CODE_PROTOCOL));
        }
        free(copy);
    }
    o.close_code = r.close_code;
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
           whole.pings == cut.pings && whole.last == cut.last && whole.close_code == cut.close_code);
    return 0;
}
