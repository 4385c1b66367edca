/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation that base makes can fail: an ordinary error comes back, and nothing leaks. */
#include "helper.h"

#include "base/arena.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <dirent.h>

#include "nomem.h"

static void buffers_report_it_once_at_the_end(void **state)
{
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct buf b = BUF_INIT(100000);
        struct err e = { 0 };
        char *text;
        int i;

        for (i = 0; i < 1000; i++)
            buf_addf(&b, "%d ", i);
        ok = buf_check(&b, &e) == ERR_OK;
        if (!ok && e.code != ERR_EXHAUSTED)
            abort();
        text = buf_detach(&b);
        free(text);
        buf_done(&b);
        text = buf_detach(&b); /* of an empty one allocates as well */
        ok = ok && text != NULL;
        free(text);
    });
}

static void arenas_return_null(void **state)
{
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct arena a = { 0 };

        ok = arena_alloc(&a, 10) != NULL;
        ok = arena_strdup(&a, "text") != NULL && ok;
        ok = arena_alloc(&a, 100000) != NULL && ok;
        ok = arena_printf(&a, "%2000d", 5) != NULL && ok;
        arena_done(&a);
    });
}

static void files_are_read_or_not(void **state)
{
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct err e = { 0 };
        char *text = NULL;

        ok = fs_read_at(AT_FDCWD, "/proc/self/maps", 1000000, &text, NULL, &e) == ERR_OK;
        if (!ok && (e.code != ERR_EXHAUSTED || text != NULL))
            abort();
        free(text);
    });
}

static void trees_are_removed_or_not(void **state)
{
    const char *dir = *state;
    char path[300];
    bool ok = false;
    int i;

    NOMEM_EACH(ok, {
        struct err e = { 0 };
        long left = nomem_countdown;

        nomem_countdown = 0; /* making it must work */
        snprintf(path, sizeof(path), "%s/t", dir);
        for (i = 0; i < 20; i++) {
            mkdir(path, 0755);
            strcat(path, "/d");
        }
        snprintf(path, sizeof(path), "%s/t", dir);
        nomem_countdown = left;
        ok = fs_remove_tree(AT_FDCWD, path, &e) == ERR_OK;
        if (!ok && e.code != ERR_EXHAUSTED)
            abort();
    });
}

static bool count(const struct fs_mount *m, void *arg)
{
    (void)m;
    ++*(int *)arg;
    return true;
}

static void mounts_are_listed_or_not(void **state)
{
    bool ok = false;
    int n;

    (void)state;
    NOMEM_EACH(ok, {
        struct err e = { 0 };

        n = 0;
        ok = fs_each_mount(NULL, count, &n, &e) == ERR_OK;
        if (!ok && (e.code != ERR_EXHAUSTED || n != 0))
            abort();
    });
}

static void json_is_parsed_or_not(void **state)
{
    static const char text[] = "{\"a\":[1,2,{\"b\":\"c\"}],\"d\":\"e\"}";
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct err e = { 0 };
        json_t *v = NULL;
        char *out = NULL;

        ok = json_parse(text, strlen(text), 1000, &v, "x", &e) == ERR_OK;
        ok = ok && json_put_str(v, "f", "not utf-8: \xff");
        ok = ok && (out = json_text(v)) != NULL;
        json_decref(v);
        free(out);
    });
}

/* libuv ends the process when its own tables cannot grow: it keeps its memory. */
static int processes_setup(void **state)
{
#if NOMEM_USABLE
    uv_replace_allocator(__libc_malloc, __libc_realloc, __libc_calloc, __libc_free);
#endif
    return loop_make(state);
}

static void processes_fail_as_operations(void **state)
{
    const char *const argv[] = { "/bin/sh", "-c", "echo out; echo err >&2; cat", NULL };
    struct proc_spec spec = {
        .name = "t", .argv = argv, .stdin_data = "x", .stdin_size = 1, .stdout_max = 100, .cgroup_fd = -1
    };
    struct ended *d = *state;
    int calls = 0;
    bool ok = false;
    struct proc first;

    proc_start(&first, &spec, d->loop, on_ended,
               d); /* with it the thread that starts children, which stays */
    while (d->calls == calls)
        uv_run(d->loop, UV_RUN_ONCE);
    proc_forget(d->loop);
    uv_run(d->loop, UV_RUN_NOWAIT);
    calls = d->calls;
    NOMEM_EACH(ok, {
        struct proc p;

        proc_start(&p, &spec, d->loop, on_ended, d);
        while (d->calls == calls)
            uv_run(d->loop, UV_RUN_ONCE);
        proc_forget(d->loop);
        uv_run(d->loop, UV_RUN_NOWAIT);
        calls = d->calls;
        ok = d->result.code == ERR_OK;
        if (!ok && d->result.code != ERR_EXHAUSTED)
            abort();
    });
}

static enum err_code says(const void *arg, struct buf *out, struct err *e)
{
    (void)e;
    buf_adds(out, arg);
    return ERR_OK;
}

static void calls_fail_as_operations(void **state)
{
    struct proc_call_spec spec = { .name = "t", .fn = says, .arg = "hello", .out_max = 100, .cgroup_fd = -1 };
    struct ended *d = *state;
    int calls = 0;
    bool ok = false;

    NOMEM_EACH(ok, {
        struct proc_call c;

        proc_call_start(&c, &spec, d->loop, on_ended, d);
        while (d->calls == calls)
            uv_run(d->loop, UV_RUN_ONCE);
        calls = d->calls;
        ok = d->result.code == ERR_OK;
        if (!ok && d->result.code != ERR_EXHAUSTED)
            abort();
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_report_it_once_at_the_end),
        cmocka_unit_test(arenas_return_null),
        cmocka_unit_test(files_are_read_or_not),
        cmocka_unit_test_setup_teardown(trees_are_removed_or_not, scratch_make, scratch_remove),
        cmocka_unit_test(mounts_are_listed_or_not),
        cmocka_unit_test(json_is_parsed_or_not),
        cmocka_unit_test_setup_teardown(processes_fail_as_operations, processes_setup, loop_remove),
        cmocka_unit_test_setup_teardown(calls_fail_as_operations, processes_setup, loop_remove),
    };

    return NOMEM_RUN(tests);
}
