/* SPDX-License-Identifier: Apache-2.0 */
/* Spec files: what they become, and what is wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/cdi/internal.h"

#include <string.h>

struct decoded {
    struct arena arena;
    struct api_problems problems;
    struct cdi_spec spec;
    bool good;
};

static void decode(struct decoded *d, const char *text)
{
    struct err e = { 0 };

    *d = (struct decoded){ 0 };
    d->good = cdi_decode("x.json", text, strlen(text), &d->arena, &d->problems, &d->spec, &e);
    assert_int_equal(e.code, ERR_OK);
    assert_true(d->good == (d->problems.n == 0));
}

static void drop(struct decoded *d)
{
    arena_done(&d->arena);
    api_problems_done(&d->problems);
}

/* Exactly one problem, with this text. */
static void refused(const char *text, const char *expected)
{
    struct decoded d;
    buf_auto all = BUF_INIT(1 << 16);

    decode(&d, text);
    for (size_t i = 0; i < d.problems.n; i++) {
        api_problem_add_text(&d.problems.v[i], "", &all);
        buf_addc(&all, '\n');
    }
    str_auto wanted = str_printf("%s\n", expected);
    assert_string_equal(all.p, wanted);
    drop(&d);
}

#define SPEC(version, more) "{\"cdiVersion\":\"" version "\",\"kind\":\"example.com/dev\"," more "}"
#define DEVICE(edits) "\"devices\":[{\"name\":\"a\",\"containerEdits\":{" edits "}}]"
#define ENV "\"env\":[\"A=1\"]"

static void all_edits_are_read(void **state)
{
    struct decoded d;

    (void)state;
    decode(
        &d,
        "cdiVersion: v1.1.0\n"
        "kind: example.com/dev\n"
        "annotations: {Example.com/Note: hello}\n"
        "containerEdits:\n"
        "  env: [ALL=1]\n"
        "devices:\n"
        "- name: zero\n"
        "  annotations: {note: x}\n"
        "  containerEdits:\n"
        "    additionalGIDs: [44, 109]\n"
        "    deviceNodes:\n"
        "    - {path: /dev/x, hostPath: /dev/zero, type: u, major: 1, minor: 5, fileMode: 0660, permissions: "
        "none, uid: 0, gid: 5}\n"
        "    - {path: /dev/y}\n"
        "    netDevices: [{hostInterfaceName: eth1, name: data0}]\n"
        "    hooks:\n"
        "    - {hookName: createContainer, path: /bin/tool, args: [tool, '--x'], env: [K=V], timeout: 3}\n"
        "    - {hookName: prestart, path: /bin/tool, timeout: null}\n"
        "    mounts:\n"
        "    - {hostPath: /a, containerPath: /b, options: [ro, bind], type: none}\n"
        "    intelRdt: {closID: gold, l3CacheSchema: 'L3:0=f', memBwSchema: 'MB:0=50', schemata: [x], "
        "enableMonitoring: true}\n"
        "- {name: 1.2:3, containerEdits: {env: [ONE=]}}\n");
    assert_true(d.good);
    assert_string_equal(d.spec.edits.env[0], "ALL=1");
    assert_int_equal(d.spec.n_devices, 2);
    assert_string_equal(d.spec.devices[0].name, "example.com/dev=1.2:3");
    assert_string_equal(d.spec.devices[1].name, "example.com/dev=zero");
    const struct rt_edits *e = &d.spec.devices[1].edits;
    assert_int_equal(e->n_gids, 2);
    assert_int_equal(e->gids[1], 109);
    assert_int_equal(e->n_nodes, 2);
    const struct rt_edit_node *x = &e->nodes[0], *y = &e->nodes[1];
    assert_string_equal(x->host_path, "/dev/zero");
    assert_true(x->type == 'u' && x->major == 1 && x->minor == 5 && x->has_file_mode && x->file_mode == 0660);
    assert_string_equal(x->permissions, "");
    assert_true(x->has_uid && x->uid == 0 && x->has_gid && x->gid == 5);
    assert_true(y->host_path == NULL && y->type == '\0' && y->permissions == NULL && !y->has_file_mode &&
                !y->has_uid && !y->has_gid);
    assert_string_equal(e->net_devices[0].host_name, "eth1");
    assert_int_equal(e->n_hooks, 2);
    assert_true(e->hooks[0].kind == RT_HOOK_CREATE_CONTAINER && e->hooks[0].n_args == 2 &&
                e->hooks[0].n_env == 1 && e->hooks[0].timeout_s == 3);
    assert_true(e->hooks[1].kind == RT_HOOK_PRESTART && e->hooks[1].timeout_s == 0);
    assert_int_equal(e->mounts[0].n_options, 2);
    assert_string_equal(e->mounts[0].type, "none");
    assert_string_equal(e->rdt->clos_id, "gold");
    assert_true(e->rdt->n_schemata == 1 && e->rdt->enable_monitoring);
    drop(&d);
}

