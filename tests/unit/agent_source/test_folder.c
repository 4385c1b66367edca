#include "agent/source/internal.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/un.h>

/*
 * A real folder and a running loop.  Everything that happens is written down in `seen` as one line ("added
 * Pod default/a", "file a.yaml ok 1", "file b.yaml stale 1: where: what", "first set"); tests wait for a
 * line, or see that none comes.
 */
enum { DEADLINE_MS = 10000, QUIET_MS = SRC_FOLDER_SETTLE_MS + 150 };

struct fixture {
    uv_loop_t loop;
    char root[64], dir[96];
    struct src_store *store;
    struct src_folder *folder;
    struct buf seen;
};

static void on_change(enum src_change change, const struct api_object *o, void *arg)
{
    static const char *const words[] = { "added", "updated", "removed" };
    const struct api_meta *meta = src_object_meta(o);
    struct fixture *f = arg;

    buf_addf(&f->seen, "%s %s %s/%s", words[change], api_kind_name(o->kind),
             meta->namespace != NULL ? meta->namespace : "", meta->name);
    if (o->kind == API_KIND_POD && change != SRC_REMOVED)
        buf_addf(&f->seen, " %s", o->pod->spec.containers[0].image);
    buf_addc(&f->seen, '\n');
}

static void on_file(const struct src_file *file, void *arg)
{
    struct fixture *f = arg;

    buf_addf(&f->seen, "file %s %s %zu", file->name,
             file->ok      ? "ok"
             : file->stale ? "stale"
                           : "bad",
             file->n_objects);
    for (size_t i = 0; i < file->n_problems; i++)
        buf_addf(&f->seen, " [%s: %s]", file->problems[i].where, file->problems[i].what);
    buf_addc(&f->seen, '\n');
}

