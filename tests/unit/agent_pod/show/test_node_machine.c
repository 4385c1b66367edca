/* SPDX-License-Identifier: Apache-2.0 */
/* What nodeInfo takes from the machine's files, also from damaged ones. */
/* The order cmocka wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/pod/show/node_machine.h"
#include "base/codec/json.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[] = "/tmp/coracle-machine-XXXXXX";

static void file(const char *path, const char *text)
{
    char full[256], folder[256];
    struct err e = { 0 };

    snprintf(full, sizeof(full), "%s%s", root, path);
    snprintf(folder, sizeof(folder), "%s", full);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(fs_mkdirs(folder, 0755, &e), ERR_OK);
    assert_int_equal(fs_replace_at(AT_FDCWD, full, text, strlen(text), 0644, false, &e), ERR_OK);
}

static void shows(const char *machine, const char *system, const char *os)
{
    json_auto_t *o = json_object();
    const char *got;

    node_machine_put(o, root);
    got = json_str(o, "machineID");
    assert_string_equal(got != NULL ? got : "", machine);
    got = json_str(o, "systemUUID");
    assert_string_equal(got != NULL ? got : "", system);
    got = json_str(o, "osImage");
    assert_string_equal(got != NULL ? got : "", os);
}

static void test_files(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    shows("", "", "");
    file("/var/lib/dbus/machine-id", "abc\n");
    shows("abc", "abc", "");
    file("/etc/machine-id", "0123456789abcdef\n");
    file("/sys/class/dmi/id/product_uuid", "AB-CD\n");
    file("/usr/lib/os-release", "NAME=x\nPRETTY_NAME='One 1'\n");
    shows("0123456789abcdef", "ab-cd", "One 1");
    file("/etc/os-release", "ID=y\nPRETTY_NAME=\"Two 2 (b)\"\nPRETTY_NAME=no\n");
    shows("0123456789abcdef", "ab-cd", "Two 2 (b)");
    file("/etc/os-release", "PRETTY_NAME=\"\n");
    shows("0123456789abcdef", "ab-cd", "\"");
    file("/etc/os-release", "PRETTY_NAME=\n\n\n");
    shows("0123456789abcdef", "ab-cd", "");
    file("/etc/machine-id", "\n");
    shows("abc", "ab-cd", "");
    assert_int_equal(fs_remove_tree(AT_FDCWD, root, &(struct err){ 0 }), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_files) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
