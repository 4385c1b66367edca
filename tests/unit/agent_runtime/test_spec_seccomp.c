/* SPDX-License-Identifier: Apache-2.0 */
#include "rt_fixture.h"

#include <linux/capability.h>

static const char profile_text[] =
    "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":1,\"defaultErrno\":\"ENOSYS\","
    "\"archMap\":[{\"architecture\":\"SCMP_ARCH_X86_64\",\"subArchitectures\":[\"SCMP_ARCH_X86\",\"SCMP_ARCH_"
    "X32\"]},"
    "{\"architecture\":\"SCMP_ARCH_AARCH64\",\"subArchitectures\":[\"SCMP_ARCH_ARM\"]}],"
    "\"syscalls\":["
    "{\"names\":[\"always\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[],\"comment\":\"\",\"includes\":{},"
    "\"excludes\":{}},"
    "{\"names\":[\"arm\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":{\"arches\":[\"arm\",\"arm64\"]}},"
    "{\"names\":[\"notarm\"],\"action\":\"SCMP_ACT_ALLOW\",\"excludes\":{\"arches\":[\"arm64\"]}},"
    "{\"names\":[\"admin\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":{\"caps\":[\"CAP_SYS_ADMIN\"]}},"
    "{\"names\":[\"noadmin\"],\"action\":\"SCMP_ACT_ERRNO\",\"errno\":\"EPERM\",\"errnoRet\":99,\"excludes\":"
    "{\"caps\":[\"CAP_SYS_ADMIN\"]}},"
    "{\"names\":[\"new\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":{\"minKernel\":\"4.8\"}},"
    "{\"names\":[\"number\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":22,\"args\":[{\"index\":0,\"value\":"
    "16,\"op\":\"SCMP_CMP_EQ\"}]},"
    "{\"name\":\"old\",\"action\":\"SCMP_ACT_ALLOW\"}"
    "]}";

/* "always admin ..." */
static void names_of(const json_t *converted, char ret[256])
{
    const json_t *rule;
    size_t i, n = 0;

    ret[0] = '\0';
    json_array_foreach (json_object_get(converted, "syscalls"), i, rule)
        n += (size_t)snprintf(ret + n, 256 - n, "%s%s", i > 0 ? " " : "",
                              json_string_value(json_array_get(json_object_get(rule, "names"), 0)));
}

static json_t *convert(const char *text, const struct rt_seccomp_host *host)
{
    json_auto_t *profile = json_loads(text, 0, NULL);
    json_t *converted = NULL;
    struct err e = { 0 };

    assert_non_null(profile);
    if (rt_seccomp_convert(profile, host, &converted, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return converted;
}

static void conditions_pick_the_rules(void **state)
{
    const struct {
        struct rt_seccomp_host host;
        const char *names, *architectures;
    } rows[] = {
        { { .machine = "x86_64", .kernel_major = 6, .kernel_minor = 1 },
          "always notarm noadmin new number old",
          "[\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_X86\",\"SCMP_ARCH_X32\"]" },
        { { .machine = "aarch64", .kernel_major = 4, .kernel_minor = 7, .caps = RT_CAP_BIT(CAP_SYS_ADMIN) },
          "always arm admin number old",
          "[\"SCMP_ARCH_AARCH64\",\"SCMP_ARCH_ARM\"]" },
        { { .machine = "loongarch64", .kernel_major = 4, .kernel_minor = 8 },
          "always notarm noadmin new number old",
          NULL },
    };
    char names[256];
    size_t i;

    (void)state;
    for (i = 0; i < ARRAY_LEN(rows); i++) {
        json_auto_t *c = convert(profile_text, &rows[i].host);
        str_auto architectures =
            json_dumps(json_object_get(c, "architectures"), JSON_COMPACT | JSON_ENCODE_ANY);

        names_of(c, names);
        assert_string_equal(names, rows[i].names);
        if (rows[i].architectures != NULL)
            assert_string_equal(architectures, rows[i].architectures);
        else
            assert_null(json_object_get(c, "architectures"));
    }
}

static void rules_come_out_in_the_specifications_form(void **state)
{
    const struct rt_seccomp_host host = { .machine = "x86_64", .kernel_major = 6 };
    json_auto_t *c = convert(profile_text, &host);
    json_t *rules = json_object_get(c, "syscalls");
    str_auto first = json_dumps(json_array_get(rules, 0), JSON_COMPACT);
    str_auto named = json_dumps(json_array_get(rules, 2), JSON_COMPACT);
    str_auto numbered = json_dumps(json_array_get(rules, 4), JSON_COMPACT);

    (void)state;
    assert_int_equal(json_integer_value(json_object_get(c, "defaultErrnoRet")), 38); /* by name, which wins */
    assert_string_equal(first, "{\"names\":[\"always\"],\"action\":\"SCMP_ACT_ALLOW\"}");
    assert_string_equal(named, "{\"names\":[\"noadmin\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1}");
    assert_string_equal(
        numbered, "{\"names\":[\"number\"],\"action\":\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":0,\"value\":16,"
                  "\"op\":\"SCMP_CMP_EQ\"}],\"errnoRet\":22}");
}

static void profile_in_ocis_own_form_passes_through(void **state)
{
    const struct rt_seccomp_host host = { .machine = "x86_64", .kernel_major = 6 };
    json_auto_t *c = convert(
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_X86_64\"],\"flags\":[\"A\"],"
        "\"syscalls\":[{\"names\":[\"mkdir\"],\"action\":\"SCMP_ACT_ERRNO\"}]}",
        &host);
    str_auto text = json_dumps(c, JSON_COMPACT);

    (void)state;
    assert_string_equal(
        text,
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"flags\":[\"A\"],\"architectures\":[\"SCMP_ARCH_X86_64\"],"
        "\"syscalls\":[{\"names\":[\"mkdir\"],\"action\":\"SCMP_ACT_ERRNO\"}]}");
}

static enum err_code resolve(struct fixture *f, json_t **ret, struct err *e)
{
    *e = (struct err){ 0 };
    return rt_seccomp_resolve(&f->rt.host, &f->config, 0, ret, e);
}

static void container_wins_over_pod_over_default_and_privileged_is_unconfined(void **state)
{
    struct fixture *f = *state;
    char path[128];
    struct err e;
    json_t *out;

    assert_int_equal(resolve(f, &out, &e), ERR_OK);
    assert_null(out); /* unset means unconfined */
    f->config.seccomp_default = true;
    assert_int_equal(resolve(f, &out, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, f->rt.host.seccomp_problem);

    fixture_write(f, "seccomp.json", profile_text);
    snprintf(path, sizeof(path), "%s/seccomp.json", f->dir);
    f->rt.host.seccomp_profile = path;
    assert_null(rt_seccomp_problem(&f->rt));
    assert_int_equal(resolve(f, &out, &e), ERR_OK);
    assert_non_null(out);
    json_decref(out);
    f->pod_security.seccomp.type = API_SECCOMP_UNCONFINED;
    assert_int_equal(resolve(f, &out, &e), ERR_OK);
    assert_null(out);
    f->security.seccomp.type = API_SECCOMP_RUNTIME_DEFAULT;
    assert_int_equal(resolve(f, &out, &e), ERR_OK);
    assert_non_null(out);
    json_decref(out);
    f->security.has_privileged = f->security.privileged = true;
    assert_int_equal(resolve(f, &out, &e), ERR_OK);
    assert_null(out);
}

static void localhost_profile_is_found_below_its_folder_only(void **state)
{
    struct fixture *f = *state;
    char dir[128], expected[512];
    struct err e;
    json_t *out;

    snprintf(dir, sizeof(dir), "%s/seccomp", f->dir);
    f->rt.host.localhost_seccomp_dir = dir;
    f->security.seccomp.type = API_SECCOMP_LOCALHOST;
    f->security.seccomp.localhost_profile = (char *)"no/such.json";
    snprintf(
        expected, sizeof(expected),
        "cannot load seccomp profile \"%s/no/such.json\": open %s/no/such.json: no such file or directory",
        dir, dir);
    assert_int_equal(resolve(f, &out, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, expected);
    fixture_write(f, "seccomp/no/such.json", "{\"defaultAction\":\"SCMP_ACT_LOG\"}");
    assert_int_equal(resolve(f, &out, &e), ERR_OK);
    assert_string_equal(json_string_value(json_object_get(out, "defaultAction")), "SCMP_ACT_LOG");
    json_decref(out);
    fixture_write(f, "seccomp/no/such.json", "{\"defaultAction\"");
    assert_int_equal(resolve(f, &out, &e), ERR_UNAVAILABLE);
    f->security.seccomp.localhost_profile = (char *)"../x.json";
    assert_int_equal(resolve(f, &out, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text,
                        "cannot load seccomp profile \"../x.json\": not a path below the profile folder");
}

static void broken_rules_are_named_by_position(void **state)
{
    const struct rt_seccomp_host host = { .machine = "x86_64" };
    json_auto_t *profile = json_loads(
        "{\"defaultAction\":\"A\",\"syscalls\":[{\"names\":[\"a\"],\"action\":\"A\"},{\"names\":[\"b\"]}]}",
        0, NULL);
    json_t *out = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(rt_seccomp_convert(profile, &host, &out, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "syscalls[1]: a rule needs names and an action");
    json_object_set_new(json_array_get(json_object_get(profile, "syscalls"), 1), "action",
                        json_string("SCMP_ACT_ERRNO"));
    json_object_set_new(json_array_get(json_object_get(profile, "syscalls"), 1), "errno",
                        json_string("ENOPE"));
    e = (struct err){ 0 };
    assert_int_equal(rt_seccomp_convert(profile, &host, &out, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "syscalls[1]: unknown errno \"ENOPE\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_pick_the_rules),
        cmocka_unit_test(rules_come_out_in_the_specifications_form),
        cmocka_unit_test(profile_in_ocis_own_form_passes_through),
        fixture_test(container_wins_over_pod_over_default_and_privileged_is_unconfined),
        fixture_test(localhost_profile_is_found_below_its_folder_only),
        cmocka_unit_test(broken_rules_are_named_by_position),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
