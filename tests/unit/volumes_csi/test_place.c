/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of volumes, and the group of their files. */
#include "volumes/csi/device_place.h"

#include "base/files/fs.h"
#include "base/scope.h"
#include "tests/unit/base/helper.h"

#include <stdlib.h>
#include <sys/mount.h>

static const struct csi_vol_data data = { .attachment = "csi-0",
                                          .driver = "d.example.test",
                                          .node = "n",
                                          .spec_name = "vol",
                                          .handle = "h",
                                          .ephemeral = true };

static void paths_are_kubelets(void **state)
{
    char path[200], small[20];
    struct err e = { 0 };

    (void)state;
    assert_int_equal(csi_place_target("/r", "u", "vol", path, sizeof(path), &e), ERR_OK);
    assert_string_equal(path, "/r/pods/u/volumes/kubernetes.io~csi/vol/mount");
    assert_int_equal(csi_place_folder("/r", "u", "vol", path, sizeof(path), &e), ERR_OK);
    assert_string_equal(path, "/r/pods/u/volumes/kubernetes.io~csi/vol");
    assert_int_equal(csi_place_all("/r", "u", path, sizeof(path), &e), ERR_OK);
    assert_string_equal(path, "/r/pods/u/volumes/kubernetes.io~csi");
    assert_int_equal(csi_place_folder("/r", "..", "vol", path, sizeof(path), &e), ERR_INVALID);
    assert_int_equal(csi_place_folder("/r", "u", "a/b", path, sizeof(path), &e), ERR_INVALID);
    assert_int_equal(csi_place_folder("/r", "u", "vol", small, sizeof(small), &e), ERR_INVALID);
}

static void a_volume_is_made_listed_and_removed(void **state)
{
    str_auto all = str_printf("%s/pods/u/" CSI_VOLUMES, (char *)*state);
    str_auto folder = str_printf("%s/vol", all);
    str_auto bad = str_printf("%s/bad", all);
    str_auto leaving = str_printf("%s/." CSI_VOL_DATA ".0123abcd", folder);
    buf_auto out = BUF_INIT(4096);
    struct err e = { 0 };

    assert_int_equal(csi_place_list(*state, "u", &out, &e), ERR_OK);
    assert_string_equal(out.p, "[]");
    buf_reset(&out);
    assert_int_equal(csi_place_make(folder, &data, &e), ERR_OK);
    assert_int_equal(csi_place_make(folder, &data, &e), ERR_OK);
    assert_int_equal(csi_place_list(*state, "u", &out, &e), ERR_OK);
    assert_string_equal(out.p, "[{\"name\":\"vol\",\"block\":false,\"ephemeral\":true,"
                               "\"driver\":\"d.example.test\",\"handle\":\"h\"}]");
    assert_int_equal(csi_place_remove(folder, &e), ERR_OK);
    assert_int_equal(csi_place_remove(folder, &e), ERR_OK);
    /* A kill leaves the file that was to replace it. */
    assert_int_equal(csi_place_make(folder, &data, &e), ERR_OK);
    assert_int_equal(mknod(leaving, S_IFREG | 0600, 0), 0);
    assert_int_equal(csi_place_remove(folder, &e), ERR_OK);
    assert_int_not_equal(access(folder, F_OK), 0);
    /* One without its file. */
    buf_reset(&out);
    assert_int_equal(mkdir(bad, 0750), 0);
    assert_int_equal(csi_place_list(*state, "u", &out, &e), ERR_OK);
    assert_non_null(strstr(out.p, "[{\"name\":\"bad\",\"block\":false,\"error\":"));
    assert_int_equal(csi_place_remove(bad, &e), ERR_OK);
}

static void look(const char *root, const struct csi_id *id, const struct csi_paths *p, const char *expected)
{
    buf_auto out = BUF_INIT(64);
    struct err e = { 0 };

    assert_int_equal(csi_device_state(root, id, p, &out, &e), ERR_OK);
    assert_string_equal(out.p, expected);
}

static void a_staged_volume_knows_its_pods(void **state)
{
    const struct csi_id id = { "d.example.test", "h", "pv", false, false };
    const struct csi_vol_data shared = { .driver = id.driver, .handle = id.handle, .shared = true };
    struct csi_vol_data of_pod = data;
    buf_auto out = BUF_INIT(4096);
    struct arena memory = { 0 };
    struct csi_paths p;
    struct err e = { 0 };

    of_pod.ephemeral = false;
    assert_int_equal(csi_paths_make(&p, *state, &id, "u", &memory, &e), ERR_OK);
    look(*state, &id, &p, "");
    assert_int_equal(csi_device_make(&p, &shared, true, &e), ERR_OK);
    assert_int_equal(access(p.staging, F_OK), 0);
    look(*state, &id, &p, "there");
    assert_int_equal(csi_place_make(p.folder, &of_pod, &e), ERR_OK);
    look(*state, &id, &p, "used");
    assert_int_equal(csi_devices_list(*state, &out, &e), ERR_OK);
    assert_string_equal(out.p, "[{\"driver\":\"d.example.test\",\"handle\":\"h\"}]");
    assert_int_equal(csi_place_remove(p.folder, &e), ERR_OK);
    assert_int_equal(csi_device_remove(&p, &e), ERR_OK);
    assert_int_equal(csi_device_remove(&p, &e), ERR_OK);
    look(*state, &id, &p, "");
    arena_done(&memory);
}

