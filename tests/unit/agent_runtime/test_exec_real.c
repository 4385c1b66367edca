/* SPDX-License-Identifier: Apache-2.0 */
/* Processes in a running container, with the real conmon, `coracle-exec` and each OCI runtime. */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/exec.h"
#include "agent/runtime/exec_report.h"
#include "real.h"

#include <sys/ioctl.h>

enum { OUTPUT_MAX = 64 * 1024 };

/* ---- the container ----------------------------------------------------------------------------- */

static struct box box;

static int set_up_container(void **state)
{
    static const char *const argv[] = { "sleep", "1000" };
    static const char *const env[] = { "SECRET=hush", "FROM=container", NULL };

    if (set_up(state) != 0)
        return -1;
    shell("cd %s/layer && echo hello > plain && chmod 644 plain && echo nonsense > bin/broken && chmod 755 "
          "bin/broken",
          host.root);
    box = (struct box){ 0 };
    box_init(&box, argv, ARRAY_LEN(argv));
    box.security = (struct api_security){ .has_run_as_user = true,
                                          .run_as_user = 1234,
                                          .has_allow_privilege_escalation = true };
    box.config.env = env;
    box.config.working_dir = "/tmp";
    box.config.seccomp_default = access("/usr/share/containers/seccomp.json", R_OK) == 0;
    run(&box);
    return 0;
}

static int tear_down_container(void **state)
{
    if (host.ready)
        delete (&box);
    return tear_down(state);
}

/* ---- one process ----------------------------------------------------------------------------- */

struct run {
    struct rt_exec x;
    struct err result;
    bool used, over, started;
    int master;
};

/* They outlive the test that began them: a failed assertion leaves it in the midst of an operation. */
static struct run runs[64];

static void on_run_done(struct op *op, const struct err *result)
{
    struct run *r = op->owner;

    r->result = *result;
    r->over = true;
}

static void on_terminal(int fd, void *owner)
{
    struct run *r = owner;

    r->master = fd;
}

static void on_started(void *owner)
{
    struct run *r = owner;

    r->started = true;
}

static struct run *begin_in(const char *id, const char *const *argv, struct rt_exec_spec spec)
{
    struct run *r = NULL;

    for (size_t i = 0; r == NULL && i < ARRAY_LEN(runs); i++)
        if (!runs[i].used)
            r = &runs[i];
    assert_non_null(r);
    *r = (struct run){ .used = true, .master = -1 };
    spec.id = id;
    spec.argv = argv;
    spec.on_started = on_started;
    spec.on_terminal = on_terminal;
    rt_exec_start(&r->x, host.rt, &spec, on_run_done, r);
    assert_false(r->over);
    return r;
}

static struct run *begin(const char *const *argv, struct rt_exec_spec spec)
{
    return begin_in(box.id, argv, spec);
}

static void forget(struct run *r)
{
    buf_done(&r->x.output);
    if (r->master >= 0)
        close(r->master);
    *r = (struct run){ 0 };
}

/* After each test: what it began and did not see to its end is ended. */
static int settle(void **state)
{
    uint64_t since = clock_mono_ms();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        if (!runs[i].used)
            continue;
        if (!runs[i].over)
            op_cancel(&runs[i].x.op);
        while (!runs[i].over && turn(since))
            ;
        assert_true(runs[i].over);
        forget(&runs[i]);
    }
    return 0;
}

static void wait_run(struct run *r)
{
    uint64_t since = clock_mono_ms();

    while (!r->over && turn(since))
        ;
    assert_true(r->over);
}

static void wait_started(struct run *r)
{
    uint64_t since = clock_mono_ms();

    while (!r->started && !r->over && turn(since))
        ;
    if (!r->started)
        fail_msg("%s", r->result.text);
}

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define CAPTURED ((struct rt_exec_spec){ .output_max = OUTPUT_MAX, .deadline_ms = 20000 })

static void assert_nothing_left(void)
{
    struct rt_path folder = rt_container_file(host.rt, box.id, RT_EXEC_FOLDER);
    DIR *d = opendir(folder.s);
    const struct dirent *entry;

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL)
        if (entry->d_name[0] != '.')
            fail_msg("left: %s", entry->d_name);
    closedir(d);
}

