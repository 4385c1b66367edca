/* SPDX-License-Identifier: Apache-2.0 */
/* Which names an extended resource may have, as recorded from kubelet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/scope.h"
#include "deviceplugin/resource_name.h"

#include <stdio.h>
#include <string.h>

static void a_name_has_a_domain_and_a_word(void **state)
{
    static const char *const good[] = { "example.com/dev", "a/b", "nvidia.com/gpu", "x-1.y/A_b.c-9",
                                        "example.com/GPU" };
    static const char *const bad[] = { "",
                                       "cpu",
                                       "/x",
                                       "x/",
                                       "example.com/x/y",
                                       "kubernetes.io/x",
                                       "a.kubernetes.io/x",
                                       "requests.example.com/x",
                                       "Example.com/x",
                                       "example.com/a b",
                                       "ex ample.com/a",
                                       "example..com/a",
                                       ".example/a",
                                       "example./a",
                                       "-a/b",
                                       "a-/b",
                                       "a.-b/c",
                                       "a/-b",
                                       "a/b.",
                                       "a/b\n",
                                       "\xc3\xa9/b" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!dp_resource_name_ok(good[i]))
            fail_msg("refused: \"%s\"", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (dp_resource_name_ok(bad[i]))
            fail_msg("accepted: \"%s\"", bad[i]);
}

/* "requests.<name>" has to be a name, too: its DNS part has at most 253 bytes. */
static void a_name_is_not_longer_than_kubelet_allows(void **state)
{
    char name[400];

    (void)state;
    snprintf(name, sizeof(name), "a/%063d", 1);
    assert_true(dp_resource_name_ok(name));
    snprintf(name, sizeof(name), "a/%064d", 1);
    assert_false(dp_resource_name_ok(name));
    snprintf(name, sizeof(name), "%0244d/b", 1);
    assert_true(dp_resource_name_ok(name));
    snprintf(name, sizeof(name), "%0245d/b", 1);
    assert_false(dp_resource_name_ok(name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_a_domain_and_a_word),
        cmocka_unit_test(a_name_is_not_longer_than_kubelet_allows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
