/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod can have the volume of its claim, and whether it is attached. Texts are those of recorded
 * sessions of kubelet. */
#include "tests/unit/base/helper.h"

#include "agent/cluster/claim_state.h"

#define CLAIM(meta, spec, phase)                                                                             \
    "{\"metadata\":{\"name\":\"data\",\"namespace\":\"default\",\"uid\":\"u1\"" meta "},\"spec\":{" spec     \
    "},\"status\":{\"phase\":\"" phase "\"}}"
#define OF_VOLUME "\"volumeName\":\"pv1\""
#define OWNED(uid) ",\"ownerReferences\":[{\"uid\":\"x\"},{\"uid\":\"" uid "\",\"controller\":true}]"

static json_t *json_of(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);

    if (v == NULL)
        fail_msg("test JSON: %s", text);
    return v;
}

/* `wanted`: the volume's name, or the error. */
static void volume_is(const char *claim, bool ephemeral, bool starts, const char *wanted)
{
    const struct claim_user user = { "default", "app", "p1", ephemeral, starts };
    json_t *object = json_of(claim);
    const char *name = NULL;
    struct err e = { 0 };

    if (claim_state_volume(object, &user, &name, &e) == ERR_OK)
        assert_string_equal(name, wanted);
    else
        assert_string_equal(e.text, wanted);
    json_decref(object);
}

static void a_claim_names_its_volume_when_it_is_bound(void **state)
{
    (void)state;
    volume_is(CLAIM("", OF_VOLUME, "Bound"), false, true, "pv1");
    volume_is(CLAIM("", OF_VOLUME, "Pending"), false, true, "PVC is not bound");
    volume_is(CLAIM("", OF_VOLUME, "Lost"), false, true, "PVC is not bound");
    volume_is(CLAIM("", "", "Bound"), false, true, "PVC has empty pvc.Spec.VolumeName");
    volume_is("{}", false, true, "PVC is not bound");
    volume_is("[]", true, true, "PVC is not bound");
}

static void a_claim_that_is_being_deleted_gets_no_new_pod(void **state)
{
    (void)state;
    volume_is(CLAIM(",\"deletionTimestamp\":\"x\"", OF_VOLUME, "Bound"), false, true, "PVC is being deleted");
    volume_is(CLAIM(",\"deletionTimestamp\":\"x\"", OF_VOLUME, "Bound"), false, false, "pv1");
}

static void the_claim_of_an_ephemeral_volume_is_the_pods_own(void **state)
{
    static const char not_own[] = "PVC default/data was not created for pod default/app (pod is not owner)";

    (void)state;
    volume_is(CLAIM(OWNED("p1"), OF_VOLUME, "Bound"), true, true, "pv1");
    volume_is(CLAIM(OWNED("p2"), OF_VOLUME, "Bound"), true, true, not_own);
    volume_is(CLAIM("", OF_VOLUME, "Bound"), true, true, not_own);
    volume_is(CLAIM(OWNED("p2"), OF_VOLUME, "Bound"), false, true, "pv1");
}

static void bound_is(const char *volume, const char *wanted)
{
    json_t *claim = json_of(CLAIM("", OF_VOLUME, "Bound")), *v = json_of(volume);
    struct err e = { 0 };

    if (claim_state_is_bound(claim, v, &e) != ERR_OK)
        assert_string_equal(e.text, wanted);
    else
        assert_null(wanted);
    json_decref(claim);
    json_decref(v);
}

static void the_volume_names_the_claim_too(void **state)
{
    (void)state;
    bound_is("{\"metadata\":{\"name\":\"pv1\"},\"spec\":{\"claimRef\":{\"uid\":\"u1\"}}}", NULL);
    bound_is("{\"metadata\":{\"name\":\"pv1\"},\"spec\":{\"claimRef\":{\"uid\":\"u2\"}}}",
             "found PV object pv1 but its pv.Spec.ClaimRef.UID u2 does not point to claim.UID u1");
    bound_is("{\"metadata\":{\"name\":\"pv1\"},\"spec\":{}}",
             "found PV object pv1 with nil pv.Spec.ClaimRef indicating it is not yet bound to the claim");
}

static void attachment_is(const char *status, enum err_code code, const char *wanted)
{
    const struct attachment_want want = { "csi-1", "vol-1" };
    json_t *object = json_object();
    const json_t *found = NULL;
    struct err e = { 0 };

    json_object_set_new(object, "status", json_of(status));
    assert_int_equal(attachment_state(object, &want, &found, &e), code);
    if (code != ERR_OK)
        assert_string_equal(e.text, wanted);
    else if (wanted != NULL)
        assert_string_equal(json_string_value(json_object_get(found, "lun")), wanted);
    else
        assert_null(found);
    json_decref(object);
}

static void an_attachment_says_what_the_driver_is_told(void **state)
{
    (void)state;
    attachment_is("{\"attached\":true,\"attachmentMetadata\":{\"devicePath\":\"/dev/vdx\",\"lun\":\"3\"}}",
                  ERR_OK, "3");
    attachment_is("{\"attached\":true}", ERR_OK, NULL);
    attachment_is("{\"attached\":false}", ERR_UNAVAILABLE,
                  "volume vol-1 is not attached for volume attachment csi-1");
    attachment_is("{\"attached\":false,\"attachError\":{\"message\":\"no such disk\"}}", ERR_PRECONDITION,
                  "no such disk");
    attachment_is("{\"attached\":false,\"attachError\":{\"message\":\"no room\",\"errorCode\":8}}",
                  ERR_EXHAUSTED, "Node has reached its volume attachment limit: no room");
    attachment_is("[]", ERR_UNAVAILABLE, "volume vol-1 is not attached for volume attachment csi-1");
}

static void a_volume_is_found_in_both_lists_of_the_node(void **state)
{
    json_t *list = json_of("[\"kubernetes.io/csi/d^v1\",{\"name\":\"kubernetes.io/csi/d^v2\",\"devicePath\":"
                           "\"\"},7,{}]");
    char name[64];

    (void)state;
    attachable_name("d", "v1", name, sizeof(name));
    assert_true(attachable_is_in(list, name));
    attachable_name("d", "v2", name, sizeof(name));
    assert_true(attachable_is_in(list, name));
    attachable_name("d", "v3", name, sizeof(name));
    assert_false(attachable_is_in(list, name));
    assert_false(attachable_is_in(NULL, name));
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_names_its_volume_when_it_is_bound),
        cmocka_unit_test(a_claim_that_is_being_deleted_gets_no_new_pod),
        cmocka_unit_test(the_claim_of_an_ephemeral_volume_is_the_pods_own),
        cmocka_unit_test(the_volume_names_the_claim_too),
        cmocka_unit_test(an_attachment_says_what_the_driver_is_told),
        cmocka_unit_test(a_volume_is_found_in_both_lists_of_the_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
