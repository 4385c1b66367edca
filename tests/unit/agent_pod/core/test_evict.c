/* SPDX-License-Identifier: Apache-2.0 */
/* How an evicted pod ends, whatever its containers do, and whenever the agent ends. */
#include "tests/unit/agent_pod/script_parts.h"

#include "agent/pod/core/evict.h"
#include "agent/pod/node/record_load.h"
#include "agent/pod/status/status.h"
#include "base/codec/json.h"

#define ONE "terminationGracePeriodSeconds: 30, containers: [{name: c, image: x}]"
#define WHY "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "

static void evict(struct pod *p, int64_t grace_s, bool disruption)
{
    json_auto_t *annotations = json_pack("{s:s}", "starved_resource", "memory");
    struct pod_eviction e = {
        .message = strdup(WHY), .grace_s = grace_s, .disruption = disruption, .annotations = annotations
    };

    assert_true(pod_evict(p, &e));
}

static const struct script_ctr *run_of(const struct pod *p)
{
    return script_ctr(p->ctrs[0]->cur.id);
}

static const json_t *condition(const json_t *pod, const char *type)
{
    const json_t *list = json_object_get(json_object_get(pod, "status"), "conditions"), *c;
    size_t i;

    json_array_foreach (list, i, c)
        if (str_eq(json_str(c, "type"), type))
            return c;
    return NULL;
}

static void a_container_that_ends_with_0_does_not_make_it_succeed(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "web", ONE);
    json_auto_t *shown = NULL;
    const json_t *status, *disrupted;

    evict(p, 1, true);
    script_turn(w);
    assert_int_equal(run_of(p)->signals, 1);
    script_exit(w, p->ctrs[0], 0);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_TERMINATED);
    shown = pod_status_json(p);
    status = json_object_get(shown, "status");
    assert_string_equal(json_str(status, "phase"), "Failed");
    assert_string_equal(json_str(status, "reason"), "Evicted");
    assert_string_equal(json_str(status, "message"), WHY);
    assert_string_equal(json_str(condition(shown, "Ready"), "reason"), "PodFailed");
    disrupted = condition(shown, "DisruptionTarget");
    assert_string_equal(json_str(disrupted, "status"), "True");
    assert_string_equal(json_str(disrupted, "reason"), "TerminationByKubelet");
    assert_string_equal(json_str(disrupted, "message"), WHY);
    assert_int_equal(p->ctrs[0]->cur.exit_code, 0); /* its own is kept */
}

static void for_its_own_limit_it_is_no_disruption(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "web", ONE);
    json_auto_t *shown = NULL;

    evict(p, 1, false);
    script_turn(w);
    script_exit(w, p->ctrs[0], 143);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_TERMINATED);
    shown = pod_status_json(p);
    assert_null(condition(shown, "DisruptionTarget"));
    assert_int_equal(p->ctrs[0]->cur.exit_code, 143);
}

static void its_event_has_annotations(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "web", ONE);
    json_auto_t *events = NULL;
    const json_t *v, *found = NULL;
    size_t i;

    evict(p, 1, true);
    events = events_json(&w->node);
    json_array_foreach (events, i, v)
        if (str_eq(json_str(v, "reason"), "Evicted"))
            found = v;
    assert_string_equal(json_str(found, "type"), "Warning");
    assert_string_equal(json_str(found, "message"), WHY);
    assert_string_equal(
        json_str(json_object_get(json_object_get(found, "metadata"), "annotations"), "starved_resource"),
        "memory");
}

static void a_grace_of_a_second_is_kubelets_two(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "web", ONE);

    evict(p, 1, true);
    script_turn(w);
    script_pass(w, SCRIPT_SECOND);
    assert_int_equal(run_of(p)->kills, 0);
    script_pass(w, SCRIPT_SECOND);
    assert_int_equal(run_of(p)->kills, 1);
}

static void without_grace_it_is_killed_at_once(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(
        w, "web",
        "initContainers: [{name: s, image: x, restartPolicy: Always}], containers: [{name: c, image: x}]");

    evict(p, 0, true);
    script_turn(w);
    for (size_t i = 0; i < p->n_ctrs; i++) {
        assert_int_equal(script_ctr(p->ctrs[i]->cur.id)->kills, 1);
        assert_int_equal(script_ctr(p->ctrs[i]->cur.id)->signals, 0);
    }
}

