/* SPDX-License-Identifier: Apache-2.0 */
/* image against a daemon's socket. */
#include "tests/unit/agent_cli/served.h"

#include <glob.h>

static void images_are_brought_and_removed(void **state)
{
    struct fixture *f = *state;
    char line[300], path[200], want[400];

    if (geteuid() != 0) {
        assert_int_equal(run(f, "image pull busybox"), 1);
        assert_string_equal(
            f->err, "Error from server (Forbidden): only root may change something through this socket\n");
        print_message("skipped: only root may bring images\n");
        skip();
    }
    expect(f, "image pull busybox:1", 0, "image/busybox:1 imported\n", "");
    snprintf(path, sizeof(path), "%s/an image.tar", f->dir);
    fclose(fopen(path, "we"));
    snprintf(path, sizeof(path), "%s/bad.tar", f->dir);
    fclose(fopen(path, "we"));
    snprintf(line, sizeof(line), "image import %s --name x:1", path);
    snprintf(want, sizeof(want), "Error from server (BadRequest): import %s: not an image\n", path);
    expect(f, line, 1, "", want);
    expect(f, "image import /nonexistent", 1, "", "error: open /nonexistent: No such file or directory\n");
    expect(f, "image rm a absent b", 5, "image \"a\" deleted\nimage \"b\" deleted\n",
           "Error from server (NotFound): image \"absent\" not found\n");
}

static size_t spools(const struct fixture *f)
{
    str_auto pattern = str_printf("%s/coracle-image.*", f->dir);
    glob_t found;
    size_t n;

    n = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return n;
}

static void archives_come_and_go_through_pipes(void **state)
{
    struct fixture *f = *state;
    int ends[2], before = dup(STDIN_FILENO);
    char line[100];

    if (geteuid() != 0) {
        print_message("skipped: only root may bring images\n");
        skip();
    }
    setenv("TMPDIR", f->dir, 1);
    expect(f, "image export localhost/b:1 -", 0, "archive of localhost/b:1\n", "");
    f->terminal = true;
    expect(f, "image export localhost/b:1 -", 2, "",
           "error: refusing to write an archive to a terminal: use a pipe or a file\n");
    assert_int_equal(access("-", F_OK), -1);

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    close(ends[1]);
    snprintf(line, sizeof(line), "image import /dev/fd/%d --name x:1", ends[0]);
    expect(f, line, 0, "image/x:1 imported\n", "");
    dup2(ends[0], STDIN_FILENO); /* at its end by now */
    close(ends[0]);
    expect(f, "image import - --name y:1", 0, "image/y:1 imported\n", "");
    dup2(before, STDIN_FILENO);
    close(before);
    assert_int_equal(spools(f), 0);
    unsetenv("TMPDIR");
}

#define SLOW_STEPS "asking\npulling\nunpacking\nlayer 1 of 2 unpacked\nlayer 2 of 2 unpacked\n"

static void what_takes_its_time_says_a_line_for_each_step(void **state)
{
    struct fixture *f = *state;

    if (geteuid() != 0) {
        print_message("skipped: only root may bring images\n");
        skip();
    }
    assert_int_equal(run(f, "image pull slow:1"), 0);
    assert_string_equal(f->out, "image/docker.io/library/slow:1 imported\n");
    assert_memory_equal(f->err, SLOW_STEPS "done: 900kB in ", strlen(SLOW_STEPS "done: 900kB in "));
    expect(f, "image pull slow-bad:1", 5, "",
           SLOW_STEPS "Error from server (NotFound): pull slow: manifest unknown\n");
    expect(f, "image pull --quiet x:1", 0, "image/x:1 imported\n", "");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(images_are_brought_and_removed),
        T(archives_come_and_go_through_pipes),
        T(what_takes_its_time_says_a_line_for_each_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
