/* SPDX-License-Identifier: Apache-2.0 */
/* Trust anchors: certificates of PEM texts, and the order in which they are written. */
#include "agent/cluster/anchors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCK(label, body) "-----BEGIN " label "-----\n" body "\n-----END " label "-----\n"
#define CERTIFICATE(body) BLOCK("CERTIFICATE", body)

/* In the order of this uid. */
static char *written(const char *uid, const char *first, const char *second)
{
    struct buf out = BUF_INIT(1 << 20);
    struct anchors a;
    struct err e = { 0 };

    anchors_init(&a, uid);
    anchors_add(&a, first);
    if (second != NULL)
        anchors_add(&a, second);
    assert_int_equal(anchors_write(&a, &out, &e), ERR_OK);
    anchors_done(&a);
    return buf_detach(&out);
}

static void assert_written(const char *first, const char *second, const char *wanted)
{
    char *text = written("uid", first, second);

    assert_string_equal(text, wanted);
    free(text);
}

static void each_certificate_is_written_once(void **state)
{
    (void)state;
    assert_written(CERTIFICATE("YQ==") CERTIFICATE("YQ=="), "text between\n" CERTIFICATE("YQ==") "and after",
                   CERTIFICATE("YQ=="));
    assert_written("", NULL, "");
}

static void lines_are_broken_anew(void **state)
{
    (void)state;
    assert_written(
        "-----BEGIN CERTIFICATE-----\r\nAAAAAAAA\r\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAA\r\n-----END CERTIFICATE-----",
        NULL, CERTIFICATE("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\nAAAAAAAA"));
}

static void what_is_no_block_is_skipped(void **state)
{
    (void)state;
    assert_written("-----BEGIN CERTIFICATE-----\nYQ==\n", NULL, "");
    assert_written("-----BEGIN CERTIFICATE-----\nYQ==\n-----END OTHER-----\n", NULL, "");
    assert_written(CERTIFICATE("not base64!") CERTIFICATE("") CERTIFICATE("Yg=="), NULL, CERTIFICATE("Yg=="));
    assert_written("-----BEGIN -----BEGIN CERTIFICATE-----\n-----BEGIN", NULL, "");
}

static void the_order_is_the_pods_and_stays(void **state)
{
    static const char all[] = CERTIFICATE("YQ==") CERTIFICATE("Yg==") CERTIFICATE("Yw==") CERTIFICATE("ZA==");
    static const char turned[] =
        CERTIFICATE("ZA==") CERTIFICATE("Yw==") CERTIFICATE("Yg==") CERTIFICATE("YQ==");
    char *one = written("one", all, NULL), *again = written("one", turned, NULL), uid[2] = "a";
    size_t others = 0;

    (void)state;
    assert_string_equal(one, again);
    assert_int_equal(strlen(one), strlen(all));
    for (; uid[0] <= 'z'; uid[0]++) {
        char *text = written(uid, all, NULL);

        others += strcmp(text, one) != 0;
        free(text);
    }
    assert_true(others > 10);
    free(one);
    free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_certificate_is_written_once),
        cmocka_unit_test(lines_are_broken_anew),
        cmocka_unit_test(what_is_no_block_is_skipped),
        cmocka_unit_test(the_order_is_the_pods_and_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
