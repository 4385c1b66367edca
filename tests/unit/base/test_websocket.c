/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of RFC 6455, its own examples among them. */
#include "base/scope.h"
#include "base/websocket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What a reader made of bytes, in words: "data[+-]text;ping text;close 1000;failed: why". */
static void tell(struct ws_reader *r, const char *bytes, size_t n, size_t step, struct buf *out)
{
    for (size_t at = 0; at < n; at += step) {
        size_t size = n - at < step ? n - at : step, done = 0;
        char copy[4096];

        memcpy(copy, bytes + at, size);
        while (done < size) {
            struct ws_piece piece;
            size_t used;
            enum ws_event event = ws_read(r, copy + done, size - done, &used, &piece);

            done += used;
            if (event == WS_DATA)
                buf_addf(out, "data%s%s %.*s;", piece.first ? "+" : "", piece.last ? "-" : "", (int)piece.n,
                         piece.p);
            else if (event == WS_PING || event == WS_PONG)
                buf_addf(out, "%s %.*s;", event == WS_PING ? "ping" : "pong", (int)piece.n, piece.p);
            else if (event == WS_CLOSE)
                buf_addf(out, "close %u %s;", r->close_code, piece.n > 2 ? piece.p + 2 : "");
            else if (event == WS_FAILED)
                buf_addf(out, "failed %u: %s;", r->close_code, r->error);
            else
                assert_int_equal(done, size);
        }
    }
}

#define READ(role, bytes, expected)                                                                          \
    do {                                                                                                     \
        struct ws_reader reader_;                                                                            \
        buf_auto out_ = BUF_INIT(64 * 1024);                                                                 \
        ws_reader_init(&reader_, role);                                                                      \
        tell(&reader_, bytes, sizeof(bytes) - 1, 4096, &out_);                                               \
        assert_string_equal(out_.p, expected);                                                               \
    } while (0)

static void examples_of_the_rfc_are_read(void **state)
{
    (void)state;
    READ(WS_CLIENT, "\x81\x05Hello", "data+- Hello;");
    READ(WS_SERVER, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "data+- Hello;");
    READ(WS_CLIENT, "\x01\x03Hel\x80\x02lo", "data+ Hel;data- lo;");
    READ(WS_CLIENT, "\x89\x05Hello", "ping Hello;");
    READ(WS_SERVER, "\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "pong Hello;");
    READ(WS_CLIENT, "\x82\x00", "data+- ;");
    READ(WS_CLIENT,
         "\x02\x01"
         "a\x89\x01p\x00\x01"
         "b\x80\x00",
         "data+ a;ping p;data b;data- ;");
}

static void a_close_frame_ends_everything_and_tells_why(void **state)
{
    (void)state;
    READ(WS_CLIENT, "\x88\x02\x03\xe8\x81\x05Hello", "close 1000 ;");
    READ(WS_CLIENT, "\x88\x00", "close 1005 ;");
    READ(WS_CLIENT, "\x88\x06\x0f\xa0home", "close 4000 home;");
    READ(WS_CLIENT, "\x88\x01\x03", "failed 1002: a close frame with an invalid code;");
    READ(WS_CLIENT, "\x88\x02\x03\xed", "failed 1002: a close frame with an invalid code;");
    READ(WS_CLIENT, "\x88\x02\x07\xd0", "failed 1002: a close frame with an invalid code;");
}

static void what_the_rfc_forbids_is_an_error_and_nothing_is_read_after_it(void **state)
{
    (void)state;
    READ(WS_SERVER, "\x81\x05Hello", "failed 1002: a client's frame is not masked;");
    READ(WS_CLIENT, "\x81\x85", "failed 1002: a server's frame is masked;");
    READ(WS_CLIENT, "\xc1\x00", "failed 1002: a reserved bit is set;");
    READ(WS_CLIENT, "\x83\x00", "failed 1002: an unknown opcode;");
    READ(WS_CLIENT, "\x8b\x00", "failed 1002: an unknown opcode;");
    READ(WS_CLIENT, "\x09\x00", "failed 1002: a control frame is fragmented;");
    READ(WS_CLIENT, "\x89\x7e", "failed 1002: a control frame is too long;");
    READ(WS_CLIENT, "\x80\x00", "failed 1002: a continuation of nothing;");
    READ(WS_CLIENT, "\x01\x00\x81\x00", "data+ ;failed 1002: a message begins within another;");
    READ(WS_CLIENT, "\x82\x7e\x00\x7d", "failed 1002: a length is not in its shortest form;");
    READ(WS_CLIENT, "\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff",
         "failed 1002: a length is not in its shortest form;");
    READ(WS_CLIENT, "\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00", "failed 1002: a length is out of range;");
    READ(WS_SERVER, "GET / HTTP/1.1\r\n", "failed 1002: a reserved bit is set;");
}

static void a_message_of_any_length_passes_in_pieces(void **state)
{
    static const unsigned char mask[4] = { 1, 2, 3, 4 };
    unsigned char head[WS_HEAD_MAX];
    struct ws_reader r;
    uint64_t total = UINT64_C(5) << 32, got = 0;
    size_t n = ws_head(head, WS_BINARY, total, mask), used;
    static char block[1 << 20];
    struct ws_piece piece;

    (void)state;
    assert_int_equal(n, 14);
    ws_reader_init(&r, WS_SERVER);
    assert_int_equal(ws_read(&r, (char *)head, n, &used, &piece), WS_MORE);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(ws_read(&r, block, sizeof(block), &used, &piece), WS_DATA);
        assert_int_equal(used, sizeof(block));
        assert_int_equal(piece.first, i == 0);
        assert_false(piece.last);
        got += piece.n;
    }
    assert_int_equal(got, 64 << 20);
}

