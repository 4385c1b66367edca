/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a ConfigMap, Secret, downward API or projected volume holds. */
#include "agent/pod/core/facts.h"
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/volume/payload.h"

static const char map[] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: one, b: two}}";

struct built {
    struct arena arena;
    struct payload p;
    const struct api_volume *volume;
    char *overlaps;
    struct err e;
};

static enum err_code build(struct world *w, struct built *b, const char *volume)
{
    str_auto spec = str_printf(
        "volumes: [{name: v, %s}], containers: [{name: c, image: x, resources: {limits: {cpu: 1500m}},"
        "volumeMounts: [{name: v, mountPath: /v}]}]",
        volume);
    struct pod *p;

    world_forget(w);
    *b = (struct built){ 0 };
    p = world_pod(w, "p", spec);
    b->volume = &p->api->spec.volumes[0];
    if (payload_build(p, b->volume, &b->arena, &b->p, &b->e) != ERR_OK)
        return b->e.code;
    return payload_find_overlaps(b->volume, &b->p, &b->arena, &b->overlaps, &b->e);
}

static void built_done(struct built *b)
{
    payload_done(&b->p);
    arena_done(&b->arena);
}

static void is_file(const struct built *b, size_t i, const char *path, const char *text, mode_t mode)
{
    assert_true(i < b->p.n_files);
    assert_string_equal(b->p.files[i].path, path);
    assert_int_equal(b->p.files[i].size, strlen(text));
    assert_memory_equal(b->p.files[i].data, text, strlen(text));
    assert_int_equal(b->p.files[i].mode, mode);
}

static void without_items_every_key_is_a_file(void **state)
{
    struct built b;

    world_add(*state, map);
    assert_int_equal(build(*state, &b, "configMap: {name: cm, defaultMode: 0400}"), ERR_OK);
    assert_int_equal(b.p.n_files, 2);
    is_file(&b, 0, "a", "one", 0400);
    is_file(&b, 1, "b", "two", 0400);
    built_done(&b);
}

static void items_choose_path_and_mode(void **state)
{
    struct built b;

    world_add(*state, map);
    assert_int_equal(build(*state, &b, "configMap: {name: cm, items: [{key: b, path: d/e, mode: 0600}]}"),
                     ERR_OK);
    assert_int_equal(b.p.n_files, 1);
    is_file(&b, 0, "d/e", "two", 0600);
    built_done(&b);
}

static void what_is_missing_has_kubelets_words(void **state)
{
    struct built b;

    world_add(*state, map);
    assert_int_equal(build(*state, &b, "secret: {secretName: nope}"), ERR_PRECONDITION);
    assert_string_equal(b.e.text, "secret \"nope\" not found");
    built_done(&b);
    assert_int_equal(build(*state, &b, "configMap: {name: cm, items: [{key: nope, path: n}]}"),
                     ERR_PRECONDITION);
    assert_string_equal(b.e.text, "configmap references non-existent config key: nope");
    built_done(&b);
    assert_int_equal(build(*state, &b,
                           "projected: {sources: [{configMap: {name: no-such}}, {secret: {name: nope}},"
                           "{configMap: {name: cm}}]}"),
                     ERR_PRECONDITION);
    assert_string_equal(b.e.text, "[configmap \"no-such\" not found, secret \"nope\" not found]");
    built_done(&b);
}

static void optional_sources_may_be_missing(void **state)
{
    struct built b;

    world_add(*state, map);
    assert_int_equal(
        build(*state, &b,
              "projected: {sources: [{secret: {name: nope, optional: true}},"
              "{configMap: {name: cm, optional: true, items: [{key: nope, path: n}, {key: a, path: a}]}},"
              "{downwardAPI: {items: [{path: cpu, resourceFieldRef: {containerName: c, resource: limits.cpu,"
              "divisor: 1m}}]}}]}"),
        ERR_OK);
    assert_int_equal(b.p.n_files, 2);
    is_file(&b, 0, "a", "one", 0644);
    is_file(&b, 1, "cpu", "1500", 0644);
    built_done(&b);
}

#define FILES 64 /* two are read at a time: it takes some turns of the loop */

static void on_file(const struct src_file *file, void *arg)
{
    (void)file, (void)arg;
}

static void on_first_set(void *arg)
{
    (void)arg;
}

