/* SPDX-License-Identifier: Apache-2.0 */
/* What a declaration may say, and in which words it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/declared/decl.h"
#include "base/buf.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

static struct decl_file parsed(const char *text)
{
    struct api_problems problems = { 0 };
    struct decl_file f;
    struct err e = { 0 };

    assert_int_equal(decl_parse("x.yaml", text, strlen(text), &f, &problems, &e), ERR_OK);
    for (size_t i = 0; i < problems.n; i++)
        print_message("%u: %s: %s\n", problems.v[i].place.line, problems.v[i].field, problems.v[i].message);
    assert_int_equal(problems.n, 0);
    api_problems_done(&problems);
    return f;
}

/* The first problem is "line: field: message"; nothing is in force. */
static void refused(const char *text, const char *wanted)
{
    struct api_problems problems = { 0 };
    struct decl_file f;
    struct err e = { 0 };
    str_auto found = NULL;

    assert_int_equal(decl_parse("x.yaml", text, strlen(text), &f, &problems, &e), ERR_OK);
    assert_int_equal(f.n, 0);
    assert_true(problems.n > 0);
    found = str_printf("%u: %s: %s", problems.v[0].place.line, problems.v[0].field, problems.v[0].message);
    assert_string_equal(found, wanted);
    api_problems_done(&problems);
    decl_done(&f);
}

static void the_models_own_file_is_read(void **state)
{
    struct decl_file f = parsed("domain: squat.ai\n"
                                "devices:\n"
                                "- name: serial\n"
                                "  groups:\n"
                                "  - paths: [{path: /dev/ttyUSB*}]\n"
                                "  - paths: [{path: '/dev/ttyACM[0-9]', optional: true}]\n"
                                "- name: fuse\n"
                                "  groups:\n"
                                "  - {count: 10, paths: [{path: /dev/fuse, permissions: mrw}]}\n"
                                "- name: capture\n"
                                "  groups:\n"
                                "  - paths:\n"
                                "    - {path: /dev/snd/pcmC0D0c, mountPath: /dev/snd/}\n"
                                "    - {path: /dev/snd/controlC0, limit: 10}\n"
                                "    - {path: /etc/asound.conf, type: Mount, readOnly: true}\n"
                                "- name: stick\n"
                                "  groups:\n"
                                "  - usb:\n"
                                "    - {vendor: '1209', product: 000F, serial: ''}\n"
                                "    - {vendor: '0x403', product: '6001', serial: A5*}\n");
    (void)state;

    assert_int_equal(f.n, 4);
    assert_string_equal(f.v[0].name, "squat.ai/serial");
    assert_int_equal(f.v[0].n_groups, 2);
    assert_int_equal(f.v[0].groups[0].count, 1);
    assert_string_equal(f.v[0].groups[0].v[0].permissions, "rwm");
    assert_int_equal(f.v[0].groups[0].v[0].limit, 1);
    assert_true(f.v[0].groups[1].v[0].optional);
    assert_int_equal(f.v[1].groups[0].count, 10);
    assert_string_equal(f.v[1].groups[0].v[0].permissions, "rwm");
    assert_int_equal(f.v[2].groups[0].n, 3);
    assert_string_equal(f.v[2].groups[0].v[0].mount_path, "/dev/snd/");
    assert_int_equal(f.v[2].groups[0].v[2].type, DECL_MOUNT);
    assert_true(f.v[2].groups[0].v[2].read_only);
    assert_int_equal(f.v[3].groups[0].v[0].type, DECL_USB);
    assert_string_equal(f.v[3].groups[0].v[0].match.product, "000f");
    assert_null(f.v[3].groups[0].v[0].match.serial);
    assert_string_equal(f.v[3].groups[0].v[1].match.vendor, "0403");
    assert_string_equal(f.v[3].groups[0].v[1].permissions, "rw");
    decl_done(&f);
}

