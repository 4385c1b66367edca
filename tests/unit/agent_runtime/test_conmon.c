/* SPDX-License-Identifier: Apache-2.0 */
#include "rt_fixture.h"

static void answer_is_a_pid_or_the_runtimes_words(void **state)
{
    const struct {
        const char *line;
        pid_t pid;
        enum err_code code;
        const char *text;
    } rows[] = {
        { "{\"data\": 4711}", 4711, ERR_OK, "" },
        { "{\"pid\": 12}", 12, ERR_OK, "" },
        { "{\"data\": -1, \"message\": \"exec: nope\\n\"}", 0, ERR_UNKNOWN, "exec: nope" },
        { "{\"data\": -1}", 0, ERR_UNKNOWN, "the container runtime failed without a message" },
        { "{\"data\": 99999999999}", 0, ERR_UNKNOWN, "the container runtime failed without a message" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = { 0 };
        pid_t pid = 0;

        assert_int_equal(rt_conmon_parse_sync(rows[i].line, strlen(rows[i].line), &pid, &e), rows[i].code);
        assert_int_equal(pid, rows[i].pid);
        assert_string_equal(e.text, rows[i].text);
    }
}

static void answer_that_is_no_json_is_not_taken_for_words(void **state)
{
    struct err e = { 0 };
    pid_t pid = 0;

    (void)state;
    assert_int_equal(rt_conmon_parse_sync("garbage", 7, &pid, &e), ERR_UNAVAILABLE);
}

static void words_lose_what_a_log_puts_before_them(void **state)
{
    const struct {
        const char *before, *after;
    } rows[] = {
        { "2026-11-21T00:01:05.364423Z: executable file `x` not found\n", "executable file `x` not found" },
        { "time=\"2026-11-21T00:01:05Z\" level=error msg=\"exec: \\\"/x\\\": no\"\n", "exec: \"/x\": no" },
        { "plain words  \n\n", "plain words" },
        { "2026: a year", "2026: a year" },
        { "time=\"x\" level=error msg=\"cut", "cut" },
        { "", "" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < ARRAY_LEN(rows); i++) {
        char text[128];

        snprintf(text, sizeof(text), "%s", rows[i].before);
        rt_words_tidy(text);
        assert_string_equal(text, rows[i].after);
    }
}

static bool has(const struct rt_conmon_args *a, const char *option, const char *value)
{
    size_t i;

    for (i = 0; a->v[i] != NULL; i++)
        if (strcmp(a->v[i], option) == 0)
            return value == NULL || (a->v[i + 1] != NULL && strcmp(a->v[i + 1], value) == 0);
    return false;
}

static void command_line_keeps_everything_in_the_bundle(void **state)
{
    struct fixture *f = *state;
    struct rt_conmon_args a;
    char path[256];

    rt_conmon_args(&f->rt, &f->crun, &f->config, &a);
    assert_string_equal(a.v[0], "/usr/bin/conmon");
    assert_true(has(&a, "--cid", FIXTURE_ID));
    assert_true(has(&a, "--log-path", "k8s-file:/var/log/pods/x/0.log"));
    snprintf(path, sizeof(path), "%s/containers/" FIXTURE_ID, f->dir);
    assert_true(has(&a, "--bundle", path));
    snprintf(path, sizeof(path), "--runtime-arg=--root=%s/oci", f->dir);
    assert_true(has(&a, path, NULL));
    assert_true(has(&a, "--runtime-arg=--cgroup-manager=cgroupfs", NULL));
    assert_true(has(&a, "--full-attach", NULL));
    assert_false(has(&a, "--stdin", NULL) || has(&a, "--terminal", NULL) || has(&a, "--sync", NULL));

    f->config.tty = f->config.stdin_open = true;
    memcpy(f->crun.features.runtime_name, "runc", 5);
    rt_conmon_args(&f->rt, &f->crun, &f->config, &a);
    assert_true(has(&a, "--stdin", NULL) && has(&a, "--terminal", NULL) &&
                has(&a, "--leave-stdin-open", NULL));
    assert_false(has(&a, "--runtime-arg=--cgroup-manager=cgroupfs", NULL));
    f->config.stdin_once = true;
    rt_conmon_args(&f->rt, &f->crun, &f->config, &a);
    assert_false(has(&a, "--leave-stdin-open", NULL));
}

/* The runtime's beginning: coracle-exec, which sees to its streams. */
static void expect_streams(const struct rt_conmon_args *a, const char *how)
{
    size_t i = 0;

    assert_true(has(a, "--runtime", "/usr/libexec/coracle-exec"));
    while (strcmp(a->v[i], "--runtime-arg=--streams") != 0)
        assert_non_null(a->v[++i]);
    assert_string_equal(a->v[i + 1], how);
    assert_string_equal(a->v[i + 2], "--runtime-arg=/usr/bin/crun");
    assert_true(str_starts(a->v[i + 3], "--runtime-arg=--root="));
}

static void runtime_of_a_user_namespace_gets_streams_that_are_the_pods(void **state)
{
    struct fixture *f = *state;
    struct rt_conmon_args a;

    f->rt.exec_path = (char *)"/usr/libexec/coracle-exec";
    f->config.userns = "/ns/user";
    f->config.first_id = 131072;
    rt_conmon_args(&f->rt, &f->crun, &f->config, &a);
    expect_streams(&a, "--runtime-arg=131072i");
    f->config.stdin_open = true; /* then conmon has a pipe for it */
    rt_conmon_args(&f->rt, &f->crun, &f->config, &a);
    expect_streams(&a, "--runtime-arg=131072");
    f->config.tty = true;
    rt_conmon_args(&f->rt, &f->crun, &f->config, &a);
    expect_streams(&a, "--runtime-arg=131072io");
    f->config.userns = NULL;
    rt_conmon_args(&f->rt, &f->crun, &f->config, &a);
    assert_true(has(&a, "--runtime", "/usr/bin/crun"));
}

static void pid_file_that_names_another_process_is_not_believed(void **state)
{
    struct fixture *f = *state;
    char text[32];
    size_t n = 1;
    struct err e = { 0 };
    int pidfd;

    assert_int_equal(presence_of(rt_conmon_open(&f->rt, FIXTURE_ID, &pidfd, NULL, &e)), PRESENCE_ABSENT);
    snprintf(text, sizeof(text), "%d", (int)getpid());
    fixture_write(f, "containers/" FIXTURE_ID "/conmon.pid", text);
    assert_int_equal(presence_of(rt_conmon_open(&f->rt, FIXTURE_ID, &pidfd, NULL, &e)), PRESENCE_ABSENT);
    assert_int_equal(pidfd, -1);
    fixture_write(f, "containers/" FIXTURE_ID "/conmon.pid", "-1");
    assert_int_equal(presence_of(rt_conmon_open(&f->rt, FIXTURE_ID, &pidfd, NULL, &e)), PRESENCE_ABSENT);
    assert_int_equal(pidfd, -1);
    assert_int_equal(rt_kill_creators(&f->rt, &f->crun, FIXTURE_ID, &n, &e), ERR_OK);
    assert_int_equal(n, 0);
}

static void last_error_of_the_runtimes_log_is_found(void **state)
{
    struct fixture *f = *state;

    assert_null(rt_runtime_words(&f->rt, FIXTURE_ID));
    fixture_write(
        f, "containers/" FIXTURE_ID "/log",
        "{\"msg\":\"first\",\"level\":\"error\"}\nnot json\n{\"msg\":\"second\",\"level\":\"error\"}\n"
        "{\"msg\":\"a warning\",\"level\":\"warning\"}\n");
    str_auto words = rt_runtime_words(&f->rt, FIXTURE_ID);
    assert_string_equal(words, "second");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_is_a_pid_or_the_runtimes_words),
        cmocka_unit_test(answer_that_is_no_json_is_not_taken_for_words),
        cmocka_unit_test(words_lose_what_a_log_puts_before_them),
        fixture_test(command_line_keeps_everything_in_the_bundle),
        fixture_test(runtime_of_a_user_namespace_gets_streams_that_are_the_pods),
        fixture_test(pid_file_that_names_another_process_is_not_believed),
        fixture_test(last_error_of_the_runtimes_log_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
