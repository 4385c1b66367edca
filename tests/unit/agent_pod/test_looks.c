/* SPDX-License-Identifier: Apache-2.0 */
/* Looks that fail: nothing is decided on what could not be seen. */
#include "agent/pod/admit/internal.h"
#include "agent/pod/admit/resize.h"
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/limits/cpu_memory.h"
#include "agent/pod/record/record.h"
#include "agent/pod/sandbox/files.h"
#include "agent/pod/worker/internal.h"
#include "agent/pod/worker/shutdown.h"
#include "agent/runtime/container_internal.h"
#include "agent/runtime/live_mount.h"
#include "agent/runtime/spec/internal.h"
#include "cgroups/internal.h"
#include "world.h"

#include "tests/unit/base/failing.h"

static void put(const struct world *w, const char *name, const char *text)
{
    struct err e = { 0 };
    char path[160];

    snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, false, &e), ERR_OK);
}

#define ONE(memory) "containers: [{name: a, image: x, resources: {limits: {cpu: 1, memory: " memory "}}}]"

static void memory_whose_use_is_not_known_is_not_taken_away(void **state)
{
    struct world *w = *state;
    struct cg_tree tree = { .layout = CG_V2, .n_hiers = 1 };
    struct pod *p =
        world_add(w, "{apiVersion: v1, kind: Pod, metadata: {name: p, uid: u1}, spec: {" ONE("64Mi") "}}");
    char path[200], why[400];
    struct err e = { 0 };

    snprintf(path, sizeof(path), "%s/kubepods/podu1", w->dir);
    assert_int_equal(fs_mkdirs(path, 0700, &e), ERR_OK);
    put(w, "kubepods/podu1/memory.current", "100000000\n");
    tree.hiers[0] = (struct cg_hier){ .backend = &cg_backend_v2, .controllers = CG_CTL_MEMORY };
    tree.hiers[0].fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->node.o.cgroups = &tree;
    admit_of(p)->sizes = cpu_memory_of_pod(p->api);
    admit_of(p)->sizes.memory_limit = INT64_C(1) << 30;

    failing_arm("openat", "memory.current", EIO, 1);
    assert_int_not_equal(resize_memory_refuses(p, why, sizeof(why), &e), ERR_OK);
    e = (struct err){ 0 };
    assert_int_equal(resize_memory_refuses(p, why, sizeof(why), &e), ERR_OK);
    assert_string_equal(why,
                        "cannot decrease memory limits: attempting to set pod memory limit (67108864) below "
                        "current usage (100000000)");
    put(w, "kubepods/podu1/memory.current", "1000\n");
    assert_int_equal(resize_memory_refuses(p, why, sizeof(why), &e), ERR_OK);
    assert_string_equal(why, "");
    w->node.o.cgroups = NULL;
    close(tree.hiers[0].fd);
}

static void ignore(void *arg)
{
    (void)arg;
}

static void open_shutdown(struct world *w)
{
    struct node_shutdown_group group = { .grace_ms = 1000 };

    uv_close((uv_handle_t *)&worker_node(&w->node)->shutdown.timer, NULL); /* of the world's setup */
    uv_run(&w->loop, UV_RUN_NOWAIT);
    w->node.o.shutdown_groups = &group;
    w->node.o.n_shutdown_groups = 1;
    shutdown_open(&w->node);
    w->node.o.shutdown_groups = NULL;
    w->node.o.n_shutdown_groups = 0;
}

static void the_record_of_the_last_shutdown_is_looked_at_again(void **state)
{
    struct world *w = *state;

    put(w, "graceful_node_shutdown_state",
        "{\"bootID\": \"boot-1\", \"startTime\": \"2026-01-02T03:04:05Z\", \"ended\": 3}");
    failing_arm("openat", "graceful_node_shutdown_state", EIO, 1);
    open_shutdown(w);
    assert_int_equal(failing_times, 0);
    assert_int_equal(worker_node(&w->node)->shutdown.last_ended, 3);
    assert_true(worker_node(&w->node)->shutdown.last_is_of_this_boot);
    assert_string_equal(worker_node(&w->node)->shutdown.last_unread, "");
}

static void one_that_stays_unread_is_shown_and_read_when_the_next_begins(void **state)
{
    struct world *w = *state;
    struct node_shutdown_group group = { .grace_ms = 1000 };
    json_auto_t *steps = json_array();

    put(w, "graceful_node_shutdown_state",
        "{\"bootID\": \"boot-1\", \"startTime\": \"2026-01-02T03:04:05Z\", \"ended\": 3}");
    failing_arm("openat", "graceful_node_shutdown_state", EIO, 1000);
    open_shutdown(w);
    failing_arm("", "", 0, 0);
    shutdown_explain(&w->node, steps);
    assert_int_equal(json_array_size(steps), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(steps, 0), "state")), "failed");

    w->node.o.shutdown_groups = &group;
    w->node.o.n_shutdown_groups = 1;
    worker_node(&w->node)->shutdown.state = SHUTDOWN_UNKNOWN;
    node_shutdown_begin(&w->node, ignore, NULL);
    assert_int_equal(worker_node(&w->node)->shutdown.n_ended,
                     3); /* it goes on with the one that the restart cut off */
    assert_string_equal(worker_node(&w->node)->shutdown.last_unread, "");
    w->node.o.n_shutdown_groups = 0;
}

static void damaged_files_that_cannot_be_listed_are_not_none(void **state)
{
    struct world *w = *state;
    json_auto_t *steps = json_array(), *none = json_array();
    struct err e = { 0 };
    char path[160];

    snprintf(path, sizeof(path), "%s/pods", w->dir);
    assert_int_equal(fs_mkdirs(path, 0700, &e), ERR_OK);
    failing_arm("readdir", "", EIO, 1);
    quarantine_explain(&w->node, steps);
    assert_int_equal(json_array_size(steps), 1);
    quarantine_explain(&w->node, none);
    assert_int_equal(json_array_size(none), 0);
}

