/* SPDX-License-Identifier: Apache-2.0 */
/* Payload volumes with many files are written on the pool, one set after another; small ones at once. */
#include "agent/pod/volume/internal.h"
#include "agent/pod/volume/volumes.h"
#include "tests/unit/agent_pod/world.h"
#include "volumes/internal.h"

#include <unistd.h>

#define KEYS 300

static void put_map(struct world *w, const char *name, const char *value, size_t n)
{
    buf_auto text = BUF_INIT(64 * 1024);

    buf_addf(&text, "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {", name);
    for (size_t i = 0; i < n; i++)
        buf_addf(&text, "%sk%zu: %s", i > 0 ? ", " : "", i, value);
    buf_adds(&text, "}}");
    world_add(w, text.p);
}

static struct pod *with_map(struct world *w, const char *pod, const char *map)
{
    str_auto spec =
        str_printf("hostIPC: true, volumes: [{name: v, configMap: {name: %s}}], containers: [{name: c, "
                   "image: x, volumeMounts: [{name: v, mountPath: /v}]}]",
                   map);
    struct pod *p = world_pod(w, pod, spec);

    p->state = POD_STARTING;
    return p;
}

/* The node's tmpfs is a plain folder: nothing here needs the mount. */
static int setup(void **state)
{
    struct vol_node *n;
    struct world *w;

    if (world_setup(state) != 0)
        return -1;
    w = *state;
    n = calloc(1, sizeof(*n));
    n->tmpfs = str_printf("%s/volumes", w->dir);
    n->pods = str_printf("%s/pods", w->dir);
    if (mkdir(n->tmpfs, 0755) != 0)
        return -1;
    n->tmpfs_fd = open(n->tmpfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    n->pods_fd = -1;
    w->node.o.volumes = n;
    return n->tmpfs_fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *w = *state;
    struct vol_node *n = w->node.o.volumes;

    close(n->tmpfs_fd);
    free(n->tmpfs);
    free(n->pods);
    free(n);
    return world_teardown(state);
}

static bool shows(struct pod *p, const char *value)
{
    str_auto path = str_printf("%s/%s/v/k0", p->node->o.volumes->tmpfs, p->uid);
    str_auto text = NULL;
    struct err e = { 0 };

    return !presence_is_absent(fs_read_if_there(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, &e)) &&
           text != NULL && strcmp(text, value) == 0;
}

static void until_idle(struct world *w, struct pod *p)
{
    while (payloads_working(p))
        uv_run(&w->loop, UV_RUN_ONCE);
}

static void a_few_files_are_written_at_once(void **state)
{
    struct world *w = *state;
    struct pod *p;

    put_map(w, "cm", "one", 3);
    p = with_map(w, "a", "cm");
    volumes_step(p);
    assert_true(volumes_ready(p));
    assert_false(volumes_working(p));
    assert_true(shows(p, "one"));
}

static void many_files_are_written_on_the_pool(void **state)
{
    struct world *w = *state;
    struct pod *p;

    put_map(w, "cm", "one", KEYS);
    p = with_map(w, "a", "cm");
    volumes_step(p);
    assert_int_equal(volumes_of(p)->vols, VOLS_SETTING_UP);
    assert_true(volumes_working(p));
    until_idle(w, p);
    assert_true(volumes_ready(p));
    assert_true(shows(p, "one"));
}

static void what_changes_meanwhile_is_written_next(void **state)
{
    struct world *w = *state;
    struct pod *p;

    put_map(w, "cm", "one", KEYS);
    p = with_map(w, "a", "cm");
    volumes_step(p);
    put_map(w, "cm", "two", KEYS); /* what is being written keeps the old object alive */
    volumes_config_changed(p, API_CONFIG_MAP, "cm");
    assert_false(payloads_follow(p));
    until_idle(w, p);
    assert_true(volumes_ready(p));
    p->state = POD_STARTING;
    while (!shows(p, "two")) {
        payloads_follow(p);
        until_idle(w, p);
    }
    assert_false(volumes_of(p)->payload_stale);
}

static void a_third_set_waits_for_a_place(void **state)
{
    struct world *w = *state;
    struct pod *pods[3];

    put_map(w, "cm", "one", KEYS);
    for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
        char name[2] = { (char)('a' + i), '\0' };

        pods[i] = with_map(w, name, "cm");
        volumes_step(pods[i]);
    }
    assert_true(payloads_working(pods[0]) && payloads_working(pods[1]));
    assert_false(payloads_working(pods[2]));
    assert_true(payloads_wait(pods[2]));
    until_idle(w, pods[0]);
    until_idle(w, pods[1]);
    assert_false(payloads_wait(pods[2]));
    pods[2]->state = POD_STARTING;
    if (!volumes_ready(pods[2]) && !payloads_working(pods[2]))
        volumes_step(pods[2]);
    until_idle(w, pods[2]);
    assert_true(volumes_ready(pods[2]));
}

static void what_is_cancelled_ends_by_itself_and_does_not_count(void **state)
{
    struct world *w = *state;
    struct pod *p;

    put_map(w, "cm", "one", KEYS);
    p = with_map(w, "a", "cm");
    volumes_step(p);
    volume_room.pod.cancel(p);
    assert_true(volumes_working(p));
    w->node.closing = true; /* otherwise it begins again */
    until_idle(w, p);
    assert_int_equal(volumes_of(p)->vols, VOLS_NONE);
    assert_int_equal(volume_node(&w->node)->writes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_few_files_are_written_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(many_files_are_written_on_the_pool, setup, teardown),
        cmocka_unit_test_setup_teardown(what_changes_meanwhile_is_written_next, setup, teardown),
        cmocka_unit_test_setup_teardown(a_third_set_waits_for_a_place, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_cancelled_ends_by_itself_and_does_not_count, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
