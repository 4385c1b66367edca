/* SPDX-License-Identifier: Apache-2.0 */
/* Controllers that are not there are named with what they disable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroups/internal.h"

#include <stdio.h>
#include <string.h>

static void add(const char *controller, const char *disables, void *arg)
{
    char *text = arg;
    size_t n = strlen(text);

    snprintf(text + n, 1024 - n, "%s: %s\n", controller, disables);
}

static void what_is_missing_is_named_with_what_it_disables(void **state)
{
    struct cg_tree t = { .layout = CG_V2, .n_hiers = 1 };
    char text[1024] = "";

    (void)state;
    t.hiers[0].controllers = CG_CTL_CPU | CG_CTL_MEMORY | CG_CTL_PIDS | CG_CTL_IO;
    cg_missing(&t, add, text);
    assert_string_equal(text,
                        "cpuset: containers cannot be assigned CPUs and memory nodes\n"
                        "hugetlb: huge pages are not limited: a container may use more than it requested\n");
}

static void controllers_are_looked_for_in_all_hierarchies(void **state)
{
    struct cg_tree t = { .layout = CG_V1, .n_hiers = 3 };
    char text[1024] = "";

    (void)state;
    t.hiers[0].controllers = CG_CTL_CPU | CG_CTL_CPUACCT | CG_CTL_HUGETLB;
    t.hiers[1].controllers = CG_CTL_MEMORY | CG_CTL_IO | CG_CTL_CPUSET;
    t.hiers[2].controllers = CG_CTL_PIDS;
    cg_missing(&t, add, text);
    assert_string_equal(text,
                        "freezer: processes are not frozen before they are killed: a fast-forking one may "
                        "take several rounds\n");
    t.layout = CG_V2; /* which needs no controller for that */
    text[0] = '\0';
    cg_missing(&t, add, text);
    assert_string_equal(text, "");
}

static void add_held(const char *controller, void *arg)
{
    strcat(arg, controller);
}

static void what_is_held_is_told(void **state)
{
    struct cg_tree t = { .layout = CG_HYBRID, .n_pinned = 1 };
    char text[1024] = "";

    (void)state;
    strcpy(t.pinned[0], "hugetlb");
    cg_held(&t, add_held, text);
    assert_string_equal(text, "hugetlb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_named_with_what_it_disables),
        cmocka_unit_test(controllers_are_looked_for_in_all_hierarchies),
        cmocka_unit_test(what_is_held_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