static void damaged_files_of_every_folder_are_shown(void **state)
{
    static const char *const files[] = { "projects.json", "pods/u1.json", "cni/results/a.json",
                                         "device-plugins/kubelet_internal_checkpoint" };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        str_auto path = str_printf("%s/%s.damaged-20260102T030405Z", w->dir, files[i]);
        str_auto folder = strndup(path, (size_t)(strrchr(path, '/') - path));
        json_auto_t *steps = json_array(), *none = json_array();
        struct err e = { 0 };

        assert_int_equal(fs_mkdirs(folder, 0700, &e), ERR_OK);
        assert_int_equal(fs_replace_at(AT_FDCWD, path, "", 0, 0600, false, &e), ERR_OK);
        quarantine_explain(&w->node, steps);
        assert_int_equal(json_array_size(steps), 1);
        assert_string_equal(json_string_value(json_object_get(json_array_get(steps, 0), "detail")), path);
        assert_int_equal(unlink(path), 0);
        quarantine_explain(&w->node, none);
        assert_int_equal(json_array_size(none), 0);
    }
}

static void a_process_that_cannot_be_looked_at_is_not_gone(void **state)
{
    struct live_mounts l = { .id = "none", .pid = getpid() };
    struct err e = { 0 };

    (void)state;
    failing_arm("openat", "/cgroup", EIO, 1);
    assert_int_not_equal(live_mounts_follow(&l, &e), ERR_NOT_FOUND);
    assert_int_equal(e.sys, EIO);
    e = (struct err){ 0 };
    assert_int_equal(live_mounts_follow(&l, &e), ERR_NOT_FOUND);
}

static void a_log_link_that_could_not_be_made_is_made_later(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [{name: a, image: x}]");
    struct ctr *c = p->ctrs[0];
    str_auto logs = str_printf("%s/links", w->dir);
    char path[1024];
    struct err e = { 0 };

    worker_node(&w->node)->runner_active = true; /* pods are woken, but nobody looks at them */
    w->node.o.pod_logs_dir = "/var/log/pods";
    w->node.o.container_logs_dir = logs;
    memset(c->cur.id, 'a', 64);
    c->cur.started_ns = 1;
    ctr_log_link(c);
    assert_non_null(strstr(p->look.error, "create log link"));
    assert_true(p->look.wait_ms > 0);
    assert_int_equal(fs_mkdirs(logs, 0755, &e), ERR_OK);
    c->state = CTR_STARTING; /* nothing else to do in its step */
    pod_look_begin(p);
    ctr_step(c);
    pod_look_end(p);
    assert_int_equal(p->look.wait_ms, 0);
    ctr_log_link_path(c, c->cur.id, path, sizeof(path));
    assert_int_equal(faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW), 0);
}

static void a_hosts_file_that_cannot_be_looked_at_is_not_emptied(void **state)
{
    struct world *w = *state;
    struct pod *p =
        world_add(w, "{apiVersion: v1, kind: Pod, metadata: {name: p, uid: u1}, spec: {" ONE("1Mi") "}}");
    str_auto text = NULL;
    char path[512];
    struct err e = { 0 };

    w->node.o.resolv_conf = "";
    assert_int_equal(files_write_static(p, &e), ERR_OK);
    assert_int_equal(files_path(p, FILES_HOSTS, path, sizeof(path), &e), ERR_OK);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, "x", 1, 0644, false, &e), ERR_OK);
    failing_arm("fstatat", path, EIO, 1);
    assert_int_not_equal(files_write_static(p, &e), ERR_OK);
    e = (struct err){ 0 };
    assert_int_equal(files_write_static(p, &e), ERR_OK);
    assert_int_equal(fs_read_at(AT_FDCWD, path, 100, &text, NULL, &e), ERR_OK);
    assert_string_equal(text, "x");
}

static void devices_that_cannot_be_listed_are_not_none(void **state)
{
    const struct api_security security = { .has_privileged = true, .privileged = true };
    const struct rt_config c = { .security = &security };
    json_auto_t *devices = json_array(), *rules = json_array();
    struct err e = { 0 };

    (void)state;
    failing_arm("readdir", "", EIO, 1);
    assert_int_not_equal(rt_devices_build(&c, -1, devices, rules, &e), ERR_OK);
    assert_int_equal(e.sys, EIO);
    e = (struct err){ 0 };
    failing_arm("fstatat", "null", EIO, 1);
    assert_int_not_equal(rt_devices_build(&c, -1, devices, rules, &e), ERR_OK);
    e = (struct err){ 0 };
    assert_int_equal(rt_devices_build(&c, -1, devices, rules, &e), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(memory_whose_use_is_not_known_is_not_taken_away),
        WORLD_TEST(the_record_of_the_last_shutdown_is_looked_at_again),
        WORLD_TEST(one_that_stays_unread_is_shown_and_read_when_the_next_begins),
        WORLD_TEST(damaged_files_that_cannot_be_listed_are_not_none),
        WORLD_TEST(damaged_files_of_every_folder_are_shown),
        WORLD_TEST(a_log_link_that_could_not_be_made_is_made_later),
        WORLD_TEST(a_hosts_file_that_cannot_be_looked_at_is_not_emptied),
        WORLD_TEST(devices_that_cannot_be_listed_are_not_none),
        WORLD_TEST(a_process_that_cannot_be_looked_at_is_not_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
