/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "cni/plugin/names.h"
#include "cni/plugin/plugin.h"
#include "cni/plugin/result.h"

struct ran {
    struct ended ended;
    json_t *result;
    int cni_code;
};

static void on_plugin(struct op *op, const struct err *result)
{
    struct cni_plugin *plugin = container_of(op, struct cni_plugin, op);
    struct ran *r = op->owner;

    r->result = take_ptr(&plugin->result);
    r->cni_code = plugin->cni_code;
    on_ended(op, result);
}

static void start(struct place *p, struct cni_plugin *plugin, struct ran *r, enum cni_verb verb,
                  uint64_t deadline_ms)
{
    const char *const bin[] = { in_place(p, "bin"), "/nowhere", NULL };
    json_auto_t *input = parse("{\"cniVersion\": \"1.0.0\", \"name\": \"n\", \"type\": \"tool\"}");
    struct cni_plugin_call call = { .verb = verb,
                                    .type = "tool",
                                    .container_id = "cid",
                                    .netns = verb == CNI_ADD ? "/ns" : "",
                                    .ifname = "eth0",
                                    .args = "K=V",
                                    .bin_dirs = bin,
                                    .input = input,
                                    .config_version = CNI_V(1, 0, 0),
                                    .cgroup_fd = -1,
                                    .deadline_at_ms = clock_mono_ms() + deadline_ms };

    *r = (struct ran){ 0 };
    cni_plugin_start(plugin, &call, &p->loop, on_plugin, r);
}

static void run(struct place *p, struct ran *r, enum cni_verb verb, uint64_t deadline_ms)
{
    struct cni_plugin plugin;

    start(p, &plugin, r, verb, deadline_ms);
    run_until_ended(p, &r->ended);
}

static void put_tool(const struct place *p, const char *script)
{
    str_auto text = str_printf("#!/bin/sh\n%s\n", script);

    put_mode(p, "bin/tool", 0755, text);
}

static void a_plugin_sees_only_the_environment_that_we_built(void **state)
{
    struct place *p = *state;
    str_auto script =
        str_printf("tr '\\0' '\\n' </proc/$$/environ >%s; cat >%s; echo '{\"cniVersion\": \"1.0.0\"}'",
                   in_place(p, "env"), in_place(p, "in"));
    str_auto expected =
        str_printf("CNI_COMMAND=ADD\nCNI_CONTAINERID=cid\nCNI_NETNS=/ns\nCNI_IFNAME=eth0\nCNI_ARGS=K=V\n"
                   "CNI_PATH=%s/bin:/nowhere\n"
                   "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
                   "GOMAXPROCS=1\n",
                   p->dir);
    str_auto env = NULL;
    str_auto in = NULL;
    struct ran r;

    put_tool(p, script);
    run(p, &r, CNI_ADD, 10000);
    assert_int_equal(r.ended.result.code, ERR_OK);
    assert_json_equal(r.result, "{\"cniVersion\": \"1.0.0\"}");
    json_decref(r.result);
    env = get(p, "env");
    assert_string_equal(env, expected);
    in = get(p, "in");
    assert_string_equal(in, "{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"tool\"}");
}

static void a_plugin_that_is_not_there_is_not_found(void **state)
{
    struct place *p = *state;
    struct ran r;
    char message[300];

    run(p, &r, CNI_ADD, 10000);
    assert_int_equal(r.ended.result.code, ERR_UNAVAILABLE);
    snprintf(message, sizeof(message),
             "plugin type=\"tool\" failed (add): failed to find plugin \"tool\" in path [%s/bin:/nowhere]",
             p->dir);
    assert_string_equal(r.ended.result.text, message);
}

static void an_error_of_the_plugin_is_told_with_its_details(void **state)
{
    struct place *p = *state;
    struct ran r;

    put_tool(p, "cat <<'E'\n{\"code\": 7, \"msg\": \"bad subnet\", \"details\": \"no\\nprefix\"}\nE\nexit 1");
    run(p, &r, CNI_ADD, 10000);
    assert_int_equal(r.ended.result.code, ERR_PRECONDITION);
    assert_int_equal(r.cni_code, 7);
    assert_string_equal(r.ended.result.text,
                        "plugin type=\"tool\" failed (add): bad subnet: no prefix (CNI code 7)");
    run(p, &r, CNI_DEL, 10000);
    assert_string_equal(r.ended.result.text,
                        "plugin type=\"tool\" failed (del): bad subnet: no prefix (CNI code 7)");

    put_tool(p, "echo '{\"code\": 11, \"msg\": \"later\"}'; exit 1");
    run(p, &r, CNI_ADD, 10000);
    assert_int_equal(r.ended.result.code, ERR_UNAVAILABLE);
    assert_string_equal(r.ended.result.text, "plugin type=\"tool\" failed (add): later (CNI code 11)");

    put_tool(p, "echo 'no route to host' >&2; exit 3");
    run(p, &r, CNI_ADD, 10000);
    assert_int_equal(r.ended.result.code, ERR_UNKNOWN);
    assert_string_equal(
        r.ended.result.text,
        "plugin type=\"tool\" failed (add): netplugin failed: \"no route to host\": exit status 3");
}

