/* SPDX-License-Identifier: Apache-2.0 */
/* States from files alone: no container runs here, so what needs a living conmon is in test_container_real.c.
 */
#include "rt_fixture.h"

#include <sys/resource.h>
#include <sys/stat.h>

#define BUNDLE "containers/" FIXTURE_ID "/"

static struct rt_state state_of(struct fixture *f)
{
    struct err e = { 0 };
    struct rt_state s;

    assert_int_equal(rt_state(&f->rt, FIXTURE_ID, &s, &e), ERR_OK);
    return s;
}

static void without_a_bundle_it_is_absent_and_without_a_pid_partial(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(state_of(f).phase, RT_ABSENT);
    fixture_write(f, BUNDLE "config.json", "{}");
    assert_int_equal(state_of(f).phase, RT_PARTIAL);
    fixture_write(f, BUNDLE "conmon.pid", "1");
    assert_int_equal(state_of(f).phase, RT_PARTIAL);
    fixture_write(f, BUNDLE "pid", "1");
    assert_int_equal(state_of(f).phase, RT_LOST);
    assert_true(state_of(f).created_ns > 0);
    assert_int_equal(state_of(f).pid, 0);
}

static void exit_file_decides_whatever_else_is_there(void **state)
{
    struct fixture *f = *state;

    fixture_write(f, BUNDLE "pid", "1");
    fixture_write(f, BUNDLE "conmon.pid", "1");
    fixture_write(f, "exits/" FIXTURE_ID, "143");
    assert_int_equal(state_of(f).phase, RT_EXITED);
    assert_int_equal(state_of(f).exit_code, 143);
    assert_true(state_of(f).finished_ns > 0);
    assert_false(state_of(f).oom_killed);
    fixture_write(f, BUNDLE "oom", "");
    assert_true(state_of(f).oom_killed);
    fixture_write(f, "exits/" FIXTURE_ID, "-1");
    assert_int_equal(state_of(f).exit_code, 255);
}

static void start_time_is_the_recorded_one_or_when_the_runtime_let_go(void **state)
{
    struct fixture *f = *state;
    char path[256];
    struct stat st;

    fixture_write(f, BUNDLE "pid", "1");
    fixture_write(f, "exits/" FIXTURE_ID, "0");
    assert_true(state_of(f).started_ns == 0);
    fixture_write(f, "oci/" FIXTURE_ID "/exec.fifo", "");
    assert_true(state_of(f).started_ns == 0); /* waits to be started */
    snprintf(path, sizeof(path), "%s/oci/" FIXTURE_ID "/exec.fifo", f->dir);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/oci/" FIXTURE_ID, f->dir);
    assert_int_equal(stat(path, &st), 0);
    /* The end came before: the start is not shown after it. */
    assert_true(state_of(f).started_ns == state_of(f).finished_ns);
    fixture_write(f, "exits/" FIXTURE_ID, "0");
    assert_true(state_of(f).started_ns == st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec);
    fixture_write(f, BUNDLE "started", "1234567890\n");
    assert_true(state_of(f).started_ns == 1234567890);
}

static void identity_is_read_back_or_refused_whole(void **state)
{
    struct fixture *f = *state;
    struct rt_identity who;
    struct err e = { 0 };

    assert_int_equal(presence_of(rt_identity(&f->rt, FIXTURE_ID, &who, &e)), PRESENCE_ABSENT);
    fixture_write(f, BUNDLE "meta.json",
                  "{\"podUID\":\"u\",\"podNamespace\":\"n\",\"podName\":\"p\",\"containerName\":\"c\","
                  "\"attempt\":3,\"cgroupPath\":\"/x\"}");
    assert_int_equal(presence_of(rt_identity(&f->rt, FIXTURE_ID, &who, &e)), PRESENCE_PRESENT);
    assert_string_equal(who.pod_uid, "u");
    assert_string_equal(who.cgroup_path, "/x");
    assert_int_equal(who.attempt, 3);
    fixture_write(f, BUNDLE "meta.json", "{\"podUID\":\"u\",\"attempt\":3}");
    assert_int_equal(presence_of(rt_identity(&f->rt, FIXTURE_ID, &who, &e)), PRESENCE_ABSENT);
    assert_int_equal(presence_of(rt_identity(&f->rt, "../etc", &who, &e)), PRESENCE_ABSENT);
}

