/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods are measured, by what; who is evicted, in which words; that a scan of a volume leads there. */
#include "agent/pod/usage/internal.h"
#include "agent/pod/usage/local_storage.h"
#include "agent/pod/usage/storage_usage.h"
#include "agent/pod/volume/internal.h"
#include "tests/unit/agent_pod/world.h"

#include <unistd.h>

#define MIB ((uint64_t)1024 * 1024)
#define CTR(name, limits)                                                                                    \
    "{name: " name ", image: x, resources: {limits: {" limits "}}, volumeMounts: [{name: e, mountPath: "     \
    "/e}]}"
#define EMPTY(limit) ", volumes: [{name: e, emptyDir: {" limit "}}]"

static struct pod *measured(struct world *w, const char *name, const char *spec)
{
    struct pod *p = world_pod(w, name, spec);

    p->state = POD_RUNNING;
    for (size_t i = 0; i < p->n_ctrs; i++)
        snprintf(p->ctrs[i]->cur.id, sizeof(p->ctrs[i]->cur.id), "%s-%zu", name, i);
    usage_of_pod(p)->local = local_limits_trees(p);
    return p;
}

static void forget(struct pod *p)
{
    free(take_ptr(
        &usage_of_pod(p)->local)); /* not in the node's row: the tests below ask for decisions only */
}

static void set(struct pod *p, enum local_kind kind, size_t index, uint64_t bytes)
{
    for (size_t i = 0; i < usage_of_pod(p)->local->n; i++) {
        struct local_tree *t = &usage_of_pod(p)->local->trees[i];

        if (t->kind != kind || t->index != index)
            continue;
        t->known = true;
        t->sum = (struct disk_usage_sum){ .bytes = bytes, .inodes = 1 };
        if (kind == LOCAL_LAYER)
            snprintf(t->id, sizeof(t->id), "%s", p->ctrs[index]->cur.id);
        return;
    }
    fail_msg("there is no such tree");
}

static void exceeds(const struct pod *p, const char *wanted)
{
    str_auto text = NULL;

    assert_int_equal(local_limits_exceeded(p, &text), wanted != NULL);
    if (wanted != NULL)
        assert_string_equal(text, wanted);
}

static void pods_without_limits_are_not_measured(void **state)
{
    assert_null(
        usage_of_pod(measured(*state, "a", "containers: [" CTR("c", "memory: 1Mi") "]" EMPTY("")))->local);
    assert_null(
        usage_of_pod(measured(*state, "b", "containers: [" CTR("c", "") "]" EMPTY("sizeLimit: 0")))->local);
    assert_null(
        usage_of_pod(
            measured(*state, "m", "containers: [" CTR("c", "") "]" EMPTY("medium: Memory, sizeLimit: 1Mi")))
            ->local);
    assert_null(
        usage_of_pod(measured(*state, "n", "containers: [{name: c, image: x}]" EMPTY("sizeLimit: 1Mi")))
            ->local); /* not mounted */
    assert_null(usage_of_pod(measured(*state, "k",
                                      "priorityClassName: system-node-critical, containers: [" CTR(
                                          "c", "ephemeral-storage: 1Mi") "]" EMPTY("sizeLimit: 1Mi")))
                    ->local);
}

static void a_volume_may_be_as_large_as_its_limit(void **state)
{
    struct pod *p = measured(*state, "a", "containers: [" CTR("c", "") "]" EMPTY("sizeLimit: 1Mi"));

    assert_int_equal(usage_of_pod(p)->local->n, 1); /* its containers are not looked at */
    exceeds(p, NULL);
    set(p, LOCAL_VOLUME, 0, MIB);
    exceeds(p, NULL);
    set(p, LOCAL_VOLUME, 0, MIB + 512);
    exceeds(p, "Usage of EmptyDir volume \"e\" exceeds the limit \"1Mi\". ");
    forget(p);
}

