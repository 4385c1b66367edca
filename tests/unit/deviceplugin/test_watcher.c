/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/deviceplugin/fake_plugin.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* PluginInfo with short texts; `version` NULL: none. */
static struct grpc_bytes info_of(const char *type, const char *name, const char *endpoint,
                                 const char *version)
{
    const char *const texts[] = { type, name, endpoint, version };
    static char p[8][512];
    static unsigned used;
    char *to = p[used++ % 8], *start = to;

    for (unsigned i = 0; i < 4 && texts[i] != NULL; i++) {
        assert_in_range(strlen(texts[i]), 0, 127);
        *to++ = (char)((i + 1) << 3 | 2);
        *to++ = (char)strlen(texts[i]);
        to = stpcpy(to, texts[i]);
    }
    return (struct grpc_bytes){ (const uint8_t *)start, (size_t)(to - start) };
}

static void fake_watched(struct fixture *f, struct fake *p, const char *name)
{
    fake_begin(f, p, name, true);
    p->info = info_of("DevicePlugin", R, "", "v1beta1");
}

static void expect_told(struct fixture *f, struct fake *p, const char *why)
{
    mem_auto uint8_t *bytes = NULL;
    struct err e = { 0 };
    size_t n;

    WAIT(f, p->told > 0);
    assert_int_equal(dp_status_pack(why, &bytes, &n, &e), ERR_OK);
    if (p->n_request != n || memcmp(p->request, bytes, n) != 0)
        fail_msg("told %.*s instead of %s", (int)p->n_request, (const char *)p->request, why);
    p->told = 0;
}

static void a_socket_that_appears_is_asked_and_registered(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_watched(f, &p, "p.sock");
    expect_told(f, &p, NULL);
    WAIT(f, is_listed(f));
    assert_int_equal(p.asked_info, 1);
    assert_int_equal(p.asked_options, 1);
    assert_int_equal(allocatable(f), 2);
    assert_int_equal(f->problems, 0);
    fake_die(&p);
}

static void one_that_is_there_already_is_registered_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    struct fake p;

    assert_int_equal(fs_mkdirs(f->registry, 0750, &e), ERR_OK);
    fake_watched(f, &p, "p.sock");
    for (int i = 0; i < 2; i++) {
        fixture_open(f);
        expect_told(f, &p, NULL);
        WAIT(f, is_listed(f) && p.stream != NULL);
        fixture_close(f);
        WAIT(f, p.stream == NULL);
        assert_int_equal(access(p.path, F_OK), 0); /* the folder is the plugins' */
    }
    fake_die(&p);
}

static void folders_are_followed_and_hidden_names_ignored(void **state)
{
    struct fixture *f = *state;
    struct fake hidden, inner, deep;
    char path[200];

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_watched(f, &hidden, ".p.sock");
    snprintf(path, sizeof(path), "%s/.vendor", f->registry);
    assert_int_equal(mkdir(path, 0700), 0);
    fake_watched(f, &inner, ".vendor/p.sock");
    snprintf(path, sizeof(path), "%s/a", f->registry);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/a/b", f->registry);
    assert_int_equal(mkdir(path, 0700), 0);
    fake_watched(f, &deep, "a/b/p.sock");
    expect_told(f, &deep, NULL);
    assert_int_equal(hidden.asked_info + inner.asked_info, 0);
    fake_die(&hidden);
    fake_die(&inner);
    fake_die(&deep);
}

static void a_socket_that_is_removed_deregisters(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_watched(f, &p, "p.sock");
    WAIT(f, is_listed(f) && p.stream != NULL);
    assert_int_equal(unlink(p.path), 0);
    WAIT(f, resource_of(f)->provider == NULL && p.stream == NULL && !dp_plugins_busy(f->plugins));
    fake_die(&p);
}

static void a_socket_that_is_made_anew_registers_again(void **state)
{
    struct fixture *f = *state;
    struct fake p1, p2;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_watched(f, &p1, "p.sock");
    expect_told(f, &p1, NULL);
    WAIT(f, is_listed(f) && p1.stream != NULL);
    fake_watched(f, &p2, "p.sock");
    expect_told(f, &p2, NULL);
    WAIT(f, is_listed(f) && p2.stream != NULL && p1.stream == NULL);
    fake_die(&p1);
    assert_int_equal(allocatable(f), 2);
    fake_die(&p2);
}

