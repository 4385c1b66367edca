/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/container/internal.h"
#include "agent/pod/node/record_load.h"
#include "agent/pod/record/record.h"
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/container/container.h"
#include "agent/pod/container/env_age.h"
#include "base/codec/json.h"

#define SPEC                                                                                                 \
    "containers: [{name: c, image: i, envFrom: [{configMapRef: {name: all}}], env: ["                        \
    "{name: A, valueFrom: {secretKeyRef: {name: login, key: word}}}, {name: B, value: plain}]}]"

static struct pod *make(struct world *w)
{
    char dir[100];

    snprintf(dir, sizeof(dir), "%s/volumes", w->dir); /* the node's tmpfs */
    assert_true(mkdir(dir, 0700) == 0 || errno == EEXIST);
    world_add(w, "{apiVersion: v1, kind: ConfigMap, metadata: {name: all}, data: {a: one, b: two}}");
    world_add(
        w, "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {word: swordfish, more: x}}");
    return world_pod(w, "p", SPEC);
}

/* As if its container had been created now and ran. */
static struct ctr *runs(struct pod *p)
{
    struct ctr *c = p->ctrs[0];

    snprintf(c->cur.id, sizeof(c->cur.id), "%064d", 1);
    json_decref(own_of(c)->env_sources);
    own_of(c)->env_sources = env_age_sources(p, c->spec);
    c->state = CTR_RUNNING;
    return c;
}

static const char *look(struct pod *p)
{
    containers_of(p)->env_look = true;
    env_age_step(p);
    return own_of(p->ctrs[0])->env_old;
}

static void a_change_of_what_is_used_counts_and_nothing_else(void **state)
{
    struct world *w = *state;
    struct pod *p = make(w);
    struct ctr *c = runs(p);

    assert_null(look(p));
    world_add(
        w, "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {word: swordfish, more: y}}");
    assert_null(look(p));
    world_add(
        w,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: all, labels: {l: m}}, data: {b: two, a: one}}");
    assert_null(look(p));
    world_add(w,
              "{apiVersion: v1, kind: ConfigMap, metadata: {name: all}, data: {a: one, b: two, c: three}}");
    assert_string_equal(look(p), "ConfigMap \"all\"");
    world_add(w, "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {word: marlin}}");
    assert_non_null(strstr(look(p), "Secret \"login\""));
    assert_non_null(strstr(look(p), "ConfigMap \"all\""));
    world_add(w, "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {word: swordfish}}");
    world_add(w, "{apiVersion: v1, kind: ConfigMap, metadata: {name: all}, data: {a: one, b: two}}");
    assert_null(look(p)); /* back to what it has */
    assert_null(own_of(c)->env_now);
}

static void values_that_change_their_keys_are_a_change(void **state)
{
    struct world *w = *state;
    struct pod *p = make(w);

    runs(p);
    world_add(w, "{apiVersion: v1, kind: ConfigMap, metadata: {name: all}, data: {a: two, b: one}}");
    assert_string_equal(look(p), "ConfigMap \"all\"");
}

static void a_removed_object_changes_nothing(void **state)
{
    struct world *w = *state;
    struct pod *p = make(w);

    runs(p);
    src_store_remove(w->node.o.store, API_FROM_FOLDER, API_KIND_SECRET, "default", "login");
    assert_null(look(p));
    world_add(w, "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {word: swordfish}}");
    assert_null(look(p));
    src_store_remove(w->node.o.store, API_FROM_FOLDER, API_KIND_SECRET, "default", "login");
    assert_null(look(p));
    world_add(w, "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {word: marlin}}");
    assert_string_equal(look(p), "Secret \"login\"");
}

static void an_object_that_appears_later_is_a_change(void **state)
{
    struct world *w = *state;
    struct pod *p = make(w);

    src_store_remove(w->node.o.store, API_FROM_FOLDER, API_KIND_CONFIG_MAP, "default", "all");
    runs(p);
    assert_null(look(p));
    world_add(w, "{apiVersion: v1, kind: ConfigMap, metadata: {name: all}, data: {a: one}}");
    assert_string_equal(look(p), "ConfigMap \"all\"");
}

static void the_condition_names_container_and_sources(void **state)
{
    struct world *w = *state;
    struct pod *p = make(w);

    runs(p);
    look(p);
    assert_null(env_age_condition(p));
    world_add(w, "{apiVersion: v1, kind: ConfigMap, metadata: {name: all}, data: {a: new}}");
    look(p);
    json_auto_t *o = env_age_condition(p);
    assert_string_equal(json_str(o, "type"), "coracle.dev/EnvironmentOutdated");
    assert_string_equal(json_str(o, "message"),
                        "container \"c\" runs with an environment that is older than ConfigMap \"all\"");
    p->ctrs[0]->state = CTR_NONE;
    assert_null(env_age_condition(p));
}

static void the_record_tells_a_restarted_agent_and_no_secret(void **state)
{
    struct world *w = *state;
    struct pod *p = make(w);
    char path[300];
    struct err e = { 0 };
    str_auto text = NULL;

    runs(p);
    p->admitted = true;
    snprintf(path, sizeof(path), "%s/pods", w->dir);
    mkdir(path, 0700);
    assert_int_equal(record_save(p, &(bool){ false }, &e), ERR_OK);
    snprintf(path, sizeof(path), "%s/pods/%s.json", w->dir, p->uid);
    assert_int_equal(fs_read_at(AT_FDCWD, path, 1 << 20, &text, NULL, &e), ERR_OK);
    assert_non_null(strstr(text, "\"Secret/login\":\""));
    assert_null(strstr(text, "swordfish"));
    world_forget(w);
    container_node(&w->node)->env_key_known = false; /* another process */
    memset(container_node(&w->node)->env_key, 0, sizeof(container_node(&w->node)->env_key));
    assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
    p = pods_find(&w->node, "default", "p");
    assert_non_null(p);
    assert_null(look(p));
    world_add(w, "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {word: marlin}}");
    assert_string_equal(look(p), "Secret \"login\"");
}

static void without_its_key_nothing_is_said(void **state)
{
    struct world *w = *state;
    struct pod *p = make(w);
    char path[200];

    runs(p);
    snprintf(path, sizeof(path), "%s/volumes/.environment-key", w->dir);
    assert_int_equal(unlink(path), 0);
    container_node(&w->node)->env_key_known = false;
    world_add(w, "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {word: marlin}}");
    assert_null(look(p));
}

static void only_strings_of_a_hashs_length_are_read_back(void **state)
{
    static const struct {
        const char *text;
        bool sane;
    } all[] = { { "{\"ConfigMap/a\": \"0123456789abcdef\", \"Secret/b\": \"-\"}", true },
                { "{}", true },
                { "[]", false },
                { "{\"a\": 1}", false },
                { "{\"a\": \"0123456789abcdef0\"}", false } };

    (void)state;
    assert_false(env_age_is_sane(NULL));
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        json_auto_t *o = json_loads(all[i].text, 0, NULL);
        assert_int_equal(env_age_is_sane(o), all[i].sane);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_change_of_what_is_used_counts_and_nothing_else),
        WORLD_TEST(values_that_change_their_keys_are_a_change),
        WORLD_TEST(a_removed_object_changes_nothing),
        WORLD_TEST(an_object_that_appears_later_is_a_change),
        WORLD_TEST(the_condition_names_container_and_sources),
        WORLD_TEST(the_record_tells_a_restarted_agent_and_no_secret),
        WORLD_TEST(without_its_key_nothing_is_said),
        WORLD_TEST(only_strings_of_a_hashs_length_are_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