static void layer_and_log_of_a_container_count_together(void **state)
{
    struct pod *p = measured(*state, "a",
                             "containers: [" CTR("c", "ephemeral-storage: 10Mi") ", " CTR(
                                 "d", "ephemeral-storage: 100Mi") "]" EMPTY(""));

    assert_int_equal(usage_of_pod(p)->local->n, 5);
    set(p, LOCAL_LAYER, 0, 6 * MIB);
    set(p, LOCAL_LOG, 0, 4 * MIB);
    set(p, LOCAL_LAYER, 1, 50 * MIB);
    exceeds(p, NULL);
    set(p, LOCAL_LOG, 0, 5 * MIB);
    exceeds(p, "Container c exceeded its local ephemeral storage limit \"10Mi\". ");
    set(p, LOCAL_VOLUME, 0, 50 * MIB); /* 111 of 110: the pod's is looked at first */
    exceeds(p, "Pod ephemeral local storage usage exceeds the total limit of containers 110Mi. ");
    forget(p);
}

static void neighbours_without_a_limit_use_up_the_same_sum(void **state)
{
    struct pod *p = measured(
        *state, "a", "containers: [" CTR("c", "ephemeral-storage: 10Mi") ", " CTR("d", "") "]" EMPTY(""));

    set(p, LOCAL_LAYER, 1, 10 * MIB);
    exceeds(p, NULL);
    set(p, LOCAL_VOLUME, 0, 512);
    exceeds(p, "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ");
    forget(p);
}

static void what_an_earlier_run_wrote_does_not_count(void **state)
{
    struct pod *p = measured(*state, "a", "containers: [" CTR("c", "ephemeral-storage: 10Mi") "]" EMPTY(""));

    set(p, LOCAL_LAYER, 0, 20 * MIB);
    snprintf(p->ctrs[0]->cur.id, sizeof(p->ctrs[0]->cur.id), "another");
    exceeds(p, NULL);
    forget(p);
}

static void init_containers_have_no_limit_of_their_own_but_sidecars_have(void **state)
{
    struct pod *p = measured(
        *state, "a",
        "initContainers: [" CTR(
            "i",
            "ephemeral-storage: 1Mi") ", {name: s, image: x, restartPolicy: Always, "
                                      "resources: {limits: {ephemeral-storage: 1Mi}}}], containers: [" CTR(
                                          "c", "ephemeral-storage: 9Mi") "]" EMPTY(""));

    set(p, LOCAL_LAYER, 0, 2 * MIB);
    exceeds(p, NULL);
    set(p, LOCAL_LAYER, 1, 2 * MIB);
    exceeds(p, "Container s exceeded its local ephemeral storage limit \"1Mi\". ");
    forget(p);
}

/* ---- the whole way -------------------------------------------------------------------------------- */

static void write_into(const struct pod *p, const char *volume, size_t bytes)
{
    str_auto folder =
        str_printf("%s/pods/%s/volumes/kubernetes.io~empty-dir/%s", p->node->o.root_dir, p->uid, volume);
    str_auto path = str_printf("%s/f", folder);
    mem_auto char *data = calloc(1, bytes);
    struct err e = { 0 };
    int fd;

    assert_int_equal(fs_mkdirs(folder, 0777, &e), ERR_OK);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, data, bytes), bytes);
    close(fd);
}

static void on_deadline(uv_timer_t *timer)
{
    (void)timer;
    fail_msg("nothing was measured");
}

