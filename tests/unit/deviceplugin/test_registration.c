/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/deviceplugin/fake_plugin.h"

#include <sys/socket.h>
#include <sys/un.h>

static void a_plugin_registers_and_is_listed(void **state)
{
    struct fixture *f = *state;
    struct fake p;
    char text[200], expected[200];

    fixture_open(f);
    fake_begin(f, &p, "p.sock", false);
    assert_string_equal(register_now(f, "v1beta1", "p.sock", R), "");
    assert_int_equal(p.asked_options, 1);
    WAIT(f, is_listed(f));
    assert_int_equal(p.asked_list, 1);
    assert_int_equal(dp_resource_capacity(resource_of(f)), 4);
    assert_int_equal(allocatable(f), 2);
    assert_true(resource_of(f)->options.pre_start);
    assert_true(resource_of(f)->options.preferred);
    assert_int_equal(dp_plugins_counts(f->plugins)->v[0].registrations, 1);
    resource_of(f)->provider->describe(resource_of(f)->provider, text, sizeof(text));
    snprintf(expected, sizeof(expected), "unix socket %s, pid %d", p.path, (int)getpid());
    assert_string_equal(text, expected);
    assert_int_equal(f->problems, 0);
    fake_die(&p);
}

static void refusals_have_kubelets_texts(void **state)
{
    struct fixture *f = *state;
    char expected[300];

    fixture_open(f);
    assert_string_equal(
        register_now(f, "v1alpha", "p.sock", R),
        "rpc error: code = Unknown desc = requested API version \"v1alpha\" is not supported by "
        "kubelet. Supported version is [\"v1beta1\"]");
    assert_string_equal(register_now(f, "", "p.sock", R),
                        "rpc error: code = Unknown desc = requested API version \"\" is not supported by "
                        "kubelet. Supported version is [\"v1beta1\"]");
    assert_string_equal(register_now(f, "v1beta1", "p.sock", "example.com/x/y"),
                        "rpc error: code = Unknown desc = the ResourceName \"example.com/x/y\" is invalid");
    assert_string_equal(register_now(f, "v1beta1", "p.sock", "cpu"),
                        "rpc error: code = Unknown desc = the ResourceName \"cpu\" is invalid");
    assert_string_equal(register_now(f, "v1beta1", "p.sock", "kubernetes.io/dev"),
                        "rpc error: code = Unknown desc = the ResourceName \"kubernetes.io/dev\" is invalid");
    snprintf(expected, sizeof(expected), "-: the ResourceName \"kubernetes.io/dev\" is invalid");
    assert_string_equal(f->problem, expected);
}

static void an_endpoint_is_a_plain_name_in_the_folder(void **state)
{
    static const char *const bad[] = {
        "", ".", "..", "../p.sock", "/tmp/p.sock", "a/b.sock", "kubelet.sock"
    };
    struct fixture *f = *state;
    char expected[400], path[160];

    fixture_open(f);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(
            expected, sizeof(expected),
            "rpc error: code = Unknown desc = the endpoint \"%s\" is not the name of a plugin's socket in %s",
            bad[i], f->dir);
        assert_string_equal(register_now(f, "v1beta1", bad[i], R), expected);
    }
    snprintf(path, sizeof(path), "%s/file", f->dir);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    snprintf(expected, sizeof(expected),
             "rpc error: code = Unknown desc = the endpoint \"file\" in %s is not a socket", f->dir);
    assert_string_equal(register_now(f, "v1beta1", "file", R), expected);
    snprintf(path, sizeof(path), "%s/link", f->dir);
    assert_int_equal(symlink("kubelet.sock", path), 0);
    snprintf(expected, sizeof(expected),
             "rpc error: code = Unknown desc = the endpoint \"link\" in %s is not a socket", f->dir);
    assert_string_equal(register_now(f, "v1beta1", "link", R), expected);
    assert_null(resource_of(f));
}

static void a_message_that_is_none_is_refused(void **state)
{
    struct fixture *f = *state;
    struct registers r;

    fixture_open(f);
    register_begin(f, &r, "v1beta1\xff", "p.sock", R);
    WAIT(f, r.over);
    assert_string_equal(r.result.text,
                        "rpc error: code = Internal desc = grpc: error unmarshalling request: "
                        "v1beta1.RegisterRequest: version: string field contains invalid UTF-8");
}

