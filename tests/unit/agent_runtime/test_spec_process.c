/* SPDX-License-Identifier: Apache-2.0 */
#include "rt_fixture.h"

static char *image_entry[] = { (char *)"/entry", (char *)"-e" };
static char *image_cmd[] = { (char *)"cmd" };
static char *command[] = { (char *)"command", (char *)"-c" };
static char *args[] = { (char *)"arg" };

static void arguments_follow_the_merge_rule(void **state)
{
    struct fixture *f = *state;
    const struct api_strs yes_command = { .v = command, .n = 2 }, yes_args = { .v = args, .n = 1 },
                          none = { 0 };
    const struct {
        bool entry, cmd;
        const struct api_strs *command, *args;
        const char *result; /* NULL: nothing to run */
    } rows[] = {
        { true, true, NULL, NULL, "[\"/entry\",\"-e\",\"cmd\"]" },
        { true, true, NULL, &yes_args, "[\"/entry\",\"-e\",\"arg\"]" },
        { true, true, &yes_command, NULL, "[\"command\",\"-c\"]" },
        { true, true, &yes_command, &yes_args, "[\"command\",\"-c\",\"arg\"]" },
        { false, true, NULL, NULL, "[\"cmd\"]" },
        { false, true, NULL, &yes_args, "[\"arg\"]" },
        { true, false, &none, &none, "[\"/entry\",\"-e\"]" },
        { false, false, &none, &none, NULL },
        { false, false, &yes_command, NULL, "[\"command\",\"-c\"]" },
    };
    size_t i;

    for (i = 0; i < ARRAY_LEN(rows); i++) {
        json_auto_t *list = json_array();
        struct err e = { 0 };

        f->image.entrypoint = (struct img_strs){ .v = image_entry, .n = rows[i].entry ? 2 : 0 };
        f->image.cmd = (struct img_strs){ .v = image_cmd, .n = rows[i].cmd ? 1 : 0 };
        f->config.command = rows[i].command;
        f->config.args = rows[i].args;
        if (rows[i].result != NULL) {
            assert_int_equal(rt_args_build(&f->config, list, &e), ERR_OK);
            str_auto text = json_dumps(list, JSON_COMPACT);
            assert_string_equal(text, rows[i].result);
        } else {
            assert_int_equal(rt_args_build(&f->config, list, &e), ERR_NOT_FOUND);
            assert_string_equal(e.text, "no command specified");
        }
    }
}

static void expect_env(struct fixture *f, const char *text)
{
    json_auto_t *list = json_array();
    struct err e = { 0 };

    assert_int_equal(rt_env_build(&f->config, "/root", list, &e), ERR_OK);
    str_auto got = json_dumps(list, JSON_COMPACT);
    assert_string_equal(got, text);
}

static void environment_goes_from_image_to_hostname_to_manifest(void **state)
{
    struct fixture *f = *state;
    char *image[] = { (char *)"PATH=/bin", (char *)"A=image", (char *)"noequals", (char *)"=x",
                      (char *)"A=twice" };
    const char *const env[] = { "B=1", "A=manifest", "HOSTNAME=mine", "EMPTY=", "B=a=b", NULL };

    expect_env(f, "[\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\",\"HOME=/root\"]");
    f->image.env = (struct img_strs){ .v = image, .n = ARRAY_LEN(image) };
    f->config.hostname = "web";
    expect_env(f, "[\"PATH=/bin\",\"A=twice\",\"HOSTNAME=web\",\"HOME=/root\"]");
    f->config.env = env;
    f->config.tty = true;
    expect_env(f, "[\"PATH=/bin\",\"A=manifest\",\"HOSTNAME=mine\",\"B=a=b\",\"EMPTY=\",\"HOME=/"
                  "root\",\"TERM=xterm\"]");
}

static void value_that_is_not_utf8_is_refused_without_showing_it(void **state)
{
    struct fixture *f = *state;
    const char *const env[] = { "TOKEN=secret\xff", NULL };
    json_auto_t *list = json_array();
    struct err e = { 0 };

    f->config.env = env;
    assert_int_equal(rt_env_build(&f->config, "/", list, &e), ERR_DATA_LOSS);
    assert_string_equal(e.text, "environment variable TOKEN: its value is not UTF-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(arguments_follow_the_merge_rule),
        fixture_test(environment_goes_from_image_to_hostname_to_manifest),
        fixture_test(value_that_is_not_utf8_is_refused_without_showing_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
