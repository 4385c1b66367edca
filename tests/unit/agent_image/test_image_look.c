/* SPDX-License-Identifier: Apache-2.0 */
/* What the store does when a look at the disk fails: nothing that lasts. */
#include "tests/unit/agent_image/image_helper.h"

#include "agent/runtime/mount/image_mount.h"

#include <dlfcn.h>
#include <sys/mount.h>

/* ---- calls that fail ------------------------------------------------------------------------------- */

static struct {
    const char *call, *path; /* of openat and fstatat: how the path ends */
    const char *folder;      /* of readdir and fdopendir: how the folder's path ends */
    unsigned times;
    int sys;
} faults;

static void fail_call(const char *call, const char *where, unsigned times, int sys)
{
    faults.call = call;
    faults.path = faults.folder = where;
    faults.times = times;
    faults.sys = sys;
}

static bool is_due(const char *call, const char *path)
{
    if (faults.times == 0 || strcmp(faults.call, call) != 0 || !str_ends(path, faults.path))
        return false;
    faults.times--;
    errno = faults.sys;
    return true;
}

static bool is_due_fd(const char *call, int fd)
{
    char link[40], path[PATH_MAX] = "";

    if (faults.times == 0)
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return readlink(link, path, sizeof(path) - 1) > 0 && is_due(call, path);
}

struct dirent *fake_readdir(DIR *d) __asm__("readdir");
struct dirent *fake_readdir(DIR *d)
{
    static struct dirent *(*real)(DIR *);

    if (real == NULL)
        real = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    return is_due_fd("readdir", dirfd(d)) ? NULL : real(d);
}

DIR *fake_fdopendir(int fd) __asm__("fdopendir");
DIR *fake_fdopendir(int fd)
{
    static DIR *(*real)(int);

    if (real == NULL)
        real = (DIR * (*)(int)) dlsym(RTLD_NEXT, "fdopendir");
    return is_due_fd("fdopendir", fd) ? NULL : real(fd);
}

int fake_fstatat(int dir, const char *path, struct stat *st, int flags) __asm__("fstatat");
int fake_fstatat(int dir, const char *path, struct stat *st, int flags)
{
    static int (*real)(int, const char *, struct stat *, int);

    if (real == NULL)
        real = (int (*)(int, const char *, struct stat *, int))dlsym(RTLD_NEXT, "fstatat");
    return is_due("fstatat", path) ? -1 : real(dir, path, st, flags);
}

int fake_openat(int dir, const char *path, int flags, mode_t mode) __asm__("openat");
int fake_openat(int dir, const char *path, int flags, mode_t mode)
{
    static int (*real)(int, const char *, int, mode_t);

    if (real == NULL)
        real = (int (*)(int, const char *, int, mode_t))dlsym(RTLD_NEXT, "openat");
    return is_due("openat", path) || (strcmp(path, ".") == 0 && is_due_fd("openat", dir))
               ? -1
               : real(dir, path, flags, mode);
}

int fake_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret) __asm__("statx");
int fake_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
    static int (*real)(int, const char *, int, unsigned, struct statx *);

    if (real == NULL)
        real = (int (*)(int, const char *, int, unsigned, struct statx *))dlsym(RTLD_NEXT, "statx");
    return is_due("statx", path) ? -1 : real(dir, path, flags, mask, ret);
}

/* ---- the tests --------------------------------------------------------------------------------------- */

static void two_images(struct world *w)
{
    open_store(w);
    bring(w, "/a", "one");
    write_file(w, "unpack.answer", 0644, "image c d\n");
    bring(w, "/b", "two");
    close_store(w);
}

static bool is_here(struct world *w, const char *name)
{
    struct img_image *found = img_lookup(w->store, name);

    img_unref(found);
    return found != NULL;
}

