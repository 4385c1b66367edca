/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/manifest/decode.h"
#include "agent/claim/bind.h"
#include "base/buf.h"
#include "tests/unit/agent_api/helper.h"

#define VOLUME_MAX 4

struct world {
    struct api_generic *objects[VOLUME_MAX], *claim;
    struct claim_volume v[VOLUME_MAX];
    size_t n;
    struct claim_wish wish;
};

static struct api_generic *make(enum api_kind kind, const char *kind_name, const char *meta, const char *spec)
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
    json_decref(o);
    return made;
}

static void add(struct world *w, const char *meta, const char *spec)
{
    w->objects[w->n] = make(API_KIND_PERSISTENT_VOLUME, "PersistentVolume", meta, spec);
    w->v[w->n] = (struct claim_volume){ .object = w->objects[w->n] };
    w->n++;
}

static void want(struct world *w, const char *more)
{
    str_auto spec = str_printf("\"resources\": {\"requests\": {\"storage\": \"1Gi\"}}, %s", more);

    api_generic_unref(w->claim);
    w->claim = make(API_KIND_CLAIM, "PersistentVolumeClaim", "\"name\": \"data\"", spec);
    w->wish =
        (struct claim_wish){ .namespace_ = "default", .name = "data", .uid = "u1", .claim = w->claim->claim };
}

static const char *best(const struct world *w)
{
    const struct claim_volume *v = claim_best(&w->wish, w->v, w->n);

    return v != NULL ? v->object->meta.name : "none";
}

static void done(struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        api_generic_unref(w->objects[i]);
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

static void few_access_modes_come_before_a_small_size(void **state)
{
    struct world w = { .n = 0 };

    (void)state;
    add(&w, "\"name\": \"shared\"",
        "\"capacity\": {\"storage\": \"1Gi\"}, \"accessModes\": [\"ReadWriteOnce\", \"ReadWriteMany\"], "
        "\"nfs\": {\"server\": \"s\", \"path\": \"/x\"}");
    add(&w, "\"name\": \"own\"", SPEC("5Gi", ""));
    want(&w, RWO);
    assert_string_equal(best(&w), "own");
    want(&w, "\"accessModes\": [\"ReadWriteMany\"]");
    assert_string_equal(best(&w), "shared");
    done(&w);
}

static void a_uid_in_the_reference_is_one_claims(void **state)
{
    struct world w = { .n = 0 };

    (void)state;
    add(&w, "\"name\": \"old\"", SPEC("1Gi", ", \"claimRef\": {\"name\": \"data\", \"uid\": \"u0\"}"));
    want(&w, RWO);
    assert_string_equal(best(&w), "none");
    w.wish.uid = "u0";
    assert_string_equal(best(&w), "old");
    done(&w);
}

static void a_volume_and_a_claim_that_name_each_other_are_bound_as_they_are(void **state)
{
    struct world w = { .n = 0 };

    (void)state;
    add(&w, "\"name\": \"small\"",
        SPEC("1Mi", ", \"storageClassName\": \"x\", \"claimRef\": {\"name\": \"data\"}"));
    want(&w, RWO);
    assert_string_equal(best(&w), "none");
    want(&w, RWO ", \"volumeName\": \"small\"");
    assert_string_equal(best(&w), "small");
    done(&w);
}

static void modes_nodes_and_selectors_count(void **state)
{
    struct world w = { .n = 0 };
    struct err e = { 0 };

    (void)state;
    add(&w, "\"name\": \"block\"", SPEC("1Gi", ", \"volumeMode\": \"Block\""));
    add(&w, "\"name\": \"far\"", SPEC("1Gi", ""));
    w.v[1].foreign = true;
    want(&w, RWO);
    assert_string_equal(best(&w), "none");
    want(&w, RWO ", \"volumeMode\": \"Block\"");
    assert_string_equal(best(&w), "block");
    assert_false(claim_may_be_made(&w.wish));
    w.v[0].going = true;
    assert_int_equal(claim_fits(&w.wish, &w.v[0], &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "block: it is being deleted");
    want(&w, RWO ", \"volumeName\": \"far\", \"selector\": {\"matchLabels\": {\"a\": \"b\"}}");
    assert_string_equal(best(&w), "far");
    done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_volume_that_fits_is_bound),
        cmocka_unit_test(a_volume_for_one_claim_goes_to_no_other),
        cmocka_unit_test(few_access_modes_come_before_a_small_size),
        cmocka_unit_test(a_uid_in_the_reference_is_one_claims),
        cmocka_unit_test(a_volume_and_a_claim_that_name_each_other_are_bound_as_they_are),
        cmocka_unit_test(modes_nodes_and_selectors_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
