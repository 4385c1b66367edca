/* SPDX-License-Identifier: Apache-2.0 */
/* The life of containers, from create to delete. */
#include "real.h"

static void output_goes_to_the_log_and_the_exit_code_comes_as_an_event(void **state)
{
    struct err e = { 0 };
    struct rt_identity who;
    struct rt_state s;

    (void)state;
    BOX(b, "sh", "-c", "echo hi; echo oops >&2; exit 3");
    assert_int_equal(state_of(&b).phase, RT_ABSENT);
    assert_int_equal(create(&b), ERR_OK);
    s = state_of(&b);
    assert_int_equal(s.phase, RT_CREATED);
    assert_true(s.pid > 0 && s.conmon_pid > 0 && s.created_ns > 0 && s.started_ns == 0);
    start(&b);
    wait_event(&b);
    s = state_of(&b);
    assert_int_equal(s.phase, RT_EXITED);
    assert_int_equal(s.exit_code, 3);
    assert_false(s.oom_killed);
    assert_true(s.created_ns <= s.started_ns && s.started_ns <= s.finished_ns);
    assert_true(clock_wall_ns() - s.finished_ns < 60 * INT64_C(1000000000));

    str_auto text = output(&b);
    assert_non_null(strstr(text, "hi\n"));
    assert_non_null(strstr(text, "oops\n"));

    assert_int_equal(presence_of(rt_identity(host.rt, b.id, &who, &e)), PRESENCE_PRESENT);
    assert_string_equal(who.pod_uid, b.config.pod_uid);
    assert_string_equal(who.pod_namespace, "default");
    assert_string_equal(who.pod_name, "pod");
    assert_string_equal(who.container_name, "main");
    assert_string_equal(who.cgroup_path, b.cgroup);
    assert_int_equal(who.attempt, 2);
    delete (&b);
    assert_no_trace(&b);
}

static void supervisor_killed_is_reported_as_lost_and_delete_ends_the_container(void **state)
{
    struct rt_state s;
    pid_t init;

    (void)state;
    BOX(b, "sleep", "1000");
    run(&b);
    s = state_of(&b);
    assert_int_equal(s.phase, RT_RUNNING);
    init = s.pid;
    assert_int_equal(kill(s.conmon_pid, SIGKILL), 0);
    wait_event(&b);
    s = state_of(&b);
    assert_int_equal(s.phase, RT_LOST);
    assert_int_equal(s.conmon_pid, 0);
    assert_int_equal(kill(init, 0), 0); /* it lives on, with nobody to tell its end */
    delete (&b);
    assert_no_trace(&b);
    if (kill(init, 0) == 0) { /* a zombie at most, where PID 1 does not reap */
        char path[64];
        str_auto text = NULL;
        struct err e = { 0 };

        snprintf(path, sizeof(path), "/proc/%d/status", (int)init);
        if (fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, &e) == ERR_OK)
            assert_non_null(strstr(text, "State:\tZ"));
    }
}

static void created_and_never_started_is_deleted_without_a_trace(void **state)
{
    (void)state;
    BOX(b, "sleep", "1000");
    assert_int_equal(create(&b), ERR_OK);
    assert_int_equal(state_of(&b).phase, RT_CREATED);
    delete (&b);
    assert_no_trace(&b);
}

static void running_container_is_deleted_without_a_trace_and_deleting_again_is_fine(void **state)
{
    (void)state;
    BOX(b, "sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000");
    run(&b);
    delete (&b);
    assert_no_trace(&b);
    delete (&b);
    assert_no_trace(&b);
}

