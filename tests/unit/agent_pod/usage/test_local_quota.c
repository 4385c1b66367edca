/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of local storage through quotas: a warning ends the pod at once, enforced limits do not; figures of
 * all pods when a disk runs short. */
#include "tests/unit/agent_pod/script_quota.h"

#include "agent/pod/core/facts.h"
#include "agent/pod/usage/internal.h"
#include "agent/pod/usage/local_storage.h"
#include "agent/pod/usage/storage_usage.h"
#include "agent/pod/volume/internal.h"

#include <unistd.h>

#define MIB ((uint64_t)1024 * 1024)
#define CTR(limits)                                                                                          \
    "containers: [{name: c, image: x, resources: {limits: {" limits "}}, volumeMounts: [{name: e, "          \
    "mountPath: /e}]}], volumes: [{name: e, emptyDir: {"
#define LIMITED CTR("") "sizeLimit: 8Mi}}]"
#define SUMMED CTR("ephemeral-storage: 9Mi") "}}]"

/* A pod that runs with its projects, and its limits set. */
static struct pod *running(struct world *w, const char *manifest)
{
    struct pod *p = world_add(w, manifest);

    p->state = POD_RUNNING;
    project_room.pod.step(p);
    script_settle(w);
    volumes_of(p)->vols = VOLS_READY;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        snprintf(p->ctrs[i]->cur.id, sizeof(p->ctrs[i]->cur.id), "%s", project_layer_id(p->ctrs[i]));
        p->ctrs[i]->state = CTR_RUNNING;
        project_layer_used(p->ctrs[i]);
    }
    local_storage_step(p);
    if (project_node(&w->node)->busy)
        script_settle(w);
    return p;
}

static struct pod *run_pod(struct world *w, const char *name, const char *annotations, const char *spec)
{
    str_auto text =
        str_printf("{apiVersion: v1, kind: Pod, metadata: {name: %s, annotations: {%s}}, spec: {%s}}", name,
                   annotations, spec);

    return running(w, text);
}

static void begin(struct world *w)
{
    local_quota_open(&w->node);
    project_begin(&w->node);
}

static const char *layer_of(const struct pod *p)
{
    return p->ctrs[0]->cur.id;
}

static void nothing_is_scanned_or_polled(void **state)
{
    struct world *w = *state;
    struct pod *p;

    begin(w);
    p = run_pod(w, "a", "", SUMMED);
    assert_int_equal(usage_of_pod(p)->local->n, 3);
    for (size_t i = 0; i < usage_of_pod(p)->local->n; i++)
        assert_true(usage_of_pod(p)->local->trees[i].due_ms == LOCAL_NEVER);
    assert_false(local_storage_busy(&w->node));
    assert_int_equal(script_project("/e")->u.soft_bytes, 3 * MIB);
    assert_int_equal(script_project(layer_of(p))->u.soft_bytes, 3 * MIB);
    script_use(w, "/e", 2 * MIB);
    assert_int_equal(local_storage_find(p, LOCAL_VOLUME, 0)->sum.bytes, 2 * MIB); /* as of now */
}

static void a_warning_evicts_at_once(void **state)
{
    struct world *w = *state;
    struct pod *p, *other;
    char mine[300];

    begin(w);
    p = run_pod(w, "a", "", LIMITED);
    other = run_pod(w, "b", "", LIMITED);
    snprintf(mine, sizeof(mine), "%s/volumes/kubernetes.io~empty-dir/e", p->uid);
    assert_int_equal(script_project(mine)->u.soft_bytes, 8 * MIB);
    script_use(w, mine, 8 * MIB);
    assert_int_equal(p->state, POD_RUNNING);
    script_use(w, mine, 8 * MIB + 4096);
    assert_int_equal(p->state, POD_TERMINATING); /* in the same turn of the loop */
    assert_string_equal(p->reason, "Evicted");
    assert_string_equal(p->message, "Usage of EmptyDir volume \"e\" exceeds the limit \"8Mi\". ");
    assert_int_equal(other->state, POD_RUNNING);
    script_settle(w);
    assert_int_equal(script_project(mine)->u.soft_bytes, 0); /* it writes on until it is killed */
}