static void fields_need_the_version_that_brought_them(void **state)
{
    static const struct {
        const char *text, *field, *version;
    } rows[] = {
        { SPEC("0.3.0",
               DEVICE("\"mounts\":[{\"hostPath\":\"a\",\"containerPath\":\"b\",\"type\":\"bind\"}]")),
          "devices[0].containerEdits.mounts[0].type", "0.4.0" },
        { SPEC("0.3.0", DEVICE("\"deviceNodes\":[{\"path\":\"a\",\"hostPath\":\"b\"}]")),
          "devices[0].containerEdits.deviceNodes[0].hostPath", "0.5.0" },
        { SPEC("0.3.0", "\"devices\":[{\"name\":\"1a\",\"containerEdits\":{" ENV "}}]"), "devices[0].name",
          "0.5.0" },
        { SPEC("0.3.0", "\"annotations\":{\"a\":\"b\"}," DEVICE(ENV)), "annotations", "0.6.0" },
        { SPEC("0.3.0", DEVICE("\"additionalGids\":[5]")), "devices[0].containerEdits.additionalGids",
          "0.7.0" },
        { SPEC("0.3.0", "\"containerEdits\":{\"intelRdt\":{}}," DEVICE(ENV)), "containerEdits.intelRdt",
          "0.7.0" },
        { SPEC("0.3.0", DEVICE("\"netDevices\":[{\"hostInterfaceName\":\"a\",\"name\":\"b\"}]")),
          "devices[0].containerEdits.netDevices", "1.1.0" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct decoded d;
        str_auto message = str_printf("needs cdiVersion %s or later, this file says 0.3.0", rows[i].version);
        str_auto raised = strdup(rows[i].text);

        decode(&d, rows[i].text);
        assert_int_equal(d.problems.n, 1);
        assert_string_equal(d.problems.v[0].field, rows[i].field);
        assert_string_equal(d.problems.v[0].message, message);
        drop(&d);
        memcpy(strstr(raised, "0.3.0"), rows[i].version, 5);
        decode(&d, raised);
        assert_true(d.good);
        drop(&d);
    }
    refused("{\"cdiVersion\":\"0.5.0\",\"kind\":\"example.com/a.b\"," DEVICE(ENV) "}",
            "x.json:1:23: kind: needs cdiVersion 0.6.0 or later, this file says 0.5.0");
    refused(
        SPEC("1.0.0", DEVICE("\"intelRdt\":{\"enableMonitoring\":true}")),
        "x.json:1:101: devices[0].containerEdits.intelRdt.enableMonitoring: needs cdiVersion 1.1.0 or later, "
        "this file says 1.0.0");
    /* empty ones need nothing, as in the library */
    struct decoded d;
    decode(&d, SPEC("0.3.0", "\"annotations\":{}," DEVICE(ENV ",\"additionalGids\":[],\"netDevices\":null")));
    assert_true(d.good);
    drop(&d);
}

static void a_problem_names_the_field_and_what_is_allowed(void **state)
{
    (void)state;
    refused("", "x.json: must have one document, not 0");
    refused("a: 1\n---\nb: 2\n", "x.json: must have one document, not 2");
    refused("{\"a\":", "x.json: document 1: line 1 column 5: not JSON: unexpected token");
    refused("[]", "x.json:1:1: must be an object");
    refused("{}", "x.json:1:1: cdiVersion: is required, as a string");
    refused("{\"cdiVersion\":\"0.2.0\"}", "x.json:1:2: cdiVersion: \"0.2.0\" is not known, allowed are "
                                          "0.3.0, 0.4.0, 0.5.0, 0.6.0, 0.7.0, 0.8.0, "
                                          "1.0.0 and 1.1.0");
    refused("{\"cdiVersion\":\"0.6.0\"," DEVICE(ENV) "}", "x.json:1:1: kind: is required");
    refused("{\"cdiVersion\":\"0.6.0\",\"kind\":\"dev\"," DEVICE(ENV) "}",
            "x.json:1:23: kind: \"dev\" must be vendor/class");
    refused("{\"cdiVersion\":\"0.6.0\",\"kind\":\"1a.com/dev\"," DEVICE(ENV) "}",
            "x.json:1:23: kind: \"1a.com/dev\": the vendor must consist of letters, digits, '_', '-' and "
            "'.', begin "
            "with a letter and end with a letter or digit");
    refused("{\"cdiVersion\":\"0.6.0\",\"kind\":\"a.com/d/e\"," DEVICE(ENV) "}",
            "x.json:1:23: kind: \"a.com/d/e\": the class must consist of letters, digits, '_', '-' and '.', "
            "begin "
            "with a letter and end with a letter or digit");
    refused(SPEC("0.6.0", "\"devices\":[]"), "x.json:1:48: devices: must have at least one");
    refused(SPEC("0.6.0", "\"devices\":[{\"name\":\"a b\",\"containerEdits\":{" ENV "}}]"),
            "x.json:1:60: devices[0].name: \"a b\" must consist of letters, digits, '_', '-', '.' and ':', "
            "and begin "
            "and end with a letter or digit");
    refused(SPEC("0.6.0", DEVICE("")),
            "x.json:1:71: devices[0].containerEdits: of a device must not be empty");
    refused(SPEC("0.6.0", "\"devices\":[{\"name\":\"a\",\"containerEdits\":{" ENV
                          "}},{\"name\":\"a\",\"containerEdits\":{" ENV "}}]"),
            "x.json:1:48: devices: there are two with the name \"a\"");
    refused(SPEC("0.6.0", DEVICE(ENV ",\"nodes\":[]")),
            "x.json:1:103: devices[0].containerEdits.nodes: is not a field of the CDI specification");
    refused(SPEC("0.6.0", DEVICE("\"env\":[\"=x\"]")),
            "x.json:1:96: devices[0].containerEdits.env[0]: \"=x\" must be NAME=value");
    refused(SPEC("0.6.0", DEVICE("\"env\":\"A=1\"")),
            "x.json:1:89: devices[0].containerEdits.env: must be a list");
    refused(
        SPEC("0.6.0", DEVICE("\"hooks\":[{\"hookName\":\"onStart\",\"path\":\"/x\"}]")),
        "x.json:1:99: devices[0].containerEdits.hooks[0].hookName: \"onStart\" is not a hook, allowed are "
        "prestart, createRuntime, createContainer, startContainer, poststart and poststop");
    refused(SPEC("0.6.0", DEVICE("\"hooks\":[{\"path\":\"/x\"}]")),
            "x.json:1:98: devices[0].containerEdits.hooks[0].hookName: is required");
    refused(SPEC("0.6.0", DEVICE("\"hooks\":[{\"hookName\":\"poststop\",\"path\":\"x\"}]")),
            "x.json:1:121: devices[0].containerEdits.hooks[0].path: \"x\" is not an absolute path");
    refused(SPEC("0.6.0", DEVICE("\"hooks\":[{\"hookName\":\"poststop\",\"path\":\"/x\",\"timeout\":0}]")),
            "x.json:1:133: devices[0].containerEdits.hooks[0].timeout: 0 is out of range, allowed are 1 to "
            "2147483647");
    refused(SPEC("0.6.0", DEVICE("\"deviceNodes\":[{\"path\":\"/x\",\"type\":\"d\"}]")),
            "x.json:1:117: devices[0].containerEdits.deviceNodes[0].type: \"d\" is not a type of device, "
            "allowed are "
            "b, c, u and p");
    refused(SPEC("0.6.0", DEVICE("\"deviceNodes\":[{\"path\":\"/x\",\"permissions\":\"rx\"}]")),
            "x.json:1:117: devices[0].containerEdits.deviceNodes[0].permissions: \"rx\" must be made of r, w "
            "and m, "
            "or be none");
    refused(SPEC("0.6.0", DEVICE("\"deviceNodes\":[{}]")),
            "x.json:1:104: devices[0].containerEdits.deviceNodes[0].path: is required");
    refused(SPEC("0.6.0", DEVICE("\"mounts\":[{\"hostPath\":\"\",\"containerPath\":\"/x\"}]")),
            "x.json:1:100: devices[0].containerEdits.mounts[0].hostPath: is required");
    refused(SPEC("0.7.0", DEVICE("\"additionalGids\":[4294967296]")),
            "x.json:1:107: devices[0].containerEdits.additionalGids[0]: 4294967296 is out of range, allowed "
            "are 0 to "
            "4294967295");
    refused(SPEC("0.7.0", DEVICE("\"intelRdt\":{\"closID\":\"a/b\"}")),
            "x.json:1:101: devices[0].containerEdits.intelRdt.closID: \"a/b\" must be the name of a folder, "
            "or /");
    refused(SPEC("1.1.0", DEVICE("\"netDevices\":[{\"hostInterfaceName\":\"a\",\"name\":\"x\"},"
                                 "{\"hostInterfaceName\":\"a\",\"name\":\"y\"}]")),
            "x.json:1:89: devices[0].containerEdits.netDevices: [0] and [1] have the same name");
    refused(SPEC("0.6.0", "\"annotations\":{\"a b\":\"c\"}," DEVICE(ENV)),
            "x.json:1:63: annotations[a b]: key must be a name of 1 to 63 characters (letters, digits, '-', "
            "'_', '.', beginning and ending with a letter or digit), optionally behind a DNS name and '/'");
    refused("{\"cdiVersion\":\"0.6.0\",\"CDIversion\":\"0.6.0\",\"kind\":\"a.b/c\"," DEVICE(ENV) "}",
            "x.json:1:23: CDIversion: appears twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_edits_are_read),
        cmocka_unit_test(fields_need_the_version_that_brought_them),
        cmocka_unit_test(a_problem_names_the_field_and_what_is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
