/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_folder - a real folder and a running loop, for the tests of the manifest folder.  Everything that
 * happens is written down in `seen` as one line ("added Pod default/a", "file a.yaml ok 1", "file b.yaml
 * stale 1: where: what", "first set"); tests wait for a line, or see that none comes.
 */
#ifndef TESTS_UNIT_AGENT_SOURCE_LIVE_FOLDER_H
#define TESTS_UNIT_AGENT_SOURCE_LIVE_FOLDER_H
/* The order cmocka wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/source/internal.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { DEADLINE_MS = 10000, QUIET_MS = SRC_FOLDER_SETTLE_MS + 150 };

struct fixture {
    uv_loop_t loop;
    char root[64], dir[96];
    struct src_store *store;
    struct src_folder *folder;
    struct buf seen;
};

static inline void on_change(enum src_change change, const struct api_object *o, void *arg)
{
    static const char *const words[] = { "added", "updated", "removed" };
    const struct api_meta *meta = api_object_meta(o);
    struct fixture *f = arg;

    buf_addf(&f->seen, "%s %s %s/%s", words[change], api_kind_name(o->kind),
             meta->namespace != NULL ? meta->namespace : "", meta->name);
    if (o->kind == API_KIND_POD && change != SRC_REMOVED)
        buf_addf(&f->seen, " %s", o->pod->spec.containers[0].image);
    buf_addc(&f->seen, '\n');
}

static inline void on_file(const struct src_file *file, void *arg)
{
    struct fixture *f = arg;

    buf_addf(&f->seen, "file %s %s %zu", file->name,
             file->ok      ? "ok"
             : file->stale ? "stale"
                           : "bad",
             file->n_objects);
    for (size_t i = 0; i < file->n_problems; i++) {
        buf_adds(&f->seen, " [");
        api_problem_add_text(&file->problems[i], "", &f->seen);
        buf_addc(&f->seen, ']');
    }
    buf_addc(&f->seen, '\n');
}

static inline void on_first_set(void *arg)
{
    buf_adds(&((struct fixture *)arg)->seen, "first set\n");
}

static inline int setup(void **state)
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

static inline int teardown(void **state)
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

static inline void start(struct fixture *f)
{
    struct err e = { 0 };

    if (src_folder_open(&f->folder, &f->loop, f->dir, f->store, on_file, on_first_set, f, NULL, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_null(strstr(f->seen.p, "first set")); /* never from inside */
}

static inline void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop for one event or at most `ms`. */
static inline void turn(struct fixture *f, uint64_t ms)
{
    uv_timer_t tick;

    uv_timer_init(&f->loop, &tick);
    uv_timer_start(&tick, on_tick, ms, 0);
    uv_run(&f->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static inline void to_see(struct fixture *f, const char *text)
{
    uint64_t until = clock_mono_ms() + DEADLINE_MS;

    while (strstr(f->seen.p, text) == NULL) {
        if (clock_mono_ms() > until)
            fail_msg("waited for \"%s\", seen:\n%s", text, f->seen.p);
        turn(f, 100);
    }
}

static inline void quiet(struct fixture *f)
{
    uint64_t until = clock_mono_ms() + QUIET_MS;

    while (clock_mono_ms() < until)
        turn(f, 20);
}

/* All that was seen; then forgets it. */
static inline void assert_seen(struct fixture *f, const char *want)
{
    assert_string_equal(f->seen.p, want);
    buf_reset(&f->seen);
}

static inline void at(struct fixture *f, const char *name, char ret[200])
{
    snprintf(ret, 200, "%s/%s", f->dir, name);
}

static inline void write_file(struct fixture *f, const char *name, const char *text)
{
    char path[200];
    int fd;

    at(f, name, path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static inline void move(struct fixture *f, const char *from, const char *to)
{
    char a[200], b[200];

    at(f, from, a);
    at(f, to, b);
    assert_int_equal(rename(a, b), 0);
}

static inline void delete (struct fixture *f, const char *name)
{
    char path[200];

    at(f, name, path);
    assert_int_equal(unlink(path), 0);
}

static inline void link_to(struct fixture *f, const char *target, const char *name)
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

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#endif
