/* SPDX-License-Identifier: Apache-2.0 */
/* The form of kept objects, and the batches for coracle-seal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kept/batch.h"
#include "agent/kept/kept_file.h"

#include <stdio.h>
#include <string.h>

static void damaged(const char *data, size_t n, const char *why)
{
    struct kept_content c = { .name = "untouched" };
    struct err e = { 0 };

    assert_int_equal(kept_file_read(data, n, &c, &e), ERR_DATA_LOSS);
    assert_string_equal(e.text, why);
    assert_string_equal(c.name, "untouched");
}

static void plain_text_comes_back_with_its_name(void **state)
{
    buf_auto file = BUF_INIT(1 << 16);
    struct kept_content c;
    struct err e = { 0 };

    (void)state;
    kept_file_add_plain(&file, "ConfigMap/default/c", "{\"a\":1}", 7);
    assert_int_equal(kept_file_read(file.p, file.n, &c, &e), ERR_OK);
    assert_string_equal(c.name, "ConfigMap/default/c");
    assert_false(c.sealed);
    assert_int_equal(c.body.n, 7);
    assert_memory_equal(c.body.p, "{\"a\":1}", 7);
}

static void each_flipped_bit_of_plain_text_is_noticed(void **state)
{
    buf_auto file = BUF_INIT(1 << 16);
    struct kept_content c;

    (void)state;
    kept_file_add_plain(&file, "ConfigMap/default/c", "{\"a\":1}", 7);
    for (size_t i = 0; i < file.n * 8; i++) {
        struct err e = { 0 };

        file.p[i / 8] ^= (char)(1 << i % 8);
        assert_int_equal(kept_file_read(file.p, file.n, &c, &e), ERR_DATA_LOSS);
        file.p[i / 8] ^= (char)(1 << i % 8);
    }
}

static void each_cut_of_plain_text_is_noticed(void **state)
{
    buf_auto file = BUF_INIT(1 << 16);
    struct kept_content c;

    (void)state;
    kept_file_add_plain(&file, "ConfigMap/default/c", "{\"a\":1}", 7);
    for (size_t n = 0; n < file.n; n++) {
        struct err e = { 0 };

        assert_int_equal(kept_file_read(file.p, n, &c, &e), ERR_DATA_LOSS);
    }
}

static void the_head_of_a_sealed_one_is_bound_to_it(void **state)
{
    char head[KEPT_HEAD_SIZE];
    buf_auto file = BUF_INIT(1 << 16);
    struct kept_content c;
    struct err e = { 0 };

    (void)state;
    kept_file_head("Secret/default/s", true, head);
    assert_string_equal(head, "coracle-kept 1 sealed\nSecret/default/s\n");
    buf_adds(&file, head);
    buf_add(&file, "\0\n\xff", 3);
    assert_int_equal(kept_file_read(file.p, file.n, &c, &e), ERR_OK);
    assert_true(c.sealed);
    assert_int_equal(c.head.n, strlen(head));
    assert_int_equal(c.body.n, 3);
}

static void what_does_not_begin_so_is_refused(void **state)
{
    char name[KEPT_NAME_SIZE + 64];
    buf_auto file = BUF_INIT(1 << 16);

    (void)state;
    damaged("", 0, "it does not have the header of a kept object");
    damaged("coracle-kept 2 plain\nA/b\n", 25, "it does not have the header of a kept object");
    damaged("coracle-kept 1 sealed\nno end", 28, "it does not have the header of a kept object");
    damaged("coracle-kept 1 sealed\n\n", 23, "its name cannot be used");
    damaged("coracle-kept 1 sealed\n../a\n", 27, "its name cannot be used");
    damaged("coracle-kept 1 sealed\nA/b c\n", 28, "its name cannot be used");
    damaged("coracle-kept 1 sealed\nA/b\0c\n", 28, "its name cannot be used");
    damaged("coracle-kept 1 plain\nA/b\n0123", 29, "it is truncated");
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    name[1] = '/';
    buf_addf(&file, "coracle-kept 1 sealed\n%s\n", name);
    damaged(file.p, file.n, "its name cannot be used");
}

static void names_of_files_are_short_and_differ(void **state)
{
    char a[KEPT_FILE_SIZE], b[KEPT_FILE_SIZE], name[KEPT_NAME_SIZE];

    (void)state;
    kept_file_name("ConfigMap/default/c", a);
    kept_file_name("ConfigMap/default/d", b);
    assert_int_equal(strlen(a), strlen("configmap-") + 32);
    assert_int_equal(strncmp(a, "configmap-", 10), 0);
    assert_string_not_equal(a, b);
    assert_true(kept_file_is_name(a));
    snprintf(name, sizeof(name), "Secret/%063d/%0253d", 1, 2); /* the longest that Kubernetes has */
    assert_true(kept_name_is_good(name));
    kept_file_name(name, a);
    assert_true(kept_file_is_name(a));
    assert_false(kept_file_is_name("key"));
    assert_false(kept_file_is_name("key.tpm"));
    assert_false(kept_file_is_name("secret-0123456789abcdef0123456789abcdef.damaged-20260102T030405Z"));
    assert_false(kept_file_is_name(".secret-0123456789abcdef0123456789abcdef.1234abcd"));
}

