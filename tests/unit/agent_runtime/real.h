/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers with the real conmon and each OCI runtime that is installed: the host they need, and one of them
 * (a box).  Needs root; whatever it makes on the host (a tmpfs, cgroups below one root, mounts) carries its
 * own name and is removed again.
 */
#ifndef TESTS_AGENT_RUNTIME_REAL_H
#define TESTS_AGENT_RUNTIME_REAL_H
#include "agent/runtime/container.h"
#include "agent/status/cri_log.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "tests/unit/base/own_mounts.h"

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
    char root[64], run_dir[96], state_dir[96], cgroup_root[64], layer[96], log[128], seccomp_dir[96],
        exec_path[512];
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

static inline void on_event(const char *id, void *arg)
{
    struct host *h = arg;

    assert_true(h->n_events < EVENTS_MAX);
    snprintf(h->events[h->n_events++], sizeof(h->events[0]), "%s", id);
}

static inline void open_rt(void)
{
    struct rt_options o = {
        .loop = &host.loop,
        .run_dir = host.run_dir,
        .state_dir = host.state_dir,
        .conmon_path = "/usr/bin/conmon",
        .runtime_path = host.runtime_path,
        .exec_path = host.exec_path,
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

PRINTF_LIKE(1, 2) static inline void shell(const char *fmt, ...)
{
    char command[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    assert_int_equal(system(command), 0);
}

/* <B>/tests/unit/agent_runtime/test_x -> <B>/coracle-exec */
static inline void find_exec(void)
{
    char self[400];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[n > 0 ? n : 0] = '\0';
    for (int up = 0; up < 4; up++) {
        char *slash = strrchr(self, '/');

        if (slash != NULL)
            *slash = '\0';
    }
    snprintf(host.exec_path, sizeof(host.exec_path), "%s/coracle-exec", self);
}

static inline int set_up(void **state)
{
    struct err e = { 0 };
    struct cg_options cg = { .root = host.cgroup_root, .scratch_dir = NULL };
    static char scratch[128];

    (void)state;
    snprintf(host.root, sizeof(host.root), "/tmp/coracle-rt-test-%d", (int)getpid());
    snprintf(host.cgroup_root, sizeof(host.cgroup_root), "/coracle-rt-test-%d", (int)getpid());
    if (mkdir(host.root, 0700) != 0 ||
        mount("coracle-rt-test", host.root, "tmpfs", 0, "size=256m,mode=0711") != 0) {
        print_message("%s: %s\n", host.root, strerror(errno));
        return -1;
    }
    snprintf(host.run_dir, sizeof(host.run_dir), "%s/run", host.root);
    snprintf(host.state_dir, sizeof(host.state_dir), "%s/state", host.root);
    snprintf(host.layer, sizeof(host.layer), "%s/layer", host.root);
    snprintf(host.log, sizeof(host.log), "%s/log", host.root);
    snprintf(host.seccomp_dir, sizeof(host.seccomp_dir), "%s/seccomp", host.root);
    shell("cd %s && mkdir -m 755 run state layer seccomp volume && cd layer && mkdir -m 755 bin data dev etc "
          "proc sys && "
          "mkdir -m 1777 tmp && cp /bin/busybox bin/ && for l in sh cat echo env grep head id ls readlink "
          "sleep stat stty dd "
          "pwd touch tty yes; do ln -s busybox bin/$l; done && echo 'alice:x:1234:4321:Alice:/data:/bin/sh' "
          "> etc/passwd && "
          "echo 'staff:x:50:alice' > etc/group",
          host.root);
    host.layers[0] = host.layer;
    host.image = (struct img_image){ .refs = 1,
                                     .id = (char *)"sha256:00",
                                     .layer_dirs = { .v = host.layers, .n = 1 } };
    snprintf(scratch, sizeof(scratch), "%s/cgroup", host.root);
    cg.scratch_dir = scratch;
    if (cg_open(&host.cgroups, &cg, &e) != ERR_OK) {
        print_message("%s\n", e.text);
        return -1;
    }
    uv_loop_init(&host.loop);
    find_exec();
    open_rt();
    host.ready = true;
    return 0;
}

static inline bool time_is_up(uint64_t since)
{
    return clock_mono_ms() - since > WAIT_MS;
}

static inline void close_rt(void)
{
    uint64_t since = clock_mono_ms();

    rt_close(host.rt);
    host.rt = NULL;
    while (uv_loop_alive(&host.loop) && !time_is_up(since))
        uv_run(&host.loop, UV_RUN_NOWAIT);
    assert_false(uv_loop_alive(&host.loop));
}

static inline int tear_down(void **state)
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

static inline void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* One turn of the loop, 20 ms at most.  false: waited long enough. */
static inline bool turn(uint64_t since)
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
    char id[65];
    char cgroup[256], log[256];
    struct rt_config config;
    struct api_security security;
    struct api_pod_security pod_security;
    struct api_strs command;
    struct rt_create create;
    struct rt_action action;
    struct err result;
    bool over;
};

static inline void on_done(struct op *op, const struct err *result)
{
    struct box *b = op->owner;

    b->result = *result;
    b->over = true;
}

static inline void wait_over(struct box *b)
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

static inline void box_init(struct box *b, const char *const *argv, size_t n)
{
    id_random_hex(b->id, 64);
    assert_true(snprintf(b->cgroup, sizeof(b->cgroup), "%s/kubepods/podx/%s", host.cgroup_root, b->id) <
                (int)sizeof(b->cgroup));
    assert_true(snprintf(b->log, sizeof(b->log), "%s-%s", host.log, b->id) < (int)sizeof(b->log));
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

static inline enum err_code create(struct box *b)
{
    rt_create_start(&b->create, host.rt, &b->config, on_done, b);
    assert_false(b->over);
    wait_over(b);
    return b->result.code;
}

static inline void start(struct box *b)
{
    rt_start_start(&b->action, host.rt, b->id, on_done, b);
    wait_over(b);
    if (b->result.code != ERR_OK)
        fail_msg("%s", b->result.text);
}

static inline void delete (struct box *b)
{
    rt_delete_start(&b->action, host.rt, b->id, NULL, on_done, b);
    wait_over(b);
    if (b->result.code != ERR_OK)
        fail_msg("%s", b->result.text);
    unlink(b->log);
}

static inline struct rt_state state_of(const struct box *b)
{
    struct err e = { 0 };
    struct rt_state s;

    assert_int_equal(rt_state(host.rt, b->id, &s, &e), ERR_OK);
    return s;
}

static inline size_t events_of(const struct box *b)
{
    size_t i, n = 0;

    for (i = 0; i < host.n_events; i++)
        n += strcmp(host.events[i], b->id) == 0;
    return n;
}

static inline void wait_event(struct box *b)
{
    uint64_t since = clock_mono_ms();

    while (events_of(b) == 0 && turn(since))
        ;
    assert_int_not_equal(events_of(b), 0);
}

static inline void run(struct box *b)
{
    if (create(b) != ERR_OK)
        fail_msg("%s", b->result.text);
    start(b);
}

static inline void run_to_end(struct box *b)
{
    run(b);
    wait_event(b);
    assert_int_equal(state_of(b).phase, RT_EXITED);
}

/* The container's output without timestamps; free(). */
static inline char *output(const struct box *b)
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

static inline void assert_no_path(const char *pattern)
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
static inline void assert_no_trace(const struct box *b)
{
    struct strs ids = { 0 };
    char pattern[512];
    str_auto mounts = NULL;
    struct err e = { 0 };

    snprintf(pattern, sizeof(pattern), "%s/{run,state}/*/%s*", host.root, b->id);
    assert_no_path(pattern);
    snprintf(pattern, sizeof(pattern), "{/sys/fs/cgroup{,/*},%s/cgroup/*}%s", host.root, b->cgroup);
    assert_no_path(pattern);
    assert_int_equal(fs_read_at(AT_FDCWD, "/proc/self/mountinfo", 16 * 1024 * 1024, &mounts, NULL, &e),
                     ERR_OK);
    assert_null(strstr(mounts, b->id));
    assert_int_equal(rt_list(host.rt, &ids, &e), ERR_OK);
    assert_false(strs_has(&ids, b->id));
    strs_done(&ids);
    assert_int_equal(state_of(b).phase, RT_ABSENT);
}

/* ---- all of it, with each runtime ------------------------------------------------------------- */

enum { SKIPPED = 77 }; /* the exit code that says so, without TAP */

/* TEST_FILTER="*delete*": only these. */
static inline int run_with_each_runtime(const struct CMUnitTest *tests, size_t n, CMFixtureFunction before,
                                        CMFixtureFunction after)
{
    static const char *const runtimes[][2] = { { "/usr/bin/crun", "/usr/local/bin/crun" },
                                               { "/usr/sbin/runc", "/usr/bin/runc" } };
    static const char *const needed[] = { "/usr/bin/conmon", "/bin/busybox" };
    int failed = 0;

    if (getenv("TEST_FILTER") != NULL)
        cmocka_set_test_filter(getenv("TEST_FILTER"));
    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    if (geteuid() != 0) {
        print_message("needs root\n");
        return SKIPPED;
    }
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (access(needed[i], X_OK) != 0) {
            print_message("needs %s\n", needed[i]);
            return SKIPPED;
        }
    if (!own_mounts()) {
        print_error("no mounts of our own: %s\n", strerror(errno));
        return 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(runtimes); i++) {
        const char *path = access(runtimes[i][0], X_OK) == 0 ? runtimes[i][0] : runtimes[i][1];
        struct CMUnitTest copy[32]; /* cmocka keeps its state in them */

        if (access(path, X_OK) != 0) {
            print_message("1..1\nok 1 - with %s # SKIP it is not installed\n", runtimes[i][0]);
            continue;
        }
        assert_true(n <= ARRAY_LEN(copy));
        memcpy(copy, tests, n * sizeof(*tests));
        print_message("with %s\n", path);
        host.runtime_path = path;
        failed += _cmocka_run_group_tests(path, copy, n, before, after);
    }
    return failed;
}
#endif
