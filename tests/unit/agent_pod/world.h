/* SPDX-License-Identifier: Apache-2.0 */
/* A node without runtime, network and cgroups, for the parts of agent/pod that only look at what is known. */
#ifndef TESTS_UNIT_AGENT_POD_WORLD_H
#define TESTS_UNIT_AGENT_POD_WORLD_H
#include "agent/pod/core/events.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/node/node.h"
#include "agent/pod/worker/internal.h"
#include "agent/pod/worker/pods.h"
#include "agent/pod/worker/worker.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct world {
    uv_loop_t loop;
    struct node node;
    char dir[64];
};

/* Adds one document of a manifest: a pod to the node's table (returned), anything else to its store. */
static inline struct pod *world_add(struct world *w, const char *manifest)
{
    struct api_problems problems = { 0 };
    struct api_objects found = { 0 };
    struct err e = { 0 };
    struct pod *p = NULL;

    assert_int_equal(api_decode_file("test.yaml", manifest, strlen(manifest), &found, &problems, &e), ERR_OK);
    if (problems.n > 0)
        fail_msg("%s: %s", problems.v[0].field, problems.v[0].message);
    for (size_t i = 0; i < found.n; i++) {
        if (found.v[i].kind != API_KIND_POD) {
            assert_int_equal(src_store_put(w->node.o.store, &found.v[i], &e), ERR_OK);
            continue;
        }
        p = pods_new(&w->node, found.v[i].pod, found.v[i].pod->meta.uid);
        assert_non_null(p);
        p->wanted = true;
    }
    api_objects_done(&found);
    api_problems_done(&problems);
    return p;
}

/* "kind: Pod" with this name and spec (flow style, without the braces). */
static inline struct pod *world_pod(struct world *w, const char *name, const char *spec)
{
    str_auto text = str_printf("{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {%s}}", name, spec);

    return world_add(w, text);
}

static inline void world_ready_ignored(struct node *n)
{
    (void)n;
}

static inline int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct err e = { 0 };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    uv_loop_init(&w->loop);
    w->node.upward = worker_upward;
    w->node.upward.ready_changed = world_ready_ignored;
    w->node.o.loop = &w->loop;
    w->node.timers = boot_timers_new(&w->loop);
    w->node.o.store = src_store_new();
    w->node.o.node_name = "node-a";
    w->node.o.node_ip = "192.0.2.7";
    w->node.o.max_pods = 110;
    w->node.o.local_limits = w->node.o.cpu_cfs_quota = true;
    w->node.o.cpu_cfs_period_us = CG_CPU_PERIOD_US;
    w->node.o.backoff_max_ms = BACKOFF_MAX_MS;
    w->node.o.cpu_milli = 4000;
    w->node.o.memory_bytes = 8ull << 30;
    w->node.o.hugepages_dir = "/does/not/exist"; /* what tests beside this one reserve does not count */
    snprintf(w->dir, sizeof(w->dir), "/tmp/test-agent-pod-XXXXXX");
    if (mkdtemp(w->dir) == NULL)
        return -1;
    w->node.o.state_dir = w->node.o.run_dir = w->node.o.root_dir = w->dir;
    snprintf(w->node.boot_id, sizeof(w->node.boot_id), "boot-1");
    if (rooms_make_node(&w->node, node_rooms, &e) != ERR_OK) /* no assertion: fuzz targets have no cmocka */
        return -1;
    for (const struct room *const *r = node_rooms; *r != NULL; r++)
        if ((*r)->node.open != NULL && (*r)->id != ROOM_USAGE) /* which watches cgroups */
            (*r)->node.open(&w->node);
    *state = w;
    return 0;
}

/* The table empty, as after the agent ended. */
static inline void world_forget(struct world *w)
{
    struct pod *p, *tmp;

    HASH_ITER (hh, w->node.pods, p, tmp)
        pods_free(p);
    uv_run(&w->loop, UV_RUN_DEFAULT);
}

static inline void world_on_closed(struct node *n)
{
    (void)n;
}

static inline int world_teardown(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };
    int left;

    world_forget(w);
    rooms_free_node(&w->node, world_on_closed);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    boot_timers_free(w->node.timers);
    src_store_free(w->node.o.store);
    left = uv_loop_close(&w->loop);
    if (fs_remove_tree(AT_FDCWD, w->dir, &e) != ERR_OK)
        left = -1;
    free(w);
    return left;
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
#endif
