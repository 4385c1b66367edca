/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of pods get their projects before something is written, and lose them when they are gone. */
#include "tests/unit/agent_pod/script_quota.h"

#include <unistd.h>

#define SPEC                                                                                                 \
    "containers: [{name: c, image: x, volumeMounts: [{name: e, mountPath: /e}, {name: m, mountPath: /m}]}, " \
    "{name: d, image: x}], volumes: [{name: e, emptyDir: {}}, {name: m, emptyDir: {medium: Memory}}, "       \
    "{name: unused, emptyDir: {}}]"

static struct pod *starting(struct world *w, const char *name)
{
    struct pod *p = world_pod(w, name, SPEC);

    p->state = POD_STARTING;
    return p;
}

static void set_up(struct world *w, const struct pod *p)
{
    const struct vol_empty_dir v = { .uid = p->uid, .name = "e", .fs_group = -1 };
    char path[1024];
    struct err e = { 0 };

    assert_int_equal(vol_empty_dir_setup(w->node.o.volumes, &v, path, sizeof(path), &e), ERR_OK);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void nothing_waits_without_quotas(void **state)
{
    struct world *w = *state;
    struct pod *p;

    quota.absent = true;
    project_begin(&w->node);
    assert_false(project_counts(&w->node));
    p = starting(w, "a");
    project_room.pod.step(p);
    assert_true(project_volumes_ready(p));
    assert_true(project_layer_ready(p->ctrs[0]));
    assert_string_equal(project_layer_id(p->ctrs[0]), "");
    assert_int_equal(quota.n_takes, 0);
    project_gone(&w->node, p->uid);
    project_swept(&w->node);
    assert_false(project_node(&w->node)->busy);
}

static void what_a_pod_needs_is_asked_for_at_once(void **state)
{
    struct world *w = *state;
    struct project_tree has;
    char path[1024];
    struct pod *p;

    project_begin(&w->node);
    assert_true(project_counts(&w->node));
    p = starting(w, "a");
    project_room.pod.step(p);
    assert_false(project_volumes_ready(p));
    assert_false(project_layer_ready(p->ctrs[0]));
    assert_true(project_working(p));
    assert_true(project_room.pod.busy(p));
    script_settle(w);
    assert_true(project_volumes_ready(p));
    assert_true(project_layer_ready(p->ctrs[1]));
    assert_int_equal(quota.n_takes, 1);
    assert_int_equal(script_trees(),
                     5); /* a volume on disk that is mounted, two layers, two folders of logs */
    for (size_t i = 0; i < quota.n; i++)
        assert_true(quota.v[i].path[0] == '\0' || quota.v[i].assigned);
    assert_int_equal(strlen(project_layer_id(p->ctrs[0])), 64);
    assert_true(project_layer_path(p, project_layer_id(p->ctrs[0]), path, sizeof(path)) && exists(path));
    assert_true(project_find(&w->node, path, &has) && has.id >= QUOTA_FIRST_ID);
    assert_true(project_log_path(p->ctrs[1], path, sizeof(path)) && exists(path));
    assert_true(project_room.pod.knows(p, project_layer_id(p->ctrs[1])));
    script_project("/e")->u.bytes = 77;
    set_up(w, p);
    struct quota_usage u;
    assert_true(project_usage(&w->node, script_project("/e")->path, &u) && u.bytes == 77);
}

static void the_next_run_has_a_layer_of_its_own(void **state)
{
    struct world *w = *state;
    char first[65];
    struct pod *p;
    struct ctr *c;

    project_begin(&w->node);
    p = starting(w, "a");
    c = p->ctrs[0];
    project_room.pod.step(p);
    script_settle(w);
    snprintf(first, sizeof(first), "%s", project_layer_id(c));
    c->state = CTR_CREATING;
    project_layer_used(c);
    assert_string_equal(project_layer_id(c), "");
    project_room.pod.step(p);
    assert_false(project_working(p)); /* while it runs, nothing is made for the next one */
    snprintf(c->cur.id, sizeof(c->cur.id), "%s", first);
    c->cur.ended = true;
    c->state = CTR_NONE;
    project_room.pod.step(p);
    script_settle(w);
    assert_true(project_layer_ready(c));
    assert_int_equal(strlen(project_layer_id(c)), 64);
    assert_string_not_equal(project_layer_id(c), first);
    assert_int_equal(script_trees(), 6); /* volume and logs have theirs already */
}

static void a_pod_that_starts_alone_does_not_wait_for_the_disk(void **state)
{
    struct world *w = *state;
    struct project_tree has;
    struct pod *p;

    project_begin(&w->node);
    script_settle(w); /* the stock is there */
    p = starting(w, "a");
    project_room.pod.step(p);
    assert_true(project_volumes_ready(p)); /* in the same turn of the loop */
    assert_true(project_layer_ready(p->ctrs[0]));
    assert_int_equal(strlen(project_layer_id(p->ctrs[0])), 64);
    str_auto log = str_printf("%s/logs/default_a_%s/c", w->dir, p->uid);
    assert_true(project_find(&w->node, log, &has));
    assert_true(script_project_of(has.id)->assigned);
    script_settle(w);
    assert_int_equal(quota.n_names, 1); /* written down afterwards */
    assert_int_equal(quota.n_takes, 0);
    assert_int_equal(script_trees(), 5);
}

static void a_crowd_empties_the_stock_and_then_waits(void **state)
{
    struct world *w = *state;
    unsigned ready = 0;

    project_begin(&w->node);
    script_settle(w);
    for (unsigned i = 0; i < 30; i++) {
        char name[16];
        struct pod *p;

        snprintf(name, sizeof(name), "p%u", i);
        p = starting(w, name);
        project_room.pod.step(p);
        ready += project_volumes_ready(p);
    }
    assert_in_range(ready, STOCK_MAX / 5, STOCK_MAX / 5);
    while (project_node(&w->node)->busy)
        script_settle(w);
    assert_int_equal(script_trees(), 150);
    for (size_t i = 0; i < quota.n; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(quota.v[i].id, quota.v[k].id);
    assert_in_range(project_node(&w->node)->stock[0].n, STOCK_LOW, STOCK_MAX);
}

static void pods_that_start_together_share_the_syncs(void **state)
{
    struct world *w = *state;

    project_begin(&w->node);
    project_room.pod.step(starting(w, "a"));
    project_room.pod.step(starting(w, "b"));
    project_room.pod.step(starting(w, "c"));
    project_room.pod.step(starting(w, "d"));
    script_settle(w);
    assert_int_equal(script_trees(), 20);
    assert_int_equal(quota.n_takes, 1);
}

static void a_full_disk_lets_pods_start_without(void **state)
{
    struct world *w = *state;
    struct pod *p;

    err_set(&quota.take_error, ERR_EXHAUSTED, "write projects.json: No space left on device");
    project_begin(&w->node);
    script_settle(w);
    p = starting(w, "a");
    project_room.pod.step(p);
    script_settle(w);
    assert_true(project_volumes_ready(p));
    assert_true(project_layer_ready(p->ctrs[0]));
    assert_string_equal(project_layer_id(p->ctrs[0]), "");
    assert_non_null(strstr(project_node(&w->node)->problem, "No space left"));
    project_layer_used(p->ctrs[0]); /* the next run tries again */
    quota.take_error = (struct err){ 0 };
    assert_false(project_layer_ready(p->ctrs[0]));
    script_settle(w);
    assert_int_equal(strlen(project_layer_id(p->ctrs[0])), 64);
    assert_string_equal(project_node(&w->node)->problem, "");
}

static void a_project_that_cannot_be_given_is_released(void **state)
{
    struct world *w = *state;
    struct pod *p;

    project_begin(&w->node);
    err_set(&quota.assign_error, ERR_EXHAUSTED, "set project: Operation not supported");
    p = starting(w, "a");
    project_room.pod.step(p);
    script_settle(w);
    assert_int_equal(script_trees(), 0);
    assert_string_equal(project_layer_id(p->ctrs[0]), "");
    assert_true(project_layer_ready(p->ctrs[0]));
}

static void a_folder_with_content_is_left_to_scans(void **state)
{
    struct world *w = *state;
    char path[1024], file[1100];
    struct err e = { 0 };
    struct pod *p;

    project_begin(&w->node);
    p = starting(w, "a");
    assert_true(project_log_path(p->ctrs[0], path, sizeof(path)));
    snprintf(file, sizeof(file), "%s/0.log", path);
    assert_int_equal(fs_mkdirs(file, 0755, &e), ERR_OK);
    project_room.pod.step(p);
    script_settle(w);
    assert_int_equal(script_trees(), 4);
    struct project_tree has;
    assert_false(project_find(&w->node, path, &has));
}

static void what_is_gone_loses_its_project_and_what_is_prepared_keeps_it(void **state)
{
    struct world *w = *state;
    char layer[1024], log[1024];
    struct err e = { 0 };
    struct pod *p;

    project_begin(&w->node);
    p = starting(w, "a");
    project_room.pod.step(p);
    script_settle(w);
    project_gone(&w->node, NULL);
    script_settle(w);
    assert_int_equal(script_trees(), 5); /* the volume has its temporary name */
    set_up(w, p);
    assert_true(project_log_path(p->ctrs[0], log, sizeof(log)));
    assert_true(project_layer_path(p, project_layer_id(p->ctrs[0]), layer, sizeof(layer)));
    assert_int_equal(fs_remove_tree(AT_FDCWD, log, &e), ERR_OK);
    assert_int_equal(fs_remove_tree(AT_FDCWD, layer, &e), ERR_OK);
    project_gone(&w->node, "another");
    assert_false(project_node(&w->node)->busy);
    project_gone(&w->node, p->uid);
    script_settle(w);
    assert_null(script_project(log));
    assert_null(script_project(layer));
    assert_non_null(script_project("/e"));
    struct project_tree has;
    assert_false(project_find(&w->node, log, &has));
}

static void a_layer_that_no_run_uses_goes_with_its_pod(void **state)
{
    struct world *w = *state;
    char path[1024];
    struct pod *p;

    project_begin(&w->node);
    p = starting(w, "a");
    project_room.pod.step(p);
    script_settle(w);
    assert_true(project_layer_path(p, project_layer_id(p->ctrs[0]), path, sizeof(path)));
    project_room.pod.end(p);
    script_settle(w);
    assert_false(exists(path));
    assert_null(script_project(path));
    assert_string_equal(project_layer_id(p->ctrs[0]), "");
}

static void a_pod_that_ends_while_it_is_served_leaves_no_layer(void **state)
{
    struct world *w = *state;
    struct pod *p;
    size_t layers = 0;

    project_begin(&w->node);
    p = starting(w, "a");
    project_room.pod.step(p);
    p->state = POD_TERMINATING;
    project_room.pod.end(p);
    assert_true(project_working(p)); /* its volumes are not removed before that is over */
    script_settle(w);
    while (project_node(&w->node)->busy)
        script_settle(w);
    assert_false(project_working(p));
    for (size_t i = 0; i < quota.n; i++)
        layers += strstr(quota.v[i].path, "/containers/") != NULL;
    assert_int_equal(layers, 0);
}

static void ids_in_use_are_looked_at_again(void **state)
{
    struct world *w = *state;

    project_begin(&w->node);
    quota.waiting = 1;
    project_swept(&w->node);
    script_settle(w);
    assert_int_equal(quota.n_sweeps, 1);
    assert_true(uv_is_active((uv_handle_t *)&project_node(&w->node)->again));
    quota.waiting = 0;
    uv_run(&w->loop, UV_RUN_DEFAULT); /* to the end: no timer stays */
    assert_int_equal(quota.n_sweeps, 2);
    assert_int_equal(w->node.sweeps, 0);
}

static void on_drained(void *arg)
{
    *(bool *)arg = true;
}

static void the_end_of_all_pods_waits_for_the_release(void **state)
{
    struct world *w = *state;
    bool drained = false;
    struct pod *p;

    project_begin(&w->node);
    p = starting(w, "a");
    project_room.pod.step(p);
    script_settle(w);
    w->node.draining = true;
    w->node.drained = on_drained;
    w->node.drained_arg = &drained;
    project_gone(&w->node, p->uid);
    w->node.n_pods = 0;
    node_check_idle(&w->node);
    assert_false(drained);
    script_settle(w);
    assert_true(drained);
    assert_int_equal(quota.n_unreserved, 1);
    w->node.n_pods = 1;
    assert_int_equal(w->node.sweeps, 0);
}

static void an_agent_takes_over_what_the_one_before_gave(void **state)
{
    struct world *w = *state;
    struct project_tree has;

    quota.v[0] = (struct script_project){ .path = "/x/e", .owner = "u", .id = QUOTA_FIRST_ID };
    quota.n = 1;
    project_begin(&w->node);
    assert_true(project_find(&w->node, "/x/e", &has));
    assert_string_equal(has.owner, "u");
    project_swept(&w->node); /* it does not exist */
    script_settle(w);
    assert_false(project_find(&w->node, "/x/e", &has));
}

static void a_quota_that_is_switched_off_is_used_no_more(void **state)
{
    struct world *w = *state;
    struct project_tree has;
    struct quota_usage u;
    struct pod *p;

    project_begin(&w->node);
    p = starting(w, "a");
    project_room.pod.step(p);
    script_settle(w);
    quota.off = true;
    str_auto path = strdup(script_project("/e")->path);
    assert_false(project_usage(&w->node, path, &u));
    assert_false(project_find(&w->node, path, &has));
    p = starting(w, "b");
    project_room.pod.step(p);
    assert_true(project_volumes_ready(p));
    assert_int_equal(quota.n_takes, 1);
    assert_false(project_counts(&w->node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUOTA_TEST(nothing_waits_without_quotas),
        QUOTA_TEST(what_a_pod_needs_is_asked_for_at_once),
        QUOTA_TEST(the_next_run_has_a_layer_of_its_own),
        QUOTA_TEST(a_pod_that_starts_alone_does_not_wait_for_the_disk),
        QUOTA_TEST(a_crowd_empties_the_stock_and_then_waits),
        QUOTA_TEST(pods_that_start_together_share_the_syncs),
        QUOTA_TEST(a_full_disk_lets_pods_start_without),
        QUOTA_TEST(a_project_that_cannot_be_given_is_released),
        QUOTA_TEST(a_folder_with_content_is_left_to_scans),
        QUOTA_TEST(what_is_gone_loses_its_project_and_what_is_prepared_keeps_it),
        QUOTA_TEST(a_layer_that_no_run_uses_goes_with_its_pod),
        QUOTA_TEST(a_pod_that_ends_while_it_is_served_leaves_no_layer),
        QUOTA_TEST(ids_in_use_are_looked_at_again),
        QUOTA_TEST(the_end_of_all_pods_waits_for_the_release),
        QUOTA_TEST(an_agent_takes_over_what_the_one_before_gave),
        QUOTA_TEST(a_quota_that_is_switched_off_is_used_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
