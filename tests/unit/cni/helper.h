/* SPDX-License-Identifier: Apache-2.0 */
/* helper - what the tests of cni/ share: a scratch folder with a loop, files in it, and the network of them.
 */
#ifndef TESTS_UNIT_CNI_HELPER_H
#define TESTS_UNIT_CNI_HELPER_H
/* The order cmocka wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/op.h"
#include "base/process/process.h"
#include "base/scope.h"
#include "cni/cni.h"
#include "cni/plugin/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SKIP(why)                                                                                            \
    do {                                                                                                     \
        print_message("skipped: %s\n", why);                                                                 \
        skip();                                                                                              \
    } while (0)

struct place { /* the state of every test */
    char dir[64];
    int fd;
    uv_loop_t loop;
};

static inline int place_make(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    if (p == NULL || uv_loop_init(&p->loop) != 0)
        return -1;
    strcpy(p->dir, "/tmp/coracle-cni-XXXXXX");
    if (mkdtemp(p->dir) == NULL)
        return -1;
    p->fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = p;
    return p->fd < 0 ? -1 : 0;
}

/* No live handle, no live operation, nothing left behind. */
static inline int place_remove(void **state)
{
    struct place *p = *state;
    struct err e = { 0 };
    int bad = 0;

    /* Plugins that were being asked for their versions are ended first. */
    for (uint64_t until = clock_mono_ms() + 20000; op_count() != 0 && clock_mono_ms() < until; usleep(500))
        uv_run(&p->loop, UV_RUN_NOWAIT);
    proc_forget(&p->loop);
    for (int i = 0; i < 3; i++)
        uv_run(&p->loop, UV_RUN_NOWAIT);
    if (op_count() != 0) {
        print_message("%zu operations are still live\n", op_count());
        bad = 1;
    }
    if (uv_loop_close(&p->loop) != 0) {
        uv_print_all_handles(&p->loop, stderr);
        bad = 1;
    }
    close(p->fd);
    if (fs_unmount_below(p->dir, &e) != ERR_OK || fs_remove_tree(AT_FDCWD, p->dir, &e) != ERR_OK) {
        print_message("%s\n", e.text);
        bad = 1;
    }
    free(p);
    return bad;
}

/* <dir>/<path>; a new one at every call, a few live at a time. */
static inline const char *in_place(const struct place *p, const char *path)
{
    static char ring[8][256];
    static unsigned next;
    char *ret = ring[next++ % 8];

    snprintf(ret, sizeof(ring[0]), "%s/%s", p->dir, path);
    return ret;
}

static inline void put_mode(const struct place *p, const char *path, mode_t mode, const char *text)
{
    struct err e = { 0 };
    str_auto folder = strdup(path);
    char *slash = strrchr(folder, '/');

    if (slash != NULL) {
        *slash = '\0';
        assert_int_equal(fs_mkdirs_beneath(p->fd, folder, 0755, &e), ERR_OK);
    }
    if (fs_replace_at(p->fd, path, text, strlen(text), mode, false, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static inline void put(const struct place *p, const char *path, const char *text)
{
    put_mode(p, path, 0644, text);
}

/* The content of a file; "" when there is none.  The caller frees. */
static inline char *get(const struct place *p, const char *path)
{
    struct err e = { 0 };
    char *text = NULL;

    if (fs_read_at(p->fd, path, 1 << 20, &text, NULL, &e) != ERR_OK)
        text = strdup("");
    assert_non_null(text);
    return text;
}

static inline bool exists(const struct place *p, const char *path)
{
    return faccessat(p->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* How many entries a folder has. */
static inline size_t count(const struct place *p, const char *path)
{
    uv_fs_t req;
    int n = uv_fs_scandir(NULL, &req, in_place(p, path), 0, NULL);

    uv_fs_req_cleanup(&req);
    return n < 0 ? 0 : (size_t)n;
}

static inline json_t *parse(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(v);
    return v;
}

static inline void assert_json_equal(const json_t *v, const char *expected)
{
    json_auto_t *other = parse(expected);
    str_auto text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    str_auto want = json_dumps(other, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    assert_string_equal(text, want);
}

struct ended { /* owner of an operation under test */
    int calls;
    struct err result;
};

static inline void on_ended(struct op *op, const struct err *result)
{
    struct ended *d = op->owner;

    d->calls++;
    d->result = *result;
}

static inline void run_until_ended(struct place *p, struct ended *d)
{
    assert_int_equal(d->calls, 0);
    while (d->calls == 0 && uv_run(&p->loop, UV_RUN_ONCE) != 0)
        ;
    assert_int_equal(d->calls, 1);
}

/* The lists of <place>/net.d, with cache and data beside it. */
static inline struct cni *open_with(struct place *p, const char *const *bin_dirs)
{
    struct cni_options o = { .loop = &p->loop,
                             .conf_dir = in_place(p, "net.d"),
                             .bin_dirs = bin_dirs,
                             .cache_dir = in_place(p, "cache"),
                             .data_dir = in_place(p, "data"),
                             .ops_cgroup_fd = -1 };
    struct cni *c = NULL;
    struct err e = { 0 };

    assert_int_equal(cni_open(&c, &o, &e), ERR_OK);
    return c;
}

/* The same, with plugins in <place>/bin. */
static inline struct cni *open_cni(struct place *p)
{
    const char *const bin_dirs[] = { in_place(p, "bin"), "/nowhere", NULL };

    return open_with(p, bin_dirs);
}

/* cni_on_change() with a counter, and what run_until() takes then. */
static inline void on_change(void *arg)
{
    ++*(int *)arg;
}

static inline bool changed(void *arg)
{
    return *(int *)arg > 0;
}

/* Runs the loop until `done` says so; a watchdog of 20 s keeps a bug from hanging the suite. */
static inline void run_until(struct place *p, bool (*done)(void *arg), void *arg)
{
    uint64_t until = clock_mono_ms() + 20000;

    while (!done(arg)) {
        if (clock_mono_ms() > until)
            fail_msg("nothing happened");
        uv_run(&p->loop, UV_RUN_NOWAIT);
        usleep(500);
    }
}

static inline void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Until what happened in the folders so far was acted on: a timer set after the watch's ends after it. */
static inline void run_settled(struct place *p)
{
    uv_timer_t after;

    uv_run(&p->loop, UV_RUN_NOWAIT); /* takes the events */
    uv_timer_init(&p->loop, &after);
    uv_timer_start(&after, on_tick, CNI_WATCH_SETTLE_MS, 0);
    while (uv_is_active((uv_handle_t *)&after) || op_count() != 0)
        uv_run(&p->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&after, NULL);
    uv_run(&p->loop, UV_RUN_NOWAIT);
}
#endif
