/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"
#include "volumes/storage/internal.h"

#include <string.h>

static void portals_get_their_port(void **state)
{
    static const char *const rows[][2] = {
        { "192.0.2.1", "192.0.2.1:3260" },         { "192.0.2.1:3261", "192.0.2.1:3261" },
        { "[2001:db8::1]", "[2001:db8::1]:3260" }, { "[2001:db8::1]:3261", "[2001:db8::1]:3261" },
        { "2001:db8::1", "2001:db8::1:3260" },     { "san.example.test", "san.example.test:3260" }
    };
    char portal[208];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = { 0 };

        assert_int_equal(storage_iscsi_portal(rows[i][0], portal, sizeof(portal), &e), ERR_OK);
        assert_string_equal(portal, rows[i][1]);
    }
}

static void what_is_no_portal_is_refused(void **state)
{
    static const char *const bad[] = {
        "", "-p", "--login", "a b", "a\nb", "../x", "a/b", "a,b", "a;b", "a'b"
    };
    char portal[208], large[400];
    struct err e = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (storage_iscsi_portal(bad[i], portal, sizeof(portal), &e) != ERR_INVALID)
            fail_msg("\"%s\" is a portal", bad[i]);
    memset(large, 'a', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    assert_int_equal(storage_iscsi_portal(large, portal, sizeof(portal), &e), ERR_INVALID);
    assert_int_equal(storage_iscsi_portal(NULL, portal, sizeof(portal), &e), ERR_INVALID);
}

static void targets_are_read_from_names_of_folders(void **state)
{
    static const char *const rows[][2] = {
        { "192.0.2.1:3260-iqn.2026-11.test:disk-lun-0", "iqn.2026-11.test:disk" },
        { "san-iqn:3260-iqn.2026-11.test:a-lun-3-lun-10", "iqn.2026-11.test:a-lun-3" },
        { "[2001:db8::1]:3260-eui.02004567A425678D-lun-1", "eui.02004567A425678D" },
        { "192.0.2.1:3260-naa.52004567BA64678D-lun-1", "naa.52004567BA64678D" },
    };
    static const char *const bad[] = {
        "", "a", "-lun-", "-iqn.", "a-lun-0-iqn.x", "192.0.2.1:3260-disk-lun-0"
    };
    char target[256], small[4];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(storage_iscsi_target(rows[i][0], target, sizeof(target)));
        assert_string_equal(target, rows[i][1]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (storage_iscsi_target(bad[i], target, sizeof(target)))
            fail_msg("\"%s\" has a target: %s", bad[i], target);
    assert_false(storage_iscsi_target(rows[0][0], small, sizeof(small)));
}

static struct storage_spec spec(void)
{
    return (struct storage_spec){ .kind = STORAGE_ISCSI,
                                  .root = "/r",
                                  .name = "pv",
                                  .portal = "192.0.2.1",
                                  .iqn = "iqn.2026-11.test:disk",
                                  .lun = 2 };
}

static void disks_are_where_a_kubelet_has_them(void **state)
{
    struct storage_spec s = spec();
    struct err e = { 0 };
    char path[1024];

    (void)state;
    assert_int_equal(storage_disk_folder(&s, path, sizeof(path), &e), ERR_OK);
    assert_string_equal(path, "/r/plugins/kubernetes.io/iscsi/iface-default/"
                              "192.0.2.1:3260-iqn.2026-11.test:disk-lun-2");
    s.block = true;
    s.initiator = "iqn.2026-11.test:node";
    assert_int_equal(storage_disk_folder(&s, path, sizeof(path), &e), ERR_OK);
    assert_string_equal(path, "/r/plugins/kubernetes.io/iscsi/volumeDevices/iface-192.0.2.1:3260:pv/"
                              "192.0.2.1:3260-iqn.2026-11.test:disk-lun-2");
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
    static const char *const bad[] = { "../../etc", "a/b", "-o", "a\nb", "" };
    struct err e = { 0 };
    char path[1024];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct storage_spec iqn = spec(), iface = spec(), initiator = spec();

        iqn.iqn = bad[i];
        iface.interface = bad[i];
        initiator.initiator = bad[i];
        assert_int_equal(storage_disk_folder(&iqn, path, sizeof(path), &e), ERR_INVALID);
        if (bad[i][0] == '\0') /* not given */
            continue;
        assert_int_equal(storage_disk_folder(&iface, path, sizeof(path), &e), ERR_INVALID);
        assert_int_equal(storage_disk_folder(&initiator, path, sizeof(path), &e), ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portals_get_their_port),
        cmocka_unit_test(what_is_no_portal_is_refused),
        cmocka_unit_test(targets_are_read_from_names_of_folders),
        cmocka_unit_test(disks_are_where_a_kubelet_has_them),
        cmocka_unit_test(names_that_lead_elsewhere_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