static struct src_folder *folder_of_many(struct world *w)
{
    str_auto dir = str_printf("%s/manifests", w->dir);
    struct src_folder *f = NULL;
    struct err e = { 0 };

    assert_int_equal(fs_mkdirs(dir, 0755, &e), ERR_OK);
    for (int i = 0; i < FILES; i++) {
        str_auto path = str_printf("%s/%d.yaml", dir, i);
        str_auto text = str_printf("{apiVersion: v1, kind: ConfigMap, metadata: {name: m%d}}", i);
        assert_int_equal(fs_replace_at(AT_FDCWD, path, text, strlen(text), 0644, false, &e), ERR_OK);
    }
    if (src_folder_open(&f, &w->loop, dir, w->node.o.store, on_file, on_first_set, w, NULL, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return f;
}

/* As on a machine that is slow: whoever begins without it would not have it later either. */
static void what_is_optional_is_not_missing_while_files_are_read(void **state)
{
    struct world *w = *state;
    struct src_folder *f = folder_of_many(w);
    struct pod *p = world_pod(w, "p", "containers: [{name: c, image: x}]");
    struct err e = { 0 };

    while (!src_folder_busy(f))
        uv_run(&w->loop, UV_RUN_ONCE);
    w->node.folder = f;
    p->seen_at.ns -= 4 * POD_NEW_NS;
    assert_int_equal(pod_may_lack(p, API_CONFIG_MAP, "late", &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "configmap \"late\" may still be in a file that is being read");
    assert_true(clock_boot_left_ns(pod_new_until(p)) > 0);
    p->seen_at.ns -= POD_NEW_MAX_NS; /* not for ever */
    assert_int_equal(pod_may_lack(p, API_CONFIG_MAP, "late", &e), ERR_OK);
    p->seen_at.ns += POD_NEW_MAX_NS;
    while (src_folder_busy(f))
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(pod_may_lack(p, API_CONFIG_MAP, "late", &e), ERR_OK);
    w->node.folder = NULL;
    src_folder_close(f);
    world_forget(w);
}

static void of_two_sources_the_later_one_wins_and_it_is_said(void **state)
{
    struct built b;

    world_add(*state, map);
    world_add(*state, "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {b: hidden, c: see}}");
    assert_int_equal(
        build(*state, &b, "projected: {sources: [{secret: {name: s}}, {configMap: {name: cm}}]}"), ERR_OK);
    assert_int_equal(b.p.n_files, 4); /* the writer keeps the later one of equal paths */
    is_file(&b, 0, "b", "hidden", 0644);
    is_file(&b, 3, "b", "two", 0644);
    assert_string_equal(b.overlaps,
                        "\"b\" of secret \"s\" (sources[0]) is hidden by configMap \"cm\" (sources[1])");
    built_done(&b);
    assert_int_equal(
        build(*state, &b, "configMap: {name: cm, items: [{key: a, path: x/y}, {key: b, path: x//./y}]}"),
        ERR_OK);
    assert_string_equal(b.overlaps, "\"x/y\" of configMap \"cm\" is hidden by a later item of it");
    built_done(&b);
    assert_int_equal(build(*state, &b, "configMap: {name: cm}"), ERR_OK);
    assert_null(b.overlaps);
    built_done(&b);
}

static void of_many_hidden_files_some_are_named_and_all_are_counted(void **state)
{
    struct built b;

    world_add(*state, "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: '', b: '', c: '', "
                      "d: '', e: '', f: '',"
                      "g: '', h: '', i: '', j: ''}}");
    assert_int_equal(
        build(*state, &b, "projected: {sources: [{configMap: {name: cm}}, {configMap: {name: cm}}]}"),
        ERR_OK);
    assert_non_null(strstr(b.overlaps, "\"h\" of configMap"));
    assert_null(strstr(b.overlaps, "\"i\" of configMap"));
    assert_non_null(strstr(b.overlaps, "; and 2 more"));
    built_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(without_items_every_key_is_a_file),
        WORLD_TEST(items_choose_path_and_mode),
        WORLD_TEST(what_is_missing_has_kubelets_words),
        WORLD_TEST(optional_sources_may_be_missing),
        WORLD_TEST(what_is_optional_is_not_missing_while_files_are_read),
        WORLD_TEST(of_two_sources_the_later_one_wins_and_it_is_said),
        WORLD_TEST(of_many_hidden_files_some_are_named_and_all_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