static void it_does_not_matter_how_the_bytes_are_cut(void **state)
{
    static const unsigned char mask[4] = { 0xde, 0xad, 0xbe, 0xef };
    struct buf wire = BUF_INIT(1 << 20);
    char payload[300];

    (void)state;
    for (size_t n = 0; n < sizeof(payload); n += 43) {
        unsigned char head[WS_HEAD_MAX];
        size_t at = 0;

        memset(payload, 'a' + (int)(n / 43), n);
        buf_add(&wire, head, ws_head(head, n % 2 ? WS_BINARY : n > 125 ? WS_TEXT : WS_OP_PING, n, mask));
        ws_mask(payload, n, mask, &at);
        buf_add(&wire, payload, n);
    }
    for (size_t step = 1; step < wire.n; step++) {
        struct buf out = BUF_INIT(1 << 20), joined = BUF_INIT(1 << 20);
        struct ws_reader r;

        ws_reader_init(&r, WS_SERVER);
        tell(&r, wire.p, wire.n, step, &out);
        for (const char *p = out.p; *p != '\0'; p++)
            if (*p >= 'a' && *p < 'a' + 7 && strncmp(p, "data", 4) != 0)
                buf_addc(&joined, *p);
        assert_int_equal(strstr(out.p, "failed") == NULL, true);
        assert_true(joined.n >= 43 + 86 + 129 + 172 + 215 + 258);
        buf_done(&joined);
        buf_done(&out);
    }
    buf_done(&wire);
}

static void frames_are_written_in_the_shortest_form(void **state)
{
    static const uint64_t sizes[] = { 0, 125, 126, 65535, 65536 };
    static const size_t heads[] = { 2, 2, 4, 4, 10 };
    static const unsigned char mask[4] = { 9, 9, 9, 9 };
    unsigned char head[WS_HEAD_MAX];
    buf_auto b = BUF_INIT(1000);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_int_equal(ws_head(head, WS_BINARY, sizes[i], NULL), heads[i]);
        assert_int_equal(ws_head(head, WS_BINARY, sizes[i], mask), heads[i] + 4);
    }
    ws_add_frame(&b, WS_TEXT, "Hello", 5);
    ws_add_close(&b, 1000, "bye");
    assert_int_equal(b.n, 7 + 7);
    assert_memory_equal(b.p,
                        "\x81\x05Hello\x88\x05\x03\xe8"
                        "bye",
                        14);
}

static void keys_are_made_and_answered_as_in_the_rfc(void **state)
{
    static const unsigned char sample[16] = "the sample nonce";
    char accept[WS_ACCEPT_SIZE], key[WS_KEY_SIZE], longest[65];

    (void)state;
    ws_key_make(sample, key);
    assert_string_equal(key, "dGhlIHNhbXBsZSBub25jZQ==");
    ws_accept_key(key, accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_true(ws_key_valid(key));
    assert_false(ws_key_valid(""));
    assert_false(ws_key_valid("dGhlIHNhbXBsZSBub25jZR=="));
    assert_false(ws_key_valid("dGhlIHNhbXBsZSBub25jZQ="));
    assert_false(ws_key_valid("dGhlIHNhbXBsZSBub25jZQ== "));
    memset(longest, 'A', 64);
    longest[64] = '\0';
    ws_accept_key(longest, accept);
    assert_int_equal(strlen(accept), 28);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_of_the_rfc_are_read),
        cmocka_unit_test(a_close_frame_ends_everything_and_tells_why),
        cmocka_unit_test(what_the_rfc_forbids_is_an_error_and_nothing_is_read_after_it),
        cmocka_unit_test(a_message_of_any_length_passes_in_pieces),
        cmocka_unit_test(it_does_not_matter_how_the_bytes_are_cut),
        cmocka_unit_test(frames_are_written_in_the_shortest_form),
        cmocka_unit_test(keys_are_made_and_answered_as_in_the_rfc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
