/* SPDX-License-Identifier: Apache-2.0 */
/* The SPDY codec against frames by hand, compressed by a zlib stream of the test's own. */
#include "agent/kube/server/spdy.h"
#include "agent/kube/server/spdy_internal.h"
#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

struct fixture {
    struct spdy s;
    z_stream deflate;
    struct buf in;
    char seen[4096]; /* events in order */
    bool refuse;
};

static void note(struct fixture *f, const char *text)
{
    snprintf(f->seen + strlen(f->seen), sizeof(f->seen) - strlen(f->seen), "%s", text);
}

static bool on_stream(uint32_t id, const struct spdy_headers *h, void *owner)
{
    struct fixture *f = owner;
    char text[256];

    snprintf(text, sizeof(text), "+%u(%s,%s) ", id, spdy_header(h, "streamtype"), spdy_header(h, "port"));
    note(f, text);
    return !f->refuse;
}

static void on_opened(uint32_t id, void *owner)
{
    char text[32];

    snprintf(text, sizeof(text), "o%u ", id);
    note(owner, text);
}

static void on_data(uint32_t id, const char *p, size_t n, void *owner)
{
    char text[128];

    snprintf(text, sizeof(text), "d%u:%.*s ", id, n > 64 ? 0 : (int)n, p);
    note(owner, text);
}

static void on_fin(uint32_t id, void *owner)
{
    char text[32];

    snprintf(text, sizeof(text), "f%u ", id);
    note(owner, text);
}

static void on_reset(uint32_t id, void *owner)
{
    char text[32];

    snprintf(text, sizeof(text), "r%u ", id);
    note(owner, text);
}