static void a_lost_file_is_found_by_its_mount(void **state)
{
    const struct csi_id id = { "d.example.test", "h", "pv", false, false };
    const struct csi_vol_data shared = { .driver = id.driver, .handle = id.handle, .shared = true };
    str_auto content = str_printf("%s/content", (char *)*state);
    buf_auto out = BUF_INIT(4096);
    struct arena memory = { 0 };
    struct csi_paths p;
    struct err e = { 0 };

    assert_int_equal(csi_paths_make(&p, *state, &id, "u", &memory, &e), ERR_OK);
    assert_int_equal(csi_device_make(&p, &shared, true, &e), ERR_OK);
    assert_int_equal(fs_mkdirs(p.target, 0750, &e), ERR_OK);
    assert_int_equal(mkdir(content, 0755), 0);
    if (mount(content, p.staging, NULL, MS_BIND, NULL) == 0) {
        assert_int_equal(mount(content, p.target, NULL, MS_BIND, NULL), 0);
        assert_int_equal(csi_place_list(*state, "u", &out, &e), ERR_OK);
        assert_string_equal(out.p, "[{\"name\":\"pv\",\"block\":false,\"ephemeral\":false,"
                                   "\"driver\":\"d.example.test\",\"handle\":\"h\"}]");
        look(*state, &id, &p, "used");
        assert_int_equal(csi_device_remove(&p, &e), ERR_PRECONDITION);
        assert_int_equal(umount(p.target), 0);
        assert_int_equal(umount(p.staging), 0);
    }
    arena_done(&memory);
}

static void a_block_device_has_places_of_its_own(void **state)
{
    const struct csi_id id = { "d.example.test", "h", "pv", true, false };
    struct csi_vol_data shared = data;
    buf_auto out = BUF_INIT(4096);
    struct arena memory = { 0 };
    struct csi_paths p;
    struct err e = { 0 };

    shared.shared = true;
    assert_int_equal(csi_paths_make(&p, *state, &id, "u", &memory, &e), ERR_OK);
    assert_int_equal(csi_device_make(&p, &shared, true, &e), ERR_OK);
    assert_int_equal(csi_block_make(&p, &e), ERR_OK);
    assert_int_equal(csi_block_make(&p, &e), ERR_OK);
    look(*state, &id, &p, "used");
    assert_int_equal(csi_place_list(*state, "u", &out, &e), ERR_OK);
    assert_string_equal(out.p, "[{\"name\":\"pv\",\"block\":true,\"ephemeral\":false,"
                               "\"driver\":\"d.example.test\",\"handle\":\"h\"}]");
    buf_reset(&out);
    assert_int_equal(csi_devices_list(*state, &out, &e), ERR_OK);
    assert_string_equal(out.p, "[{\"driver\":\"d.example.test\",\"handle\":\"h\",\"name\":\"pv\"}]");
    assert_int_equal(mknod(p.target, S_IFREG | 0600, 0), 0);
    if (geteuid() == 0 && csi_block_map(&p, &e) == ERR_OK) {
        assert_int_equal(csi_block_map(&p, &e), ERR_OK);
        assert_int_equal(csi_block_unmap(&p, &e), ERR_OK);
        assert_int_equal(csi_block_unmap(&p, &e), ERR_OK);
    }
    assert_int_equal(csi_block_remove(&p, &e), ERR_OK);
    look(*state, &id, &p, "there");
    assert_int_equal(csi_device_remove(&p, &e), ERR_OK);
    look(*state, &id, &p, "");
    arena_done(&memory);
}

static void files_of_a_target_are_never_removed(void **state)
{
    str_auto folder = str_printf("%s/vol", (char *)*state);
    str_auto target = str_printf("%s/mount", folder);
    str_auto file = str_printf("%s/data", target);
    str_auto kept = str_printf("%s/" CSI_VOL_DATA, folder);
    struct err e = { 0 };
    FILE *f;

    assert_int_equal(csi_place_make(folder, &data, &e), ERR_OK);
    assert_int_equal(mkdir(target, 0750), 0);
    f = fopen(file, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(csi_place_remove(folder, &e), ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "contains files and is kept"));
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(access(kept, F_OK), 0);
    assert_int_equal(unlink(file), 0);
    e = (struct err){ 0 };
    if (mount("tmpfs", target, "tmpfs", 0, "size=64k") == 0) {
        assert_int_equal(csi_place_remove(folder, &e), ERR_PRECONDITION);
        assert_non_null(strstr(e.text, "is still mounted"));
        assert_int_equal(access(kept, F_OK), 0);
        assert_int_equal(umount(target), 0);
        e = (struct err){ 0 };
    }
    assert_int_equal(csi_place_remove(folder, &e), ERR_OK);
    assert_int_not_equal(access(folder, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_kubelets),
        cmocka_unit_test_setup_teardown(a_volume_is_made_listed_and_removed, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_staged_volume_knows_its_pods, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_lost_file_is_found_by_its_mount, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_block_device_has_places_of_its_own, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(files_of_a_target_are_never_removed, scratch_make, scratch_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
