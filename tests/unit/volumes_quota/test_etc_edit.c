/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "volumes/quota/etc_edit.h"

#define STR(text) ((struct str){ (text), strlen(text) })

static void ids_are_found_as_other_software_finds_them(void **state)
{
    static const uint32_t there[] = { 1, 7, 1048577, 4294967295u }, not_there[] = { 0, 2, 8, 9, 12, 99 };
    struct etc_ids ids = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(
        etc_ids_add(&ids, ETC_PROJECTS,
                    STR("# 2:/x\n#8:/x\n1:/a:b\nno number:/x\n:/x\n4294967296:/x\n99999999999999999999:/"
                        "x\n 7 :/blank\n4294967295:/x"),
                    &e),
        ERR_OK);
    assert_int_equal(etc_ids_add(&ids, ETC_PROJID, STR("volume1048577:1048577\n9\nname:\nname:-12\n"), &e),
                     ERR_OK);
    etc_ids_sort(&ids);
    for (size_t i = 0; i < ARRAY_LEN(there); i++)
        assert_true(etc_ids_has(&ids, there[i]));
    for (size_t i = 0; i < ARRAY_LEN(not_there); i++)
        assert_false(etc_ids_has(&ids, not_there[i]));
    free(ids.v);
}

static void assert_edit(const char *before, const char *const *drop, const char *const *keep,
                        const char *expected)
{
    struct etc_lines d = { 0 }, k = { 0 };
    buf_auto b = BUF_INIT(1 << 20);
    struct err e = { 0 };

    for (size_t i = 0; drop[i] != NULL; i++)
        assert_int_equal(etc_lines_add(&d, ETC_PROJECTS, (uint32_t)i, drop[i], &e), ERR_OK);
    for (size_t i = 0; keep[i] != NULL; i++)
        assert_int_equal(etc_lines_add(&k, ETC_PROJECTS, (uint32_t)(10 - i), keep[i], &e), ERR_OK);
    etc_lines_sort(&d);
    etc_lines_sort(&k);
    assert_int_equal(etc_edit(&b, STR(before), &d, &k, &e), ERR_OK);
    assert_string_equal(b.p, expected);
    etc_lines_done(&d);
    etc_lines_done(&k);
}

static void an_edit_keeps_the_lines_of_others(void **state)
{
    static const char *const none[] = { NULL }, *const ab[] = { "/a", "/b", NULL };

    (void)state;
    assert_edit("", none, none, "");
    assert_edit("# x\n\nbroken", none, ab, "# x\n\nbroken\n10:/a\n9:/b\n");
    assert_edit("1:/x\n10:/a\n2:/y\n10:/a\n", none, ab, "1:/x\n10:/a\n2:/y\n9:/b\n");
    assert_edit("0:/a\n0:/a2\n00:/a\n1:/b\n0:/a", ab, none, "0:/a2\n00:/a\n");
    assert_edit("x\nx\n", none, none, "x\nx\n"); /* of others, even twice */
}

static void an_id_has_kubelets_form_of_a_name_and_ours(void **state)
{
    struct etc_lines l = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(etc_lines_add(&l, ETC_PROJID, 1048577, NULL, &e), ERR_OK);
    assert_int_equal(etc_lines_add(&l, ETC_PROJECTS, 1048577, "/a:b", &e), ERR_OK);
    assert_string_equal(l.v[0], "coracle1048577:1048577");
    assert_string_equal(l.v[1], "1048577:/a:b");
    etc_lines_done(&l);
}

struct found {
    char text[200];
};

static enum err_code on_ours(uint32_t id, const char *path, void *arg, struct err *e)
{
    struct found *f = arg;
    size_t n = strlen(f->text);

    (void)e;
    snprintf(f->text + n, sizeof(f->text) - n, "%u=%s ", id, path);
    return ERR_OK;
}

static void lines_are_ours_if_the_name_says_so(void **state)
{
    struct found f = { "" };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(etc_each_of_ours(STR("5:/five\n6:/six\n7:/seven\n8:/eight\n"),
                                      STR("coracle5:5\nvolume6:6\ncoracle7:8\ncoracle07:7\ncoracle8:8\n"),
                                      on_ours, &f, &e),
                     ERR_OK);
    assert_string_equal(f.text, "5=/five 8=/eight ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_found_as_other_software_finds_them),
        cmocka_unit_test(an_edit_keeps_the_lines_of_others),
        cmocka_unit_test(an_id_has_kubelets_form_of_a_name_and_ours),
        cmocka_unit_test(lines_are_ours_if_the_name_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
