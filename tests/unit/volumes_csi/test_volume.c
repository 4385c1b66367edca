/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/vol_data.h"
#include "volumes/csi/volume.h"

#include "base/scope.h"
#include "tests/unit/base/helper.h"

#include <stdlib.h>

static void names_are_hashes(void **state)
{
    char name[CSI_HASHED_SIZE];

    (void)state;
    /* sha256sum of "7e9b3d1c-data". */
    csi_inline_handle("7e9b3d1c-", "data", name);
    assert_string_equal(name, "csi-67c8c9d305f86666e5ef66a67c4b6c3781dc61c6b2db1af00269118366f8c76c");
    csi_attachment_name("vol-1", "d.example.test", "node1", name);
    assert_string_equal(name, "csi-c4204d4a6da12a12ea273268120a8e88f64d65ab46496892f0f522277b90811c");
}

static void drivers_have_names_of_a_csi_node(void **state)
{
    static const char *const good[] = { "a", "hostpath.csi.k8s.io", "Upper.Example.test", "a-b.c", "1" };
    static const char *const bad[] = { "",   " ",  "a b", ".a",   "a.",   "a..b",
                                       "-a", "a-", "a/b", "a.-b", "a-.b", "../x" };
    char longest[CSI_NAME_MAX + 2];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(csi_driver_name_ok(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(csi_driver_name_ok(bad[i]));
    memset(longest, 'x', sizeof(longest));
    longest[CSI_NAME_MAX + 1] = '\0';
    assert_false(csi_driver_name_ok(longest));
    longest[CSI_NAME_MAX] = '\0';
    assert_true(csi_driver_name_ok(longest));
}

static void the_group_follows_the_policy(void **state)
{
    const csi_caps none = 0, group = 1u << CSI_CAN_MOUNT_GROUP;
    struct csi_volume v = { .fs_group = 4000, .group_policy = CSI_GROUP_FILE };

    (void)state;
    assert_true(csi_wants_group(&v, none));
    assert_false(csi_wants_group(&v, group));
    v.read_only = true;
    assert_false(csi_wants_group(&v, none));
    v = (struct csi_volume){ .fs_group = 4000, .ephemeral = true };
    assert_false(csi_wants_group(&v, none)); /* no fsType */
    v.fs_type = "ext4";
    assert_true(csi_wants_group(&v, none));
    v.ephemeral = false;
    v.access_modes = CSI_RWX;
    assert_false(csi_wants_group(&v, none));
    v.access_modes = CSI_RWO | CSI_ROX;
    assert_true(csi_wants_group(&v, none));
    v.access_modes = CSI_RWOP; /* since Kubernetes 1.32 */
    assert_true(csi_wants_group(&v, none));
    v.block = true;
    assert_false(csi_wants_group(&v, none));
    v = (struct csi_volume){ .fs_group = 4000, .group_policy = CSI_GROUP_NONE };
    assert_false(csi_wants_group(&v, none));
    v = (struct csi_volume){ .fs_group = -1, .group_policy = CSI_GROUP_FILE };
    assert_false(csi_wants_group(&v, none));
}

static void words_of_the_volume_do_not_pass_for_the_pods(void **state)
{
    const struct csi_pair given[] = { { "size", "1Mi" }, { "csi.storage.k8s.io/pod.uid", "forged" } };
    const struct csi_volume v = { .handle = "h",
                                  .ephemeral = true,
                                  .attributes = { given, 2 },
                                  .pod_uid = "u",
                                  .pod_name = "p",
                                  .pod_namespace = "n",
                                  .service_account = "default",
                                  .pod_info = true,
                                  .fs_group = -1 };
    struct arena memory = { 0 };
    struct csi_request r;
    struct err e = { 0 };
    size_t uids = 0;

    (void)state;
    assert_int_equal(csi_publish_request(&v, 0, NULL, "/t", &memory, &r, &e), ERR_OK);
    assert_int_equal(r.volume_context.n, 6);
    for (size_t i = 0; i < r.volume_context.n; i++)
        if (strcmp(r.volume_context.v[i].key, "csi.storage.k8s.io/pod.uid") == 0) {
            assert_string_equal(r.volume_context.v[i].value, "u");
            uids++;
        }
    assert_int_equal(uids, 1);
    arena_done(&memory);
}

/* ---- vol_data.json ---- */

#define KUBELETS                                                                                             \
    "{\"attachmentID\":\"csi-00\",\"driverName\":\"d.example.test\",\"nodeName\":\"node1\","                 \
    "\"specVolID\":\"vol\",\"volumeHandle\":\"csi-11\",\"volumeLifecycleMode\":\"Ephemeral\"}\n"

static void the_file_is_kubelets(void **state)
{
    const struct csi_vol_data d = { .attachment = "csi-00",
                                    .driver = "d.example.test",
                                    .node = "node1",
                                    .spec_name = "vol",
                                    .handle = "csi-11",
                                    .ephemeral = true };
    struct csi_vol_data again = { 0 };
    str_auto text = csi_vol_data_text(&d);
    struct err e = { 0 };

    (void)state;
    assert_string_equal(text, KUBELETS);
    assert_int_equal(csi_vol_data_read(&again, text, strlen(text), &e), ERR_OK);
    assert_string_equal(again.driver, "d.example.test");
    assert_string_equal(again.handle, "csi-11");
    assert_string_equal(again.spec_name, "vol");
    assert_true(again.ephemeral);
    csi_vol_data_done(&again);
}

static void a_damaged_file_is_named(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "", "vol_data.json: empty" },
        { "[]", "vol_data.json: not an object" },
        { "{\"driverName\":1}", "vol_data.json: driverName: not a text" },
        { "{\"volumeHandle\":\"h\"}", "vol_data.json: driverName: missing" },
        { "{\"driverName\":\"../x\",\"volumeHandle\":\"h\"}",
          "vol_data.json: driverName: no name of a driver" },
        { "{\"driverName\":\"d\"}", "vol_data.json: volumeHandle: missing" },
        { "{\"driverName\":", "vol_data.json: line 1" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct csi_vol_data d = { 0 };
        struct err e = { 0 };

        assert_int_equal(csi_vol_data_read(&d, rows[i].text, strlen(rows[i].text), &e), ERR_INVALID);
        if (strstr(e.text, rows[i].why) == NULL)
            fail_msg("%s: %s", rows[i].text, e.text);
        csi_vol_data_done(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_hashes),
        cmocka_unit_test(drivers_have_names_of_a_csi_node),
        cmocka_unit_test(the_group_follows_the_policy),
        cmocka_unit_test(words_of_the_volume_do_not_pass_for_the_pods),
        cmocka_unit_test(the_file_is_kubelets),
        cmocka_unit_test(a_damaged_file_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
