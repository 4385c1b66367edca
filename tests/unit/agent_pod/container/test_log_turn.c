/* SPDX-License-Identifier: Apache-2.0 */
/* A name of a log that cannot be looked at is not taken for one that is free: no file loses its last name. */
#include "agent/pod/container/log_turn.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "tests/unit/base/failing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct folder {
    char dir[64], path[96];
    struct log_turn turn;
};

static void put(const struct folder *f, const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* In how many files of the folder the text is, under whatever name. */
static size_t count(const struct folder *f, const char *text)
{
    DIR *list = opendir(f->dir);
    const struct dirent *d;
    size_t n = 0;

    while ((d = readdir(list)) != NULL) {
        str_auto got = NULL;
        char path[400];

        snprintf(path, sizeof(path), "%s/%s", f->dir, d->d_name);
        if (d->d_type == DT_REG &&
            !presence_is_absent(fs_read_if_there(AT_FDCWD, path, FS_SMALL_MAX, &got, NULL, ERR_IGNORED)) &&
            got != NULL && strcmp(got, text) == 0)
            n++;
    }
    closedir(list);
    return n;
}

static int setup(void **state)
{
    struct folder *f = calloc(1, sizeof(*f));
    struct err e = { 0 };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    strcpy(f->dir, "/tmp/test-log-turn.XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        return -1;
    snprintf(f->path, sizeof(f->path), "%s/0.log", f->dir);
    *state = f;
    return log_turn_init(&f->turn, f->path, 5, &e) == ERR_OK ? 0 : -1;
}

static int teardown(void **state)
{
    struct folder *f = *state;
    struct err e = { 0 };

    log_turn_done(&f->turn);
    if (fs_remove_tree(AT_FDCWD, f->dir, &e) != ERR_OK)
        return -1;
    free(f);
    return 0;
}

/* conmon rotated twice while no agent ran: the file between has only its second name. */
static void a_look_that_fails_removes_nothing(void **state)
{
    struct folder *f = *state;

    put(f, "0.log", "third");
    put(f, ".0.log.next", "second");
    failing_arm("fstatat", "0.log", EIO, 1);
    log_turn_look(&f->turn);
    assert_int_equal(count(f, "second"), 1);
    log_turn_look(&f->turn);
    assert_int_equal(count(f, "second"), 1);
    assert_int_equal(count(f, "third"), 2); /* and its second name */
}

static void the_last_pass_keeps_what_it_cannot_tell(void **state)
{
    struct folder *f = *state;

    put(f, "0.log", "second");
    put(f, ".0.log.kept", "first");
    failing_arm("fstatat", ".0.log.kept", EIO, 1);
    log_turn_end(&f->turn);
    assert_int_equal(count(f, "first"), 1);
    log_turn_end(&f->turn);
    assert_int_equal(count(f, "first"), 1);
    assert_int_equal(count(f, "second"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_look_that_fails_removes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_pass_keeps_what_it_cannot_tell, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