static struct str of(const char *s)
{
    return (struct str){ s, strlen(s) };
}

static void a_batch_is_read_as_it_was_written(void **state)
{
    buf_auto b = BUF_INIT(1 << 16);
    struct batch_item item;
    struct err e = { 0 };
    size_t at = 0;

    (void)state;
    batch_add(&b, BATCH_SEAL, of("head"), of("data"));
    batch_add(&b, BATCH_OPEN, of(""), of(""));
    assert_int_equal(batch_next(b.p, b.n, &at, &item, &e), ERR_OK);
    assert_int_equal(item.what, BATCH_SEAL);
    assert_memory_equal(item.head.p, "head", 4);
    assert_memory_equal(item.data.p, "data", 4);
    assert_int_equal(batch_next(b.p, b.n, &at, &item, &e), ERR_OK);
    assert_int_equal(item.what, BATCH_OPEN);
    assert_int_equal(item.head.n + item.data.n, 0);
    assert_int_equal(batch_next(b.p, b.n, &at, &item, &e), ERR_NOT_FOUND);
}

static void a_batch_that_is_cut_off_is_noticed(void **state)
{
    buf_auto b = BUF_INIT(1 << 16);
    struct batch_item item;

    (void)state;
    batch_add(&b, BATCH_SEAL, of("head"), of("data"));
    for (size_t n = 1; n < b.n; n++) {
        struct err e = { 0 };
        size_t at = 0;

        assert_int_equal(batch_next(b.p, n, &at, &item, &e), ERR_DATA_LOSS);
        assert_int_equal(at, 0);
    }
}

static void answers_say_what_could_not_be_done(void **state)
{
    buf_auto b = BUF_INIT(1 << 16);
    struct err e = { 0 };
    struct str data;
    size_t at = 0;

    (void)state;
    batch_answer_add(&b, of("made"));
    batch_answer_add(&b, (struct str){ NULL, 0 });
    batch_answer_add(&b, of(""));
    assert_int_equal(batch_answer_next(b.p, b.n, &at, &data, &e), ERR_OK);
    assert_int_equal(data.n, 4);
    assert_int_equal(batch_answer_next(b.p, b.n, &at, &data, &e), ERR_OK);
    assert_null(data.p);
    assert_int_equal(batch_answer_next(b.p, b.n, &at, &data, &e), ERR_OK);
    assert_non_null(data.p);
    assert_int_equal(batch_answer_next(b.p, b.n, &at, &data, &e), ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_comes_back_with_its_name),
        cmocka_unit_test(each_flipped_bit_of_plain_text_is_noticed),
        cmocka_unit_test(each_cut_of_plain_text_is_noticed),
        cmocka_unit_test(the_head_of_a_sealed_one_is_bound_to_it),
        cmocka_unit_test(what_does_not_begin_so_is_refused),
        cmocka_unit_test(names_of_files_are_short_and_differ),
        cmocka_unit_test(a_batch_is_read_as_it_was_written),
        cmocka_unit_test(a_batch_that_is_cut_off_is_noticed),
        cmocka_unit_test(answers_say_what_could_not_be_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