static void a_sum_is_looked_at_again_until_it_is_passed(void **state)
{
    struct world *w = *state;
    unsigned sets;
    struct pod *p;

    begin(w);
    p = run_pod(w, "a", "", SUMMED);
    script_use(w, "/e", 4 * MIB);
    assert_int_equal(p->state, POD_RUNNING);
    script_settle(w);
    assert_int_equal(script_project(layer_of(p))->u.soft_bytes, 5 * MIB / 3 / 1024 * 1024);
    sets = quota.n_sets;
    script_use(w, layer_of(p), MIB);
    assert_int_equal(quota.n_sets, sets); /* no warning, no work */
    script_use(w, layer_of(p), 5 * MIB);
    assert_int_equal(p->state, POD_RUNNING); /* 9 of 9 */
    script_settle(w);
    script_use(w, "/c", 4096); /* the log */
    assert_int_equal(p->state, POD_TERMINATING);
    assert_string_equal(p->message,
                        "Pod ephemeral local storage usage exceeds the total limit of containers 9Mi. ");
}

static void lost_warnings_lead_to_a_look_at_everything(void **state)
{
    struct world *w = *state;
    const struct quota_warning lost = { .lost = true };
    struct pod *p;

    begin(w);
    p = run_pod(w, "a", "", LIMITED);
    script_project("/e")->u.bytes = 9 * MIB;
    quota.warned(&lost, quota.warned_arg);
    assert_int_equal(p->state, POD_TERMINATING);
}

static void what_is_passed_before_it_is_set_is_found(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "a", LIMITED);

    begin(w);
    p->state = POD_RUNNING;
    project_room.pod.step(p);
    script_settle(w);
    volumes_of(p)->vols = VOLS_READY;
    script_project("/e")->u.bytes = 20 * MIB;
    local_storage_step(p);
    script_settle(w);
    assert_int_equal(p->state, POD_TERMINATING);
}

static void enforced_limits_refuse_and_do_not_evict(void **state)
{
    struct world *w = *state;
    struct pod *p;

    begin(w);
    p = run_pod(w, "a", "coracle.dev/storage-limits: enforce", SUMMED);
    assert_int_equal(script_project("/e")->u.hard_bytes, 9 * MIB);
    assert_int_equal(script_project(layer_of(p))->u.hard_bytes, 9 * MIB);
    assert_int_equal(script_project("/c")->u.hard_bytes, 0);
    script_use(w, layer_of(p), 9 * MIB);
    script_use(w, "/c", MIB); /* what it logs about that */
    assert_int_equal(p->state, POD_RUNNING);
    assert_string_equal(usage_of_pod(p)->local->hard, "files of c;");
}

static void enforced_limits_that_were_passed_let_nothing_grow(void **state)
{
    struct world *w = *state;
    struct pod *p;

    begin(w);
    p = run_pod(w, "a", "coracle.dev/storage-limits: enforce", SUMMED);
    script_project("/e")->u.bytes = 8 * MIB; /* both at one moment */
    script_use(w, layer_of(p), 8 * MIB);
    if (project_node(&w->node)->busy)
        script_settle(w);
    assert_int_equal(p->state, POD_RUNNING);
    assert_int_equal(script_project("/e")->u.hard_bytes, 8 * MIB);
    assert_int_equal(script_project(layer_of(p))->u.hard_bytes, 8 * MIB);
}

static void the_setting_enforces_unless_the_pod_says_otherwise(void **state)
{
    struct world *w = *state;

    w->node.o.storage_enforced = true;
    begin(w);
    (void)run_pod(w, "a", "", LIMITED);
    assert_int_equal(script_project("/e")->u.hard_bytes, 8 * MIB);
    world_forget(w);
    script_project("/e")->path[0] = '\0';
    (void)run_pod(w, "b", "coracle.dev/storage-limits: evict", LIMITED);
    assert_int_equal(script_project("/e")->u.hard_bytes, 0);
    assert_int_equal(script_project("/e")->u.soft_bytes, 8 * MIB);
}

static void a_quota_that_only_counts_cannot_enforce(void **state)
{
    struct world *w = *state;
    struct pod *p;

    quota.counts_only = true;
    begin(w);
    p = run_pod(w, "a", "coracle.dev/storage-limits: enforce", LIMITED);
    assert_int_equal(quota.n_sets, 0);
    assert_false(usage_of_pod(p)->local->trees[0].due_ms == LOCAL_NEVER); /* read from time to time */
    script_project("/e")->u.bytes = 9 * MIB;
    usage_of_pod(p)->local->trees[0].due_ms = 0;
    local_storage_now(&w->node);
    assert_int_equal(p->state, POD_TERMINATING);
}