/* Before it serves: the dial is tried again while Register is not answered. */
static void a_plugin_that_serves_after_it_registered_is_reached(void **state)
{
    struct fixture *f = *state;
    struct registers r;
    struct fake p;

    fixture_open(f);
    register_begin(f, &r, "v1beta1", "late.sock", R);
    WAIT(f, dp_plugins_busy(f->plugins));
    assert_false(r.over);
    fake_begin(f, &p, "late.sock", false);
    WAIT(f, r.over);
    assert_string_equal(r.result.text, "");
    WAIT(f, is_listed(f));
    fake_die(&p);
}

static void begin_and_give_up(struct fixture *f, struct registers *r, const char *endpoint)
{
    register_begin(f, r, "v1beta1", endpoint, R);
    WAIT(f, dp_plugins_busy(f->plugins));
    op_cancel(&r->call.op);
    WAIT(f, r->over);
}

static void a_plugin_that_gives_up_register_is_registered_when_it_serves(void **state)
{
    struct fixture *f = *state;
    struct registers r;
    struct fake p;

    fixture_open(f);
    begin_and_give_up(f, &r, "late.sock");
    fake_begin(f, &p, "late.sock", false);
    WAIT(f, is_listed(f));
    assert_int_equal(f->problems, 0);
    fake_die(&p);
}

static void why_a_plugin_that_gave_up_could_not_be_asked_is_named(void **state)
{
    struct fixture *f = *state;
    struct registers r;
    struct fake p;

    fixture_open(f);
    begin_and_give_up(f, &r, "late.sock");
    fake_begin(f, &p, "late.sock", false);
    p.on_options = DIES;
    WAIT(f, f->problems > 0);
    assert_non_null(strstr(f->problem, R ": failed to get device plugin options: "));
    WAIT(f, !dp_plugins_busy(f->plugins));
    assert_null(resource_of(f));
}

/* The fixture's end waits until nothing is left. */
static void the_end_does_not_wait_for_a_plugin_that_gave_up(void **state)
{
    struct fixture *f = *state;
    struct registers r;

    fixture_open(f);
    begin_and_give_up(f, &r, "never.sock");
    assert_true(dp_plugins_busy(f->plugins));
}

static void the_failure_of_options_is_the_answer_of_register(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    fake_begin(f, &p, "p.sock", false);
    p.on_options = FAILS;
    assert_string_equal(
        register_now(f, "v1beta1", "p.sock", R),
        "rpc error: code = Unknown desc = failed to get device plugin options: rpc error: code "
        "= Internal desc = it does not work");
    p.on_options = ANSWERS_GARBAGE;
    assert_non_null(
        strstr(register_now(f, "v1beta1", "p.sock", R),
               "failed to get device plugin options: v1beta1.DevicePluginOptions: not a message"));
    p.on_options = DIES;
    assert_non_null(strstr(register_now(f, "v1beta1", "p.sock", R),
                           "failed to get device plugin options: rpc error: code = Unavailable"));
    WAIT(f, !dp_plugins_busy(f->plugins));
    assert_null(resource_of(f));
}

static bool is_socket(const char *folder, const char *name)
{
    char path[200];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static void put_socket(const char *folder, const char *name)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    fd_auto fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "%.60s/%.20s", folder, name);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

static void sockets_of_an_earlier_run_are_removed_and_other_files_stay(void **state)
{
    struct fixture *f = *state;
    char path[160];
    struct stat st;

    assert_int_equal(mkdir(f->dir, 0700), 0);
    put_socket(f->dir, "kubelet.sock");
    put_socket(f->dir, "old.sock");
    snprintf(path, sizeof(path), "%s/kubelet_internal_checkpoint", f->dir);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    fixture_open(f);
    assert_false(is_socket(f->dir, "old.sock"));
    assert_true(is_socket(f->dir, "kubelet.sock"));
    assert_int_equal(stat(path, &st), 0);
    assert_non_null(strstr(register_now(f, "v1", "p.sock", R), "is not supported")); /* it answers */
}