static void the_rest_of_its_grace_can_be_cancelled(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "web", ONE);

    pod_evict_faster(p); /* it is not evicted */
    script_turn(w);
    assert_int_equal(p->state, POD_RUNNING);
    evict(p, 8, true);
    script_pass(w, SCRIPT_SECOND);
    assert_int_equal(run_of(p)->kills, 0);
    pod_evict_faster(p);
    script_turn(w);
    assert_int_equal(run_of(p)->kills, 1);
}

static void one_that_ends_already_is_left_alone(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "web", ONE);
    struct pod_eviction e = { .message = strdup(WHY), .measured = strdup("much"), .grace_s = 0 };

    pods_unwant(&w->node, "default", "web");
    script_turn(w);
    assert_int_equal(p->state, POD_TERMINATING);
    assert_false(pod_evict(p, &e));
    assert_string_equal(p->reason, "");
    assert_int_equal(p->evicted_ns, 0);
}

/* The agent is killed at the moment when a container is signalled: `text`, its record, says why already. */
static void recorded(struct world *w, const char *uid, const char *text, bool at_once)
{
    str_auto name = str_printf("%s.json", uid);
    struct err e = { 0 };
    struct pod *p;

    world_forget(w);
    assert_int_equal(record_read(&w->node, name, text, strlen(text), true, &e), ERR_OK);
    p = pods_find(&w->node, "default", "web");
    assert_int_equal(p->state, POD_TERMINATING);
    assert_string_equal(p->phase, "Failed");
    assert_string_equal(p->reason, "Evicted");
    assert_string_equal(p->message, WHY);
    assert_true(p->disrupted);
    assert_int_equal(p->kill_now, at_once);
    assert_int_not_equal(p->evicted_ns, 0);
}

static char *record_in(const struct world *w, const char *folder, const char *uid)
{
    str_auto path = str_printf("%s/%s/%s.json", w->dir, folder, uid);
    struct err e = { 0 };
    char *text = NULL;
    size_t size;

    return fs_read_at(AT_FDCWD, path, 1 << 20, &text, &size, &e) == ERR_OK ? text : NULL;
}

static void it_is_recorded_before_a_container_is_signalled(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "web", ONE);
    str_auto uid = strdup(p->uid);
    str_auto text = NULL;

    evict(p, 1, true);
    pod_reconcile(p);
    assert_int_equal(run_of(p)->signals, 0);
    text = record_in(w, "pods", uid);
    assert_non_null(text);
    pod_reconcile(p);
    assert_int_equal(run_of(p)->signals, 1);
    script_exit(w, p->ctrs[0], 137);
    script_answer_all(w, NULL);
    recorded(w, uid, text, false);
}

static struct {
    struct world *world;
    struct pod *pod;
    char *ahead, *disk; /* what the records said when it was killed */
} killed;

static void at_kill(void)
{
    if (killed.ahead != NULL || killed.disk != NULL)
        return;
    killed.ahead = record_in(killed.world, "records", killed.pod->uid);
    killed.disk = record_in(killed.world, "pods", killed.pod->uid);
}

/* The disk may be busy for longer than memory lasts: the run folder has the record first. */
static void a_kill_that_cannot_wait_does_not_wait_for_the_disk(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "web", ONE);
    str_auto uid = strdup(p->uid);
    str_auto path = str_printf("%s/records", w->dir);
    str_auto later = NULL;
    str_auto aside = NULL;
    struct err e = { 0 };

    assert_int_equal(fs_mkdirs(path, 0700, &e), ERR_OK);
    killed.world = w;
    killed.pod = p;
    script.at_kill = at_kill;
    evict(p, 0, true);
    pod_reconcile(p);
    script.at_kill = NULL;
    assert_int_equal(run_of(p)->kills, 1);
    assert_non_null(killed.ahead);
    assert_null(strstr(killed.disk, "Evicted"));
    later = record_in(w, "pods", uid); /* the same turn brought it to the disk */
    assert_non_null(strstr(later, "Evicted"));
    aside = record_in(w, "records", uid);
    assert_null(aside);
    script_exit(w, p->ctrs[0], 137);
    script_answer_all(w, NULL);
    recorded(w, uid, killed.ahead, true);
    free(take_ptr(&killed.ahead));
    free(take_ptr(&killed.disk));
}

