/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation fails once: the error says so, nothing is shared or leaks, and the next try works. */
#include "tests/unit/volumes_quota/fake_kernel.h"

#include <time.h>

#include "tests/unit/base/nomem.h"

static enum err_code once(struct fixture *f, struct err *e)
{
    const struct projects_options o = { f->state, f->projects, f->projid };
    scoped(projects_close) struct projects *p = NULL;
    struct projects_wish w[2] = { { &f->fs, "uid", f->tree[0], 0 }, { &f->fs, "uid", f->tree[1], 0 } };
    uint32_t ids[3];
    size_t waiting;

    if (projects_open(&p, &o, e) != ERR_OK || projects_reserve(p, &f->fs, ids, 3, e) != ERR_OK)
        return e->code;
    w[0].id = ids[0];
    w[1].id = ids[1];
    if (projects_name_all(p, w, 2, e) != ERR_OK)
        return e->code;
    projects_unreserve(p);
    if (projects_take_all(p, w, 2, e) != ERR_OK || projects_release_all(p, w, 2, e) != ERR_OK)
        return e->code;
    return projects_sweep(p, &f->fs, &waiting, e);
}

static void each_allocation_of_a_life_may_fail(void **state)
{
    struct fixture *f = *state;
    bool ok = false;

    tzset(); /* glibc keeps what it reads for it */
    put_text(f->projects, "7:/srv\n");
    put_text(f->projid, "seven:7\n");
    NOMEM_EACH(ok, {
        struct err e = { 0 };
        long left;

        ok = once(f, &e) == ERR_OK;
        left = nomem_countdown;
        nomem_countdown = 0;
        if (!ok)
            assert_int_equal(e.code, ERR_EXHAUSTED);
        e = (struct err){ 0 };
        if (once(f, &e) != ERR_OK)
            fail_msg("%s", e.text);
        assert_text(f->projects, "7:/srv\n");
        assert_text(f->projid, "seven:7\n");
        assert_text(f->state, "{\"version\":1,\"projects\":[]}");
        nomem_countdown = left;
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(each_allocation_of_a_life_may_fail) };

    return NOMEM_RUN(tests);
}
