/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation fails once: the error says so, nothing leaks half-done state, and the next try works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files/fs.h"
#include "volumes/internal.h"

#include <fcntl.h>
#include <time.h>

#include "tests/unit/base/nomem.h"

static void each_allocation_of_a_publish_may_fail(void **state)
{
    const struct vol_file files[] = { { .path = "a", .data = "x", .size = 1, .mode = 0644 },
                                      { .path = "b/c", .data = "y", .size = 1, .mode = 0644 } };
    char dir[] = "/tmp/coracle-nomem-test-XXXXXX";
    struct err e = { 0 };
    bool ok = false;

    (void)state;
    tzset(); /* glibc keeps what it reads for it */
    assert_non_null(mkdtemp(dir));
    NOMEM_EACH(ok, {
        struct vol_writer *w = NULL;
        bool changed = false;
        enum err_code code;
        long left;

        e = (struct err){ 0 };
        code = vol_writer_open(&w, dir, &e);
        if (code == ERR_OK)
            code = vol_writer_publish(w, files, 2, -1, &changed, &e);
        left = nomem_countdown;
        nomem_countdown = 0; /* the next try has its memory */
        ok = code == ERR_OK;
        if (!ok)
            assert_int_equal(code, ERR_EXHAUSTED);
        e = (struct err){ 0 };
        if (w == NULL)
            assert_int_equal(vol_writer_open(&w, dir, &e), ERR_OK);
        assert_int_equal(vol_writer_publish(w, files, 2, -1, &changed, &e), ERR_OK);
        assert_int_equal(vol_writer_publish(w, NULL, 0, -1, &changed, &e), ERR_OK);
        vol_writer_free(w);
        nomem_countdown = left;
    });
    assert_int_equal(fs_remove_tree(AT_FDCWD, dir, &e), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_allocation_of_a_publish_may_fail) };

    return NOMEM_RUN(tests);
}