static void all_is_here(struct world *w)
{
    assert_true(is_here(w, "one"));
    assert_true(is_here(w, "two"));
    assert_true(have(w, "images/layers/" HEX("b")));
    assert_true(have(w, "images/layers/" HEX("d")));
    assert_int_equal(count_entries(w, "images"), 2);
    assert_int_equal(count_entries(w, "refs"), 2);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

/* Turns the loop until the store has looked again and found everything. */
static void look_again(struct world *w)
{
    struct img_look failed;

    while (img_look_failed(w->store, &failed))
        uv_run(&w->loop, UV_RUN_ONCE);
    settle(w);
}

static void a_folder_that_cannot_be_listed_once_loses_nothing(void **state)
{
    static const char *const calls[] = { "readdir", "fdopendir", "openat" };
    static const char *const folders[] = { "/images/images", "/images/refs", "/images/layers",
                                           "/images/parts" };
    static const int errors[] = { EIO, ENOMEM, EMFILE };
    struct world *w = *state;

    two_images(w);
    for (size_t c = 0; c < ARRAY_LEN(calls); c++)
        for (size_t f = 0; f < ARRAY_LEN(folders); f++) {
            fail_call(calls[c], folders[f], 1, errors[c]);
            open_store(w);
            assert_int_equal(faults.times, 0);
            look_again(w);
            all_is_here(w);
            close_store(w);
        }
}

static void a_folder_of_records_that_cannot_be_listed_ends_the_start(void **state)
{
    struct world *w = *state;
    char unpack[320];
    const struct img_store_options o = {
        .loop = &w->loop, .dir = w->store_dir, .unpack_path = unpack, .tmpfs_dir = w->dir, .ops_cgroup_fd = -1
    };
    struct err e = { 0 };

    snprintf(unpack, sizeof(unpack), "%s/unpack", w->dir);
    two_images(w);
    fail_call("readdir", "/images/images", 1000, EIO);
    assert_int_not_equal(img_store_open(&w->store, &o, &e), ERR_OK);
    assert_non_null(strstr(e.text, "list folder images: list .: Input/output error"));
    assert_null(w->store);
    settle(w);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    fail_call("", "", 0, 0);
    open_store(w);
    all_is_here(w);
}

static void a_record_that_cannot_be_read_is_neither_damaged_nor_gone(void **state)
{
    struct world *w = *state;
    struct img_look failed;
    struct img_image *two;

    two_images(w);
    fail_call("openat", HEX("a") ".json", 1000, EIO);
    open_store(w);
    assert_false(is_here(w, "one"));
    assert_true(is_here(w, "two"));
    assert_true(img_look_failed(w->store, &failed));
    assert_true(failed.since_ns > 0 && clock_boot_is_set(failed.retry_at));
    assert_non_null(strstr(failed.why.text, ".json is not read"));

    /* What is removed meanwhile goes, but no layer with it: it may be the other one's, too. */
    two = img_lookup(w->store, "two");
    img_unref(two);
    assert_int_equal(img_remove(w->store, "two", NULL, NULL, &(struct err){ 0 }), ERR_OK);
    settle(w);
    assert_true(have(w, "images/layers/" HEX("b")));
    assert_true(have(w, "images/layers/" HEX("d")));

    fail_call("", "", 0, 0); /* the disk answers again */
    w->added[0] = '\0';
    look_again(w);
    assert_string_equal(w->added, "docker.io/library/one:latest "); /* pods that wait for it hear of it */
    assert_true(is_here(w, "one"));
    assert_true(have(w, "images/layers/" HEX("b")));
    assert_false(have(w, "images/layers/" HEX("d")));
    assert_int_equal(count_entries(w, "images"), 1);
    assert_int_equal(count_entries(w, "refs"), 1);
}

static void a_layer_that_cannot_be_looked_at_is_not_missing(void **state)
{
    struct world *w = *state;

    two_images(w);
    fail_call("fstatat", HEX("b"), 1000, ENOMEM);
    open_store(w);
    assert_false(is_here(w, "one"));
    assert_int_equal(count_entries(w, "refs"), 2);
    fail_call("", "", 0, 0);
    look_again(w);
    all_is_here(w);
}

static void an_image_that_is_brought_again_need_not_be_read(void **state)
{
    struct world *w = *state;
    struct img_look failed;

    two_images(w);
    fail_call("openat", HEX("a") ".json", 1000, EIO);
    open_store(w);
    fail_call("", "", 0, 0);
    write_file(w, "unpack.answer", 0644, "image a b\n");
    bring(w, "/a", "one");
    assert_true(is_here(w, "one"));
    look_again(w);
    assert_false(img_look_failed(w->store, &failed));
    all_is_here(w);
}

/* The record is gone, and nothing says that it was damaged: the mount alone keeps the layer. */
static void a_layer_under_a_container_stays_whatever_the_records_say(void **state)
{
    struct world *w = *state;
    struct img_look failed;
    struct err e = { 0 };
    char rootfs[400], record[400];

    two_images(w);
    snprintf(rootfs, sizeof(rootfs), "%s/containers/c1/rootfs", w->dir);
    assert_int_equal(fs_mkdirs(rootfs, 0700, &e), ERR_OK);
    write_file(w, "containers/c1/meta.json", 0600, "{\"imageID\":\"" ID("a") "\"}");
    if (mount("none", rootfs, "tmpfs", 0, NULL) != 0)
        skip(); /* not root */
    snprintf(record, sizeof(record), "%s/images/" HEX("a") ".json", w->store_dir);
    assert_int_equal(unlink(record), 0);
    open_store(w);
    settle(w);
    assert_true(have(w, "images/layers/" HEX("b")));
    assert_true(img_look_failed(w->store, &failed));
    assert_string_equal(failed.why.text,
                        "layers that no image names are kept: c1 has image " ID("a") " mounted");
    close_store(w);

    fail_call("openat", "/containers/c1/meta.json", 1, EIO); /* whose it is cannot be seen */
    open_store(w);
    assert_int_equal(faults.times, 0);
    assert_true(have(w, "images/layers/" HEX("b")));

    assert_int_equal(umount(rootfs), 0);
    look_again(w);
    assert_false(have(w, "images/layers/" HEX("b")));
    assert_true(have(w, "images/layers/" HEX("d")));
}

/* Else the open one would count for a moment, and an image that nobody signed would come in. */
static void a_policy_that_cannot_be_looked_at_is_not_replaced_by_an_open_one(void **state)
{
    struct world *w = *state;

    open_store(w);
    fail_call("fstatat", "/etc/containers/policy.json", 1, EIO);
    refused(w, "docker://r.io/x:1", NULL, ERR_UNAVAILABLE,
            "pull r.io/x:1: stat /etc/containers/policy.json: Input/output error");
    assert_false(have(w, "skopeo.log"));
}

static void short_names_wait_for_a_configuration_that_cannot_be_read(void **state)
{
    struct world *w = *state;
    struct img_look failed;
    struct bring t;

    fail_call("openat", "/etc/containers/registries.conf", 1000, EIO);
    open_store(w);
    assert_true(img_look_failed(w->store, &failed));
    start(w, &t, "docker://x:1", NULL);
    wait_for(w, &t);
    assert_non_null(strstr(t.result.text, "/etc/containers/registries.conf"));
    assert_false(have(w, "skopeo.log"));
    fail_call("", "", 0, 0);
    look_again(w);
    write_file(w, "skopeo.answer", 0644, "fatal unauthorized\n");
    start(w, &t, "docker://x:1", NULL);
    wait_for(w, &t);
    assert_true(have(w, "skopeo.log"));
}

static void a_key_that_cannot_be_read_is_not_replaced(void **state)
{
    struct world *w = *state;
    char *before, *after;

    open_store(w);
    close_store(w);
    before = read_file(w, "proof-key");
    fail_call("openat", "/proof-key", 1000, EIO);
    open_store(w);
    fail_call("", "", 0, 0);
    after = read_file(w, "proof-key");
    assert_int_not_equal(before[0], 0);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

/* Asked without a password a registry says "unauthorized", which is not so. */
static void a_pull_waits_for_credentials_that_cannot_be_read(void **state)
{
    struct world *w = *state;
    struct bring t;

    write_file(w, "node-auth", 0600, "{}");
    open_store(w);
    w->store->auth_file = str_printf("%s/node-auth", w->dir);
    fail_call("openat", "/node-auth", 1, EMFILE);
    start(w, &t, "docker://r.io/x:1", NULL);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(t.result.text, "registry credentials of the node: open "));
    assert_false(have(w, "skopeo.log"));
}

static void a_pull_does_not_begin_before_it_knows_how_much_is_there(void **state)
{
    struct world *w = *state;

    open_store(w);
    write_file(w, "skopeo.answer", 0644, "[ $verb = inspect ] && echo sha256:$(hex a)\n");
    fail_call("readdir", "/images/tmp/blobs", 1, EIO);
    refused(w, "docker://r.io/x:1", NULL, ERR_UNAVAILABLE,
            "read the existing blobs: list .: Input/output error");
}

static void nothing_is_mounted_over_what_could_not_be_looked_at(void **state)
{
    struct world *w = *state;
    struct img_image *one;
    char target[400], id[IMG_ID_SIZE];
    struct err e = { 0 };

    two_images(w);
    open_store(w);
    snprintf(target, sizeof(target), "%s/volume", w->dir);
    assert_int_equal(mkdir(target, 0700), 0);
    assert_true(presence_is_absent(img_mounted(target, id, &e)));
    if (mount("none", target, "tmpfs", 0, NULL) != 0)
        skip(); /* not root */
    one = img_lookup(w->store, "one");
    fail_call("statx", "/volume", 2, ENOMEM);
    assert_true(presence_is_unknown(img_mounted(target, id, &e)));
    e = (struct err){ 0 };
    assert_int_not_equal(img_mount(one, NULL, target, &e), ERR_OK);
    img_unref(one);
    assert_int_equal(umount(target), 0);
    assert_int_equal(umount(target), -1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_make, world_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_folder_that_cannot_be_listed_once_loses_nothing),
        TEST(a_folder_of_records_that_cannot_be_listed_ends_the_start),
        TEST(a_record_that_cannot_be_read_is_neither_damaged_nor_gone),
        TEST(a_layer_that_cannot_be_looked_at_is_not_missing),
        TEST(an_image_that_is_brought_again_need_not_be_read),
        TEST(a_policy_that_cannot_be_looked_at_is_not_replaced_by_an_open_one),
        TEST(short_names_wait_for_a_configuration_that_cannot_be_read),
        TEST(a_key_that_cannot_be_read_is_not_replaced),
        TEST(a_pull_waits_for_credentials_that_cannot_be_read),
        TEST(a_pull_does_not_begin_before_it_knows_how_much_is_there),
        TEST(nothing_is_mounted_over_what_could_not_be_looked_at),
        TEST(a_layer_under_a_container_stays_whatever_the_records_say),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