/* Output of a captured run that is to succeed; the caller frees it. */
static char *output_of(const char *const *argv)
{
    struct run *r = begin(argv, CAPTURED);
    char *text;

    wait_run(r);
    if (r->result.code != ERR_OK)
        fail_msg("%s", r->result.text);
    assert_int_equal(r->x.exit_code, 0);
    text = buf_detach(&r->x.output);
    assert_nothing_left();
    return text;
}

/* Seconds that no other process on this machine sleeps: several of these programs may run at a time. */
static const char *nap(const char *seconds)
{
    static char texts[8][32];
    static size_t next;
    char *text = texts[next++ % ARRAY_LEN(texts)];

    snprintf(text, sizeof(texts[0]), "%s.%d", seconds, (int)getpid());
    return text;
}

static const char *sleeping(const char *seconds)
{
    static char texts[8][48];
    static size_t next;
    char *text = texts[next++ % ARRAY_LEN(texts)];

    snprintf(text, sizeof(texts[0]), "sleep %s", nap(seconds));
    return text;
}

/* Processes of the host whose command line holds the text. */
static size_t count_processes(const char *text)
{
    DIR *d = opendir("/proc");
    const struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(d)) != NULL) {
        char path[300], line[4096] = "";
        struct err e = { 0 };
        str_auto content = NULL;
        size_t n = 0;

        snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
        if (atoi(entry->d_name) <= 1 || fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &content, &n, &e) != ERR_OK)
            continue;
        for (size_t i = 0; i + 1 < n; i++)
            content[i] = content[i] == '\0' ? ' ' : content[i];
        snprintf(line, sizeof(line), "%s", content);
        count += strstr(line, text) != NULL;
    }
    closedir(d);
    return count;
}

