/*
 * Containers from create to delete, with the real conmon and each OCI runtime that is installed.  Needs root;
 * whatever it makes on the host (a tmpfs, cgroups below one root, mounts) carries its own name and is removed
 * again.
 */
#include "agent/runtime/container.h"
#include "agent/status/cri_log.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 30000, EVENTS_MAX = 256 };

struct host {
    const char *runtime_path;
    char root[64], run_dir[96], state_dir[96], cgroup_root[64], layer[96], log[128], seccomp_dir[96];
    char *layers[130];
    struct img_image image;
    uv_loop_t loop;
    struct cg_tree *cgroups;
    struct rt *rt;
    char events[EVENTS_MAX][65];
    size_t n_events;
    bool ready;
};

static struct host host;

/* ---- the host -------------------------------------------------------------------------------- */

static void on_event(const char *id, void *arg)
{
    struct host *h = arg;

    assert_true(h->n_events < EVENTS_MAX);
    snprintf(h->events[h->n_events++], sizeof(h->events[0]), "%s", id);
}

static void open_rt(void)
{
    struct rt_options o = {
        .loop = &host.loop,
        .run_dir = host.run_dir,
        .state_dir = host.state_dir,
        .conmon_path = "/usr/bin/conmon",
        .runtime_path = host.runtime_path,
        .seccomp_profile = "/usr/share/containers/seccomp.json",
        .localhost_seccomp_dir = host.seccomp_dir,
        .cgroups = host.cgroups,
        .on_event = on_event,
        .arg = &host,
    };
    struct err e = { 0 };

    if (rt_open(&host.rt, &o, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

PRINTF_LIKE(1, 2) static void shell(const char *fmt, ...)
{
    char command[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
    struct err e = { 0 };
    struct cg_options cg = { .root = host.cgroup_root, .scratch_dir = NULL };
    static char scratch[128];

    (void)state;
    snprintf(host.root, sizeof(host.root), "/tmp/coracle-rt-test-%d", (int)getpid());
    snprintf(host.cgroup_root, sizeof(host.cgroup_root), "/coracle-rt-test-%d", (int)getpid());
    if (mkdir(host.root, 0700) != 0 ||
        mount("coracle-rt-test", host.root, "tmpfs", 0, "size=256m,mode=0700") != 0) {
        print_message("skipped: %s: %s\n", host.root, strerror(errno));
        return -1;
    }
    snprintf(host.run_dir, sizeof(host.run_dir), "%s/run", host.root);
    snprintf(host.state_dir, sizeof(host.state_dir), "%s/state", host.root);
    snprintf(host.layer, sizeof(host.layer), "%s/layer", host.root);
    snprintf(host.log, sizeof(host.log), "%s/log", host.root);
    snprintf(host.seccomp_dir, sizeof(host.seccomp_dir), "%s/seccomp", host.root);
    shell("cd %s && mkdir -m 755 run state layer seccomp volume && cd layer && mkdir -m 755 bin data dev etc "
          "proc sys && "
          "mkdir -m 1777 tmp && cp /bin/busybox bin/ && for l in sh cat echo grep id sleep stat dd pwd touch "
          "ls; do ln -s busybox "
          "bin/$l; done && echo 'alice:x:1234:4321:Alice:/data:/bin/sh' > etc/passwd && echo "
          "'staff:x:50:alice' > etc/group",
          host.root);
    host.layers[0] = host.layer;
    host.image = (struct img_image){ .refs = 1,
                                     .id = (char *)"sha256:00",
                                     .layer_dirs = { .v = host.layers, .n = 1 } };
    snprintf(scratch, sizeof(scratch), "%s/cgroup", host.root);
    cg.scratch_dir = scratch;
    if (cg_open(&host.cgroups, &cg, &e) != ERR_OK) {
        print_message("skipped: %s\n", e.text);
        return -1;
    }
    uv_loop_init(&host.loop);
    open_rt();
    host.ready = true;
    return 0;
}

static bool time_is_up(uint64_t since)
{
    return clock_mono_ms() - since > WAIT_MS;
}

static void close_rt(void)
{
    uint64_t since = clock_mono_ms();

    rt_close(host.rt);
    host.rt = NULL;
    while (uv_loop_alive(&host.loop) && !time_is_up(since))
        uv_run(&host.loop, UV_RUN_NOWAIT);
    assert_false(uv_loop_alive(&host.loop));
}

static int tear_down(void **state)
{
    struct err e = { 0 };

    (void)state;
    if (host.rt != NULL)
        close_rt();
    if (host.ready)
        assert_int_equal(uv_loop_close(&host.loop), 0);
    assert_int_equal(op_count(), 0);
    if (host.cgroups != NULL)
        cg_close(host.cgroups, true);
    if (host.root[0] != '\0' && fs_unmount_below(host.root, &e) != ERR_OK)
        print_message("%s\n", e.text);
    rmdir(host.root);
    memset(&host, 0, sizeof(host));
    return 0;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* One turn of the loop, 20 ms at most.  false: waited long enough. */
static bool turn(uint64_t since)
{
    uv_timer_t tick;

    uv_timer_init(&host.loop, &tick);
    uv_update_time(&host.loop); /* else it may fire before the wait that it is to end */
    uv_timer_start(&tick, on_tick, 20, 0);
    uv_run(&host.loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    while (uv_is_closing((uv_handle_t *)&tick) && uv_run(&host.loop, UV_RUN_NOWAIT) != 0)
        break;
    return !time_is_up(since);
}

/* ---- one container --------------------------------------------------------------------------- */

struct box {
    char id[65], cgroup[256], log[256];
    struct rt_config config;
    struct api_security security;
    struct api_pod_security pod_security;
    struct api_strs command;
    struct rt_create create;
    struct rt_action action;
    struct err result;
    bool over;
};

static void on_done(struct op *op, const struct err *result)
{
    struct box *b = op->owner;

    b->result = *result;
    b->over = true;
}

static void wait_over(struct box *b)
{
    uint64_t since = clock_mono_ms();

    while (!b->over && turn(since))
        ;
    assert_true(b->over);
    b->over = false;
}

#define BOX(b, ...)                                                                                          \
    struct box b = { 0 };                                                                                    \
    const char *const b##_argv[] = { __VA_ARGS__ };                                                          \
    box_init(&b, b##_argv, ARRAY_LEN(b##_argv))

static void box_init(struct box *b, const char *const *argv, size_t n)
{
    id_random_hex(b->id, 64);
    snprintf(b->cgroup, sizeof(b->cgroup), "%s/kubepods/podx/%s", host.cgroup_root, b->id);
    snprintf(b->log, sizeof(b->log), "%s-%s", host.log, b->id);
    b->command = (struct api_strs){ .v = (char **)argv, .n = n };
    b->config = (struct rt_config){
        .id = b->id,
        .pod_uid = "11111111-2222-3333-4444-555555555555",
        .pod_namespace = "default",
        .pod_name = "pod",
        .container_name = "main",
        .attempt = 2,
        .image = &host.image,
        .command = &b->command,
        .security = &b->security,
        .pod_security = &b->pod_security,
        .hostname = "pod",
        .cgroup_path = b->cgroup,
        .cpu_shares = 2,
        .cpu_quota_us = -1,
        .memory_limit = -1,
        .oom_score_adj = 1000,
        .log_path = b->log,
    };
}

static enum err_code create(struct box *b)
{
    rt_create_start(&b->create, host.rt, &b->config, on_done, b);
    assert_false(b->over);
    wait_over(b);
    return b->result.code;
}

static void start(struct box *b)
{
    rt_start_start(&b->action, host.rt, b->id, on_done, b);
    wait_over(b);
    if (b->result.code != ERR_OK)
        fail_msg("%s", b->result.text);
}

static void delete (struct box *b)
{
    rt_delete_start(&b->action, host.rt, b->id, NULL, on_done, b);
    wait_over(b);
    if (b->result.code != ERR_OK)
        fail_msg("%s", b->result.text);
    unlink(b->log);
}

static struct rt_state state_of(const struct box *b)
{
    struct rt_state s;

    rt_state(host.rt, b->id, &s);
    return s;
}

static size_t events_of(const struct box *b)
{
    size_t i, n = 0;

    for (i = 0; i < host.n_events; i++)
        n += strcmp(host.events[i], b->id) == 0;
    return n;
}

static void wait_event(struct box *b)
{
    uint64_t since = clock_mono_ms();

    while (events_of(b) == 0 && turn(since))
        ;
    assert_int_not_equal(events_of(b), 0);
}

static void run(struct box *b)
{
    if (create(b) != ERR_OK)
        fail_msg("%s", b->result.text);
    start(b);
}

static void run_to_end(struct box *b)
{
    run(b);
    wait_event(b);
    assert_int_equal(state_of(b).phase, RT_EXITED);
}

/* The container's output without timestamps; free(). */
static char *output(const struct box *b)
{
    struct buf text = BUF_INIT(1024 * 1024);
    struct err e = { 0 };
    str_auto raw = NULL;
    char *cursor, *line;

    if (fs_read_at(AT_FDCWD, b->log, 1024 * 1024, &raw, NULL, &e) != ERR_OK)
        fail_msg("%s", e.text);
    cursor = raw;
    while ((line = strsep(&cursor, "\n")) != NULL) {
        struct cri_log_line l;

        if (*line == '\0')
            continue;
        assert_true(cri_log_parse((struct str){ .p = line, .n = strlen(line) }, &l));
        buf_add(&text, l.text.p, l.text.n);
        if (!l.partial)
            buf_addc(&text, '\n');
    }
    return buf_detach(&text);
}

static void assert_no_path(const char *pattern)
{
    glob_t found = { 0 };
    char first[512] = "";

    if (glob(pattern, GLOB_BRACE, NULL, &found) == 0)
        snprintf(first, sizeof(first), "%s", found.gl_pathv[0]);
    globfree(&found);
    if (first[0] != '\0')
        fail_msg("left behind: %s", first);
}

/* Nothing with the id in its name or in the mount table. */
static void assert_no_trace(const struct box *b)
{
    char pattern[512], **ids;
    str_auto mounts = NULL;
    struct err e = { 0 };
    bool listed = false;
    size_t i;

    snprintf(pattern, sizeof(pattern), "%s/{run,state}/*/%s*", host.root, b->id);
    assert_no_path(pattern);
    snprintf(pattern, sizeof(pattern), "{/sys/fs/cgroup{,/*},%s/cgroup/*}%s", host.root, b->cgroup);
    assert_no_path(pattern);
    assert_int_equal(fs_read_at(AT_FDCWD, "/proc/self/mountinfo", 16 * 1024 * 1024, &mounts, NULL, &e),
                     ERR_OK);
    assert_null(strstr(mounts, b->id));
    assert_int_equal(rt_list(host.rt, &ids, &e), ERR_OK);
    for (i = 0; ids[i] != NULL; i++) {
        listed = listed || strcmp(ids[i], b->id) == 0;
        free(ids[i]);
    }
    free(ids);
    assert_false(listed);
    assert_int_equal(state_of(b).phase, RT_ABSENT);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void output_goes_to_the_log_and_the_exit_code_comes_as_an_event(void **state)
{
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

    assert_true(rt_identity(host.rt, b.id, &who));
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
    char **ids;
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
    assert_non_null(ids[0]);
    assert_non_null(ids[1]);
    assert_null(ids[2]);
    rt_adopt(host.rt, ids[0]);
    rt_adopt(host.rt, ids[1]);
    free(ids[0]);
    free(ids[1]);
    free(ids);
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

static void process_has_containerds_capabilities_user_and_groups(void **state)
{
    int64_t groups[] = { 20, 10 };

    (void)state;
    BOX(b, "sh", "-c",
        "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp:)' /proc/self/status; stat -c %a-%u / /tmp; echo "
        "$HOME");
    run_to_end(&b);
    str_auto root = output(&b);
    assert_string_equal(root,
                        "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0 \nCapInh:\t0000000000000000\n"
                        "CapPrm:\t00000000a80425fb\nCapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\n"
                        "CapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n755-0\n1777-0\n/\n");
    delete (&b);

    BOX(c, "sh", "-c",
        "grep -E '^(Uid|Gid|Groups|CapEff|CapBnd|NoNewPrivs|Seccomp:)' /proc/self/status; echo $HOME");
    host.image.user = (char *)"alice:nosuchgroup";
    c.security.has_allow_privilege_escalation = true;
    c.security.seccomp.type = API_SECCOMP_RUNTIME_DEFAULT;
    c.pod_security.supplemental_groups = groups;
    c.pod_security.n_supplemental_groups = 2;
    c.pod_security.has_fs_group = true;
    c.pod_security.fs_group = 4000;
    run_to_end(&c);
    host.image.user = NULL;
    str_auto alice = output(&c);
    assert_string_equal(
        alice, "Uid:\t1234\t1234\t1234\t1234\nGid:\t4321\t4321\t4321\t4321\nGroups:\t10 20 50 4000 4321 \n"
               "CapEff:\t0000000000000000\nCapBnd:\t00000000a80425fb\nNoNewPrivs:\t1\nSeccomp:\t2\n/data\n");
    delete (&c);
}

static void privileged_container_has_the_hosts_devices_and_no_masks(void **state)
{
    (void)state;
    BOX(b, "sh", "-c",
        "grep CapEff /proc/self/status; grep -c ' /proc/\\| /sys/firmware' /proc/self/mounts; ls -d "
        "/dev/kmsg /dev/null; "
        "grep ' /sys sysfs' /proc/self/mounts | grep -c '[ ,]ro,'; ls -l /dev/ptmx | grep -c 'pts/ptmx'");
    b.security.has_privileged = b.security.privileged = true;
    b.security.seccomp.type = API_SECCOMP_RUNTIME_DEFAULT;
    run_to_end(&b);
    str_auto text = output(&b);
    assert_non_null(strstr(text, "\n0\n"));
    assert_non_null(strstr(text, "/dev/kmsg\n/dev/null\n0\n1\n"));
    delete (&b);

    BOX(c, "sh", "-c",
        "cat /proc/keys /proc/timer_list; echo x > /proc/sys/kernel/domainname; echo y > /sys/y; ls /dev");
    run_to_end(&c);
    str_auto plain = output(&c);
    assert_non_null(strstr(plain, "Read-only file system"));
    assert_null(strstr(plain, "kmsg"));
    delete (&c);
}

static void mounts_root_and_working_directory_are_as_asked(void **state)
{
    const struct rt_mount mounts[] = {
        { .source = host.seccomp_dir, .destination = "/vol/ro", .read_only = true },
        { .source = host.root, .destination = "/vol", .propagation = "rslave" },
    };

    (void)state;
    BOX(b, "sh", "-c",
        "exec 2>&1; pwd; touch /x; touch /vol/volume/x && echo written; touch /vol/ro/x; echo $0 $HOSTNAME "
        "$A; touch "
        "/dev/shm/f");
    b.config.mounts = mounts;
    b.config.n_mounts = 2;
    b.config.working_dir = "/not/there/yet";
    b.config.env = (const char *const[]){ "A=b c", NULL };
    run_to_end(&b);
    str_auto text = output(&b);
    assert_string_equal(text,
                        "/not/there/yet\nwritten\ntouch: /vol/ro/x: Read-only file system\nsh pod b c\n");
    delete (&b);
    unlink("/dev/shm/f");

    BOX(c, "sh", "-c", "exec 2>&1; touch /x; echo $?");
    c.security.has_read_only_root_filesystem = c.security.read_only_root_filesystem = true;
    run_to_end(&c);
    str_auto readonly = output(&c);
    assert_string_equal(readonly, "touch: /x: Read-only file system\n1\n");
    delete (&c);

    BOX(d, "pwd");
    d.config.working_dir = "tmp";
    assert_int_equal(create(&d), ERR_UNKNOWN);
    assert_string_equal(d.result.text, "Cwd must be an absolute path");
    delete (&d);
}

static void image_of_a_hundred_and_twenty_layers_is_mounted(void **state)
{
    size_t i, n = 120;

    (void)state;
    BOX(b, "sh", "-c", "cat /f /g");
    for (i = 1; i < n; i++) {
        host.layers[i] = str_printf("%s/layers/%064zx", host.root, i);
        shell("mkdir -p -m 755 %s && echo %zu > %s/f", host.layers[i], i, host.layers[i]);
    }
    shell("echo only below > %s/g", host.layers[3]);
    host.image.layer_dirs.n = n;
    run_to_end(&b);
    host.image.layer_dirs.n = 1;
    str_auto text = output(&b);
    assert_string_equal(text, "119\nonly below\n");
    delete (&b);
    assert_no_trace(&b);
    for (i = 1; i < n; i++)
        free(host.layers[i]);
}

static void terminal_and_standard_input_are_given_when_asked(void **state)
{
    (void)state;
    BOX(b, "sh", "-c", "[ -t 1 ] && [ -t 0 ] && echo terminal $TERM");
    b.config.tty = true;
    run_to_end(&b);
    str_auto text = output(&b);
    assert_non_null(strstr(text, "terminal xterm"));
    delete (&b);
    assert_no_trace(&b);

    BOX(c, "sh", "-c", "cat; echo eof");
    run_to_end(&c);
    str_auto closed = output(&c);
    assert_string_equal(closed, "eof\n");
    delete (&c);

    BOX(d, "cat");
    d.config.stdin_open = true;
    run(&d);
    assert_int_equal(state_of(&d).phase, RT_RUNNING);
    delete (&d);
    assert_no_trace(&d);
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

/* A process in namespaces of its own, as the pod's pinned ones; its hostname is "pinned". */
static pid_t start_holder(void)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD, NULL,
                         NULL, NULL, NULL);
    if (pid == 0) {
        if (sethostname("pinned", 6) != 0 || write(ready[1], "1", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void namespaces_of_the_pod_are_joined(void **state)
{
    char net[64], ipc[64], uts[64], pidns[64];
    pid_t holder = start_holder();
    int status;

    (void)state;
    snprintf(net, sizeof(net), "/proc/%d/ns/net", (int)holder);
    snprintf(ipc, sizeof(ipc), "/proc/%d/ns/ipc", (int)holder);
    snprintf(uts, sizeof(uts), "/proc/%d/ns/uts", (int)holder);
    snprintf(pidns, sizeof(pidns), "/proc/%d/ns/pid", (int)holder);
    BOX(b, "sh", "-c",
        "cat /proc/sys/kernel/hostname; cat /proc/net/dev | grep -c :; grep -c mqueue /proc/self/mounts; "
        "[ $$ = 1 ] || echo shared; grep -c test_container /proc/1/comm");
    b.config.netns = net;
    b.config.ipcns = ipc;
    b.config.utsns = uts;
    b.config.pidns = pidns;
    run_to_end(&b);
    str_auto shared = output(&b);
    assert_string_equal(shared, "pinned\n1\n1\nshared\n1\n");
    delete (&b);
    assert_no_trace(&b);

    BOX(c, "sh", "-c", "cat /proc/sys/kernel/hostname; [ $$ = 1 ] && echo alone");
    c.config.netns = net;
    c.config.ipcns = ipc;
    c.config.utsns = uts;
    run_to_end(&c);
    str_auto alone = output(&c);
    assert_string_equal(alone, "pinned\nalone\n");
    delete (&c);

    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, &status, 0), holder);
}

static void processes_left_behind_in_the_hosts_pid_namespace_go_with_delete(void **state)
{
    (void)state;
    BOX(b, "sh", "-c", "sleep 1000 & [ $$ = 1 ] || echo host");
    b.config.host_pid = true;
    run_to_end(&b);
    str_auto text = output(&b);
    assert_string_equal(text, "host\n");
    assert_true(cg_populated(host.cgroups, b.cgroup));
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
        assert_int_equal(create(&b), ERR_OK);
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
    static const char *const runtimes[] = { "/usr/bin/crun", "/usr/bin/runc" };
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
        cmocka_unit_test(process_has_containerds_capabilities_user_and_groups),
        cmocka_unit_test(privileged_container_has_the_hosts_devices_and_no_masks),
        cmocka_unit_test(mounts_root_and_working_directory_are_as_asked),
        cmocka_unit_test(image_of_a_hundred_and_twenty_layers_is_mounted),
        cmocka_unit_test(terminal_and_standard_input_are_given_when_asked),
        cmocka_unit_test(cancelled_create_leaves_only_what_delete_removes),
        cmocka_unit_test(conmon_that_has_not_yet_written_its_pid_is_found_by_delete),
        cmocka_unit_test(delete_does_not_touch_a_cgroup_that_is_not_the_containers),
        cmocka_unit_test(namespaces_of_the_pod_are_joined),
        cmocka_unit_test(processes_left_behind_in_the_hosts_pid_namespace_go_with_delete),
        cmocka_unit_test(many_at_once_all_run_and_end),
        cmocka_unit_test(one_alone_takes_no_longer_than_its_parts),
    };
    const char *const needed[] = { "/usr/bin/conmon", "/bin/busybox" };
    int failed = 0;
    size_t i;

    if (getenv("TEST_FILTER") != NULL) /* e.g. TEST_FILTER="*delete*": only these */
        cmocka_set_test_filter(getenv("TEST_FILTER"));
    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    if (geteuid() != 0) {
        print_message("skipped: needs root\n");
        return 0;
    }
    for (i = 0; i < ARRAY_LEN(needed); i++)
        if (access(needed[i], X_OK) != 0) {
            print_message("skipped: needs %s\n", needed[i]);
            return 0;
        }
    for (i = 0; i < ARRAY_LEN(runtimes); i++) {
        struct CMUnitTest with_state[ARRAY_LEN(tests)];

        if (access(runtimes[i], X_OK) != 0) {
            print_message("skipped: needs %s\n", runtimes[i]);
            continue;
        }
        memcpy(with_state, tests, sizeof(tests));
        print_message("with %s\n", runtimes[i]);
        host.runtime_path = runtimes[i];
        failed += cmocka_run_group_tests_name(runtimes[i], with_state, set_up, tear_down);
    }
    return failed;
}