static void wrong_versions_and_names_are_told_in_kubelets_words(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_begin(f, &p, "p.sock", true);
    p.info = info_of("DevicePlugin", R, "", "v1");
    expect_told(f, &p,
                "RegisterPlugin error -- plugin validation failed with err: manager version, v1beta1, is not "
                "among plugin supported versions [v1]");
    p.info = info_of("DevicePlugin", R, "", NULL);
    expect_told(f, &p,
                "RegisterPlugin error -- plugin validation failed with err: manager version, v1beta1, is not "
                "among plugin supported versions []");
    p.info = info_of("DevicePlugin", "cpu", "", "v1beta1");
    expect_told(f, &p,
                "RegisterPlugin error -- plugin validation failed with err: invalid name of device plugin "
                "socket: the ResourceName \"cpu\" is invalid");
    p.info = info_of("DevicePlugin", R, "", "v1beta1"); /* it is tried again */
    expect_told(f, &p, NULL);
    WAIT(f, is_listed(f));
    assert_int_equal(p.asked_info, 4);
    fake_die(&p);
}

static void a_plugin_may_serve_on_another_socket(void **state)
{
    struct fixture *f = *state;
    struct fake p, served;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_begin(f, &served, "other.sock", false);
    fake_begin(f, &p, "p.sock", true);
    p.info = info_of("DevicePlugin", R, served.path, "v1beta1");
    expect_told(f, &p, NULL);
    WAIT(f, is_listed(f));
    assert_int_equal(served.asked_options, 1);
    assert_int_equal(p.asked_options, 0);
    fake_die(&p);
    fake_die(&served);
}

static void another_type_goes_to_its_handler(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_begin(f, &p, "p.sock", true);
    p.info = info_of("CSIPlugin", "csi.example.com", "", "1.0.0");
    expect_told(f, &p, NULL);
    assert_string_equal(f->other, "CSIPlugin csi.example.com /plugins_registry/p.sock 1.0.0");
    fake_die(&p); /* removes the socket */
    WAIT(f, strcmp(f->other, "gone") == 0);
}

static void a_handler_may_answer_later(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    f->answers_later = true;
    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_begin(f, &p, "p.sock", true);
    p.info = info_of("CSIPlugin", "csi.example.com", "", "1.0.0");
    WAIT(f, f->offer != NULL);
    dp_offer_answer(f->offer, &(struct err){ 0 });
    expect_told(f, &p, NULL);
    fake_die(&p);
    WAIT(f, f->offer == NULL);
    /* One that goes before it is answered. */
    fake_begin(f, &p, "p.sock", true);
    p.info = info_of("CSIPlugin", "csi.example.com", "", "1.0.0");
    WAIT(f, f->offer != NULL);
    fake_die(&p);
    WAIT(f, f->offer == NULL);
    assert_string_equal(f->other, "gone");
}

static void a_type_without_a_handler_is_refused(void **state)
{
    struct fixture *f = *state;
    char expected[300];
    struct fake p;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_begin(f, &p, "p.sock", true);
    p.info = info_of("DRAPlugin", "gpu.example.com", "", "v1");
    snprintf(expected, sizeof(expected),
             "RegisterPlugin error -- no handler registered for plugin type: DRAPlugin at socket %s", p.path);
    expect_told(f, &p, expected);
    snprintf(expected, sizeof(expected),
             "-: RegisterPlugin error -- no handler registered for plugin type: DRAPlugin at socket %s",
             p.path);
    WAIT(f, strcmp(f->problem, expected) == 0);
    err_set(&f->taken, ERR_INVALID, "not this one");
    p.info = info_of("CSIPlugin", "csi.example.com", "", "1.0.0");
    expect_told(f, &p, "RegisterPlugin error -- plugin registration failed with err: not this one");
    fake_die(&p);
}

static void one_that_hangs_holds_up_no_other(void **state)
{
    struct fixture *f = *state;
    struct fake hangs, p;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_begin(f, &hangs, "hangs.sock", true);
    hangs.on_info = HANGS;
    WAIT(f, hangs.held != NULL);
    fake_watched(f, &p, "p.sock");
    expect_told(f, &p, NULL);
    assert_non_null(hangs.held);
    WAIT(f, hangs.held == NULL); /* after a second */
    assert_non_null(strstr(f->problem, "failed to get plugin info using RPC GetInfo at socket "));
    assert_non_null(strstr(f->problem, "code = DeadlineExceeded desc = context deadline exceeded"));
    fake_die(&hangs);
    fake_die(&p);
}

/* As between bind() and listen(). */
static void a_socket_that_nobody_serves_yet_is_no_problem_at_first(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    fd_auto fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct fake p;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    snprintf(a.sun_path, sizeof(a.sun_path), "%.60s/bound.sock", f->registry);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    fake_watched(f, &p, "p.sock");
    expect_told(f, &p, NULL);
    assert_int_equal(f->problems, 0);
    WAIT(f, f->problems == 1);
    assert_non_null(strstr(f->problem, "bound.sock: connect: connection refused"));
    fake_die(&p);
}