/* Without a run folder to write to, the disk is waited for. */
static void a_kill_that_cannot_be_recorded_ahead_waits_for_the_disk(void **state)
{
    struct world *w = *state;
    struct pod *p = script_running(w, "web", ONE);
    str_auto path = str_printf("%s/records", w->dir);
    str_auto text = NULL;
    struct err e = { 0 };

    rmdir(path);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, "", 0, 0600, false, &e), ERR_OK);
    evict(p, 0, true);
    pod_reconcile(p);
    assert_int_equal(run_of(p)->kills, 0);
    text = record_in(w, "pods", p->uid);
    assert_non_null(strstr(text, "Evicted"));
    pod_reconcile(p);
    assert_int_equal(run_of(p)->kills, 1);
    script_exit(w, p->ctrs[0], 137);
    script_answer_all(w, NULL);
}

/* ---- coming back ---- */

static struct pod *evicted(struct world *w, struct pod *p)
{
    evict(p, 0, true);
    script_turn(w);
    script_exit(w, p->ctrs[0], 137);
    script_answer_all(w, NULL);
    p = pods_find(&w->node, "default", "web");
    assert_int_equal(p->state, POD_TERMINATED);
    return p;
}

static struct pod *after(struct world *w, int64_t seconds)
{
    script_pass(w, seconds * SCRIPT_SECOND);
    script_answer_all(w, NULL);
    return pods_find(&w->node, "default", "web");
}

static void it_comes_back_later_each_time(void **state)
{
    struct world *w = *state;
    struct pod *p = evicted(w, script_running(w, "web", ONE));

    assert_int_equal(after(w, 28)->state, POD_TERMINATED);
    p = after(w, 4);
    assert_int_equal(p->state, POD_RUNNING);
    assert_int_equal(p->evicted_ns, 0);
    evicted(w, p);
    assert_int_equal(after(w, 55)->state, POD_TERMINATED);
    assert_int_equal(after(w, 10)->state, POD_RUNNING);
}

static void after_a_long_run_the_next_wait_is_short_again(void **state)
{
    struct world *w = *state;
    struct pod *p = evicted(w, script_running(w, "web", ONE));

    p = evicted(w, after(w, 35));
    p = after(w, 70);
    assert_int_equal(p->state, POD_RUNNING);
    p = evicted(w, after(w, 700));
    assert_int_equal(after(w, 35)->state, POD_RUNNING);
}

static void one_that_must_not_run_twice_stays_ended(void **state)
{
    struct world *w = *state;

    evicted(w, script_running(w, "web", "restartPolicy: Never, " ONE));
    assert_int_equal(after(w, 3600)->state, POD_TERMINATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(a_container_that_ends_with_0_does_not_make_it_succeed),
        SCRIPT_TEST(for_its_own_limit_it_is_no_disruption),
        SCRIPT_TEST(its_event_has_annotations),
        SCRIPT_TEST(a_grace_of_a_second_is_kubelets_two),
        SCRIPT_TEST(without_grace_it_is_killed_at_once),
        SCRIPT_TEST(the_rest_of_its_grace_can_be_cancelled),
        SCRIPT_TEST(one_that_ends_already_is_left_alone),
        SCRIPT_TEST(it_is_recorded_before_a_container_is_signalled),
        SCRIPT_TEST(a_kill_that_cannot_wait_does_not_wait_for_the_disk),
        SCRIPT_TEST(a_kill_that_cannot_be_recorded_ahead_waits_for_the_disk),
        SCRIPT_TEST(it_comes_back_later_each_time),
        SCRIPT_TEST(after_a_long_run_the_next_wait_is_short_again),
        SCRIPT_TEST(one_that_must_not_run_twice_stays_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
