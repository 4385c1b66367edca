/* SPDX-License-Identifier: Apache-2.0 */
/* Which mounts lie below which, however their paths are written. */
#include "agent/pod/volume/volume_cover.h"
#include "tests/unit/agent_pod/world.h"

static void what_is_below_is_found_however_it_is_written(void **state)
{
    static const struct {
        const char *outer, *inner, *rest; /* NULL: not below */
    } cases[] = {
        { "/a", "/a/b", "b" },
        { "/a/", "//a//b/./c/", "b/c" },
        { "a", "/a/b", "b" },
        { "/a", "/a", NULL },
        { "/a", "/ab", NULL },
        { "/a/b", "/a", NULL },
        { "/a", "/a/../b", NULL },
        { "/", "/a", NULL },
        { "/a", "/a/..data", "..data" },
    };
    char rest[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool below = volume_cover_rest(cases[i].outer, cases[i].inner, rest, sizeof(rest));
        assert_int_equal(below, cases[i].rest != NULL);
        if (below)
            assert_string_equal(rest, cases[i].rest);
    }
    assert_false(volume_cover_rest("/a", "/a/longer-than-there-is-room", rest, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_below_is_found_however_it_is_written) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
