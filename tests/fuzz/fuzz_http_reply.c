/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP response as a probe reads it, in one piece and byte by byte; then where its redirect leads. */
#include "agent/probe/reply.h"
#include "agent/probe/url.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void follow(const char *location)
{
    struct probe_url from = { 0 }, next = { 0 };
    struct err e = { 0 };
    buf_auto text = BUF_INIT(1 << 20);

    if (probe_url_make(&from, false, "10.0.0.1", 8080, location, &e) != ERR_OK)
        return;
    if (probe_url_follow(&next, &from, location, &e) == ERR_OK) {
        assert(next.port >= 1 && next.port <= 65535 && next.host[0] != '\0');
        probe_url_add(&next, &text);
        buf_reset(&text);
        probe_url_add_request(&next, &text);
        for (size_t i = 0; i < text.n; i++) /* nothing that could begin another line of the request */
            assert((unsigned char)text.p[i] >= ' ' && text.p[i] != 0x7f);
        probe_url_done(&next);
    }
    probe_url_done(&from);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct probe_reply whole, pieces;

    probe_reply_init(&whole);
    probe_reply_init(&pieces);
    probe_reply_feed(&whole, (const char *)data, size);
    for (size_t i = 0; i < size; i++)
        probe_reply_feed(&pieces, (const char *)data + i, 1);
    probe_reply_eof(&whole);
    probe_reply_eof(&pieces);
    assert(whole.state == REPLY_COMPLETE || whole.state == REPLY_BROKEN);
    assert(whole.state == pieces.state && whole.body.n == pieces.body.n);
    assert(whole.body.n <= PROBE_BODY_MAX && whole.location.n <= PROBE_LOCATION_MAX);
    if (whole.state == REPLY_COMPLETE)
        assert(whole.status >= 100 && whole.status <= 999);
    follow(whole.location.p);
    probe_reply_done(&whole);
    probe_reply_done(&pieces);
    return 0;
}
