/* SPDX-License-Identifier: Apache-2.0 */
/* Message frames in pieces, and how a status travels. */
#include "../helper.h"

#include "base/grpc/frame.h"
#include "base/grpc/status.h"

static void frames_arrive_in_any_pieces(void **state)
{
    static const uint8_t bytes[] = { 0, 0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'd' };

    (void)state;
    for (size_t piece = 1; piece <= sizeof(bytes); piece++) {
        struct grpc_budget budget = { .max = 100 };
        struct grpc_frames f = { .max = 3, .budget = &budget };
        char got[32] = "";
        for (size_t at = 0; at < sizeof(bytes);) {
            size_t n = piece < sizeof(bytes) - at ? piece : sizeof(bytes) - at, used;
            struct grpc_bytes m;
            enum grpc_frame what = grpc_frames_take(&f, bytes + at, n, &used, &m);
            at += used;
            if (what == GRPC_FRAME_MESSAGE)
                snprintf(got + strlen(got), sizeof(got) - strlen(got), "%.*s|", (int)m.n, (const char *)m.p);
            else
                assert_int_equal(what, GRPC_FRAME_MORE);
        }
        assert_string_equal(got, "abc||d|");
        assert_true(grpc_frames_between(&f));
        grpc_frames_done(&f);
        assert_int_equal(budget.used, 0);
    }
}

static void bad_frames_are_named(void **state)
{
    struct grpc_budget budget = { .max = 10 };
    struct grpc_frames f = { .max = 100, .budget = &budget };
    struct grpc_bytes m;
    size_t used;

    (void)state;
    assert_int_equal(grpc_frames_take(&f, (const uint8_t *)"\0\0\0\0\x65", 5, &used, &m),
                     GRPC_FRAME_TOO_LARGE);
    assert_int_equal(f.size, 101);
    grpc_frames_done(&f);
    assert_int_equal(grpc_frames_take(&f, (const uint8_t *)"\1\0\0\0\1x", 6, &used, &m),
                     GRPC_FRAME_COMPRESSED);
    grpc_frames_done(&f);
    assert_int_equal(grpc_frames_take(&f, (const uint8_t *)"\0\0\0\0\x64x", 6, &used, &m),
                     GRPC_FRAME_NO_ROOM);
    grpc_frames_done(&f);
    assert_int_equal(budget.used, 0);
}

/* Memory follows what arrived, not what was announced. */
static void an_announced_length_costs_nothing(void **state)
{
    struct grpc_budget budget = { .max = 8192 };
    struct grpc_frames f = { .max = 1 << 30, .budget = &budget };
    struct grpc_bytes m;
    size_t used;

    (void)state;
    assert_int_equal(grpc_frames_take(&f, (const uint8_t *)"\0\x40\0\0\0x", 6, &used, &m), GRPC_FRAME_MORE);
    assert_true(budget.used <= 8192);
    assert_false(grpc_frames_between(&f));
    grpc_frames_done(&f);
}

static void messages_are_percent_encoded(void **state)
{
    static const char *const pairs[][2] = {
        { "plain text!", "plain text!" },
        { "100%", "100%25" },
        { "a\nb", "a%0Ab" },
        { "\xc3\xa9", "%C3%A9" },
    };
    char text[GRPC_TEXT_MAX], large[3 * GRPC_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        buf_auto out = BUF_INIT(100);
        grpc_message_encode(&out, pairs[i][0]);
        assert_string_equal(out.p, pairs[i][1]);
    }
    grpc_message_decode("%C3%a9%2", 8, text);
    assert_string_equal(text, "\xc3\xa9%2");
    grpc_message_decode("a%00%0ab%ff%zz", 14, text);
    assert_string_equal(text, "a??b?%zz");
    memset(large, 'x', sizeof(large));
    memcpy(large + GRPC_TEXT_MAX - 2, "\xc3\xa9", 2); /* its second byte has no room */
    grpc_message_decode(large, sizeof(large), text);
    assert_int_equal(strlen(text), GRPC_TEXT_MAX - 2);
}

static void timeouts_have_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } fine[] = { { "1H", 3600000 }, { "2M", 120000 }, { "3S", 3000 }, { "4m", 4 },
                 { "5u", 1 },       { "6n", 1 },      { "0n", 0 },    { "99999999H", 359999996400000 } };
    static const char *const bad[] = { "", "S", "1", "1x", "-1S", "123456789S", " 1S", "1.5S" };
    char text[GRPC_TIMEOUT_SIZE];
    uint64_t ms = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        assert_true(grpc_timeout_parse(fine[i].text, strlen(fine[i].text), &ms));
        assert_int_equal(ms, fine[i].ms);
    }
    ms = 7;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(grpc_timeout_parse(bad[i], strlen(bad[i]), &ms));
    assert_int_equal(ms, 7);
    grpc_timeout_format(1500, text);
    assert_string_equal(text, "1500m");
    grpc_timeout_format(100000001, text);
    assert_string_equal(text, "100001S");
    grpc_timeout_format(UINT64_MAX, text);
    assert_string_equal(text, "99999999H");
}

static void codes_come_from_many_places(void **state)
{
    (void)state;
    assert_int_equal(grpc_status_number("16", 2), ERR_UNAUTHENTICATED);
    assert_int_equal(grpc_status_number("99999999999999999999", 20), GRPC_NUMBER_MAX);
    assert_int_equal(grpc_status_number("", 0), -1);
    assert_int_equal(grpc_status_number("1x", 2), -1);
    assert_int_equal(grpc_code_of_http(404), ERR_UNIMPLEMENTED);
    assert_int_equal(grpc_code_of_http(503), ERR_UNAVAILABLE);
    assert_int_equal(grpc_code_of_http(500), ERR_UNKNOWN);
    assert_string_equal(grpc_code_name(ERR_EXHAUSTED), "ResourceExhausted");
    assert_string_equal(grpc_code_name(99), "Unknown");
    assert_true(grpc_is_content_type("application/grpc"));
    assert_true(grpc_is_content_type("application/grpc+proto"));
    assert_false(grpc_is_content_type("application/grpc-web"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_arrive_in_any_pieces),
        cmocka_unit_test(bad_frames_are_named),
        cmocka_unit_test(an_announced_length_costs_nothing),
        cmocka_unit_test(messages_are_percent_encoded),
        cmocka_unit_test(timeouts_have_units),
        cmocka_unit_test(codes_come_from_many_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