static void wait_no_process(const char *text)
{
    uint64_t since = clock_mono_ms();

    while (count_processes(text) > 0 && turn(since))
        ;
    assert_int_equal(count_processes(text), 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void output_and_exit_code_are_the_processs(void **state)
{
    struct run *r;

    (void)state;
    r = begin(ARGV("sh", "-c", "echo out; echo err >&2; cat; exit 7"), CAPTURED);
    wait_run(r);
    assert_int_equal(r->result.code, ERR_OK);
    assert_int_equal(r->x.exit_code, 7);
    assert_string_equal(r->x.output.p, "out\nerr\n");
    assert_true(r->started);
    r = begin(ARGV("sh", "-c", "kill -9 $$"), CAPTURED);
    wait_run(r);
    assert_int_equal(r->result.code, ERR_OK);
    assert_int_equal(r->x.exit_code, 137);
    assert_nothing_left();
}

static void user_environment_folder_and_confinement_are_the_containers(void **state)
{
    static const char script[] = "grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp):' /proc/$1/status";
    str_auto init = output_of(ARGV("sh", "-c", script, "x", "1"));
    str_auto own = output_of(ARGV("sh", "-c", script, "x", "self"));
    str_auto env = output_of(ARGV("sh", "-c", "echo $SECRET $FROM $(pwd); readlink /proc/self/cwd"));
    str_auto fds = output_of(ARGV("ls", "/proc/self/fd"));

    (void)state;
    assert_non_null(strstr(init, "Uid:\t1234\t1234\t1234\t1234"));
    assert_non_null(strstr(init, "NoNewPrivs:\t1"));
    assert_string_equal(own, init);
    assert_string_equal(env, "hush container /tmp\n/tmp\n");
    assert_string_equal(fds, "0\n1\n2\n3\n"); /* 3 is the folder that it lists */
}

static void what_cannot_be_started_is_told_from_an_exit_code(void **state)
{
    static const struct {
        const char *program;
        enum err_code code;
        int exit_code;
    } cases[] = {
        { "nosuch", ERR_NOT_FOUND, 127 },
        { "/no/such", ERR_NOT_FOUND, 127 },
        { "/plain", ERR_PERMISSION, 126 },
        { "/etc", ERR_PERMISSION, 126 },
    };
    struct run *r;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        r = begin(ARGV(cases[i].program), CAPTURED);
        wait_run(r);
        assert_int_equal(r->result.code, cases[i].code);
        assert_int_equal(r->x.exit_code, cases[i].exit_code);
        assert_true(r->result.text[0] != '\0');
        assert_int_equal(r->x.output.n, 0);
        assert_false(r->started);
    }
    r = begin(ARGV("broken"), CAPTURED);
    wait_run(r);
    if (strstr(host.runtime_path, "crun") != NULL)
        assert_int_equal(r->result.code, ERR_PERMISSION);
    else
        assert_non_null(strstr(r->x.output.p, "exec format error"));
    assert_nothing_left();
}

static void output_beyond_the_limit_is_dropped_and_does_not_stop_the_process(void **state)
{
    struct run *r;

    (void)state;
    r = begin(ARGV("sh", "-c", "yes 0123456 | head -c 5000000; exit 3"),
              (struct rt_exec_spec){ .output_max = 1000, .deadline_ms = 20000 });
    wait_run(r);
    assert_int_equal(r->result.code, ERR_OK);
    assert_int_equal(r->x.exit_code, 3);
    assert_int_equal(r->x.output.n, 1000);
    assert_memory_equal(r->x.output.p, "0123456\n0123456\n", 16);
}

static void grandchild_that_holds_the_pipe_is_not_waited_for(void **state)
{
    uint64_t since = clock_mono_ms();
    char script[96];
    struct run *r;

    (void)state;
    snprintf(script, sizeof(script), "%s & echo started", sleeping("7"));
    r = begin(ARGV("sh", "-c", script), CAPTURED);
    wait_run(r);
    assert_int_equal(r->result.code, ERR_OK);
    assert_string_equal(r->x.output.p, "started\n");
    assert_true(clock_mono_ms() - since < 6000);
    assert_int_equal(count_processes(sleeping("7")), 1); /* as under a shell, it goes on */
}

static void deadline_kills_the_process_and_its_session(void **state)
{
    char script[160];
    struct run *r;

    (void)state;
    snprintf(script, sizeof(script), "trap '' TERM HUP; %s & %s; echo never", sleeping("801"),
             sleeping("802"));
    r = begin(ARGV("sh", "-c", script),
              (struct rt_exec_spec){ .output_max = OUTPUT_MAX, .deadline_ms = 700 });
    wait_run(r);
    assert_int_equal(r->result.code, ERR_DEADLINE);
    wait_no_process(sleeping("801"));
    wait_no_process(sleeping("802"));
    assert_nothing_left();
}

static void cancelled_at_any_moment_leaves_nothing(void **state)
{
    struct run *r;

    (void)state;
    for (unsigned ms = 0; ms < 80; ms += 4) {
        uint64_t since = clock_mono_ms();

        r = begin(ARGV("sleep", nap("803")), CAPTURED);
        while (clock_mono_ms() - since < ms)
            uv_run(&host.loop, UV_RUN_NOWAIT);
        op_cancel(&r->x.op);
        wait_run(r);
        assert_int_equal(r->result.code, ERR_CANCELLED);
        assert_nothing_left();
    }
    wait_no_process(sleeping("803"));
    wait_no_process(host.exec_path);
}

static void streams_are_the_callers_descriptors(void **state)
{
    int in[2], out[2], err[2];
    char text[64] = "";
    struct run *r;

    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    r = begin(ARGV("sh", "-c", "cat; echo problem >&2; exit 4"),
              (struct rt_exec_spec){ .stdin_fd = in[0], .stdout_fd = out[1], .stderr_fd = err[1] });
    close(in[0]);
    close(out[1]);
    close(err[1]);
    wait_started(r);
    assert_int_equal(write(in[1], "through", 7), 7);
    close(in[1]);
    wait_run(r);
    assert_int_equal(r->x.exit_code, 4);
    assert_int_equal(read(out[0], text, sizeof(text)), 7);
    assert_memory_equal(text, "through", 7);
    assert_int_equal(read(out[0], text, sizeof(text)), 0);
    assert_int_equal(read(err[0], text, sizeof(text)), 8);
    assert_memory_equal(text, "problem\n", 8);
    close(out[0]);
    close(err[0]);
}

static void read_until(int fd, const char *wanted, char *text, size_t size)
{
    uint64_t since = clock_mono_ms();
    size_t n = 0;

    text[0] = '\0';
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (strstr(text, wanted) == NULL && turn(since)) {
        ssize_t got = read(fd, text + n, size - 1 - n);

        n += got > 0 ? (size_t)got : 0;
        text[n] = '\0';
    }
    if (strstr(text, wanted) == NULL)
        fail_msg("no \"%s\" in \"%s\"", wanted, text);
}

static void terminal_has_a_size_and_can_be_resized(void **state)
{
    const struct winsize size = { .ws_row = 11, .ws_col = 22 };
    char text[4096];
    struct run *r;

    (void)state;
    r = begin(
        ARGV("sh", "-c",
             /* The size comes a moment after the start; until then busybox's stty has none to print. */
             "until stty size 2>/dev/null | grep -q ' '; do sleep 0.01; done; "
             "stty size; tty; echo TERM=$TERM; trap 'stty size; exit 5' WINCH; echo waiting; while :; do "
             "sleep 0.05; done"),
        (struct rt_exec_spec){ .tty = true, .rows = 33, .columns = 101 });
    wait_started(r);
    assert_true(r->master >= 0);
    read_until(r->master, "waiting", text, sizeof(text));
    if (strstr(text, "33 101\r\n") == NULL)
        fail_msg("%s", text);
    assert_non_null(strstr(text, "/dev/pts/"));
    assert_non_null(strstr(text, "TERM=xterm"));
    assert_int_equal(ioctl(r->master, TIOCSWINSZ, &size), 0);
    read_until(r->master, "11 22\r\n", text, sizeof(text));
    wait_run(r);
    assert_int_equal(r->result.code, ERR_OK);
    assert_int_equal(r->x.exit_code, 5);
    assert_nothing_left();
}

static void environment_stands_in_no_command_line(void **state)
{
    uint64_t since = clock_mono_ms();
    struct run *r;

    (void)state;
    r = begin(ARGV("sleep", nap("804")), CAPTURED);
    wait_started(r);
    while (count_processes(sleeping("804")) == 0 &&
           turn(since)) /* runc returns before its last step, execve */
        assert_int_equal(count_processes("hush"), 0);
    assert_int_equal(count_processes("hush"), 0);
    assert_int_equal(count_processes(sleeping("804")), 1); /* only the process itself */
    op_cancel(&r->x.op);
    wait_run(r);
}

static void process_whose_helper_was_killed_ends_with_an_error_or_at_the_next_start(void **state)
{
    struct run *r;

    (void)state;
    r = begin(ARGV("sleep", nap("805")), CAPTURED);
    wait_started(r);
    shell("cd /proc && for p in [0-9]*; do grep -qs '^%s' $p/cmdline && grep -qs 'PPid:.%d$' $p/status && "
          "kill -9 $p; "
          "done; true",
          host.exec_path, (int)getpid());
    wait_run(r);
    assert_int_equal(r->result.code, ERR_INTERNAL);
    wait_no_process(sleeping("805"));
    assert_nothing_left();
}

static void leftover_of_an_earlier_run_is_killed_only_if_it_is_that_process(void **state)
{
    struct err clear_error = { 0 };
    uint64_t since = clock_mono_ms();
    struct rt_path folder, leader;
    char text[64], command[1024];
    pid_t pid = 0, session;
    struct rt_path id_file;
    uint64_t start_time;
    FILE *p;

    (void)state;
    id_file = rt_oci_dir(host.rt, "");
    snprintf(command, sizeof(command),
             "%s --root=%s %s exec --detach --pid-file=%s/orphan %s %s </dev/null >/dev/null 2>&1 && cat "
             "%s/orphan",
             host.runtime_path, id_file.s,
             strstr(host.runtime_path, "crun") != NULL ? "--cgroup-manager=cgroupfs" : "", host.root, box.id,
             sleeping("806"), host.root);
    p = popen(command, "r");
    assert_non_null(p);
    assert_int_equal(fscanf(p, "%d", &pid), 1);
    pclose(p);
    assert_int_equal(presence_of(exec_read_process(pid, &session, &start_time)), PRESENCE_PRESENT);

    shell("mkdir -p -m 700 %s/exec/1-0", rt_container_dir(host.rt, box.id).s);
    folder = rt_container_file(host.rt, box.id, "exec/1-0");
    leader = rt_container_file(host.rt, box.id, "exec/1-0/leader");
    snprintf(text, sizeof(text), "%d %llu\n", (int)pid, (unsigned long long)start_time + 1);
    shell("printf '%s' > %s", text, leader.s);
    while (count_processes(sleeping("806")) == 0 && clock_mono_ms() - since < 10000)
        usleep(10000); /* runc returns before its last step, execve */
    /* Another process has the number now, as far as one can see. */
    assert_int_equal(rt_exec_clear_all(host.rt, box.id, &clear_error), ERR_OK);
    assert_int_equal(count_processes(sleeping("806")), 1);
    assert_int_not_equal(access(folder.s, F_OK), 0);

    shell("mkdir -p -m 700 %s && echo %d > %s/pid", folder.s, (int)pid, folder.s);
    assert_int_equal(rt_exec_clear_all(host.rt, box.id, &clear_error), ERR_OK);
    wait_no_process(sleeping("806"));
    assert_nothing_left();
}

static void container_that_does_not_run_is_a_precondition(void **state)
{
    const char *const argv[] = { "true", NULL };
    char id[65];
    struct run *r;

    (void)state;
    id_random_hex(id, 64);
    r = begin_in(id, argv, (struct rt_exec_spec){ .output_max = 10 });
    wait_run(r);
    assert_int_equal(r->result.code, ERR_PRECONDITION);
    assert_non_null(strstr(r->result.text, "is not running"));
}

static void thirty_at_once_all_give_their_own_answer(void **state)
{
    struct run *thirty[30];
    char words[30][8];
    uint64_t since = clock_mono_ms();

    (void)state;
    for (int i = 0; i < 30; i++) {
        snprintf(words[i], sizeof(words[i]), "%d", i);
        thirty[i] = begin(ARGV("sh", "-c", "echo $1; exit $1", "x", words[i]), CAPTURED);
    }
    for (int i = 0; i < 30; i++) {
        wait_run(thirty[i]);
        assert_int_equal(thirty[i]->result.code, ERR_OK);
        assert_int_equal(thirty[i]->x.exit_code, i);
        assert_int_equal(atoi(thirty[i]->x.output.p), i);
    }
    print_message("thirty at once: %llu ms\n", (unsigned long long)(clock_mono_ms() - since));
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(output_and_exit_code_are_the_processs, settle),
        cmocka_unit_test_teardown(user_environment_folder_and_confinement_are_the_containers, settle),
        cmocka_unit_test_teardown(what_cannot_be_started_is_told_from_an_exit_code, settle),
        cmocka_unit_test_teardown(output_beyond_the_limit_is_dropped_and_does_not_stop_the_process, settle),
        cmocka_unit_test_teardown(grandchild_that_holds_the_pipe_is_not_waited_for, settle),
        cmocka_unit_test_teardown(deadline_kills_the_process_and_its_session, settle),
        cmocka_unit_test_teardown(cancelled_at_any_moment_leaves_nothing, settle),
        cmocka_unit_test_teardown(streams_are_the_callers_descriptors, settle),
        cmocka_unit_test_teardown(terminal_has_a_size_and_can_be_resized, settle),
        cmocka_unit_test_teardown(environment_stands_in_no_command_line, settle),
        cmocka_unit_test_teardown(process_whose_helper_was_killed_ends_with_an_error_or_at_the_next_start,
                                  settle),
        cmocka_unit_test_teardown(leftover_of_an_earlier_run_is_killed_only_if_it_is_that_process, settle),
        cmocka_unit_test_teardown(container_that_does_not_run_is_a_precondition, settle),
        cmocka_unit_test_teardown(thirty_at_once_all_give_their_own_answer, settle),
    };

    find_exec();
    if (access(host.exec_path, X_OK) != 0) {
        print_error("%s is not built\n", host.exec_path);
        return 1;
    }
    return run_with_each_runtime(tests, ARRAY_LEN(tests), set_up_container, tear_down_container);
}