static void on_first_set(void *arg)
{
    buf_adds(&((struct fixture *)arg)->seen, "first set\n");
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    strcpy(f->root, "/tmp/test-folder.XXXXXX");
    if (mkdtemp(f->root) == NULL)
        return -1;
    snprintf(f->dir, sizeof(f->dir), "%s/manifests", f->root);
    if (mkdir(f->dir, 0755) < 0)
        return -1;
    uv_loop_init(&f->loop);
    buf_init(&f->seen, 16 << 20);
    f->store = src_store_new();
    src_store_watch(f->store, on_change, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    uint64_t until = clock_mono_ms() + DEADLINE_MS;
    int left;

    src_folder_close(f->folder);
    do
        left = uv_run(&f->loop, UV_RUN_NOWAIT);
    while (left != 0 && clock_mono_ms() < until);
    if (left != 0 || uv_loop_close(&f->loop) != 0 || op_count() != 0) {
        print_error("handles or operations are left\n");
        return -1;
    }
    umount2(f->dir, MNT_DETACH);
    if (fs_remove_tree(AT_FDCWD, f->root, &e) != ERR_OK)
        print_error("%s\n", e.text);
    src_store_free(f->store);
    buf_done(&f->seen);
    free(f);
    return 0;
}

static void start(struct fixture *f)
{
    struct err e = { 0 };

    if (src_folder_open(&f->folder, &f->loop, f->dir, f->store, on_file, on_first_set, f, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_null(strstr(f->seen.p, "first set")); /* never from inside */
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop for one event or at most `ms`. */
static void turn(struct fixture *f, uint64_t ms)
{
    uv_timer_t tick;

    uv_timer_init(&f->loop, &tick);
    uv_timer_start(&tick, on_tick, ms, 0);
    uv_run(&f->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void to_see(struct fixture *f, const char *text)
{
    uint64_t until = clock_mono_ms() + DEADLINE_MS;

    while (strstr(f->seen.p, text) == NULL) {
        if (clock_mono_ms() > until)
            fail_msg("waited for \"%s\", seen:\n%s", text, f->seen.p);
        turn(f, 100);
    }
}

static void quiet(struct fixture *f)
{
    uint64_t until = clock_mono_ms() + QUIET_MS;

    while (clock_mono_ms() < until)
        turn(f, 20);
}

/* All that was seen; then forgets it. */
static void assert_seen(struct fixture *f, const char *want)
{
    assert_string_equal(f->seen.p, want);
    buf_reset(&f->seen);
}

static void at(struct fixture *f, const char *name, char ret[200])
{
    snprintf(ret, 200, "%s/%s", f->dir, name);
}

static void write_file(struct fixture *f, const char *name, const char *text)
{
    char path[200];
    int fd;

    at(f, name, path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void move(struct fixture *f, const char *from, const char *to)
{
    char a[200], b[200];

    at(f, from, a);
    at(f, to, b);
    assert_int_equal(rename(a, b), 0);
}

static void delete (struct fixture *f, const char *name)
{
    char path[200];

    at(f, name, path);
    assert_int_equal(unlink(path), 0);
}

static void link_to(struct fixture *f, const char *target, const char *name)
{
    char path[200];

    at(f, name, path);
    assert_int_equal(symlink(target, path), 0);
}

#define POD(name, image)                                                                                     \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name "}\nspec: {containers: [{name: c, image: " image     \
    "}]}\n"
#define CONFIG(name, value)                                                                                  \
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " name "}\ndata: {k: " value "}\n"

/* ---- the first set --------------------------------------------------------------------------- */

static void all_files_are_in_the_store_before_the_first_set_is_told(void **state)
{
    struct fixture *f = *state;

    write_file(f, "b.yaml", POD("b", "x:1"));
    write_file(f, "a.yaml", POD("a", "x:1") CONFIG("a", "v"));
    write_file(f, ".hidden.yaml", POD("h", "x:1"));
    write_file(f, "a.yaml~", POD("old", "x:1"));
    start(f);
    to_see(f, "first set\n");
    assert_true(src_store_ready(f->store));
    assert_seen(f, "added ConfigMap default/a\nadded Pod default/a x:1\nfile a.yaml ok 2\n"
                   "added Pod default/b x:1\nfile b.yaml ok 1\nfirst set\n");
}

static void an_empty_and_a_missing_folder_give_an_empty_first_set(void **state)
{
    struct fixture *f = *state;
    char sub[150];

    start(f);
    to_see(f, "first set\n");
    src_folder_close(f->folder);
    quiet(f);
    buf_reset(&f->seen);

    snprintf(f->dir, sizeof(f->dir), "%s/x/y", f->root);
    start(f);
    to_see(f, "first set\n");
    assert_seen(f, "first set\n");

    snprintf(sub, sizeof(sub), "%s/x", f->root);
    mkdir(sub, 0755);
    quiet(f);
    mkdir(f->dir, 0755);
    write_file(f, "a.yaml", POD("a", "x:1"));
    to_see(f, "added Pod default/a x:1\n");
}

static void a_path_that_is_no_folder_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    assert_int_equal(src_folder_open(&f->folder, &f->loop, "relative", f->store, NULL, NULL, NULL, &e),
                     ERR_INVALID);
    assert_string_equal(e.text, "manifest folder \"relative\": is not an absolute path of usable length");
    assert_int_equal(src_folder_open(&f->folder, &f->loop, "/dev/null", f->store, NULL, NULL, NULL, &e),
                     ERR_INVALID);
    assert_string_equal(e.text, "manifest folder /dev/null: is not a folder");
    f->folder = NULL;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void files_act_when_they_are_complete_and_only_when_something_changed(void **state)
{
    const char *pod = POD("a", "x:1");
    struct fixture *f = *state;
    char path[200];
    int fd;

    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);

    at(f, "a.yaml", path);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(write(fd, pod, 20) == 20); /* half of it */
    quiet(f);
    assert_seen(f, "");
    assert_true(write(fd, pod + 20, strlen(pod) - 20) > 0);
    close(fd);
    to_see(f, "file a.yaml ok 1\n");
    assert_seen(f, "added Pod default/a x:1\nfile a.yaml ok 1\n");

    write_file(f, ".b.yaml.tmp", POD("b", "x:1"));
    move(f, ".b.yaml.tmp", "b.yaml");
    to_see(f, "file b.yaml ok 1\n");
    assert_seen(f, "added Pod default/b x:1\nfile b.yaml ok 1\n");

    assert_int_equal(utimensat(AT_FDCWD, path, NULL, 0), 0); /* touch */
    write_file(f, "a.yaml", POD("a", "x:1"));
    to_see(f, "file a.yaml ok 1\n");
    quiet(f);
    assert_null(strstr(f->seen.p, "default/a"));
    buf_reset(&f->seen);

    write_file(f, "a.yaml", POD("a", "x:2"));
    to_see(f, "file a.yaml");
    assert_seen(f, "updated Pod default/a x:2\nfile a.yaml ok 1\n");
    delete (f, "a.yaml");
    to_see(f, "removed Pod default/a\n");
    assert_seen(f, "removed Pod default/a\n");
}

static void an_invalid_edit_leaves_what_was_there_in_force(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("a", "x:1") CONFIG("a", "v"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    write_file(f, "a.yaml", POD("a", "''") CONFIG("a", "w"));
    to_see(f, "file a.yaml stale 2 [a.yaml:1:spec.containers[0].image: ");
    write_file(f, "a.yaml", "{");
    to_see(f, "file a.yaml stale 2 [a.yaml:1:");
    write_file(f, "new.yaml", "nonsense");
    to_see(f, "file new.yaml bad 0 [new.yaml:1:");
    quiet(f);
    assert_null(strstr(f->seen.p, "default/a"));
    buf_reset(&f->seen);
    write_file(f, "a.yaml", POD("a", "x:2") CONFIG("a", "w"));
    to_see(f, "file a.yaml ok 2\n");
    assert_seen(f, "updated ConfigMap default/a\nupdated Pod default/a x:2\nfile a.yaml ok 2\n");
}

static void an_immutable_object_stays_as_it_was(void **state)
{
    static const char map[] = "apiVersion: v1\nkind: ConfigMap\nimmutable: %s\n"
                              "metadata: {name: m, labels: {v: \"%d\"}}\ndata: {k: %s}\n";
    struct fixture *f = *state;
    char text[400];

    snprintf(text, sizeof(text), map, "true", 1, "old");
    write_file(f, "m.yaml", text);
    start(f);
    to_see(f, "first set");
    snprintf(text, sizeof(text), map, "true", 1, "new");
    write_file(f, "m.yaml", text);
    to_see(f, "file m.yaml stale 1 [m.yaml:1:data: ConfigMap default/m is immutable and stays as it was; to "
              "change it, remove it first or give the new one another name]");
    snprintf(text, sizeof(text), map, "false", 1, "old");
    write_file(f, "m.yaml", text);
    to_see(f, "file m.yaml stale 1 [m.yaml:1:immutable: ");
    assert_memory_equal(src_store_config(f->store, API_CONFIG_MAP, "default", "m")->data[0].data, "old", 3);
    snprintf(text, sizeof(text), map, "true", 2, "old"); /* what describes it may change */
    write_file(f, "m.yaml", text);
    to_see(f, "updated ConfigMap default/m");
    delete (f, "m.yaml");
    to_see(f, "removed ConfigMap default/m");
    snprintf(text, sizeof(text), map, "true", 1, "new");
    write_file(f, "m.yaml", text);
    to_see(f, "added ConfigMap default/m");
}

static void an_emptied_file_takes_nothing_away_but_a_removed_document_does(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("a", "x:1") CONFIG("a", "v"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    write_file(f, "a.yaml", "");
    to_see(f, "file a.yaml stale 2 [a.yaml: holds no objects any more; remove the file to remove what it "
              "held before]\n");
    write_file(f, "empty.yaml", "# nothing yet\n");
    to_see(f, "file empty.yaml ok 0\n");
    buf_reset(&f->seen);
    write_file(f, "a.yaml", POD("a", "x:1"));
    to_see(f, "removed ConfigMap default/a\n");
    assert_seen(f, "file a.yaml ok 1\nremoved ConfigMap default/a\n");
}

static void a_rename_and_an_editors_way_to_save_disturb_nobody(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("a", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    move(f, "a.yaml", "b.yaml");
    to_see(f, "file b.yaml ok 1\n");
    quiet(f);
    assert_seen(f, "file b.yaml ok 1\n");

    write_file(f, "4913", "");
    delete (f, "4913");
    move(f, "b.yaml", "b.yaml~");
    turn(f, 10);
    write_file(f, "b.yaml", POD("a", "x:2"));
    delete (f, "b.yaml~");
    to_see(f, "file b.yaml ok 1\n");
    quiet(f);
    assert_seen(f, "updated Pod default/a x:2\nfile b.yaml ok 1\n");

    delete (f, "b.yaml"); /* as git does */
    turn(f, 10);
    write_file(f, "b.yaml", POD("a", "x:3"));
    to_see(f, "file b.yaml ok 1\n");
    quiet(f);
    assert_seen(f, "updated Pod default/a x:3\nfile b.yaml ok 1\n");
}

static void many_files_at_once_are_quick(void **state)
{
    struct fixture *f = *state;
    char name[40], text[400], line[60];
    uint64_t began;

    start(f);
    to_see(f, "first set\n");
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "p%d.yaml", i);
        snprintf(text, sizeof(text),
                 "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {containers: [{name: c, image: "
                 "'x:1'}]}\n",
                 i);
        write_file(f, name, text);
    }
    began = clock_mono_ms();
    for (int i = 0; i < 100; i++) {
        snprintf(line, sizeof(line), "added Pod default/p%d x:1\n", i);
        to_see(f, line);
    }
    assert_true(clock_mono_ms() - began < 2000); /* some ten ms; much slower under sanitizers */
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "p%d.yaml", i);
        delete (f, name);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(line, sizeof(line), "removed Pod default/p%d\n", i);
        to_see(f, line);
    }
}

/* Processor time of this thread: other programs' share of the machine is not in it. */
static uint64_t thread_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void a_huge_file_does_not_hold_up_the_loop(void **state)
{
    struct buf big = BUF_INIT(API_FILE_MAX);
    uint64_t last, longest = 0, until = clock_mono_ms() + DEADLINE_MS;
    struct fixture *f = *state;

    start(f);
    to_see(f, "first set\n");
    while (big.n < API_FILE_MAX - 200) /* nonsense, but half a million values of it */
        buf_addf(&big, "- {a: [1, 2, 3, yes, no, 0x10, 1e3], b: 'text %zu', c: {d: ~}}\n", big.n);
    write_file(f, "big.yaml", big.p);
    write_file(f, "small.yaml", POD("a", "x:1"));
    last = thread_ms();
    while ((strstr(f->seen.p, "file big.yaml") == NULL || strstr(f->seen.p, "added Pod") == NULL) &&
           clock_mono_ms() < until) {
        uint64_t now;

        turn(f, 5);
        now = thread_ms();
        longest = now - last > longest ? now - last : longest;
        last = now;
    }
    to_see(f, "file big.yaml bad 0 [big.yaml:");
    to_see(f, "added Pod default/a x:1\n");
    print_message("longest turn of the loop: %u ms of the processor\n", (unsigned)longest);
    assert_true(longest < 500);
    buf_done(&big);
}

/* ---- what is no manifest --------------------------------------------------------------------- */

static void what_is_no_file_is_refused_and_never_opened(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char path[200];
    int fd;

    at(f, "folder.yaml", path);
    mkdir(path, 0755);
    at(f, "fifo.yaml", path);
    mkfifo(path, 0644); /* nobody writes: an open would hang */
    link_to(f, "/dev/zero", "device.yaml");
    link_to(f, "fifo.yaml", "fifo-link.yaml");
    link_to(f, "nowhere", "dangling.yaml");
    start(f);
    to_see(f, "first set\n");
    assert_non_null(strstr(
        f->seen.p, "file folder.yaml bad 0 [folder.yaml: is a folder, not a file; it is not looked into]\n"));
    assert_non_null(strstr(
        f->seen.p, "file fifo.yaml bad 0 [fifo.yaml: is a FIFO, not a file; it is not looked into]\n"));
    assert_non_null(strstr(f->seen.p, "[fifo-link.yaml: is a FIFO, not a file; it is not looked into]\n"));
    assert_non_null(strstr(f->seen.p, "[device.yaml: is a device, not a file; it is not looked into]\n"));
    assert_non_null(strstr(f->seen.p, "[dangling.yaml: is a symbolic link that leads nowhere: "));

    at(f, "socket.yaml", path);
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    to_see(f, "[socket.yaml: is a socket, not a file; it is not looked into]\n");
    at(f, "later.yaml", path);
    mkfifo(path, 0644);
    to_see(f, "[later.yaml: is a FIFO, not a file; it is not looked into]\n");
}

static void a_file_that_is_too_long_is_refused_with_its_size(void **state)
{
    struct fixture *f = *state;
    char path[200];
    int fd;

    start(f);
    at(f, "big.yaml", path);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, API_FILE_MAX + 1), 0);
    close(fd);
    to_see(f, "file big.yaml bad 0 [big.yaml: has 10485761 bytes, allowed are 10485760]\n");
}

static void a_file_that_becomes_readable_counts(void **state)
{
    struct fixture *f = *state;
    char path[200];

    if (geteuid() == 0) {
        print_message("skipped: root reads everything\n");
        skip();
    }
    write_file(f, "a.yaml", POD("a", "x:1"));
    at(f, "a.yaml", path);
    chmod(path, 0);
    start(f);
    to_see(f, "file a.yaml bad 0 [a.yaml: cannot be read: Permission denied]\n");
    chmod(path, 0644);
    to_see(f, "added Pod default/a x:1\n");
}

static void left_overs_of_tools_are_ignored(void **state)
{
    static const char *const ignored[] = { ".a.yaml", "#a.yaml#",        "a.yaml~",         "a.swp",
                                           "a.swx",   "a.tmp",           "a.bak",           "a.orig",
                                           "a.rej",   "a.yaml.dpkg-old", "a.yaml.dpkg-new", "a.rpmsave",
                                           "4913",    "..data" };
    static const char *const counted[] = { "a.yaml", "a", "a.txt", "a.json", "b#", "14913", "atmp" };

    (void)state;
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        assert_true(manifest_ignored(ignored[i]));
    for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
        assert_false(manifest_ignored(counted[i]));
}

/* ---- two files, one object ------------------------------------------------------------------- */

static void the_first_file_that_names_an_object_stays_and_the_other_takes_its_place(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("p", "x:1"));
    write_file(f, "b.yaml", POD("p", "x:2") CONFIG("only-b", "v"));
    start(f);
    to_see(f, "first set\n");
    assert_seen(f, "added Pod default/p x:1\nfile a.yaml ok 1\n"
                   "file b.yaml bad 0 [b.yaml:1:metadata.name: Pod default/p is defined in a.yaml already; "
                   "the first one stays]\n"
                   "first set\n");
    delete (f, "a.yaml");
    to_see(f, "file b.yaml ok 2\n");
    quiet(f);
    assert_seen(f, "added ConfigMap default/only-b\nupdated Pod default/p x:2\nfile b.yaml ok 2\n");
}

static void two_documents_of_a_file_that_name_one_object_are_a_problem(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("p", "x:1") "---\n" POD("p", "x:2"));
    start(f);
    to_see(f, "first set\n");
    assert_seen(f, "file a.yaml bad 0 [a.yaml:2:metadata.name: Pod default/p is defined in a.yaml, document "
                   "1 already; the first "
                   "one stays]\nfirst set\n");
}

static void a_document_that_moves_to_another_file_is_not_removed_in_between(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("p", "x:1") CONFIG("c", "v"));
    write_file(f, "b.yaml", POD("q", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    write_file(f, "a.yaml", POD("p", "x:1")); /* the ConfigMap leaves a and comes to b */
    write_file(f, "b.yaml", POD("q", "x:1") CONFIG("c", "v"));
    to_see(f, "file b.yaml ok 2\n");
    quiet(f);
    assert_null(strstr(f->seen.p, "ConfigMap"));
    buf_reset(&f->seen);

    write_file(f, "a.yaml", POD("p", "x:1") CONFIG("c", "v")); /* and back, in the other order */
    write_file(f, "b.yaml", POD("q", "x:1"));
    to_see(f, "file a.yaml ok 2\n");
    quiet(f);
    assert_null(strstr(f->seen.p, "added"));
    assert_null(strstr(f->seen.p, "removed"));
}

/* ---- links ----------------------------------------------------------------------------------- */

static void a_mounted_config_map_acts_when_its_generation_changes(void **state)
{
    struct fixture *f = *state;
    char path[200];

    at(f, "..gen1", path);
    mkdir(path, 0755);
    write_file(f, "..gen1/a.yaml", POD("a", "x:1"));
    write_file(f, "..gen1/b.yaml", POD("b", "x:1"));
    link_to(f, "..gen1", "..data");
    link_to(f, "..data/a.yaml", "a.yaml");
    link_to(f, "..data/b.yaml", "b.yaml");
    start(f);
    to_see(f, "first set\n");
    quiet(f);
    buf_reset(&f->seen);

    at(f, "..gen2", path);
    mkdir(path, 0755);
    write_file(f, "..gen2/a.yaml", POD("a", "x:2"));
    link_to(f, "..gen2", "..data_tmp");
    move(f, "..data_tmp", "..data");
    delete (f, "b.yaml");
    delete (f, "..gen1/a.yaml");
    delete (f, "..gen1/b.yaml");
    at(f, "..gen1", path);
    rmdir(path);
    to_see(f, "updated Pod default/a x:2\n");
    to_see(f, "removed Pod default/b\n");
    quiet(f);
    assert_null(strstr(f->seen.p, "removed Pod default/a"));
}

static void what_a_link_leads_to_is_watched_too(void **state)
{
    struct fixture *f = *state;
    char elsewhere[100], target[120], other[120];
    FILE *out;

    snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", f->root);
    mkdir(elsewhere, 0755);
    snprintf(target, sizeof(target), "%s/real.yaml", elsewhere);
    snprintf(other, sizeof(other), "%s/other.yaml", elsewhere);
    out = fopen(target, "we");
    fputs(POD("a", "x:1"), out);
    fclose(out);
    start(f);
    to_see(f, "first set\n");
    link_to(f, target, "a.yaml");
    to_see(f, "added Pod default/a x:1\n");
    quiet(f);
    out = fopen(target, "we");
    fputs(POD("a", "x:2"), out);
    fclose(out);
    to_see(f, "updated Pod default/a x:2\n");
    out = fopen(other, "we");
    fputs(POD("a", "x:3"), out);
    fclose(out);
    assert_int_equal(rename(other, target), 0);
    to_see(f, "updated Pod default/a x:3\n");
}

/* ---- the folder itself ----------------------------------------------------------------------- */

static void a_folder_that_goes_takes_nothing_with_it_and_decides_when_it_is_back(void **state)
{
    struct fixture *f = *state;
    char away[120];

    write_file(f, "a.yaml", POD("a", "x:1"));
    write_file(f, "b.yaml", POD("b", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);

    snprintf(away, sizeof(away), "%s/away", f->root);
    assert_int_equal(rename(f->dir, away), 0);
    quiet(f);
    assert_seen(f, "");
    mkdir(f->dir, 0755);
    write_file(f, "a.yaml", POD("a", "x:2"));
    to_see(f, "updated Pod default/a x:2\n");
    to_see(f, "removed Pod default/b\n");
    quiet(f);
    buf_reset(&f->seen);

    delete (f, "a.yaml"); /* rm -r: the files first, then the folder */
    rmdir(f->dir);
    quiet(f);
    assert_seen(f, "");
    mkdir(f->dir, 0755);
    to_see(f, "removed Pod default/a\n");
}

static void a_parent_that_is_replaced_brings_its_own_folder(void **state)
{
    struct fixture *f = *state;
    char parent[96], away[150], next[150], path[200];
    FILE *out;

    snprintf(parent, sizeof(parent), "%s/parent", f->root);
    mkdir(parent, 0755);
    snprintf(f->dir, sizeof(f->dir), "%s/parent/m", f->root);
    mkdir(f->dir, 0755);
    write_file(f, "a.yaml", POD("a", "x:1"));
    start(f);
    to_see(f, "first set\n");
    snprintf(away, sizeof(away), "%s/away", f->root);
    snprintf(next, sizeof(next), "%s/next", f->root);
    mkdir(next, 0755);
    snprintf(path, sizeof(path), "%s/m", next);
    mkdir(path, 0755);
    strcat(path, "/a.yaml");
    out = fopen(path, "we");
    fputs(POD("a", "x:2"), out);
    fclose(out);
    assert_int_equal(rename(parent, away), 0);
    assert_int_equal(rename(next, parent), 0);
    to_see(f, "updated Pod default/a x:2\n");
}

static void an_unmounted_disk_ends_no_pod(void **state)
{
    struct fixture *f = *state;

    if (mount("test-folder", f->dir, "tmpfs", 0, NULL) < 0) {
        print_message("skipped: needs root\n");
        skip();
    }
    write_file(f, "a.yaml", POD("a", "x:1"));
    start(f);
    to_see(f, "added Pod default/a x:1\n");
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
    quiet(f);
    assert_seen(f, "");
    assert_int_equal(mount("test-folder", f->dir, "tmpfs", 0, NULL), 0);
    to_see(f, "removed Pod default/a\n"); /* it is another, empty disk: its content decides */
    write_file(f, "a.yaml", POD("a", "x:2"));
    to_see(f, "added Pod default/a x:2\n");
    buf_reset(&f->seen);

    assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
    quiet(f);
    assert_seen(f, "");
    write_file(f, "b.yaml", POD("b", "x:1")); /* somebody works without the disk now */
    to_see(f, "added Pod default/b x:1\n");
    to_see(f, "removed Pod default/a\n");
}

static void lost_events_are_made_up_for_by_reading_all(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("a", "x:1"));
    write_file(f, "b.yaml", POD("b", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    /* As after an overflow: what happened was not seen. */
    uv_poll_stop(&f->folder->inotify_poll);
    write_file(f, "a.yaml", POD("a", "x:2"));
    delete (f, "b.yaml");
    quiet(f);
    assert_seen(f, "");
    folder_rescan(f->folder);
    to_see(f, "updated Pod default/a x:2\n");
    to_see(f, "removed Pod default/b\n");
}

static void files_can_be_listed_by_name(void **state)
{
    struct fixture *f = *state;

    write_file(f, "b.yaml", "nonsense");
    write_file(f, "a.yaml", POD("a", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    src_folder_each(f->folder, on_file, f);
    assert_non_null(strstr(f->seen.p, "file a.yaml ok 1\nfile b.yaml bad 0 [b.yaml:1"));
}

static void closing_while_files_are_read_is_safe(void **state)
{
    struct fixture *f = *state;
    char name[20];

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "f%d.yaml", i);
        write_file(f, name, POD("a", "x:1"));
    }
    start(f);
    src_folder_close(f->folder);
    f->folder = NULL;
    quiet(f);
    assert_seen(f, "");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(all_files_are_in_the_store_before_the_first_set_is_told),
        T(an_empty_and_a_missing_folder_give_an_empty_first_set),
        T(a_path_that_is_no_folder_is_an_error),
        T(files_act_when_they_are_complete_and_only_when_something_changed),
        T(an_invalid_edit_leaves_what_was_there_in_force),
        T(an_immutable_object_stays_as_it_was),
        T(an_emptied_file_takes_nothing_away_but_a_removed_document_does),
        T(a_rename_and_an_editors_way_to_save_disturb_nobody),
        T(many_files_at_once_are_quick),
        T(a_huge_file_does_not_hold_up_the_loop),
        T(what_is_no_file_is_refused_and_never_opened),
        T(a_file_that_is_too_long_is_refused_with_its_size),
        T(a_file_that_becomes_readable_counts),
        cmocka_unit_test(left_overs_of_tools_are_ignored),
        T(the_first_file_that_names_an_object_stays_and_the_other_takes_its_place),
        T(two_documents_of_a_file_that_name_one_object_are_a_problem),
        T(a_document_that_moves_to_another_file_is_not_removed_in_between),
        T(a_mounted_config_map_acts_when_its_generation_changes),
        T(what_a_link_leads_to_is_watched_too),
        T(a_folder_that_goes_takes_nothing_with_it_and_decides_when_it_is_back),
        T(a_parent_that_is_replaced_brings_its_own_folder),
        T(an_unmounted_disk_ends_no_pod),
        T(lost_events_are_made_up_for_by_reading_all),
        T(files_can_be_listed_by_name),
        T(closing_while_files_are_read_is_safe),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