static void missing_program_fails_with_the_runtimes_own_words(void **state)
{
    (void)state;
    BOX(b, "/no/such/program");
    assert_int_equal(create(&b), ERR_UNKNOWN);
    if (strstr(host.runtime_path, "crun") != NULL)
        assert_string_equal(
            b.result.text,
            "executable file `/no/such/program` not found in $PATH: No such file or directory");
    else
        assert_string_equal(
            b.result.text,
            "runc create failed: unable to start container process: exec: \"/no/such/program\": "
            "stat /no/such/program: no such file or directory");
    assert_int_equal(state_of(&b).phase, RT_PARTIAL);
    delete (&b);
    assert_no_trace(&b);
}

static void errors_of_configuration_keep_their_text(void **state)
{
    (void)state;
    BOX(b, "sh");
    b.security.has_run_as_non_root = b.security.run_as_non_root = true;
    assert_int_equal(create(&b), ERR_PRECONDITION);
    assert_string_equal(b.result.text,
                        "container has runAsNonRoot and image will run as root (pod: "
                        "\"pod_default(11111111-2222-3333-4444-555555555555)\", container: main)");
    delete (&b);
    assert_no_trace(&b);

    BOX(c, "sh");
    c.config.command = NULL;
    assert_int_equal(create(&c), ERR_NOT_FOUND);
    assert_string_equal(c.result.text, "no command specified");
    assert_int_equal(state_of(&c).phase, RT_PARTIAL);
    delete (&c);
    assert_no_trace(&c);
}

static void containers_of_an_earlier_run_are_found_and_watched_again(void **state)
{
    char path[512];
    struct strs ids = { 0 };
    struct err e = { 0 };
    int64_t started_ns;

    (void)state;
    BOX(b, "sleep", "1000");
    BOX(c, "sleep", "1000");
    run(&b);
    assert_int_equal(create(&c), ERR_OK);
    started_ns = state_of(&b).started_ns;
    close_rt();
    /* The agent was killed between the start and the note about it. */
    snprintf(path, sizeof(path), "%s/containers/%s/started", host.run_dir, b.id);
    assert_int_equal(unlink(path), 0);
    open_rt();

    assert_int_equal(rt_list(host.rt, &ids, &e), ERR_OK);
    assert_int_equal(ids.n, 2);
    assert_int_equal(rt_adopt(host.rt, ids.v[0], &e), ERR_OK);
    assert_int_equal(rt_adopt(host.rt, ids.v[1], &e), ERR_OK);
    strs_done(&ids);
    assert_int_equal(state_of(&b).phase, RT_RUNNING);
    assert_true(state_of(&b).started_ns == started_ns);
    assert_int_equal(state_of(&c).phase, RT_CREATED);
    start(&c);
    assert_int_equal(state_of(&c).phase, RT_RUNNING);

    assert_int_equal(rt_signal(host.rt, b.id, SIGKILL, &e), ERR_OK);
    wait_event(&b);
    assert_int_equal(state_of(&b).phase, RT_EXITED);
    assert_int_equal(state_of(&b).exit_code, 137);
    assert_int_equal(rt_signal(host.rt, b.id, SIGKILL, &e), ERR_NOT_FOUND);
    assert_int_equal(kill(state_of(&c).conmon_pid, SIGKILL), 0);
    wait_event(&c);
    assert_int_equal(state_of(&c).phase, RT_LOST);
    delete (&b);
    delete (&c);
    assert_no_trace(&b);
    assert_no_trace(&c);
}

static void signal_reaches_the_process_and_its_handler_decides_the_exit_code(void **state)
{
    struct err e = { 0 };
    uint64_t since = clock_mono_ms();

    (void)state;
    BOX(b, "sh", "-c", "trap 'exit 42' USR1; echo ready; while :; do sleep 0.01; done");
    run(&b);
    for (;;) {
        str_auto text = output(&b);

        if (strstr(text, "ready") != NULL || !turn(since))
            break;
    }
    assert_int_equal(rt_signal(host.rt, b.id, rt_signal_number("SIGUSR1"), &e), ERR_OK);
    wait_event(&b);
    assert_int_equal(state_of(&b).exit_code, 42);
    delete (&b);
}