static const struct spdy_events events = {
    .on_stream = on_stream, .on_opened = on_opened, .on_data = on_data, .on_fin = on_fin, .on_reset = on_reset
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err e = { 0 };

    if (spdy_init(&f->s, 1 << 20, &events, f, &e) != ERR_OK || deflateInit(&f->deflate, 9) != Z_OK ||
        deflateSetDictionary(&f->deflate, spdy_dictionary, SPDY_DICTIONARY_SIZE) != Z_OK)
        return -1;
    buf_init(&f->in, 1 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    spdy_done(&f->s);
    deflateEnd(&f->deflate);
    buf_done(&f->in);
    free(f);
    return 0;
}

/* ---- frames of a client ---- */

static void add32(struct buf *b, uint32_t v)
{
    for (int i = 24; i >= 0; i -= 8)
        buf_addc(b, (char)(v >> i & 0xff));
}

static void control(struct fixture *f, unsigned type, unsigned flags, const struct buf *body)
{
    add32(&f->in, 0x80030000u | type);
    add32(&f->in, (uint32_t)flags << 24 | (uint32_t)body->n);
    buf_add(&f->in, body->p, body->n);
}

static void pair(struct fixture *f, unsigned type, uint32_t a, uint32_t b)
{
    struct buf body = BUF_INIT(8);

    add32(&body, a);
    add32(&body, b);
    control(f, type, 0, &body);
    buf_done(&body);
}

static void add_block(struct fixture *f, struct buf *body, const char *const *words, size_t n)
{
    struct buf plain = BUF_INIT(64 << 10);
    unsigned char packed[8192];

    add32(&plain, (uint32_t)n / 2);
    for (size_t i = 0; i < n; i++) {
        add32(&plain, (uint32_t)strlen(words[i]));
        buf_adds(&plain, words[i]);
    }
    f->deflate.next_in = (unsigned char *)plain.p;
    f->deflate.avail_in = (uInt)plain.n;
    f->deflate.next_out = packed;
    f->deflate.avail_out = sizeof(packed);
    assert_int_equal(deflate(&f->deflate, Z_SYNC_FLUSH), Z_OK);
    buf_add(body, packed, sizeof(packed) - f->deflate.avail_out);
    buf_done(&plain);
}

static void open_stream(struct fixture *f, uint32_t id, const char *type, bool fin)
{
    const char *words[] = { "streamType", type, "port", "80" };
    struct buf body = BUF_INIT(16 << 10);

    add32(&body, id);
    add32(&body, 0);
    buf_add(&body, "\0\0", 2);
    add_block(f, &body, words, ARRAY_LEN(words));
    control(f, 1, fin ? 1 : 0, &body);
    buf_done(&body);
}

static void data(struct fixture *f, uint32_t id, const char *p, size_t n, bool fin)
{
    add32(&f->in, id);
    add32(&f->in, (fin ? 1u << 24 : 0) | (uint32_t)n);
    buf_add(&f->in, p, n);
}

static bool feed(struct fixture *f, size_t piece)
{
    bool more = true;

    for (size_t at = 0; at < f->in.n; at += piece)
        more = spdy_receive(&f->s, f->in.p + at, f->in.n - at < piece ? f->in.n - at : piece);
    buf_reset(&f->in);
    return more;
}

static uint32_t word(const struct fixture *f, size_t at)
{
    const unsigned char *b = (const unsigned char *)f->s.out.p + at;

    assert_true(at + 4 <= f->s.out.n);
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The frame of that kind in `out`, at its body. */
static size_t frame_of(const struct fixture *f, uint32_t first)
{
    for (size_t at = 0; at < f->s.out.n; at += 8 + (word(f, at + 4) & 0xffffff))
        if (word(f, at) == first)
            return at + 8;
    fail_msg("there is no frame %08x", first);
    return 0;
}

/* ---- tests ---- */

static void streams_are_opened_read_and_closed_whatever_the_pieces(void **state)
{
    for (size_t piece = 1; piece < 30; piece += 7) {
        struct fixture *f = *state;

        open_stream(f, 1, "error", false);
        open_stream(f, 3, "stdin", false);
        data(f, 3, "hello", 5, false);
        data(f, 3, "", 0, true);
        data(f, 3, "late", 4, false); /* after its end: dropped */
        open_stream(f, 5, "data", true);
        assert_true(feed(f, piece));
        if (piece > 1) /* in pieces of one byte data comes so, too */
            assert_non_null(strstr(f->seen, "f3 "));
        else
            assert_string_equal(
                f->seen, "+1(error,80) o1 +3(stdin,80) o3 d3:h d3:e d3:l d3:l d3:o f3 +5(data,80) o5 f5 ");
        assert_int_equal(word(f, frame_of(f, 0x80030002)), 1); /* SYN_REPLY of the first */
        teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

static void data_is_cut_into_frames_and_ends_with_fin(void **state)
{
    struct fixture *f = *state;
    static char big[SPDY_DATA_MAX + 10];

    open_stream(f, 1, "stdout", false);
    feed(f, 1000);
    buf_reset(&f->s.out);
    spdy_send(&f->s, 1, big, sizeof(big), true);
    assert_int_equal(word(f, 0), 1);
    assert_int_equal(word(f, 4), SPDY_DATA_MAX);
    assert_int_equal(word(f, 8 + SPDY_DATA_MAX), 1);
    assert_int_equal(word(f, 12 + SPDY_DATA_MAX), 1u << 24 | 10);
    assert_int_equal(f->s.out.n, sizeof(big) + 16);
    buf_reset(&f->s.out);
    spdy_send(&f->s, 1, "x", 1, false);
    assert_int_equal(f->s.out.n, 0); /* after its end */
    assert_int_equal(spdy_room(&f->s, 1), 0);
}

static void windows_bind_only_a_peer_that_keeps_them(void **state)
{
    struct fixture *f = *state;
    static char big[100000];

    open_stream(f, 1, "stdout", false);
    feed(f, 1000);
    assert_true(spdy_room(&f->s, 1) == SIZE_MAX);
    spdy_send(&f->s, 1, big, 60000, false);
    pair(f, 9, 1, 100);
    feed(f, 1000);
    assert_int_equal(spdy_room(&f->s, 1), SPDY_WINDOW - 60000 + 100);
    spdy_send(&f->s, 1, big, SPDY_WINDOW - 60000 + 100, false);
    assert_int_equal(spdy_room(&f->s, 1), 0);
    pair(f, 9, 1, INT32_MAX);
    feed(f, 1000);
    assert_int_equal(spdy_room(&f->s, 1), INT32_MAX);
    pair(f, 9, 1, INT32_MAX); /* more than a window may have */
    feed(f, 1000);
    assert_non_null(strstr(f->seen, "r1 "));
    assert_int_equal(word(f, frame_of(f, 0x80030003) + 4), 7);
}

static void what_comes_is_acknowledged(void **state)
{
    struct fixture *f = *state;
    static char big[SPDY_WINDOW / 2];

    open_stream(f, 1, "stdin", false);
    feed(f, 1000);
    data(f, 1, big, sizeof(big), false);
    feed(f, 4096);
    assert_int_equal(word(f, frame_of(f, 0x80030009)), 1);
    assert_int_equal(word(f, frame_of(f, 0x80030009) + 4), SPDY_WINDOW / 2);
}

static void pings_of_the_peer_come_back(void **state)
{
    struct fixture *f = *state;
    struct buf body = BUF_INIT(4);

    add32(&body, 2); /* an answer to one of ours, which there are none of */
    control(f, 6, 0, &body);
    assert_true(feed(f, 3));
    assert_int_equal(f->s.out.n, 0);
    buf_reset(&body);
    add32(&body, 41);
    control(f, 6, 0, &body);
    assert_true(feed(f, 3));
    assert_int_equal(word(f, frame_of(f, 0x80030006)), 41);
    buf_done(&body);
}

static void refused_reset_and_too_many_streams_are_gone(void **state)
{
    struct fixture *f = *state;

    f->refuse = true;
    open_stream(f, 1, "x", false);
    feed(f, 1000);
    assert_int_equal(word(f, frame_of(f, 0x80030003) + 4), SPDY_REFUSED_STREAM);
    assert_int_equal(spdy_room(&f->s, 1), 0);
    f->refuse = false;
    open_stream(f, 3, "x", false);
    pair(f, 3, 3, SPDY_CANCEL);
    feed(f, 1000);
    assert_non_null(strstr(f->seen, "r3 "));
    for (uint32_t i = 0; i < SPDY_STREAMS_MAX; i++)
        open_stream(f, 5 + 2 * i, "x", false);
    assert_true(feed(f, 4096));
    buf_reset(&f->s.out);
    open_stream(f, 5 + 2 * SPDY_STREAMS_MAX, "x", false);
    assert_true(feed(f, 4096));
    assert_int_equal(word(f, frame_of(f, 0x80030003)), 5 + 2 * SPDY_STREAMS_MAX);
}

static void what_breaks_the_protocol_ends_the_session(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
        { "\x80\x02\x00\x01\x00\x00\x00\x00", 8 },                        /* SPDY/2 */
        { "\x80\x03\x00\x06\x00\x00\x00\x03xyz", 11 },                    /* a ping of three bytes */
        { "\x80\x03\x00\x01\x00\x10\x00\x00", 8 },                        /* a control frame of 1 MiB */
        { "\x80\x03\x00\x01\x00\x00\x00\x0c\0\0\0\1\0\0\0\0\0\0xx", 20 }, /* no zlib */
        { "\x80\x03\x00\x04\x00\x00\x00\x04\0\0\0\2", 12 },               /* settings without their entries */
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct fixture *f = *state;

        buf_add(&f->in, bad[i].bytes, bad[i].n);
        assert_false(feed(f, 5));
        frame_of(f, 0x80030007);
        spdy_send(&f->s, 1, "x", 1, false);
        assert_false(spdy_receive(&f->s, "x", 1));
        teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

static void a_stream_number_must_be_new_and_odd(void **state)
{
    static const uint32_t bad[] = { 2, 1, 3 };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct fixture *f = *state;

        open_stream(f, 3, "x", false);
        open_stream(f, bad[i], "x", false);
        assert_false(feed(f, 4096));
        teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

static void a_bomb_of_headers_is_refused(void **state)
{
    struct fixture *f = *state;
    struct buf body = BUF_INIT(1 << 20);
    static char value[60000];
    const char *words[] = { "streamtype", value };

    memset(value, 'a', sizeof(value) - 1);
    add32(&body, 1);
    add32(&body, 0);
    buf_add(&body, "\0\0", 2);
    add_block(f, &body, words, 2);
    assert_true(body.n < 1000);
    control(f, 1, 0, &body);
    assert_false(feed(f, 4096));
    assert_string_equal(f->seen, "");
    buf_done(&body);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(streams_are_opened_read_and_closed_whatever_the_pieces),
        T(data_is_cut_into_frames_and_ends_with_fin),
        T(windows_bind_only_a_peer_that_keeps_them),
        T(what_comes_is_acknowledged),
        T(pings_of_the_peer_come_back),
        T(refused_reset_and_too_many_streams_are_gone),
        T(what_breaks_the_protocol_ends_the_session),
        T(a_stream_number_must_be_new_and_odd),
        T(a_bomb_of_headers_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
