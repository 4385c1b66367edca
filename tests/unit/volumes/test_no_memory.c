/* Every allocation fails once: the error says so, nothing leaks half-done state, and the next try works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fs.h"
#include "volumes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

static unsigned fail_at, seen; /* fail_at 0: none */

static inline bool fails(void)
{
    return fail_at != 0 && ++seen == fail_at;
}

#ifndef SANITIZED /* they bring their own */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
    return fails() ? (errno = ENOMEM, NULL) : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? (errno = ENOMEM, NULL) : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails() ? (errno = ENOMEM, NULL) : __libc_realloc(p, n);
}
#endif

static void each_allocation_of_a_publish_may_fail(void **state)
{
    const struct vol_file files[] = { { .path = "a", .data = "x", .size = 1, .mode = 0644 },
                                      { .path = "b/c", .data = "y", .size = 1, .mode = 0644 } };
    char dir[] = "/tmp/coracle-nomem-test-XXXXXX";
    struct err e = { 0 };

    (void)state;
#ifdef SANITIZED
    skip();
#endif
    assert_non_null(mkdtemp(dir));
    for (unsigned at = 1;; at++) {
        struct vol_writer *w = NULL;
        bool changed = false;
        e = (struct err){ 0 };
        seen = 0;
        fail_at = at;
        enum err_code code = vol_writer_open(&w, dir, &e);
        if (code == ERR_OK)
            code = vol_writer_publish(w, files, 2, -1, &changed, &e);
        bool over = seen < at;
        fail_at = 0;
        if (code != ERR_OK)
            assert_int_equal(code, ERR_EXHAUSTED);
        e = (struct err){ 0 };
        if (w == NULL)
            assert_int_equal(vol_writer_open(&w, dir, &e), ERR_OK);
        assert_int_equal(vol_writer_publish(w, files, 2, -1, &changed, &e), ERR_OK);
        assert_int_equal(vol_writer_publish(w, NULL, 0, -1, &changed, &e), ERR_OK);
        vol_writer_free(w);
        if (over)
            break;
        assert_true(at < 500);
    }
    assert_int_equal(fs_remove_tree(AT_FDCWD, dir, &e), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_allocation_of_a_publish_may_fail) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
