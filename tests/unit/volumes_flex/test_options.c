/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers are given and what they answer, against recordings of a real kubelet: tests/fixtures/flex. */
#include "volumes/flex/flex.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "tests/unit/base/helper.h"

#include <stdlib.h>

#define PAIRS_MAX 8

static json_t *load(const char *path)
{
    json_t *rows = json_load_file(path, 0, NULL);

    assert_non_null(rows);
    assert_true(json_array_size(rows) > 0);
    return rows;
}

static void compare(const json_t *row)
{
    const json_t *source = json_object_get(row, "source");
    const char *call = json_str(row, "call"), *pod = json_str(row, "pod");
    str_auto uid = str_printf("uid-of-%s", pod);
    struct flex_pair opts[PAIRS_MAX];
    struct flex_secret secrets[PAIRS_MAX];
    struct flex_volume v = { .name = json_str(row, "volume"),
                             .fs_type = json_str(source, "fsType"),
                             .read_only = json_flag(row, "readOnly"),
                             .opts = opts,
                             .secrets = secrets,
                             .pod_name = pod,
                             .pod_namespace = "default",
                             .pod_uid = uid,
                             .service_account = "default",
                             .fs_group = json_int(row, "fsGroup", -1) };
    const char *key;
    json_t *value;
    char *text;

    json_object_foreach (json_object_get(source, "options"), key, value)
        opts[v.n_opts++] = (struct flex_pair){ key, json_string_value(value) };
    json_object_foreach (json_object_get(row, "secret"), key, value)
        secrets[v.n_secrets++] =
            (struct flex_secret){ key, json_string_value(value), strlen(json_string_value(value)) };
    text = flex_options(&v, strcmp(call, "mount") == 0);
    assert_non_null(text);
    if (strcmp(text, json_str(row, "options")) != 0)
        fail_msg("%s of %s:\n%s\nwanted\n%s", call, json_str(row, "case"), text, json_str(row, "options"));
    free(text);
}

static void drivers_are_given_what_kubelet_gives_them(void **state)
{
    json_auto_t *rows = load("tests/fixtures/flex/options.json");
    json_t *row;
    size_t i;

    (void)state;
    json_array_foreach (rows, i, row)
        compare(row);
}

static void texts_are_escaped_as_go_does(void **state)
{
    const struct flex_pair opts[] = { { "a", "<&>\"\\" } };
    const struct flex_volume v = { .name = "v", .opts = opts, .n_opts = 1, .fs_group = -1 };
    char *text = flex_options(&v, false);

    (void)state;
    assert_string_equal(text, "{\"a\":\"\\u003c\\u0026\\u003e\\\"\\\\\",\"kubernetes.io/fsType\":\"\","
                              "\"kubernetes.io/pvOrVolumeName\":\"v\",\"kubernetes.io/readwrite\":\"rw\"}");
    free(text);
}

static enum flex_status parse(const char *command, const char *text, struct flex_answer *ret)
{
    struct err e = { 0 };

    return flex_answer_parse(command, text, strlen(text), ret, &e) == ERR_OK ? ret->status
                                                                             : (enum flex_status) - 1;
}

static void recorded_answers_are_understood(void **state)
{
    json_auto_t *rows = load("tests/fixtures/flex/answers.json");
    struct flex_answer a;
    json_t *row;
    size_t i, n_bad = 0;

    (void)state;
    json_array_foreach (rows, i, row)
        n_bad += parse(json_str(row, "call"), json_str(row, "output"), &a) == (enum flex_status) - 1;
    assert_int_equal(n_bad, 2); /* "hello" and "this is no JSON" */
}

static void answers_mean_what_kubelet_takes_them_for(void **state)
{
    struct flex_answer a;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(parse("mount", "{\"status\": \"Failure\", \"message\": \"no such share\"}", &a),
                     FLEX_FAILED);
    assert_string_equal(a.message, "mount command failed, status: Failure, reason: no such share");
    assert_int_equal(parse("init", "{\"status\": \"Success\"}", &a), FLEX_SUCCESS);
    assert_true(a.caps.attach && a.caps.fs_group);
    assert_int_equal(parse("init", "{\"status\": \"Success\", \"capabilities\": {\"attach\": false}}", &a),
                     FLEX_SUCCESS);
    assert_false(a.caps.attach);
    assert_int_equal(parse("mount", "{\"status\": \"Not supported\"}", &a), FLEX_NOT_SUPPORTED);
    assert_int_equal(parse("attach", "{\"status\": \"Success\", \"device\": \"/dev/vdy\"}", &a),
                     FLEX_SUCCESS);
    assert_string_equal(a.device, "/dev/vdy");
    assert_int_equal(flex_answer_parse("mount", "hello\n", 6, &a, &e), ERR_INVALID);
    assert_string_equal(e.text, "mount command did not return a JSON object: \"hello?\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_are_given_what_kubelet_gives_them),
        cmocka_unit_test(texts_are_escaped_as_go_does),
        cmocka_unit_test(recorded_answers_are_understood),
        cmocka_unit_test(answers_mean_what_kubelet_takes_them_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