static void memory_over_the_limit_is_reported_as_an_oom_kill(void **state)
{
    struct rt_state s;

    (void)state;
    BOX(b, "dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1");
    b.config.memory_limit = 32 << 20;
    run_to_end(&b);
    s = state_of(&b);
    assert_int_equal(s.exit_code, 137);
    assert_true(s.oom_killed);
    delete (&b);
    assert_no_trace(&b);
}

static void cancelled_create_leaves_only_what_delete_removes(void **state)
{
    unsigned turns;

    (void)state;
    for (turns = 0; turns < 12; turns++) {
        unsigned i;

        BOX(b, "sleep", "1000");
        rt_create_start(&b.create, host.rt, &b.config, on_done, &b);
        for (i = 0; i < turns && !b.over; i++)
            uv_run(&host.loop, UV_RUN_ONCE);
        if (!b.over) {
            bool finished = b.create.op.finished;

            op_cancel(&b.create.op);
            wait_over(&b);
            if (!finished)
                assert_int_equal(b.result.code, ERR_CANCELLED);
        }
        b.over = false;
        delete (&b);
        assert_no_trace(&b);
    }
}

static void conmon_that_has_not_yet_written_its_pid_is_found_by_delete(void **state)
{
    char path[512];
    struct rt_state s;

    (void)state;
    BOX(b, "sleep", "1000");
    assert_int_equal(create(&b), ERR_OK);
    s = state_of(&b);
    snprintf(path, sizeof(path), "%s/containers/%s/conmon.pid", host.run_dir, b.id);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/containers/%s/pid", host.run_dir, b.id);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(state_of(&b).phase, RT_PARTIAL);
    delete (&b);
    assert_no_trace(&b);
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)s.conmon_pid);
    str_auto line = NULL;
    struct err e = { 0 };
    if (fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &line, NULL, &e) == ERR_OK)
        assert_string_equal(line, "");
}

static void delete_does_not_touch_a_cgroup_that_is_not_the_containers(void **state)
{
    char other[256];
    struct rt_state s;

    (void)state;
    BOX(b, "sleep", "1000");
    BOX(c, "sleep", "1000");
    run(&b);
    snprintf(other, sizeof(other), "%s", b.cgroup);
    rt_delete_start(&c.action, host.rt, c.id, other, on_done, &c);
    wait_over(&c);
    assert_int_equal(c.result.code, ERR_OK);
    s = state_of(&b);
    assert_int_equal(s.phase, RT_RUNNING);
    delete (&b);
}

static void processes_left_behind_in_the_hosts_pid_namespace_go_with_delete(void **state)
{
    struct err e = { 0 };

    (void)state;
    BOX(b, "sh", "-c", "sleep 1000 & [ $$ = 1 ] || echo host");
    b.config.host_pid = true;
    run_to_end(&b);
    str_auto text = output(&b);
    assert_string_equal(text, "host\n");
    assert_int_equal(presence_of(cg_has_processes(host.cgroups, b.cgroup, &e)), PRESENCE_PRESENT);
    delete (&b);
    assert_no_trace(&b);
}