static void every_form_of_failure_has_its_words(void **state)
{
    struct err e = { 0 };
    int code;

    (void)state;
    cni_plugin_error("", 0, "", 0x100, &code, &e);
    assert_string_equal(e.text, "netplugin failed with no error message: exit status 1");
    cni_plugin_error("", 0, " \n", 9, &code, &e);
    assert_string_equal(e.text, "netplugin failed with no error message: killed by signal 9");
    cni_plugin_error("panic: x", 8, "ignored", 0x200, &code, &e);
    assert_string_equal(
        e.text,
        "netplugin failed but error parsing its diagnostic message \"panic: x\": JSON: line 1, column "
        "5: invalid token: exit status 2");
    cni_plugin_error("{}", 2, "", 0x100, &code, &e);
    assert_string_equal(e.text,
                        "netplugin failed and its diagnostic message \"{}\" has no msg: exit status 1");
    assert_int_equal(code, 0);
    cni_plugin_error("{\"code\":4294967307,\"msg\":\"\"}", 28, "", 0x100, &code, &e);
    assert_string_equal(e.text, "netplugin failed with an empty message: exit status 1");
    assert_int_equal(code, 0);
}

static void a_success_without_a_usable_result_is_an_error(void **state)
{
    struct place *p = *state;
    struct ran r;

    put_tool(p, "echo done");
    run(p, &r, CNI_ADD, 10000);
    assert_int_equal(r.ended.result.code, ERR_INVALID);
    assert_null(r.result);
    assert_string_equal(r.ended.result.text,
                        "plugin type=\"tool\" failed (add): CNI result: line 1, column 4: invalid token");
    run(p, &r, CNI_DEL, 10000); /* where no result is expected */
    assert_int_equal(r.ended.result.code, ERR_OK);
}

static void endless_output_is_cut_off(void **state)
{
    struct place *p = *state;
    struct ran r;

    put_tool(p, "exec cat /dev/zero");
    run(p, &r, CNI_ADD, 20000);
    assert_int_equal(r.ended.result.code, ERR_EXHAUSTED);
    assert_string_equal(r.ended.result.text,
                        "plugin type=\"tool\" failed (add): CNI plugin: more than 1048576 bytes of output");
}

static void a_plugin_that_does_not_end_is_killed_at_the_deadline(void **state)
{
    struct place *p = *state;
    struct ran r;

    put_tool(p, "exec sleep 1000");
    run(p, &r, CNI_ADD, 100);
    assert_int_equal(r.ended.result.code, ERR_DEADLINE);
    assert_true(str_starts(r.ended.result.text,
                           "plugin type=\"tool\" failed (add): CNI plugin: not finished after 0."));
}

static void a_running_plugin_can_be_cancelled(void **state)
{
    struct place *p = *state;
    struct cni_plugin plugin;
    struct ran r;

    put_tool(p, "exec sleep 1000");
    start(p, &plugin, &r, CNI_ADD, 60000);
    op_cancel(&plugin.op);
    run_until_ended(p, &r.ended);
    assert_int_equal(r.ended.result.code, ERR_CANCELLED);
}

/* Somebody is still writing the program: execve() says ETXTBSY. */
static int hold_for_writing(const struct place *p)
{
    int fd = openat(p->fd, "bin/tool", O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static bool has_failed_once(void *arg)
{
    const struct cni_plugin *plugin = arg;

    return plugin->waiting || plugin->result != NULL;
}

static void a_program_that_is_being_written_is_tried_again(void **state)
{
    struct place *p = *state;
    struct cni_plugin plugin;
    struct ran r;
    int fd;

    put_tool(p, "echo '{}'");
    fd = hold_for_writing(p);
    start(p, &plugin, &r, CNI_ADD, 60000);
    run_until(p, has_failed_once, &plugin);
    close(fd);
    if (r.ended.calls == 0)
        run_until_ended(p, &r.ended);
    assert_int_equal(r.ended.result.code, ERR_OK);
    json_decref(r.result);
}

static void waiting_for_such_a_program_can_be_cancelled_and_ends_in_time(void **state)
{
    struct place *p = *state;
    struct cni_plugin plugin;
    struct ran r;
    int fd;

    put_tool(p, "echo '{}'");
    fd = hold_for_writing(p);
    start(p, &plugin, &r, CNI_ADD, 60000);
    run_until(p, has_failed_once, &plugin);
    op_cancel(&plugin.op);
    run_until_ended(p, &r.ended);
    assert_int_equal(r.ended.result.code, ERR_CANCELLED);

    run(p, &r, CNI_ADD, 500); /* no time for another try */
    close(fd);
    assert_int_equal(r.ended.result.sys, ETXTBSY);
    assert_non_null(strstr(r.ended.result.text, "Text file busy"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_plugin_sees_only_the_environment_that_we_built, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(a_plugin_that_is_not_there_is_not_found, place_make, place_remove),
        cmocka_unit_test_setup_teardown(an_error_of_the_plugin_is_told_with_its_details, place_make,
                                        place_remove),
        cmocka_unit_test(every_form_of_failure_has_its_words),
        cmocka_unit_test_setup_teardown(a_success_without_a_usable_result_is_an_error, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(endless_output_is_cut_off, place_make, place_remove),
        cmocka_unit_test_setup_teardown(a_plugin_that_does_not_end_is_killed_at_the_deadline, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(a_running_plugin_can_be_cancelled, place_make, place_remove),
        cmocka_unit_test_setup_teardown(a_program_that_is_being_written_is_tried_again, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(waiting_for_such_a_program_can_be_cancelled_and_ends_in_time,
                                        place_make, place_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
