/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of RFC 6455, its own examples among them. */
#include "base/codec/websocket.h"
#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void say_piece(const struct ws_piece *piece, void *arg)
{
    buf_addf(arg, "data%s%s %.*s;", piece->first ? "+" : "", piece->last ? "-" : "", (int)piece->n, piece->p);
}

/* What came, in words: "data[+-] text;" for each piece, at the end "closed CODE;" or "failed: WHY;". */
static struct ws receive(enum ws_role role, const char *bytes, size_t n, size_t step, struct buf *said)
{
    struct ws w;
    bool open = true;

    assert_true(ws_init(&w, role, 1 << 20, say_piece, said));
    for (size_t at = 0; at < n; at += step)
        open = ws_receive(&w, bytes + at, n - at < step ? n - at : step);
    if (!open && w.close_code != 0)
        buf_addf(said, "closed %u;", w.close_code);
    else if (!open)
        buf_addf(said, "failed: %s;", w.out.n > 4 && role == WS_SERVER ? w.out.p + 4 : "");
    assert_false(w.out.failed);
    return w;
}

#define READ(role, bytes, expected, answer)                                                                  \
    do {                                                                                                     \
        buf_auto said_ = BUF_INIT(64 * 1024);                                                                \
        struct ws w_ = receive(role, bytes, sizeof(bytes) - 1, 4096, &said_);                                \
        assert_string_equal(said_.p, expected);                                                              \
        assert_int_equal(w_.out.n, sizeof(answer) - 1);                                                      \
        assert_memory_equal(w_.out.p, answer, sizeof(answer) - 1);                                           \
        ws_done(&w_);                                                                                        \
    } while (0)

static void examples_of_the_rfc_are_read(void **state)
{
    (void)state;
    READ(WS_CLIENT, "\x81\x05Hello", "data+- Hello;", "");
    READ(WS_SERVER, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "data+- Hello;", "");
    READ(WS_CLIENT, "\x01\x03Hel\x80\x02lo", "data+ Hel;data- lo;", "");
    READ(WS_SERVER, "\x89\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "", "\x8a\x05Hello");
    READ(WS_SERVER, "\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "", "");
    READ(WS_CLIENT, "\x82\x00", "data+- ;", "");
    READ(WS_SERVER,
         "\x02\x81\0\0\0\0"
         "a\x89\x81\0\0\0\0p\x00\x81\0\0\0\0"
         "b\x80\x80\0\0\0\0",
         "data+ a;data b;data- ;", "\x8a\x01p");
}

static void a_close_frame_ends_everything_and_has_the_code(void **state)
{
    (void)state;
    READ(WS_SERVER, "\x88\x82\0\0\0\0\x03\xe8\x81\x85\0\0\0\0Hello", "closed 1000;", "\x88\x02\x03\xe8");
    READ(WS_SERVER, "\x88\x80\0\0\0\0", "closed 1005;", "\x88\x02\x03\xe8");
    READ(WS_SERVER, "\x88\x86\0\0\0\0\x0f\xa0home", "closed 4000;", "\x88\x02\x0f\xa0");
}

static void what_the_rfc_forbids_is_an_error_and_nothing_is_read_after_it(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *said;
    } cases[] = {
#define FAILS(bytes, why) { bytes, sizeof(bytes) - 1, "failed: " why ";" }
        FAILS("\x81\x05Hello", "a client's frame is not masked"),
        FAILS("\xc1\x80mask", "a reserved bit is set"),
        FAILS("\x83\x80mask", "an unknown opcode"),
        FAILS("\x8b\x80mask", "an unknown opcode"),
        FAILS("\x80\x80mask", "a continuation of nothing"),
        FAILS("\x88\x81\0\0\0\0\x03", "a close frame with an invalid code"),
        FAILS("\x88\x82\0\0\0\0\x03\xed", "a close frame with an invalid code"),
        FAILS("\x88\x82\0\0\0\0\x07\xd0", "a close frame with an invalid code"),
        FAILS("GET / HTTP/1.1\r\n", "a reserved bit is set"),
        FAILS("\x09\x80mask", "a malformed frame"),
        FAILS("\x89\xfe\x00\x7emask", "a malformed frame"),
        FAILS("\x82\xfe\x00\x7dmask", "a malformed frame"),
        FAILS("\x82\xff\x00\x00\x00\x00\x00\x00\xff\xffmask", "a malformed frame"),
        FAILS("\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00mask", "a malformed frame"),
#undef FAILS
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_auto said = BUF_INIT(1024);
        struct ws w = receive(WS_SERVER, cases[i].bytes, cases[i].n, 4096, &said);

        assert_string_equal(said.p, cases[i].said);
        assert_memory_equal(w.out.p + 2, "\x03\xea", 2);
        assert_false(ws_receive(&w, "\x82\x80mask", 6));
        assert_int_equal(said.n, strlen(cases[i].said));
        ws_done(&w);
    }
}

static void a_message_within_another_is_an_error(void **state)
{
    buf_auto said = BUF_INIT(1024);
    struct ws w = receive(WS_SERVER, "\x01\x80\0\0\0\0\x81\x80\0\0\0\0", 12, 4096, &said);

    (void)state;
    assert_string_equal(said.p, "data+ ;failed: a message begins within another;");
    ws_done(&w);
}

static void a_server_masks_nothing(void **state)
{
    buf_auto said = BUF_INIT(1024);
    struct ws w = receive(WS_CLIENT, "\x81\x81maskx", 7, 4096, &said);

    (void)state;
    assert_string_equal(said.p, "failed: ;");
    ws_done(&w);
}

static void count_piece(const struct ws_piece *piece, void *arg)
{
    uint64_t *got = arg;

    assert_int_equal(piece->first, *got == 0);
    assert_false(piece->last);
    *got += piece->n;
}

static void a_message_of_any_length_passes_in_pieces(void **state)
{
    static char block[1 << 20];
    uint64_t got = 0;
    struct ws w;

    (void)state;
    assert_true(ws_init(&w, WS_SERVER, 1024, count_piece, &got));
    assert_true(ws_receive(&w, "\x82\xff\x00\x00\x00\x05\x00\x00\x00\x00mask", 14)); /* 20 GiB */
    for (int i = 0; i < 64; i++)
        assert_true(ws_receive(&w, block, sizeof(block)));
    assert_int_equal(got, 64 << 20);
    ws_done(&w);
}

static void join_piece(const struct ws_piece *piece, void *arg)
{
    buf_add(arg, piece->p, piece->n);
    if (piece->last)
        buf_addc(arg, '.');
}

static void what_an_end_sends_the_other_reads_however_it_is_cut(void **state)
{
    static const size_t sizes[] = { 0, 1, 125, 126, 300, 5000, 65535, 65536 };
    struct buf sent = BUF_INIT(1 << 20);
    static char payload[65536];
    struct ws client;

    (void)state;
    assert_true(ws_init(&client, WS_CLIENT, 1 << 20, join_piece, NULL));
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        memset(payload, 'a' + (int)i, sizes[i]);
        ws_send(&client, payload, sizes[i]);
        buf_add(&sent, payload, sizes[i]);
        buf_addc(&sent, '.');
    }
    assert_false(client.out.failed);
    for (size_t step = 1; step < client.out.n; step = step * 3 + 1) {
        struct buf got = BUF_INIT(1 << 20);
        struct ws server;

        assert_true(ws_init(&server, WS_SERVER, 1024, join_piece, &got));
        for (size_t at = 0; at < client.out.n; at += step)
            assert_true(
                ws_receive(&server, client.out.p + at, client.out.n - at < step ? client.out.n - at : step));
        assert_int_equal(got.n, sent.n);
        assert_memory_equal(got.p, sent.p, got.n);
        ws_done(&server);
        buf_done(&got);
    }
    ws_done(&client);
    buf_done(&sent);
}