static void many_at_once_all_run_and_end(void **state)
{
    enum { N = 20 };
    static struct box boxes[N];
    static const char *const argv[] = { "sh", "-c", "exit 7" };
    uint64_t since = clock_mono_ms(), created, started;
    size_t i;

    (void)state;
    memset(boxes, 0, sizeof(boxes));
    for (i = 0; i < N; i++) {
        box_init(&boxes[i], argv, ARRAY_LEN(argv));
        rt_create_start(&boxes[i].create, host.rt, &boxes[i].config, on_done, &boxes[i]);
    }
    for (i = 0; i < N; i++) {
        wait_over(&boxes[i]);
        if (boxes[i].result.code != ERR_OK)
            fail_msg("%s", boxes[i].result.text);
    }
    created = clock_mono_ms();
    for (i = 0; i < N; i++)
        rt_start_start(&boxes[i].action, host.rt, boxes[i].id, on_done, &boxes[i]);
    for (i = 0; i < N; i++)
        wait_over(&boxes[i]);
    started = clock_mono_ms();
    for (i = 0; i < N; i++) {
        wait_event(&boxes[i]);
        assert_int_equal(state_of(&boxes[i]).exit_code, 7);
    }
    for (i = 0; i < N; i++)
        rt_delete_start(&boxes[i].action, host.rt, boxes[i].id, boxes[i].cgroup, on_done, &boxes[i]);
    for (i = 0; i < N; i++) {
        wait_over(&boxes[i]);
        assert_int_equal(boxes[i].result.code, ERR_OK);
        assert_no_trace(&boxes[i]);
    }
    print_message("%d containers: create %.1f ms, start %.1f ms, delete %.1f ms each\n", N,
                  (double)(created - since) / N, (double)(started - created) / N,
                  (double)(clock_mono_ms() - started) / N);
}

static void one_alone_takes_no_longer_than_its_parts(void **state)
{
    struct timespec t[4];
    double best_create = 1e9, best_start = 1e9, best_exit = 1e9;
    int i;

    (void)state;
    for (i = 0; i < 10; i++) {
        BOX(b, "sh", "-c", "exit 0");
        clock_gettime(CLOCK_MONOTONIC, &t[0]);
        if (create(&b) != ERR_OK)
            fail_msg("%s", b.result.text);
        clock_gettime(CLOCK_MONOTONIC, &t[1]);
        rt_start_start(&b.action, host.rt, b.id, on_done, &b);
        wait_over(&b);
        clock_gettime(CLOCK_MONOTONIC, &t[2]);
        wait_event(&b);
        clock_gettime(CLOCK_MONOTONIC, &t[3]);
#define MS(n)                                                                                                \
    ((double)(t[n].tv_sec - t[(n)-1].tv_sec) * 1e3 + (double)(t[n].tv_nsec - t[(n)-1].tv_nsec) / 1e6)
        best_create = MS(1) < best_create ? MS(1) : best_create;
        best_start = MS(2) < best_start ? MS(2) : best_start;
        best_exit = MS(3) < best_exit ? MS(3) : best_exit;
        delete (&b);
    }
    print_message("one alone, best of 10: create %.1f ms, start %.1f ms, exit event %.1f ms after that\n",
                  best_create, best_start, best_exit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_goes_to_the_log_and_the_exit_code_comes_as_an_event),
        cmocka_unit_test(supervisor_killed_is_reported_as_lost_and_delete_ends_the_container),
        cmocka_unit_test(created_and_never_started_is_deleted_without_a_trace),
        cmocka_unit_test(running_container_is_deleted_without_a_trace_and_deleting_again_is_fine),
        cmocka_unit_test(missing_program_fails_with_the_runtimes_own_words),
        cmocka_unit_test(errors_of_configuration_keep_their_text),
        cmocka_unit_test(containers_of_an_earlier_run_are_found_and_watched_again),
        cmocka_unit_test(signal_reaches_the_process_and_its_handler_decides_the_exit_code),
        cmocka_unit_test(memory_over_the_limit_is_reported_as_an_oom_kill),
        cmocka_unit_test(cancelled_create_leaves_only_what_delete_removes),
        cmocka_unit_test(conmon_that_has_not_yet_written_its_pid_is_found_by_delete),
        cmocka_unit_test(delete_does_not_touch_a_cgroup_that_is_not_the_containers),
        cmocka_unit_test(processes_left_behind_in_the_hosts_pid_namespace_go_with_delete),
        cmocka_unit_test(many_at_once_all_run_and_end),
        cmocka_unit_test(one_alone_takes_no_longer_than_its_parts),
    };

    return run_with_each_runtime(tests, ARRAY_LEN(tests), set_up, tear_down);
}
