/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SPDY frames from a client.  The first byte chooses how the bytes are cut; however they are cut, the same
 * events must follow, and the answers must be the same.
 */
#include "agent/kube/server/spdy.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    struct spdy *s;
    uint64_t sum; /* of events and payloads in order */
    uint64_t out; /* of answers */
    bool open;
};

static void mix(uint64_t *sum, const void *p, size_t n)
{
    const unsigned char *b = p;

    for (size_t i = 0; i < n; i++)
        *sum = *sum * 31 + b[i];
}

static bool on_stream(uint32_t id, const struct spdy_headers *h, void *owner)
{
    struct outcome *o = owner;

    mix(&o->sum, &id, sizeof(id));
    for (size_t i = 0; i < h->n; i++) {
        mix(&o->sum, h->v[i].name, strlen(h->v[i].name));
        mix(&o->sum, h->v[i].value, strlen(h->v[i].value));
    }
    return spdy_header(h, "streamtype")[0] != 'x';
}

static void on_opened(uint32_t id, void *owner)
{
    struct outcome *o = owner;

    spdy_send(o->s, id, "hello", 5, id % 4 == 1);
}

static void on_data(uint32_t id, const char *p, size_t n, void *owner)
{
    (void)id;
    mix(&((struct outcome *)owner)->sum, p, n);
}

static void on_event(uint32_t id, void *owner)
{
    mix(&((struct outcome *)owner)->sum, &id, sizeof(id));
}

static struct outcome feed(const uint8_t *data, size_t size, size_t step)
{
    static const struct spdy_events events = { .on_stream = on_stream,
                                               .on_opened = on_opened,
                                               .on_data = on_data,
                                               .on_fin = on_event,
                                               .on_reset = on_event };
    struct spdy *s = malloc(sizeof(*s));
    struct outcome o = { .s = s, .open = true };
    struct err e = { 0 };

    if (spdy_init(s, 1 << 20, &events, &o, &e) != ERR_OK)
        abort();
    for (size_t at = 0; at < size; at += step) {
        size_t n = size - at < step ? size - at : step;
        char *copy = malloc(n); /* exactly as long: a sanitizer sees what reads past it */

        memcpy(copy, data + at, n);
        o.open = spdy_receive(s, copy, n);
        mix(&o.out, s->out.p, s->out.n);
        buf_reset(&s->out);
        free(copy);
    }
    spdy_done(s);
    free(s);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole, cut;

    if (size == 0)
        return 0;
    whole = feed(data + 1, size - 1, size);
    cut = feed(data + 1, size - 1, 1 + data[0] % 7);
    /* WINDOW_UPDATE counts what came by then, so answers may differ; what the events say may not. */
    assert(whole.sum == cut.sum && whole.open == cut.open);
    return 0;
}
