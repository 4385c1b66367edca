/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "volumes/internal.h"

#include <stdlib.h>
#include <string.h>

static enum err_code plan_of_one(const char *path, mode_t mode, struct err *e)
{
    const struct vol_file f = { .path = path, .mode = mode };
    struct vol_plan p = { 0 };
    enum err_code code = vol_plan_make(&p, &f, 1, e);

    vol_plan_done(&p);
    return code;
}

static void unsafe_paths_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *path, *text;
    } rows[] = {
        { "", "volume file \"\": path is empty" },
        { "/etc/passwd", "volume file \"/etc/passwd\": path is absolute" },
        { "..", "volume file \"..\": path leaves the volume" },
        { "../escape", "volume file \"../escape\": path leaves the volume" },
        { "a/../../b", "volume file \"a/../../b\": path leaves the volume" },
        { "a/..", "volume file \"a/..\": path leaves the volume" },
        { "..data", "volume file \"..data\": must not start with \"..\"" },
        { "./..data/x", "volume file \"./..data/x\": must not start with \"..\"" },
        { "..2026_01_01_00_00_00.1", "volume file \"..2026_01_01_00_00_00.1\": must not start with \"..\"" },
        { ".", "volume file \".\": path is the volume itself" },
        { "././/", "volume file \"././/\": path is the volume itself" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = { 0 };
        assert_int_equal(plan_of_one(rows[i].path, 0644, &e), ERR_INVALID);
        assert_string_equal(e.text, rows[i].text);
    }
}

static void over_long_paths_and_names_are_refused(void **state)
{
    char path[4200];
    struct err e = { 0 };

    (void)state;
    memset(path, 'a', sizeof(path));
    path[256] = '\0';
    assert_int_equal(plan_of_one(path, 0644, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "a name in it is longer than 255 bytes"));
    path[255] = '\0';
    e = (struct err){ 0 };
    assert_int_equal(plan_of_one(path, 0644, &e), ERR_OK);
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 == 0 ? 'a' : '/';
    path[4097] = '\0';
    assert_int_equal(plan_of_one(path, 0644, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "path is longer than 4096 bytes"));
}

static void dots_that_lead_nowhere_are_fine(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(plan_of_one("...", 0644, &e), ERR_INVALID); /* kubelet: a name that starts with ".." */
    e = (struct err){ 0 };
    assert_int_equal(plan_of_one(".hidden", 0644, &e), ERR_OK);
    assert_int_equal(plan_of_one("a/..b", 0644, &e), ERR_OK);
    assert_int_equal(plan_of_one("a..", 0644, &e), ERR_OK);
}

static void modes_above_0777_are_refused(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(plan_of_one("su", 04755, &e), ERR_INVALID);
    assert_string_equal(e.text, "volume file \"su\": mode 04755 is not between 0 and 0777");
}

static void paths_are_normalised_sorted_and_the_last_of_a_name_wins(void **state)
{
    const struct vol_file files[] = { { .path = "b//c/./d", .size = 1 },
                                      { .path = "z" },
                                      { .path = "a", .size = 2 },
                                      { .path = "./a", .size = 3 },
                                      { .path = "b/c/d/", .size = 4 } };
    struct vol_plan p = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(vol_plan_make(&p, files, 5, &e), ERR_OK);
    assert_int_equal(p.n, 3);
    assert_string_equal(p.v[0].path, "a");
    assert_int_equal(p.v[0].file->size, 3);
    assert_string_equal(p.v[1].path, "b/c/d");
    assert_int_equal(p.v[1].file->size, 4);
    assert_string_equal(p.v[2].path, "z");
    assert_int_equal(p.n_dirs, 2);
    vol_plan_done(&p);
}

static void a_path_that_is_file_and_folder_is_refused(void **state)
{
    const struct vol_file files[] = { { .path = "a/b" }, { .path = "a-c" }, { .path = "a" } };
    struct vol_plan p = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(vol_plan_make(&p, files, 3, &e), ERR_INVALID);
    assert_string_equal(e.text, "volume file \"a/b\": \"a\" is a file of the same volume, not a folder");
}

static void first_elements_are_found_among_neighbours(void **state)
{
    const struct vol_file files[] = {
        { .path = "a/b" }, { .path = "a-c" }, { .path = "a/a/a" }, { .path = "ab" }, { .path = "q/r" }
    };
    struct vol_plan p = { 0 };
    struct err e = { 0 };
    char top[256], all[64] = "";

    (void)state;
    assert_int_equal(vol_plan_make(&p, files, 5, &e), ERR_OK);
    for (size_t i = 0; i < p.n; i++) {
        if (vol_plan_top(&p, i, top)) {
            strcat(all, top);
            strcat(all, " ");
        }
    }
    assert_string_equal(all, "a-c a ab q ");
    assert_int_equal(p.n_dirs, 3);
    assert_true(vol_plan_has_top(&p, "a"));
    assert_true(vol_plan_has_top(&p, "a-c"));
    assert_true(vol_plan_has_top(&p, "q"));
    assert_false(vol_plan_has_top(&p, "b"));
    assert_false(vol_plan_has_top(&p, "r"));
    assert_false(vol_plan_has_top(&p, "a-"));
    assert_false(vol_plan_has_top(&p, "zz"));
    vol_plan_done(&p);
}

static void an_empty_list_is_a_plan(void **state)
{
    struct vol_plan p = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(vol_plan_make(&p, NULL, 0, &e), ERR_OK);
    assert_int_equal(p.n, 0);
    assert_false(vol_plan_has_top(&p, "a"));
    vol_plan_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsafe_paths_are_refused_with_the_reason),
        cmocka_unit_test(over_long_paths_and_names_are_refused),
        cmocka_unit_test(dots_that_lead_nowhere_are_fine),
        cmocka_unit_test(modes_above_0777_are_refused),
        cmocka_unit_test(paths_are_normalised_sorted_and_the_last_of_a_name_wins),
        cmocka_unit_test(a_path_that_is_file_and_folder_is_refused),
        cmocka_unit_test(first_elements_are_found_among_neighbours),
        cmocka_unit_test(an_empty_list_is_a_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