static void frames_are_written_in_the_shortest_form(void **state)
{
    static const size_t sizes[] = { 0, 125, 126, 65535, 65536 };
    static const size_t heads[] = { 2, 2, 4, 4, 10 };
    static const char payload[65536];
    char reason[200];
    struct ws w;

    (void)state;
    memset(reason, 'r', sizeof(reason) - 1);
    reason[sizeof(reason) - 1] = '\0';
    assert_true(ws_init(&w, WS_SERVER, 1 << 20, say_piece, NULL));
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        ws_send(&w, payload, sizes[i]);
        assert_int_equal(w.out.n, heads[i] + sizes[i]);
        buf_reset(&w.out);
    }
    ws_close(&w, 1000, reason);
    assert_int_equal(w.out.n, 127);
    assert_memory_equal(w.out.p, "\x88\x7d\x03\xe8rrr", 7);
    buf_reset(&w.out);
    ws_send(&w, "late", 4);
    assert_int_equal(w.out.n, 0);
    ws_done(&w);
}

static void an_answer_that_does_not_fit_is_a_failure(void **state)
{
    struct ws w;

    (void)state;
    assert_true(ws_init(&w, WS_SERVER, 5, say_piece, NULL));
    ws_send(&w, "too long", 8);
    assert_true(w.out.failed);
    ws_done(&w);
}

static void keys_are_answered_as_in_the_rfc(void **state)
{
    buf_auto accept = BUF_INIT(64);

    (void)state;
    ws_add_accept_key(&accept, "dGhlIHNhbXBsZSBub25jZQ==");
    assert_string_equal(accept.p, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_true(ws_key_valid("dGhlIHNhbXBsZSBub25jZQ=="));
    assert_false(ws_key_valid(""));
    assert_false(ws_key_valid("dGhlIHNhbXBsZSBub25jZR=="));
    assert_false(ws_key_valid("dGhlIHNhbXBsZSBub25jZQ="));
    assert_false(ws_key_valid("dGhlIHNhbXBsZSBub25jZQ== "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_of_the_rfc_are_read),
        cmocka_unit_test(a_close_frame_ends_everything_and_has_the_code),
        cmocka_unit_test(what_the_rfc_forbids_is_an_error_and_nothing_is_read_after_it),
        cmocka_unit_test(a_server_masks_nothing),
        cmocka_unit_test(a_message_within_another_is_an_error),
        cmocka_unit_test(a_message_of_any_length_passes_in_pieces),
        cmocka_unit_test(what_an_end_sends_the_other_reads_however_it_is_cut),
        cmocka_unit_test(frames_are_written_in_the_shortest_form),
        cmocka_unit_test(an_answer_that_does_not_fit_is_a_failure),
        cmocka_unit_test(keys_are_answered_as_in_the_rfc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