/* As with EMFILE, EIO, ...: the look fails, and nothing is reported; *ret stays as it was. */
static void expect_unknown(struct fixture *f)
{
    struct rt_state s = { .phase = RT_RUNNING, .pid = 77 };
    struct rt_identity who;
    struct rlimit before, none;
    struct err e = { 0 }, why = { 0 };
    enum err_code code;
    struct presence identity;
    struct strs ids = { 0 };

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ .rlim_cur = 3, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    code = rt_state(&f->rt, FIXTURE_ID, &s, &e);
    identity = rt_identity(&f->rt, FIXTURE_ID, &who, &why);
    assert_int_not_equal(rt_list(&f->rt, &ids, &why), ERR_OK);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_not_equal(code, ERR_OK);
    assert_non_null(strstr(e.text, "Too many open files"));
    assert_int_equal(s.phase, RT_RUNNING);
    assert_int_equal(s.pid, 77);
    assert_true(presence_is_unknown(identity));
}

static void what_cannot_be_read_is_unknown_not_absent_lost_or_255(void **state)
{
    struct fixture *f = *state;
    char text[32];

    fixture_write(f, BUNDLE "meta.json", "{}");
    fixture_write(f, BUNDLE "pid", "1");
    expect_unknown(f);
    snprintf(text, sizeof(text), "%d", (int)getpid());
    fixture_write(f, BUNDLE "conmon.pid", text);
    expect_unknown(f);
    fixture_write(f, BUNDLE "started", "1234567890\n");
    fixture_write(f, "exits/" FIXTURE_ID, "3");
    expect_unknown(f);
    assert_int_equal(state_of(f).exit_code, 3);
    fixture_write(f, "exits/" FIXTURE_ID, "0");
    expect_unknown(f);
    assert_int_equal(state_of(f).exit_code, 0);
    fixture_write(f, BUNDLE "oom", "");
    expect_unknown(f);
    assert_true(state_of(f).oom_killed);
}

static void list_has_each_id_once_wherever_it_left_something(void **state)
{
    static const char other[] = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";
    struct fixture *f = *state;
    struct err e = { 0 };
    struct strs ids = { 0 };
    char path[256];

    fixture_write(f, BUNDLE "pid", "1");
    fixture_write(f, "oci/" FIXTURE_ID "/status", "");
    snprintf(path, sizeof(path), "oci/%s/status", other);
    fixture_write(f, path, "");
    fixture_write(f, "containers/not-an-id/x", "");
    assert_int_equal(rt_list(&f->rt, &ids, &e), ERR_OK);
    assert_int_equal(ids.n, 2);
    assert_string_equal(ids.v[0], FIXTURE_ID);
    assert_string_equal(ids.v[1], other);
    strs_done(&ids);
}

static void cgroup_of_a_container_ends_in_its_id(void **state)
{
    (void)state;
    assert_true(rt_cgroup_path_valid("/kubepods/podx/" FIXTURE_ID, FIXTURE_ID));
    assert_true(rt_cgroup_path_valid("/x/" FIXTURE_ID, FIXTURE_ID));
    assert_false(rt_cgroup_path_valid("/", FIXTURE_ID));
    assert_false(rt_cgroup_path_valid("", FIXTURE_ID));
    assert_false(rt_cgroup_path_valid(NULL, FIXTURE_ID));
    assert_false(rt_cgroup_path_valid("/kubepods/podx", FIXTURE_ID));
    assert_false(rt_cgroup_path_valid("/kubepods/../" FIXTURE_ID, FIXTURE_ID));
    assert_false(rt_cgroup_path_valid("/kubepods/x" FIXTURE_ID, FIXTURE_ID));
}

