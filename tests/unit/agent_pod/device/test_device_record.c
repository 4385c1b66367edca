/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod holds outlives the agent: its record, and the checkpoint that kubelet reads, too. */
#include "tests/unit/agent_pod/script_parts.h"

#include "tests/unit/agent_pod/device/provider.h"

#include "agent/pod/node/record_load.h"
#include "agent/pod/status/status.h"
#include "base/codec/json.h"
#include "deviceplugin/checkpoint/checkpoint.h"

#define UID "0a4f7c1e-0000-4000-8000-000000000001"
#define ONE "containers: [{name: main, image: x, resources: {limits: {" DEV ": 1}}}]"
#define MANIFEST                                                                                             \
    "{apiVersion: v1, kind: Pod, metadata: {name: a, uid: " UID "}, spec: {restartPolicy: Always, " ONE "}}"
#define PLAIN ((struct dp_options){ 0 })

static struct dp_kv envs[] = { { "DEV_IDS", "dev-1" } };
static const struct dp_answer answer = { .envs = envs, .n_envs = 1 };

static void written(struct world *w)
{
    const struct checkpoint_file *f = &device_node(&w->node)->checkpoint;

    while (f->usable && (f->due || f->due_later || checkpoint_busy(&w->node)))
        uv_run(&w->loop, UV_RUN_ONCE);
    script_turn(w);
}

static struct pod *running(struct world *w)
{
    struct pod *p;

    provider_comes(w, &provider_one, DEV, "dev-0- dev-1@1", PLAIN);
    p = world_add(w, MANIFEST);
    p->record_dirty = true;
    pod_wake(p, "test");
    script_turn(w);
    provider_allocates(w, &answer);
    written(w);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
    return p;
}

/* The agent starts again: nothing is in memory, and no provider has come back. */
static struct pod *restarted(struct world *w)
{
    struct err e = { 0 };

