/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/manifest/decode.h"
#include "agent/claim/bind.h"
#include "base/buf.h"
#include "tests/unit/agent_api/helper.h"

#define VOLUME_MAX 4

struct world {
    struct api_generic *objects[VOLUME_MAX], *claim;
    json_t *json[VOLUME_MAX];
    struct claim_volume v[VOLUME_MAX];
    size_t n;
    struct claim_wish wish;
};

static struct api_generic *make(enum api_kind kind, const char *kind_name, const char *meta, const char *spec,
                                json_t **ret_json)
{
    str_auto text =
        str_printf("{\"apiVersion\": \"v1\", \"kind\": \"%s\", \"metadata\": {%s}, \"spec\": {%s}}",
                   kind_name, meta, spec);
    json_t *o = json_loads(text, 0, NULL);
    struct api_generic *made = NULL;
    struct err e = { 0 };

    assert_non_null(o);
    if (api_make_generic(kind, o, &made, &e) != ERR_OK)
        fail_msg("%s", e.text);
    if (ret_json != NULL)
        *ret_json = o;
    else
        json_decref(o);
    return made;
}

static void add(struct world *w, const char *meta, const char *spec)
{
    struct err e = { 0 };

    w->objects[w->n] = make(API_KIND_PERSISTENT_VOLUME, "PersistentVolume", meta, spec, &w->json[w->n]);
    if (claim_volume_read(w->objects[w->n], w->json[w->n], &w->v[w->n], &e) != ERR_OK)
        fail_msg("%s", e.text);
    w->n++;
}

static void want(struct world *w, const char *more)
{
    str_auto spec = str_printf("\"resources\": {\"requests\": {\"storage\": \"1Gi\"}}, %s", more);

    api_generic_unref(w->claim);
    w->claim = make(API_KIND_CLAIM, "PersistentVolumeClaim", "\"name\": \"data\"", spec, NULL);
    w->wish = (struct claim_wish){ .namespace_ = "default",
                                   .name = "data",
                                   .claim = w->claim->claim,
                                   .selector = w->claim->claim->selector };
}

static const char *best(const struct world *w)
{
    const struct claim_volume *v = claim_best(&w->wish, w->v, w->n);

    return v != NULL ? v->name : "none";
}

static void done(struct world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        api_generic_unref(w->objects[i]);
        json_decref(w->json[i]);
    }
    api_generic_unref(w->claim);
}

#define SPEC(size, more)                                                                                     \
    "\"capacity\": {\"storage\": \"" size "\"}, \"accessModes\": [\"ReadWriteOnce\"], "                      \
    "\"hostPath\": {\"path\": \"/d\"}" more
#define RWO "\"accessModes\": [\"ReadWriteOnce\"]"

static void the_smallest_volume_that_fits_is_bound(void **state)
{
    struct world w = { .n = 0 };

    (void)state;
    add(&w, "\"name\": \"large\"", SPEC("9Gi", ""));
    add(&w, "\"name\": \"small\"", SPEC("1Mi", ""));
    add(&w, "\"name\": \"right\", \"labels\": {\"disk\": \"ssd\"}", SPEC("2Gi", ""));
    want(&w, RWO);
    assert_string_equal(best(&w), "right");
    want(&w, "\"accessModes\": [\"ReadWriteMany\"]");
    assert_string_equal(best(&w), "none");
    want(&w, RWO ", \"volumeName\": \"large\"");
    assert_string_equal(best(&w), "large");
    want(&w, RWO ", \"volumeName\": \"small\"");
    assert_string_equal(best(&w), "none");
    want(&w, RWO ", \"storageClassName\": \"fast\"");
    assert_string_equal(best(&w), "none");
    assert_true(claim_may_be_made(&w.wish));
    want(&w, RWO ", \"storageClassName\": \"\", \"selector\": {\"matchLabels\": {\"disk\": \"hdd\"}}");
    assert_string_equal(best(&w), "none");
    assert_false(claim_may_be_made(&w.wish));
    w.v[2].bound = true;
    want(&w, RWO);
    assert_string_equal(best(&w), "large");
    done(&w);
}

static void a_volume_for_one_claim_goes_to_no_other(void **state)
{
    struct world w = { .n = 0 };

    (void)state;
    add(&w, "\"name\": \"other\"",
        SPEC("1Gi", ", \"claimRef\": {\"name\": \"data\", \"namespace\": \"elsewhere\"}"));
    want(&w, RWO);
    assert_string_equal(best(&w), "none");
    add(&w, "\"name\": \"free\"", SPEC("1Gi", ""));
    add(&w, "\"name\": \"own\"",
        SPEC("5Gi", ", \"claimRef\": {\"name\": \"data\", \"namespace\": \"default\"}"));
    assert_string_equal(best(&w), "own");
    done(&w);
}

static void a_volume_of_no_path_is_named(void **state)
{
    json_t *json;
    struct api_generic *g = make(API_KIND_PERSISTENT_VOLUME, "PersistentVolume", "\"name\": \"nfs\"",
                                 "\"capacity\": {\"storage\": \"1Gi\"}, \"nfs\": {\"path\": \"/x\"}", &json);
    struct claim_volume v;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(claim_volume_read(g, json, &v, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "PersistentVolume nfs has no hostPath or local with an absolute path");
    api_generic_unref(g);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_volume_that_fits_is_bound),
        cmocka_unit_test(a_volume_for_one_claim_goes_to_no_other),
        cmocka_unit_test(a_volume_of_no_path_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