/* Makes all trees due now and runs the loop until they are known. */
static void measure(struct world *w, struct pod *p)
{
    uv_timer_t deadline;
    bool all = false;

    local_storage_step(p);
    assert_non_null(usage_of_pod(p)->local);
    for (size_t i = 0; i < usage_of_pod(p)->local->n; i++)
        usage_of_pod(p)->local->trees[i].due_ms = 0;
    local_storage_now(&w->node);
    uv_timer_init(&w->loop, &deadline);
    uv_timer_start(&deadline, on_deadline, 60000, 0);
    while (usage_of_pod(p)->local != NULL && !all) {
        uv_run(&w->loop, UV_RUN_ONCE);
        all = true;
        for (size_t i = 0; usage_of_pod(p)->local != NULL && i < usage_of_pod(p)->local->n; i++)
            all = all &&
                  (usage_of_pod(p)->local->trees[i].known || usage_of_pod(p)->local->trees[i].due_ms != 0);
    }
    uv_close((uv_handle_t *)&deadline, NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
}

static void end(struct world *w)
{
    local_storage_close(&w->node);
    uv_run(&w->loop, UV_RUN_NOWAIT);
}

/* Eviction counts on it, and takes no other pod meanwhile. */
static void what_is_being_removed_counts(struct pod *p)
{
    struct storage_part part;

    volumes_of(p)->vols = VOLS_REMOVING;
    part = storage_usage_volumes(p);
    assert_true(part.known && part.bytes > MIB);
    p->state = POD_TERMINATED;
    part = storage_usage_volumes(p);
    assert_int_equal(part.bytes, 0);
    p->state = POD_TERMINATING;
}

static void a_full_volume_evicts_its_pod(void **state)
{
    struct world *w = *state;
    struct pod *small = world_pod(w, "small", "containers: [" CTR("c", "") "]" EMPTY("sizeLimit: 1Mi")),
               *big = world_pod(w, "big",
                                "terminationGracePeriodSeconds: 30, containers: [" CTR("c", "") "]" EMPTY(
                                    "sizeLimit: 1Mi"));

    worker_node(&w->node)->runner_active = true; /* nobody reconciles here */
    small->state = big->state = POD_RUNNING;
    volumes_of(small)->vols = volumes_of(big)->vols = VOLS_READY;
    write_into(small, "e", MIB / 2);
    write_into(big, "e", 2 * MIB);
    measure(w, small);
    measure(w, big);
    assert_int_equal(small->state, POD_RUNNING);
    assert_in_range(local_storage_find(small, LOCAL_VOLUME, 0)->sum.bytes, MIB / 2, MIB);
    assert_int_equal(big->state, POD_TERMINATING);
    assert_string_equal(big->phase, "Failed");
    assert_string_equal(big->reason, "Evicted");
    assert_string_equal(big->message, "Usage of EmptyDir volume \"e\" exceeds the limit \"1Mi\". ");
    assert_int_equal(big->grace_seconds, 1);
    assert_int_equal(usage_of_pod(big)->local->trees[0].due_ms, LOCAL_NEVER);
    what_is_being_removed_counts(big);
    world_forget(w);
    end(w);
}

static void nothing_runs_for_pods_without_limits_or_when_switched_off(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [" CTR("c", "") "]" EMPTY(""));

    local_storage_step(p);
    assert_null(usage_of_pod(p)->local);
    assert_null(usage_node(&w->node)->local);
    p = world_pod(w, "q", "containers: [" CTR("c", "") "]" EMPTY("sizeLimit: 1Mi"));
    w->node.o.local_limits = false;
    local_storage_step(p);
    assert_null(usage_of_pod(p)->local);
    assert_null(usage_node(&w->node)->local);
}

static void a_pod_that_goes_while_it_is_measured_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "p", "containers: [" CTR("c", "") "]" EMPTY("sizeLimit: 1Mi"));

    p->state = POD_RUNNING;
    volumes_of(p)->vols = VOLS_READY;
    write_into(p, "e", MIB / 2);
    local_storage_step(p);
    usage_of_pod(p)->local->trees[0].due_ms = 0;
    local_storage_now(&w->node);
    assert_true(local_storage_busy(&w->node));
    local_storage_forget(p);
    while (local_storage_busy(&w->node))
        uv_run(&w->loop, UV_RUN_ONCE);
    end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(pods_without_limits_are_not_measured),
        WORLD_TEST(a_volume_may_be_as_large_as_its_limit),
        WORLD_TEST(layer_and_log_of_a_container_count_together),
        WORLD_TEST(neighbours_without_a_limit_use_up_the_same_sum),
        WORLD_TEST(what_an_earlier_run_wrote_does_not_count),
        WORLD_TEST(init_containers_have_no_limit_of_their_own_but_sidecars_have),
        WORLD_TEST(a_full_volume_evicts_its_pod),
        WORLD_TEST(nothing_runs_for_pods_without_limits_or_when_switched_off),
        WORLD_TEST(a_pod_that_goes_while_it_is_measured_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
