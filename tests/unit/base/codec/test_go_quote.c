/* SPDX-License-Identifier: Apache-2.0 */
/* Go's way to quote, as in the files of metadata.labels and metadata.annotations. */
#include "base/codec/go_quote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void is_quoted(const char *text, const char *expected)
{
    buf_auto b = BUF_INIT(1024);

    go_quote(&b, text, strlen(text));
    assert_string_equal(b.p, expected);
}

static void plain_text_stands_in_quotes(void **state)
{
    (void)state;
    is_quoted("", "\"\"");
    is_quoted("web 1.2", "\"web 1.2\"");
    is_quoted("Z\xc3\xbcrich \xe4\xb8\xad \xf0\x9f\x8c\x8d",
              "\"Z\xc3\xbcrich \xe4\xb8\xad \xf0\x9f\x8c\x8d\"");
}

static void quotes_backslashes_and_controls_are_escaped(void **state)
{
    (void)state;
    is_quoted("a\"b\\c", "\"a\\\"b\\\\c\"");
    is_quoted("\a\b\t\n\v\f\r", "\"\\a\\b\\t\\n\\v\\f\\r\"");
    is_quoted("\x01\x1f\x7f", "\"\\x01\\x1f\\x7f\"");
}

static void what_cannot_be_seen_is_written_by_its_number(void **state)
{
    (void)state;
    is_quoted("\xc2\xa0\xc2\x85", "\"\\u00a0\\u0085\"");         /* no-break space, next line */
    is_quoted("\xe2\x80\x8b\xef\xbb\xbf", "\"\\u200b\\ufeff\""); /* zero width space, byte order mark */
    is_quoted("\xf0\x9d\x85\xb3", "\"\\U0001d173\"");            /* a musical format character */
    is_quoted("\xef\xbf\xbe", "\"\\ufffe\"");                    /* a noncharacter */
}

static void bytes_that_are_no_utf8_are_written_one_by_one(void **state)
{
    (void)state;
    is_quoted("\xff", "\"\\xff\"");
    is_quoted("a\xe4\xb8", "\"a\\xe4\\xb8\"");                 /* cut off */
    is_quoted("\xc0\x80", "\"\\xc0\\x80\"");                   /* overlong */
    is_quoted("\xed\xa0\x80", "\"\\xed\\xa0\\x80\"");          /* a surrogate */
    is_quoted("\xf4\x90\x80\x80", "\"\\xf4\\x90\\x80\\x80\""); /* beyond Unicode */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_stands_in_quotes),
        cmocka_unit_test(quotes_backslashes_and_controls_are_escaped),
        cmocka_unit_test(what_cannot_be_seen_is_written_by_its_number),
        cmocka_unit_test(bytes_that_are_no_utf8_are_written_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
