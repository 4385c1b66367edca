/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the cpu weight of the pods' unit is, from what systemctl says of the unit's files. */
#include "agent/unit_weight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define UNIT_FILE                                                                                            \
    "# /lib/systemd/system/coracle-pods.service\n# The cgroup of all pods.\n[Unit]\nDescription=x\n\n"       \
    "[Service]\nDelegate=yes\nStartupCPUWeight=7\n#CPUWeight=9\n"
#define OURS(weight)                                                                                         \
    "\n# /run/systemd/system.control/coracle-pods.service.d/50-CPUWeight.conf\n"                             \
    "# This is a drop-in unit file extension, created via \"systemctl set-property\"\n"                      \
    "# or an equivalent operation. Do not edit.\n[Service]\nCPUWeight=" weight "\n"
#define THEIRS(name, line)                                                                                   \
    "\n# /etc/systemd/system/coracle-pods.service.d/" name ".conf\n[Service]\n" line "\n"

static void expect(const char *cat, const char *due, bool theirs)
{
    char got[UNIT_WEIGHT_SIZE] = "none";
    bool is_theirs = unit_weight_due(cat, "174", got);

    if (strcmp(got, due) != 0 || is_theirs != theirs)
        fail_msg("due \"%s\", theirs %d, of:\n%s", got, is_theirs, cat);
}

static void ours_is_set_where_nobody_has_set_one(void **state)
{
    (void)state;
    expect(UNIT_FILE, "174", false);
    expect("", "174", false);
    expect(UNIT_FILE OURS("100"), "174", false); /* of other settings */
    expect(UNIT_FILE OURS("174"), "", false);
    expect(UNIT_FILE THEIRS("limits", "TasksMax=9"), "174", false);
    expect(UNIT_FILE THEIRS("a", "CPUWeight=5\nCPUWeight="), "174", false); /* taken back */
}

static void an_administrators_is_left_alone(void **state)
{
    (void)state;
    expect(UNIT_FILE THEIRS("override", "CPUWeight=321"), "", true);
    expect(UNIT_FILE THEIRS("override", "  CPUWeight = idle\t"), "", true);
    expect(UNIT_FILE THEIRS("override", "CPUWeight=174"), "", true);
    expect(UNIT_FILE "CPUWeight=50", "", true); /* in a copy of the unit's file; no end of line */
    expect(UNIT_FILE THEIRS("override", "CPUShares=512"), "", true);
    expect(UNIT_FILE THEIRS("override", "CPUWeight=ten percent"), "", true);
    expect(UNIT_FILE THEIRS("override", "CPUWeight=12345678901234567890"), "", true);
    /* `systemctl set-property` writes a file of the same name: only its folder is another. */
    expect(UNIT_FILE "\n# /etc/systemd/system.control/coracle-pods.service.d/50-CPUWeight.conf\n"
                     "[Service]\nCPUWeight=50\n",
           "", true);
}

static void ours_follows_an_administrators_that_it_would_hide(void **state)
{
    (void)state;
    expect(UNIT_FILE THEIRS("10-weight", "CPUWeight=321") OURS("174"), "321", true);
    expect(UNIT_FILE THEIRS("10-weight", "CPUWeight=321") OURS("321"), "", true);
    expect(UNIT_FILE OURS("100") THEIRS("override", "CPUWeight=321"), "", true); /* hides ours */
    expect(UNIT_FILE OURS("321"), "174", false); /* and goes back when that is gone */
    expect(UNIT_FILE THEIRS("10-weight", "CPUWeight=a b") OURS("174"), "", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ours_is_set_where_nobody_has_set_one),
        cmocka_unit_test(an_administrators_is_left_alone),
        cmocka_unit_test(ours_follows_an_administrators_that_it_would_hide),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