static void a_stream_that_ends_is_begun_again_while_the_socket_stays(void **state)
{
    struct fixture *f = *state;
    struct fake p;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_watched(f, &p, "p.sock");
    expect_told(f, &p, NULL);
    WAIT(f, is_listed(f) && p.stream != NULL);
    grpc_end(take_ptr(&p.stream), NULL);
    WAIT(f, resource_of(f)->provider == NULL);
    expect_told(f, &p, NULL);
    WAIT(f, is_listed(f));
    assert_int_equal(p.asked_info, 2);
    fake_die(&p);
}

/* Two sockets of one resource: the later one serves, and they do not take turns. */
static void one_that_was_replaced_rests(void **state)
{
    struct fixture *f = *state;
    struct fake p1, p2;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_watched(f, &p1, "p1.sock");
    expect_told(f, &p1, NULL);
    WAIT(f, p1.stream != NULL);
    fake_watched(f, &p2, "p2.sock");
    expect_told(f, &p2, NULL);
    WAIT(f, p2.stream != NULL && p1.stream == NULL && is_listed(f));
    assert_int_equal(p1.asked_info, 1);
    assert_int_equal(p2.asked_info, 1);
    fake_die(&p1);
    assert_string_equal(register_now(f, "v1beta1", "p.sock", ""),
                        "rpc error: code = Unknown desc = the ResourceName \"\" is invalid");
    assert_int_equal(allocatable(f), 2);
    fake_die(&p2);
}

static void the_folder_is_made_again(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    struct fake p;

    fixture_open(f);
    WAIT(f, access(f->registry, F_OK) == 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, f->registry, &e), ERR_OK);
    WAIT(f, access(f->registry, F_OK) == 0);
    fake_watched(f, &p, "p.sock");
    expect_told(f, &p, NULL);
    WAIT(f, is_listed(f));
    fake_die(&p);
}

static void the_number_of_sockets_is_bounded(void **state)
{
    static struct fake many[260];
    struct fixture *f = *state;
    struct err e = { 0 };
    unsigned asked = 0;
    char name[16];

    assert_int_equal(fs_mkdirs(f->registry, 0750, &e), ERR_OK);
    for (int i = 0; i < 260; i++) {
        snprintf(name, sizeof(name), "%d.sock", i);
        fake_begin(f, &many[i], name, true);
        many[i].on_info = HANGS;
    }
    fixture_open(f);
    WAIT(f, strstr(f->problem, "more than 256 sockets; ") != NULL);
    for (int i = 0; i < 260; i++) {
        asked += many[i].held != NULL;
        fake_die(&many[i]);
    }
    assert_in_range(asked, 0, 256);
}

/* Of a plugin that died an hour ago. */
static void make_dead_socket(const struct fixture *f, int i)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    struct timespec times[2];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof(to.sun_path), "%s/a%d.sock", f->registry, i);
    assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    close(fd);
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= 3600;
    times[1] = times[0];
    assert_int_equal(utimensat(AT_FDCWD, to.sun_path, times, 0), 0);
}

static void dead_sockets_keep_no_plugin_out(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    struct fake before, after;

    assert_int_equal(fs_mkdirs(f->registry, 0750, &e), ERR_OK);
    for (int i = 0; i < 300; i++)
        make_dead_socket(f, i);
    fake_watched(f, &before, "y.sock"); /* the last but one by name */
    fixture_open(f);
    expect_told(f, &before, NULL);
    WAIT(f, is_listed(f));
    fake_watched(f, &after, "z.sock");
    after.info = info_of("DevicePlugin", "example.com/other", "", "v1beta1");
    expect_told(f, &after, NULL);
    assert_int_equal(before.asked_info, 1); /* it kept its place */
    fake_die(&before);
    fake_die(&after);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(a_socket_that_appears_is_asked_and_registered),
        T(one_that_is_there_already_is_registered_after_a_restart),
        T(folders_are_followed_and_hidden_names_ignored),
        T(a_socket_that_is_removed_deregisters),
        T(a_socket_that_is_made_anew_registers_again),
        T(wrong_versions_and_names_are_told_in_kubelets_words),
        T(a_plugin_may_serve_on_another_socket),
        T(another_type_goes_to_its_handler),
        T(a_handler_may_answer_later),
        T(a_type_without_a_handler_is_refused),
        T(one_that_hangs_holds_up_no_other),
        T(a_socket_that_nobody_serves_yet_is_no_problem_at_first),
        T(a_stream_that_ends_is_begun_again_while_the_socket_stays),
        T(one_that_was_replaced_rests),
        T(the_folder_is_made_again),
        T(the_number_of_sockets_is_bounded),
        T(dead_sockets_keep_no_plugin_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