    dp_inventory_withdraw(devices_inventory_fill(&w->node), &provider_one, DEV);
    script_turn(w);
    assert_int_equal(op_count(), 0);
    pods_each (&w->node, p)
        pods_free(p);
    assert_null(dp_holdings_next(devices_holdings(&w->node), NULL));
    if (record_load_all(&w->node, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return pods_find(&w->node, "default", "a");
}

static void record(struct world *w, const char *name, const char *text)
{
    struct err e = { 0 };
    char path[160];

    snprintf(path, sizeof(path), "%s/pods/%s.json", w->dir, name);
    if (fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, false, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static void a_pod_keeps_its_devices_over_a_restart_of_the_agent(void **state)
{
    struct world *w = *state;
    struct pod *p;
    const struct dp_holding *x;

    running(w);
    p = restarted(w);
    assert_non_null(p);
    x = dp_holdings_find(devices_holdings(&w->node), UID, "main", DEV);
    assert_non_null(x);
    assert_int_equal(x->n_devices, 1);
    assert_string_equal(x->devices[0].id, "dev-1");
    assert_int_equal(x->devices[0].n_numa, 1);
    assert_int_equal(x->devices[0].numa[0], 1);
    assert_true(x->n_answer > 0);
}

static void its_container_starts_again_with_the_stored_answer_although_the_plugin_is_away(void **state)
{
    struct world *w = *state;
    struct pod *p;
    const struct rt_config *config;

    p = running(w);
    p = restarted(w);
    script_ctr(p->ctrs[0]->cur.id)->s.phase = RT_EXITED; /* while no agent ran */
    script_ctr(p->ctrs[0]->cur.id)->s.finished_ns = clock_wall_ns();
    p->wanted = true;
    node_recover_pod(p);
    p->recovered = false;
    script_pass(w, 11 * SCRIPT_SECOND);
    script_answer_all(w, "create");
    assert_non_null(script_op("create"));
    config = ctr_run_config(own_of(p->ctrs[0])->run);
    assert_string_equal(config->device_env[0], "DEV_IDS=dev-1");
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
    assert_int_equal(provider.n_allocate, 1);
}

static void a_reservation_without_an_answer_is_made_anew(void **state)
{
    struct world *w = *state;
    struct pod *p;

    provider_comes(w, &provider_one, DEV, "dev-0 dev-1", PLAIN);
    p = world_add(w, MANIFEST);
    p->record_dirty = true;
    pod_wake(p, "test");
    script_turn(w);
    assert_non_null(script_op("Allocate"));
    op_cancel(script_op("Allocate"));
    script_turn(w);
    p = restarted(w);
    assert_non_null(p);
    assert_int_equal(p->state, POD_PENDING);
    assert_null(dp_holdings_next(devices_holdings(&w->node), NULL));
}

#define HEAD(state, devices)                                                                                 \
    "{\"version\":1,\"uid\":\"" UID "\",\"bootID\":\"boot-1\",\"state\":\"" state "\",\"admitted\":true,"    \
    "\"devices\":" devices
#define TAIL                                                                                                 \
    ",\"manifest\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":"      \
    "\"default\",\"uid\":\"" UID "\"},\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"x\","         \
    "\"resources\":{\"limits\":{\"" DEV "\":\"1\"}}}]}}}"
#define RECORD(state, devices) HEAD(state, devices) TAIL
#define ENTRY(container, resource, answer, devices)                                                          \
    "{\"container\":\"" container "\",\"resource\":\"" resource "\",\"answer\":\"" answer                    \
    "\",\"devices\":" devices "}"

static void entries_that_cannot_be_are_dropped(void **state)
{
    static const char *const records[] = {
        RECORD("running", "5"),
        RECORD("running", "[5]"),
        RECORD("running", "[{}]"),
        RECORD("running", "[" ENTRY("other", DEV, "", "[{\"id\":\"d\"}]") "]"),
        RECORD("running", "[" ENTRY("main", "cpu", "", "[{\"id\":\"d\"}]") "]"),
        RECORD("running", "[{\"container\":\"main\",\"resource\":\"" DEV "\",\"devices\":[{\"id\":\"d\"}]}]"),
        RECORD("running", "[" ENTRY("main", DEV, "!", "[{\"id\":\"d\"}]") "]"),
        RECORD("running", "[" ENTRY("main", DEV, "/w==", "[{\"id\":\"d\"}]") "]"),
        RECORD("running", "[" ENTRY("main", DEV, "", "[]") "]"),
        RECORD("running", "[" ENTRY("main", DEV, "", "[{\"id\":\"\"}]") "]"),
        RECORD("running", "[" ENTRY("main", DEV, "", "[{\"id\":\"d\",\"numa\":[1,1]}]") "]"),
        RECORD("running", "[" ENTRY("main", DEV, "", "[{\"id\":\"d\"},{\"id\":\"d\"}]") "]"),
        RECORD("terminated", "[" ENTRY("main", DEV, "", "[{\"id\":\"d\"}]") "]"),
    };
    struct world *w = *state;
    struct err e = { 0 };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    for (size_t i = 0; i < ARRAY_LEN(records); i++) {
        record(w, UID, records[i]);
        assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
        assert_non_null(pods_find(&w->node, "default", "a"));
        if (dp_holdings_next(devices_holdings(&w->node), NULL) != NULL)
            fail_msg("accepted: %s", records[i]);
        world_forget(w);
    }
    record(w, UID, RECORD("running", "[" ENTRY("main", DEV, "", "[{\"id\":\"d\"}]") "]"));
    assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
    assert_non_null(dp_holdings_next(devices_holdings(&w->node), NULL));
}

static void an_ended_pod_shows_what_it_had_after_a_restart_too(void **state)
{
    static const char status[] =
        "[{\"name\":\"" DEV "\",\"resources\":[{\"resourceID\":\"dev-1\",\"health\":\"Healthy\"}]}]";
    struct world *w = *state;
    struct pod *p;

    p = running(w);
    p->api->spec.restart_policy = API_RESTART_NEVER;
    script_exit(w, p->ctrs[0], 0);
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_TERMINATED);
    p = restarted(w);
    assert_null(dp_holdings_next(devices_holdings(&w->node), NULL));
    json_auto_t *shown = devices_status(p->ctrs[0]);
    str_auto text = json_text(shown);
    assert_string_equal(text, status);
}

static void a_pod_that_was_rejected_for_another_reason_is_judged_again_after_a_restart(void **state)
{
    static const char *const more[] = { ",\"rejected\":true", ",\"rejected\":true,\"devicesRefused\":true",
                                        ",\"rejected\":true,\"devicesRefused\":true,"
                                        "\"devicesRefusedForGood\":true" };
    struct world *w = *state;
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        str_auto text = str_printf("%s%s%s", HEAD("terminated", "[]"), more[i], TAIL);
        record(w, UID, text);
        assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
        struct pod *p = pods_find(&w->node, "default", "a");
        assert_int_equal(devices_can_admit(p), i == 0);
        device_node(&w->node)->changes++; /* something came */
        assert_int_equal(devices_can_admit(p), i < 2);
        device_node(&w->node)->changes--;
        world_forget(w);
    }
}

/* ---- the checkpoint ---- */

static char *checkpoint_path(const struct world *w)
{
    return str_printf("%s/device-plugins/kubelet_internal_checkpoint", w->dir);
}

static void no_container_starts_before_the_checkpoint_has_its_devices(void **state)
{
    struct world *w = *state;
    struct pod *p;
    str_auto path = checkpoint_path(w);
    str_auto text = NULL;
    struct err e = { 0 };

    checkpoint_begin(&w->node);
    provider_comes(w, &provider_one, DEV, "dev-0", PLAIN);
    p = script_pod(w, "a", ONE);
    script_turn(w);
    provider_allocates(w, &answer);
    device_of(p)->generation = UINT64_MAX; /* of a write that has not come yet */
    script_answer_all(w, NULL);
    written(w);
    assert_int_equal(p->ctrs[0]->state, CTR_CREATED);
    device_of(p)->generation = 1;
    pod_wake(p, "test");
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
    assert_int_equal(fs_read_at(AT_FDCWD, path, DP_CHECKPOINT_MAX, &text, NULL, &e), ERR_OK);
    assert_non_null(strstr(text, p->uid));
}

static void a_folder_that_cannot_be_made_at_the_start_is_used_when_it_is_there(void **state)
{
    struct world *w = *state;
    str_auto path = checkpoint_path(w);
    str_auto folder = str_printf("%s/device-plugins", w->dir);
    str_auto text = NULL;
    struct err e = { 0 };

    log_init((enum log_level)(LOG_LVL_ERROR - 1), LOG_FMT_TEXT);
    assert_int_equal(fs_replace_at(AT_FDCWD, folder, "", 0, 0600, false, &e), ERR_OK);
    checkpoint_begin(&w->node);
    assert_int_equal(unlink(folder), 0);
    assert_int_equal(mkdir(folder, 0750), 0);
    running(w);
    written(w);
    assert_int_equal(fs_read_at(AT_FDCWD, path, DP_CHECKPOINT_MAX, &text, NULL, &e), ERR_OK);
    assert_non_null(strstr(text, UID));
}

static void an_unfinished_checkpoint_of_an_earlier_agent_is_removed(void **state)
{
    struct world *w = *state;
    str_auto path = checkpoint_path(w);
    str_auto left = str_printf("%s/device-plugins/.kubelet_internal_checkpoint.51a109c4", w->dir);
    struct err e = { 0 };

    checkpoint_begin(&w->node);
    running(w);
    written(w);
    assert_int_equal(fs_replace_at(AT_FDCWD, left, "{", 1, 0600, false, &e), ERR_OK);
    restarted(w);
    free(take_ptr(&device_node(&w->node)->checkpoint.path));
    checkpoint_begin(&w->node);
    written(w);
    assert_int_not_equal(access(left, F_OK), 0);
    assert_int_equal(access(path, F_OK), 0);
}

static void a_text_that_is_the_same_is_written_again_if_the_file_was_removed(void **state)
{
    struct world *w = *state;
    str_auto path = checkpoint_path(w);
    str_auto text = NULL;
    struct err e = { 0 };

    checkpoint_begin(&w->node);
    running(w);
    written(w);
    assert_int_equal(unlink(path), 0);
    checkpoint_changed(&w->node);
    written(w);
    assert_int_equal(fs_read_at(AT_FDCWD, path, DP_CHECKPOINT_MAX, &text, NULL, &e), ERR_OK);
    assert_non_null(strstr(text, UID));
}

/* A provider that toggles may send a list at any time. */
static void a_list_that_comes_during_a_write_does_not_follow_at_once(void **state)
{
    struct world *w = *state;
    str_auto path = checkpoint_path(w);
    str_auto before = NULL;
    str_auto after = NULL;
    struct err e = { 0 };

    checkpoint_begin(&w->node);
    running(w);
    written(w);
    unlink(path);
    device_node(&w->node)->checkpoint.hash = 1;
    checkpoint_changed(&w->node);
    assert_true(checkpoint_busy(&w->node));
    provider_list(w, &provider_one, DEV, "dev-1 dev-9");
    while (checkpoint_busy(&w->node))
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(fs_read_at(AT_FDCWD, path, DP_CHECKPOINT_MAX, &before, NULL, &e), ERR_OK);
    assert_null(strstr(before, "dev-9"));
    written(w);
    assert_int_equal(fs_read_at(AT_FDCWD, path, DP_CHECKPOINT_MAX, &after, NULL, &e), ERR_OK);
    assert_non_null(strstr(after, "dev-9"));
}

static void a_lost_or_damaged_checkpoint_is_made_again_from_the_records(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };
    str_auto path = checkpoint_path(w);

    log_init((enum log_level)(LOG_LVL_ERROR - 1), LOG_FMT_TEXT);
    checkpoint_begin(&w->node);
    running(w);
    written(w);
    for (int lost = 0; lost < 2; lost++) {
        str_auto text = NULL;
        if (lost != 0)
            assert_int_equal(unlink(path), 0);
        else
            assert_int_equal(fs_replace_at(AT_FDCWD, path, "{\"Data\":", 8, 0600, false, &e), ERR_OK);
        restarted(w);
        free(take_ptr(&device_node(&w->node)->checkpoint.path));
        device_node(&w->node)->checkpoint.hash = 0;
        checkpoint_begin(&w->node);
        written(w);
        assert_int_equal(fs_read_at(AT_FDCWD, path, DP_CHECKPOINT_MAX, &text, NULL, &e), ERR_OK);
        assert_non_null(strstr(text, UID));
        assert_string_equal(dp_holdings_owner(devices_holdings(&w->node), DEV, "dev-1"), UID);
    }
}

static void a_pod_of_kubelet_keeps_what_kubelet_gave_it(void **state)
{
    struct world *w = *state;
    str_auto path = checkpoint_path(w);
    str_auto text = NULL;
    struct err e = { 0 };
    struct pod *p;

    checkpoint_begin(&w->node);
    running(w);
    written(w);
    assert_int_equal(fs_read_at(AT_FDCWD, path, DP_CHECKPOINT_MAX, &text, NULL, &e), ERR_OK);
    pods_each (&w->node, old)
        pods_free(old);
    free(take_ptr(&device_node(&w->node)->checkpoint.path));
    w->node.sources_ready = false;
    provider_goes(w, &provider_one, DEV);
    checkpoint_begin(&w->node); /* no record, only the file; and the plugin has not registered yet */
    assert_string_equal(dp_holdings_owner(devices_holdings(&w->node), DEV, "dev-1"), UID);
    p = world_add(w, MANIFEST);
    w->node.sources_ready = true;
    devices_sources_ready(&w->node);
    p->record_dirty = true;
    pod_wake(p, "test");
    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
    assert_int_equal(provider.n_allocate, 1);
}

static void entries_of_pods_that_do_not_exist_are_released(void **state)
{
    struct world *w = *state;

    checkpoint_begin(&w->node);
    running(w);
    written(w);
    pods_each (&w->node, old)
        pods_free(old);
    free(take_ptr(&device_node(&w->node)->checkpoint.path));
    w->node.sources_ready = false;
    checkpoint_begin(&w->node);
    assert_non_null(dp_holdings_next(devices_holdings(&w->node), NULL));
    w->node.sources_ready = true;
    devices_sources_ready(&w->node);
    assert_null(dp_holdings_next(devices_holdings(&w->node), NULL));
    written(w);
}

static void the_end_of_the_agent_writes_what_was_due(void **state)
{
    struct world *w = *state;
    str_auto path = checkpoint_path(w);
    str_auto text = NULL;
    struct err e = { 0 };

    checkpoint_begin(&w->node);
    running(w);
    written(w);
    provider_list(w, &provider_one, DEV, "dev-1@1 later");
    w->node.closing = true;
    checkpoint_cancel(&w->node);
    while (checkpoint_busy(&w->node))
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(fs_read_at(AT_FDCWD, path, DP_CHECKPOINT_MAX, &text, NULL, &e), ERR_OK);
    assert_non_null(strstr(text, "later"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROVIDER_TEST(a_pod_keeps_its_devices_over_a_restart_of_the_agent),
        PROVIDER_TEST(its_container_starts_again_with_the_stored_answer_although_the_plugin_is_away),
        PROVIDER_TEST(a_reservation_without_an_answer_is_made_anew),
        PROVIDER_TEST(entries_that_cannot_be_are_dropped),
        PROVIDER_TEST(an_ended_pod_shows_what_it_had_after_a_restart_too),
        PROVIDER_TEST(a_pod_that_was_rejected_for_another_reason_is_judged_again_after_a_restart),
        PROVIDER_TEST(no_container_starts_before_the_checkpoint_has_its_devices),
        PROVIDER_TEST(a_folder_that_cannot_be_made_at_the_start_is_used_when_it_is_there),
        PROVIDER_TEST(an_unfinished_checkpoint_of_an_earlier_agent_is_removed),
        PROVIDER_TEST(a_text_that_is_the_same_is_written_again_if_the_file_was_removed),
        PROVIDER_TEST(a_list_that_comes_during_a_write_does_not_follow_at_once),
        PROVIDER_TEST(a_lost_or_damaged_checkpoint_is_made_again_from_the_records),
        PROVIDER_TEST(a_pod_of_kubelet_keeps_what_kubelet_gave_it),
        PROVIDER_TEST(entries_of_pods_that_do_not_exist_are_released),
        PROVIDER_TEST(the_end_of_the_agent_writes_what_was_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