static void versions_of_runtimes_are_understood(void **state)
{
    struct rt_features f = { 0 };

    (void)state;
    assert_true(rt_features_parse_version("crun version 1.8.1\ncommit: f8a096b\n", &f));
    assert_string_equal(f.runtime_name, "crun");
    assert_string_equal(f.runtime_version, "1.8.1");
    rt_features_by_version(&f);
    assert_true(f.recursive_read_only && f.user_namespaces);
    assert_true(rt_features_parse_version("crun version 1.7\n", &f));
    rt_features_by_version(&f);
    assert_true(f.recursive_read_only && !f.user_namespaces);
    assert_true(rt_features_parse_version("runc version 1.1.5+ds1\n", &f));
    rt_features_by_version(&f);
    assert_true(f.recursive_read_only && f.user_namespaces);
    assert_true(rt_features_parse_version("runc version 1.0.3\n", &f));
    rt_features_by_version(&f);
    assert_false(f.recursive_read_only);
    assert_false(rt_features_parse_version("GNU bash, version 5.2.15\n", &f));
    assert_false(rt_features_parse_version("", &f));
}

static void what_a_runtime_says_of_itself_is_read(void **state)
{
    struct rt_features f = { .recursive_read_only = true };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(rt_features_parse("{\"hooks\":[],\"mountOptions\":[\"ro\",\"rbind\",7]}", &f, &e),
                     ERR_OK);
    assert_false(f.recursive_read_only);
    assert_int_equal(rt_features_parse("{\"mountOptions\":[\"rw\",\"rro\"]}", &f, &e), ERR_OK);
    assert_true(f.recursive_read_only);
    assert_false(f.net_devices || f.rdt_schemata);
    assert_int_equal(
        rt_features_parse("{\"mountOptions\":[\"rro\"],\"linux\":{\"netDevices\":{\"enabled\":true},"
                          "\"intelRdt\":{\"enabled\":true,\"schemata\":true,\"monitoring\":true}}}",
                          &f, &e),
        ERR_OK);
    assert_true(f.net_devices && f.rdt_schemata);
    assert_int_equal(rt_features_parse("{\"mountOptions\":\"rro\"}", &f, &e), ERR_INVALID);
    assert_string_equal(e.text, "runtime features: mountOptions is not a list");
    assert_int_not_equal(rt_features_parse("unknown command features\n", &f, &e), ERR_OK);
    assert_true(f.recursive_read_only);
}

static void signals_have_many_names(void **state)
{
    const struct {
        const char *name;
        int number;
    } rows[] = {
        { "SIGTERM", 15 },
        { "TERM", 15 },
        { "sigint", 2 },
        { "9", 9 },
        { "SIGRTMIN+3", 37 },
        { "RTMIN", 34 },
        { "SIGRTMAX-1", 63 },
        { "SIGRTMAX", 64 },
        { "64", 64 },
        { "65", 0 },
        { "0", 0 },
        { "SIGNOPE", 0 },
        { "", 0 },
        { "SIGRTMIN+99", 0 },
        { "SIGRTMIN-1", 0 },
        { "SIG", 0 },
        { "-9", 0 },
        { NULL, 0 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(rt_signal_number(rows[i].name), rows[i].number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(without_a_bundle_it_is_absent_and_without_a_pid_partial),
        fixture_test(exit_file_decides_whatever_else_is_there),
        fixture_test(start_time_is_the_recorded_one_or_when_the_runtime_let_go),
        fixture_test(identity_is_read_back_or_refused_whole),
        fixture_test(what_cannot_be_read_is_unknown_not_absent_lost_or_255),
        fixture_test(list_has_each_id_once_wherever_it_left_something),
        cmocka_unit_test(cgroup_of_a_container_ends_in_its_id),
        cmocka_unit_test(versions_of_runtimes_are_understood),
        cmocka_unit_test(what_a_runtime_says_of_itself_is_read),
        cmocka_unit_test(signals_have_many_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
