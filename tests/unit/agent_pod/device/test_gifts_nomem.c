/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a merge can fail: an error comes back, and nothing leaks. */
#include "agent/pod/device/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/base/nomem.h"

static struct dp_kv envs[] = { { "A", "1" }, { "B", "2" } }, others[] = { { "A", "3" } };
static struct dp_mount mounts[] = { { "/a", "/b", true } };
static struct dp_node nodes[] = { { "/dev/a", "/dev/b", "rw" } };
static const char *cdi[] = { "x.com/a=1" };

static void answers_are_merged_or_not(void **state)
{
    const struct dp_answer one = { .envs = envs,
                                   .n_envs = 2,
                                   .mounts = mounts,
                                   .n_mounts = 1,
                                   .nodes = nodes,
                                   .n_nodes = 1,
                                   .cdi = cdi,
                                   .n_cdi = 1 },
                           two = { .envs = others, .n_envs = 1, .annotations = others, .n_annotations = 1 };
    const struct device_gift gifts[] = { { "x.com/a", &one }, { "x.com/b", &two } };
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct arena arena = { 0 };
        struct dp_answer merged;
        struct strs conflicts = { 0 };
        struct err e = { 0 };

        ok = device_merge(gifts, 2, &arena, &merged, &conflicts, &e) == ERR_OK;
        if (!ok && e.code != ERR_EXHAUSTED)
            abort();
        if (ok && (merged.n_envs != 2 || merged.n_mounts != 1 || conflicts.n != 1))
            abort();
        strs_done(&conflicts);
        arena_done(&arena);
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_merged_or_not),
    };

    return NOMEM_RUN(tests);
}