static void a_node_is_matched_by_what_its_device_is(void **state)
{
    struct decl_file f = parsed("{\"devices\": [{\"name\": \"example.com/gpu\", \"groups\": [{\"paths\": [{"
                                "\"path\": \"/dev/dri/renderD*\", \"env\": \"GPU\", \"permissions\": \"rw\","
                                "\"match\": {\"subsystem\": \"drm\", \"vendor\": \"8086\","
                                "\"attributes\": {\"power/control\": \"auto\"}}}]}]}]}");
    const struct decl_member *m = &f.v[0].groups[0].v[0];
    (void)state;

    assert_string_equal(m->env, "GPU");
    assert_string_equal(m->match.subsystem, "drm");
    assert_string_equal(m->match.vendor, "8086");
    assert_int_equal(m->match.n_attributes, 1);
    assert_string_equal(m->match.attributes[0].name, "power/control");
    decl_done(&f);
}

static void each_document_is_of_its_own(void **state)
{
    struct decl_file f =
        parsed("domain: a.example\ndevices: [{name: x, groups: [{paths: [{path: /dev/x}]}]}]\n"
               "---\n---\n"
               "devices: [{name: b.example/x, groups: [{paths: [{path: /dev/x}]}]}]\n");
    (void)state;

    assert_int_equal(f.n, 2);
    assert_string_equal(f.v[0].name, "a.example/x");
    assert_string_equal(f.v[1].name, "b.example/x");
    assert_int_equal(f.v[1].document, 3);
    decl_done(&f);
}

#define ONE(member) "devices:\n- name: example.com/x\n  groups:\n  - paths:\n    - " member "\n"

static void a_field_is_refused_with_what_is_allowed(void **state)
{
    (void)state;
    refused("devices: 3\n", "1: devices: not a list with an element");
    refused("a: 1\n", "1: a: unknown field, allowed are domain, devices");
    refused("device: []\n", "1: device: unknown field; did you mean devices?");
    refused("- 1\n", "1: : not a mapping");
    refused("domain: a.example\n", "1: devices: required");
    refused("devices: [{groups: [{paths: [{path: /dev/x}]}]}]\n", "1: devices[0].name: required");
    refused("devices: [{name: example.com/x}]\n", "1: devices[0].groups: required");
    refused(
        "devices: [{name: x, groups: [{paths: [{path: /dev/x}]}]}]\n",
        "1: devices[0].name: \"x\" has no domain; either a name like example.com/x, or domain: at the top");
    refused("devices: [{name: cpu/, groups: [{paths: [{path: /dev/x}]}]}]\n",
            "1: devices[0].name: \"cpu/\" is not the name of an extended resource, which is a domain outside "
            "kubernetes.io, a slash, and up to 63 characters: example.com/modem");
    refused("devices: [{name: a.b/c, groups: [{count: 0, paths: [{path: /dev/x}]}]}]\n",
            "1: devices[0].groups[0].count: not a number from 1 to 1000");
    refused("devices: [{name: a.b/c, groups: [{count: 2}]}]\n",
            "1: devices[0].groups[0]: has neither paths nor usb");
    refused("devices: [{name: a.b/c, groups: [{paths: [{path: /x}], usb: [{vendor: a, product: b}]}]}]\n",
            "1: devices[0].groups[0]: has both paths and usb, allowed is one of them");
    refused("devices:\n- {name: a.b/c, groups: [{paths: [{path: /x}]}]}\n- {name: a.b/c, groups: [{paths: "
            "[{path: /x}]}]}\n",
            "1: : \"a.b/c\" is declared twice");
}

#define NO_PATTERN " is not an absolute path, with *, ? and [...] but without \".\", \"..\" and \"//\""

