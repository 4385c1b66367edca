/* SPDX-License-Identifier: Apache-2.0 */
/* The process specification and the runtime's words, without processes. */
#include "agent/runtime/exec.h"
#include "base/codec/json.h"
#include "rt_fixture.h"

static const char config[] =
    "{\"ociVersion\":\"1.0.2\",\"process\":{\"terminal\":true,\"args\":[\"nginx\"],\"cwd\":\"/data\","
    "\"env\":[\"PATH=/bin\",\"SECRET=x\"],\"user\":{\"uid\":7,\"gid\":8},\"noNewPrivileges\":true,"
    "\"consoleSize\":{\"height\":1,\"width\":2}},\"linux\":{\"seccomp\":{}}}";

static json_t *build(const struct rt_exec_spec *spec)
{
    struct err e = { 0 };
    json_t *process = NULL;
    char score[RT_OOM_SCORE_SIZE];
    str_auto text = NULL;

    if (rt_exec_process_build(config, strlen(config), spec, &text, score, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(json_parse(text, strlen(text), 1 << 20, &process, "process", &e), ERR_OK);
    return process;
}

static void arguments_and_terminal_are_replaced_and_the_rest_is_the_containers(void **state)
{
    const char *const argv[] = { "sh", "-c", "echo \"$HOME\" \n", "", NULL };
    const struct rt_exec_spec spec = { .argv = argv };
    json_auto_t *process = build(&spec);
    str_auto text = json_text(process);

    (void)state;
    assert_string_equal(text, "{\"terminal\":false,\"args\":[\"sh\",\"-c\",\"echo \\\"$HOME\\\" \\n\",\"\"],"
                              "\"cwd\":\"/data\",\"env\":[\"PATH=/bin\",\"SECRET=x\"],\"user\":{\"uid\":7,"
                              "\"gid\":8},\"noNewPrivileges\":true}");
}

static void terminal_has_its_size_and_term_unless_the_container_sets_it(void **state)
{
    const char *const argv[] = { "sh", NULL };
    const struct rt_exec_spec spec = { .argv = argv, .tty = true, .rows = 40, .columns = 132 };
    json_auto_t *process = build(&spec);
    const json_t *size = json_object_get(process, "consoleSize"), *env = json_object_get(process, "env");

    (void)state;
    assert_true(json_flag(process, "terminal"));
    assert_int_equal(json_int(size, "height", 0), 40);
    assert_int_equal(json_int(size, "width", 0), 132);
    assert_int_equal(json_array_size(env), 3);
    assert_string_equal(json_string_value(json_array_get(env, 2)), "TERM=xterm");
}

static void the_containers_oom_score_is_the_processs(void **state)
{
    static const struct {
        const char *config, *wanted;
    } cases[] = { { "{\"process\":{\"oomScoreAdj\":-997}}", "-997" },
                  { "{\"process\":{\"oomScoreAdj\":1000}}", "1000" },
                  { "{\"process\":{}}", "-" },
                  { "{\"process\":{\"oomScoreAdj\":\"7\"}}", "-" },
                  { "{\"process\":{\"oomScoreAdj\":10000000}}", "-" } };
    const char *const argv[] = { "sh", NULL };
    const struct rt_exec_spec spec = { .argv = argv };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };
        char score[RT_OOM_SCORE_SIZE];
        str_auto text = NULL;

        assert_int_equal(
            rt_exec_process_build(cases[i].config, strlen(cases[i].config), &spec, &text, score, &e), ERR_OK);
        assert_string_equal(score, cases[i].wanted);
    }
}

static void damaged_configuration_and_arguments_that_are_no_text_are_refused(void **state)
{
    const char *const argv[] = { "sh", "\xff", NULL };
    const struct rt_exec_spec spec = { .argv = argv };
    static const char *const damaged[] = { "", "{", "[]", "{}", "{\"process\":3}" };
    struct err e = { 0 };
    char *text = NULL, score[RT_OOM_SCORE_SIZE];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
        e = (struct err){ 0 };
        assert_int_equal(rt_exec_process_build(damaged[i], strlen(damaged[i]), &spec, &text, score, &e),
                         ERR_DATA_LOSS);
    }
    e = (struct err){ 0 };
    assert_int_equal(rt_exec_process_build(config, strlen(config), &spec, &text, score, &e), ERR_DATA_LOSS);
    assert_string_equal(e.text, "exec: an argument is not UTF-8");
    assert_null(text);
}

static void runtimes_words_become_the_shells_codes(void **state)
{
    static const struct {
        const char *words;
        enum err_code code;
        int exit_code;
    } cases[] = {
        { "executable file `nosuch` not found in $PATH: No such file or directory", ERR_NOT_FOUND, 127 },
        { "exec failed: unable to start container process: exec: \\\"nosuch\\\": executable file not found "
          "in "
          "$PATH",
          ERR_NOT_FOUND, 127 },
        { "exec failed: unable to start container process: exec: \\\"/no/such\\\": stat /no/such: no such "
          "file or "
          "directory",
          ERR_NOT_FOUND, 127 },
        { "open executable: Permission denied", ERR_PERMISSION, 126 },
        { "open executable: Operation not permitted", ERR_PERMISSION, 126 },
        { "the path `/etc` is not a regular file: Operation not permitted", ERR_PERMISSION, 126 },
        { "exec: Exec format error", ERR_PERMISSION, 126 },
        { "exec failed: unable to start container process: exec: \\\"/bin\\\": permission denied",
          ERR_PERMISSION, 126 },
        { "exec failed: unable to start container process: chdir to cwd (\\\"/x\\\") set in config.json "
          "failed: no "
          "such file or directory",
          ERR_UNKNOWN, 0 },
        { "the container `x` is not running", ERR_UNKNOWN, 0 },
        { "", ERR_UNKNOWN, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };
        char log[1024];
        int code = -1;

        snprintf(log, sizeof(log),
                 "{\"level\":\"warning\",\"msg\":\"before\"}\n{\"level\":\"error\",\"msg\":\"%s\"}\n{\"cut",
                 cases[i].words);
        assert_true(rt_exec_failure(log, &code, &e));
        assert_int_equal(e.code, cases[i].code);
        assert_int_equal(code, cases[i].exit_code);
    }
}

static void log_without_an_error_is_no_failure(void **state)
{
    struct err e = { 0 };
    int code = 5;

    (void)state;
    assert_false(rt_exec_failure("", &code, &e));
    assert_false(rt_exec_failure("{\"level\":\"warning\",\"msg\":\"x\"}\nnonsense\n", &code, &e));
    assert_int_equal(code, 5);
    assert_int_equal(e.code, ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_and_terminal_are_replaced_and_the_rest_is_the_containers),
        cmocka_unit_test(terminal_has_its_size_and_term_unless_the_container_sets_it),
        cmocka_unit_test(the_containers_oom_score_is_the_processs),
        cmocka_unit_test(damaged_configuration_and_arguments_that_are_no_text_are_refused),
        cmocka_unit_test(runtimes_words_become_the_shells_codes),
        cmocka_unit_test(log_without_an_error_is_no_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