/* ---- figures of all pods -------------------------------------------------------------------------- */

static unsigned n_done;
static bool was_complete;

static void on_measured(struct node *n, bool complete)
{
    (void)n;
    n_done++;
    was_complete = complete;
}

static void quotas_answer_for_all_pods_at_once(void **state)
{
    struct world *w = *state;
    struct storage_part part;
    struct pod *p;

    begin(w);
    p = run_pod(w, "a", "", CTR("") "}}]");
    assert_null(usage_of_pod(p)->local); /* it has no limits */
    script_use(w, "/e", MIB);
    script_use(w, layer_of(p), 2 * MIB);
    script_use(w, "/c", 4096);
    part = storage_usage_pod(p);
    assert_true(part.known && part.exact && !part.partial);
    assert_int_equal(part.bytes, 3 * MIB + 4096);
    part = storage_usage_volumes(p);
    assert_int_equal(part.bytes, MIB);
    n_done = 0;
    assert_true(storage_usage_measure(&w->node, 10000, 60000, on_measured));
    while (n_done == 0)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_true(was_complete);
}

static void pods_without_quotas_are_scanned_when_asked_for(void **state)
{
    struct world *w = *state;
    char path[1024], file[1100];
    struct storage_part part;
    struct err e = { 0 };
    struct pod *p;

    quota.absent = true;
    begin(w);
    p = world_pod(w, "a", CTR("") "}}]");
    p->state = POD_RUNNING;
    volumes_of(p)->vols = VOLS_READY;
    assert_int_equal(volumes_host_path(p, &p->api->spec.volumes[0], path, sizeof(path), &e), ERR_OK);
    snprintf(file, sizeof(file), "%s/folder", path);
    assert_int_equal(fs_mkdirs(file, 0755, &e), ERR_OK);
    part = storage_usage_volume(p, 0);
    assert_false(part.known);
    n_done = 0;
    assert_true(storage_usage_measure(&w->node, 10000, 60000, on_measured));
    while (n_done == 0)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_true(was_complete);
    part = storage_usage_volume(p, 0);
    assert_true(part.known && !part.exact);
    assert_int_equal(part.inodes, 2);
    part = storage_usage_pod(p); /* no container ran */
    assert_true(part.known);
    assert_int_equal(part.inodes, 2);
    usage_of_pod(p)->others->trees[0].due_ms = LOCAL_NEVER;
    n_done = 0;
    assert_true(storage_usage_measure(&w->node, 10000, 60000, on_measured)); /* it is fresh */
    assert_int_equal(local_storage_asked(&w->node), 0);
    while (n_done == 0)
        uv_run(&w->loop, UV_RUN_ONCE);
}

static void a_pod_that_goes_is_waited_for_no_more(void **state)
{
    struct world *w = *state;
    struct pod *p;

    quota.absent = true;
    begin(w);
    p = world_pod(w, "a", CTR("") "}}]");
    p->state = POD_RUNNING;
    volumes_of(p)->vols = VOLS_READY;
    n_done = 0;
    assert_true(storage_usage_measure(&w->node, 10000, 60000, on_measured));
    local_storage_forget(p);
    while (n_done == 0)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_true(was_complete);
    while (local_storage_busy(&w->node))
        uv_run(&w->loop, UV_RUN_ONCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUOTA_TEST(nothing_is_scanned_or_polled),
        QUOTA_TEST(a_warning_evicts_at_once),
        QUOTA_TEST(a_sum_is_looked_at_again_until_it_is_passed),
        QUOTA_TEST(lost_warnings_lead_to_a_look_at_everything),
        QUOTA_TEST(what_is_passed_before_it_is_set_is_found),
        QUOTA_TEST(enforced_limits_refuse_and_do_not_evict),
        QUOTA_TEST(enforced_limits_that_were_passed_let_nothing_grow),
        QUOTA_TEST(the_setting_enforces_unless_the_pod_says_otherwise),
        QUOTA_TEST(a_quota_that_only_counts_cannot_enforce),
        QUOTA_TEST(quotas_answer_for_all_pods_at_once),
        QUOTA_TEST(pods_without_quotas_are_scanned_when_asked_for),
        QUOTA_TEST(a_pod_that_goes_is_waited_for_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