static void a_path_is_refused_with_what_is_allowed(void **state)
{
    (void)state;
    refused(ONE("{path: dev/x}"), "5: devices[0].groups[0].paths[0].path: \"dev/x\"" NO_PATTERN);
    refused(ONE("{path: /dev/../x}"), "5: devices[0].groups[0].paths[0].path: \"/dev/../x\"" NO_PATTERN);
    refused(ONE("{path: /dev//x}"), "5: devices[0].groups[0].paths[0].path: \"/dev//x\"" NO_PATTERN);
    refused(ONE("{path: /dev/x/}"), "5: devices[0].groups[0].paths[0].path: \"/dev/x/\"" NO_PATTERN);
    refused(ONE("{path: /}"), "5: devices[0].groups[0].paths[0].path: \"/\"" NO_PATTERN);
    refused(ONE("{path: '/dev/tty[0'}"), "5: devices[0].groups[0].paths[0].path: \"/dev/tty[0\"" NO_PATTERN);
    refused(ONE("{path: '/dev/[a/b]'}"), "5: devices[0].groups[0].paths[0].path: \"/dev/[a/b]\"" NO_PATTERN);
    refused(ONE("{path: 3}"), "5: devices[0].groups[0].paths[0].path: not a string (a number needs quotes)");
    refused(ONE("{mountPath: /x}"), "5: devices[0].groups[0].paths[0].path: required");
    refused(
        ONE("{path: /x, mountPath: x}"),
        "5: devices[0].groups[0].paths[0].mountPath: \"x\" is not an absolute path without \".\", \"..\", "
        "\"//\" and \":\"");
    refused(ONE("{path: /x, permissions: rwx}"),
            "5: devices[0].groups[0].paths[0].permissions: not letters of rwm (read, write, make nodes)");
    refused(ONE("{path: /x, type: File}"), "5: devices[0].groups[0].paths[0].type: neither Device nor Mount");
    refused(ONE("{path: /x, readOnly: true}"),
            "5: devices[0].groups[0].paths[0].readOnly: only for type: Mount; a device has permissions: r");
    refused(ONE("{path: /x, type: Mount, match: {port: 1-1}}"),
            "5: devices[0].groups[0].paths[0].match: only for type: Device");
    refused(ONE("{path: /x, limit: 1001}"),
            "5: devices[0].groups[0].paths[0].limit: not a number from 1 to 1000");
    refused(ONE("{path: /x, optional: maybe}"),
            "5: devices[0].groups[0].paths[0].optional: neither true nor false");
    refused(ONE("{path: /x, match: {vendor: 0403}}"),
            "5: devices[0].groups[0].paths[0].match.vendor: not a hexadecimal number of up to four digits in "
            "quotes, as in \"0403\"");
    refused(ONE("{path: /x, match: {vender: '0403'}}"),
            "5: devices[0].groups[0].paths[0].match.vender: unknown field; did you mean vendor?");
    refused(ONE("{path: /x, match: {attributes: {../x: y}}}"),
            "5: devices[0].groups[0].paths[0].match.attributes[../x]: \"../x\" is not the name of an "
            "attribute, as in \"idVendor\" or \"power/level\"");
}

static void a_usb_device_has_a_vendor_and_a_product(void **state)
{
    (void)state;
    refused("devices: [{name: a.b/c, groups: [{usb: [{product: '1'}]}]}]\n",
            "1: devices[0].groups[0].usb[0].vendor: required");
    refused("devices: [{name: a.b/c, groups: [{usb: [{vendor: '12345', product: '1'}]}]}]\n",
            "1: devices[0].groups[0].usb[0].vendor: not a hexadecimal number of up to four digits in quotes, "
            "as in \"0403\"");
    refused("devices: [{name: a.b/c, groups: [{usb: [{vendor: '1', product: '1', path: /dev/x}]}]}]\n",
            "1: devices[0].groups[0].usb[0].path: unknown field, allowed are vendor, product, serial, port, "
            "mountPath, permissions, optional, env, limit");
}

static void text_that_is_no_yaml_is_refused_with_its_place(void **state)
{
    (void)state;
    refused("devices: [\n",
            "2: : did not find expected node content (while parsing a flow node that began in line 2)");
    refused(ONE("{path: /x}") "---\nb: 1\n", "7: b: unknown field, allowed are domain, devices");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_models_own_file_is_read),
        cmocka_unit_test(a_node_is_matched_by_what_its_device_is),
        cmocka_unit_test(each_document_is_of_its_own),
        cmocka_unit_test(a_field_is_refused_with_what_is_allowed),
        cmocka_unit_test(a_path_is_refused_with_what_is_allowed),
        cmocka_unit_test(a_usb_device_has_a_vendor_and_a_product),
        cmocka_unit_test(text_that_is_no_yaml_is_refused_with_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