static void folders_are_made(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    fixture_open(f);
    assert_int_equal(stat(f->dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    WAIT(f, stat(f->registry, &st) == 0);
    assert_int_equal(st.st_mode & 07777, 0750);
}

static void a_socket_that_is_removed_is_made_again(void **state)
{
    struct fixture *f = *state;
    char path[160];
    struct fake p;

    fixture_open(f);
    snprintf(path, sizeof(path), "%s/kubelet.sock", f->dir);
    assert_int_equal(unlink(path), 0);
    WAIT(f, is_socket(f->dir, "kubelet.sock"));
    fake_register(f, &p, "p.sock");
    fake_die(&p);
}

static void a_folder_that_is_removed_or_moved_is_made_again(void **state)
{
    struct fixture *f = *state;
    char away[160];
    struct err e = { 0 };
    struct fake p;

    fixture_open(f);
    assert_int_equal(fs_remove_tree(AT_FDCWD, f->dir, &e), ERR_OK);
    WAIT(f, is_socket(f->dir, "kubelet.sock"));
    snprintf(away, sizeof(away), "%s/away", f->scratch);
    assert_int_equal(rename(f->dir, away), 0);
    WAIT(f, is_socket(f->dir, "kubelet.sock")); /* the second time after a pause */
    fake_register(f, &p, "p.sock");
    fake_die(&p);
}

static void a_folder_that_cannot_be_used_is_tried_again(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    close(open(f->dir, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)); /* a file in its place */
    fixture_open(f);
    assert_non_null(strstr(f->problem, "ot a directory"));
    assert_int_equal(unlink(f->dir), 0);
    WAIT(f, is_socket(f->dir, "kubelet.sock"));
    fake_register(f, &p, "p.sock");
    fake_die(&p);
}

static unsigned count_over(const struct registers *r, unsigned n)
{
    unsigned over = 0;

    for (unsigned i = 0; i < n; i++)
        over += r[i].over;
    return over;
}

/* Over several connections: one carries a bounded number of calls. */
static void a_process_cannot_take_all_places(void **state)
{
    enum { CLIENTS = 4, EACH = 50, REFUSED = CLIENTS * EACH - 128 };
    static struct registers r[CLIENTS * EACH];
    struct grpc_channel *clients[CLIENTS];
    struct fixture *f = *state;
    char expected[160];

    fixture_open(f);
    for (int i = 0; i < CLIENTS; i++) {
        for (int j = 0; j < EACH; j++)
            register_begin(f, &r[i * EACH + j], "v1beta1", "never.sock", R);
        clients[i] = take_ptr(&f->client);
    }
    WAIT(f, count_over(r, CLIENTS * EACH) == REFUSED);
    snprintf(
        expected, sizeof(expected),
        "rpc error: code = ResourceExhausted desc = 128 plugins of process %d have not been reached yet, no "
        "more are allowed",
        (int)getpid());
    for (int i = 0; i < CLIENTS * EACH; i++) {
        if (r[i].over)
            assert_string_equal(r[i].result.text, expected);
    }
    for (int i = 0; i < CLIENTS; i++)
        grpc_channel_close(clients[i]);
    WAIT(f, !dp_plugins_busy(f->plugins) && count_over(r, CLIENTS * EACH) == CLIENTS * EACH);
}

static void a_process_that_registers_in_a_loop_is_slowed_down(void **state)
{
    struct fixture *f = *state;
    char expected[160];

    fixture_open(f);
    for (int i = 0; i < 256; i++)
        assert_non_null(strstr(register_now(f, "v1beta1", "p.sock", "cpu"), "is invalid"));
    for (int i = 0; i < 100; i++)
        assert_int_not_equal(register_now(f, "v1beta1", "p.sock", "cpu")[0], '\0');
    snprintf(expected, sizeof(expected),
             "rpc error: code = ResourceExhausted desc = process %d registers more than 10 times a second",
             (int)getpid());
    assert_string_equal(register_now(f, "v1beta1", "p.sock", "cpu"), expected);
    assert_in_range(f->problems, 1, 30);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(a_plugin_registers_and_is_listed),
        T(refusals_have_kubelets_texts),
        T(an_endpoint_is_a_plain_name_in_the_folder),
        T(a_message_that_is_none_is_refused),
        T(a_plugin_that_serves_after_it_registered_is_reached),
        T(a_plugin_that_gives_up_register_is_registered_when_it_serves),
        T(why_a_plugin_that_gave_up_could_not_be_asked_is_named),
        T(the_end_does_not_wait_for_a_plugin_that_gave_up),
        T(the_failure_of_options_is_the_answer_of_register),
        T(sockets_of_an_earlier_run_are_removed_and_other_files_stay),
        T(folders_are_made),
        T(a_socket_that_is_removed_is_made_again),
        T(a_folder_that_is_removed_or_moved_is_made_again),
        T(a_folder_that_cannot_be_used_is_tried_again),
        T(a_process_cannot_take_all_places),
        T(a_process_that_registers_in_a_loop_is_slowed_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
