/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that keep the projects of files: what a filter of the result would do. */
#include "base/codec/json.h"
#include "rt_fixture.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>

static const uint32_t forbidden[] = { (uint32_t)FS_IOC_FSSETXATTR, (uint32_t)FS_IOC_SETFLAGS,
                                      (uint32_t)FS_IOC32_SETFLAGS };
static const struct rt_seccomp_host amd64 = { .machine = "x86_64", .kernel_major = 6, .kernel_minor = 1 };
static const struct rt_seccomp_host newer = { .machine = "x86_64", .kernel_major = 6, .kernel_minor = 17 };

static bool is_forbidden(uint64_t request)
{
    for (size_t i = 0; i < ARRAY_LEN(forbidden); i++)
        if ((uint32_t)request == forbidden[i])
            return true;
    return false;
}

static uint64_t any64(void)
{
    return (uint64_t)mrand48() << 32 ^ (uint64_t)(uint32_t)mrand48();
}

/* ---- sets of values ---- */

static size_t sets_with(const struct rt_values *v, size_t n, uint64_t x)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        found += (x & v[i].mask) == v[i].value;
    return found;
}

static void check_split(struct rt_values in, const uint32_t *without, size_t n_without)
{
    struct rt_values v[RT_SPLIT_MAX];
    size_t n = rt_values_without(in, without, n_without, v);

    assert_true(n <= RT_SPLIT_MAX);
    for (int i = 0; i < 20000; i++) {
        uint64_t x = any64();

        if (i % 2 == 0) { /* a value to be left out, or one that differs in a few bits */
            x = n_without > 0 ? without[(size_t)i / 2 % n_without] : 0;
            for (int k = i / 8 % 4; k > 0; k--)
                x ^= UINT64_C(1) << (lrand48() % 64);
        }
        bool wanted = (x & in.mask) == in.value;

        for (size_t k = 0; k < n_without; k++)
            wanted = wanted && (uint32_t)x != without[k];
        assert_int_equal(sets_with(v, n, x), wanted);
    }
    for (size_t i = 0; i < n_without; i++)
        for (int bit = 0; bit < 64; bit++) {
            uint64_t x = without[i] ^ UINT64_C(1) << bit;
            bool wanted = (x & in.mask) == in.value;

            for (size_t k = 0; k < n_without; k++)
                wanted = wanted && (uint32_t)x != without[k];
            assert_int_equal(sets_with(v, n, x), wanted);
        }
}

static void sets_have_all_values_but_those_left_out_once_each(void **state)
{
    struct rt_values v[RT_SPLIT_MAX];

    (void)state;
    srand48(1);
    assert_int_equal(rt_values_without((struct rt_values){ 0 }, NULL, 0, v), 1);
    check_split((struct rt_values){ 0 }, forbidden, ARRAY_LEN(forbidden));
    check_split((struct rt_values){ .mask = 0xff, .value = 0x02 }, forbidden, ARRAY_LEN(forbidden));
    check_split((struct rt_values){ .mask = 0xff, .value = 0x03 }, forbidden, ARRAY_LEN(forbidden));
    check_split((struct rt_values){ .mask = UINT64_MAX, .value = forbidden[0] }, forbidden, 3);
    check_split((struct rt_values){ .mask = UINT64_MAX << 32, .value = UINT64_C(5) << 32 }, forbidden, 3);
    for (int i = 0; i < 30; i++) {
        uint32_t without[RT_WITHOUT_MAX];
        uint64_t mask = any64() & any64();

        for (size_t k = 0; k < RT_WITHOUT_MAX; k++)
            without[k] =
                k > 0 && i % 3 == 0 ? without[0] ^ UINT32_C(1) << (lrand48() % 32) : (uint32_t)any64();
        check_split((struct rt_values){ .mask = mask, .value = (i % 2 == 0 ? without[0] : any64()) & mask },
                    without, RT_WITHOUT_MAX);
    }
}

/* ---- a filter ---- */

static bool cond_holds(const json_t *arg, const uint64_t args[6])
{
    uint64_t x = args[json_int(arg, "index", 0)], v = (uint64_t)json_int(arg, "value", 0);
    const char *op = json_str(arg, "op");

    if (str_eq(op, "SCMP_CMP_MASKED_EQ"))
        return (x & v) == (uint64_t)json_int(arg, "valueTwo", 0);
    return str_eq(op, "SCMP_CMP_EQ")   ? x == v
           : str_eq(op, "SCMP_CMP_NE") ? x != v
           : str_eq(op, "SCMP_CMP_LT") ? x < v
           : str_eq(op, "SCMP_CMP_LE") ? x <= v
           : str_eq(op, "SCMP_CMP_GE") ? x >= v
                                       : x > v;
}

/* As libseccomp has it: a rule without conditions goes before all others; these agree if several match. */
static const char *action_of(const json_t *profile, const char *name, const uint64_t args[6], int *ret_errno)
{
    const char *found = NULL;
    const json_t *rule, *arg;
    size_t i, k;

    *ret_errno = (int)json_int(profile, "defaultErrnoRet", EPERM);
    json_array_foreach (json_object_get(profile, "syscalls"), i, rule) {
        bool holds = json_has(json_object_get(rule, "names"), name);
        const char *action = json_str(rule, "action");

        json_array_foreach (json_object_get(rule, "args"), k, arg)
            holds = holds && cond_holds(arg, args);
        if (!holds)
            continue;
        *ret_errno = (int)json_int(rule, "errnoRet", EPERM);
        if (json_array_size(json_object_get(rule, "args")) == 0)
            return action;
        if (found != NULL)
            assert_string_equal(found, action);
        found = action;
    }
    return found != NULL ? found : json_str(profile, "defaultAction");
}

static const char *ioctl_of(const json_t *profile, uint64_t fd, uint64_t request, int *ret_errno)
{
    return action_of(profile, "ioctl", (const uint64_t[6]){ fd, request }, ret_errno);
}

static json_t *keep(const char *text, const struct rt_seccomp_host *host)
{
    json_t *profile = text != NULL ? json_loads(text, 0, NULL) : NULL;
    struct err e = { 0 };

    assert_true(text == NULL || profile != NULL);
    if (rt_seccomp_keep_projects(&profile, host, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return profile;
}

/* Requests of interest: refused ones, their neighbours in each bit, also with upper bits, and others. */
static uint64_t request(int i)
{
    static const uint64_t others[] = { 0, 0x5401, 0x5412, 0x5413, 0x80086601, 0x801c581f, UINT32_MAX };
    uint64_t f = forbidden[(size_t)i % 3];

    if (i < 3)
        return f;
    if (i < 3 + 3 * 64)
        return f ^ UINT64_C(1) << ((i - 3) / 3);
    if (i < 300)
        return others[(size_t)i % ARRAY_LEN(others)];
    return i % 2 == 0 ? any64() : (uint32_t)any64();
}
enum { REQUESTS = 3000 };

/* Refused ones get the error; the others what the profile said, where the kernel's view of the request (its
 * lower half) is concerned. */
static void check_profile(const char *text, int number)
{
    json_auto_t *before = json_loads(text, 0, NULL), *after = keep(text, &amd64);
    int sys, was;

    for (int i = 0; i < REQUESTS; i++)
        for (uint64_t fd = 0; fd < 2; fd++) {
            uint64_t r = request(i);
            const char *action = ioctl_of(after, fd, r, &sys), *old = ioctl_of(before, fd, r, &was);

            if (is_forbidden(r)) {
                assert_string_equal(action, "SCMP_ACT_ERRNO");
                assert_int_equal(sys, number);
            } else if (r <= UINT32_MAX && strcmp(action, old) != 0) {
                fail_msg("%s: request %llx: %s, and %s before", text, (unsigned long long)r, action, old);
            }
        }
}

static void unconfined_container_gets_a_filter_of_these_calls_only(void **state)
{
    json_auto_t *p = keep(NULL, &amd64), *q = keep(NULL, &newer), *board = NULL;
    struct rt_seccomp_host arm = { .machine = "aarch64", .kernel_major = 6 };
    str_auto architectures = json_dumps(json_object_get(p, "architectures"), JSON_COMPACT);
    int sys;

    (void)state;
    assert_string_equal(architectures, "[\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_X86\",\"SCMP_ARCH_X32\"]");
    assert_int_equal(json_array_size(json_object_get(p, "syscalls")), 3);
    for (int i = 0; i < REQUESTS; i++) {
        uint64_t r = request(i);

        assert_string_equal(ioctl_of(p, 3, r, &sys), is_forbidden(r) ? "SCMP_ACT_ERRNO" : "SCMP_ACT_ALLOW");
        assert_int_equal(sys, EPERM);
    }
    assert_string_equal(action_of(p, "file_setattr", (const uint64_t[6]){ 0 }, &sys), "SCMP_ACT_ALLOW");
    assert_string_equal(action_of(q, "file_setattr", (const uint64_t[6]){ 0 }, &sys), "SCMP_ACT_ERRNO");
    assert_int_equal(sys, ENOSYS);
    board = keep(NULL, &arm);
    str_auto others = json_dumps(json_object_get(board, "architectures"), JSON_COMPACT);
    assert_string_equal(others, "[\"SCMP_ARCH_AARCH64\",\"SCMP_ARCH_ARM\"]");
}

#define ALLOWS(args) "{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[" args "]}"
#define DENIED(rules) "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38,\"syscalls\":[" rules "]}"
#define ALLOWED(rules) "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[" rules "]}"
#define COND(index, op, value) "{\"index\":" index ",\"op\":\"SCMP_CMP_" op "\",\"value\":" value "}"
#define MASKED(mask, value)                                                                                  \
    "{\"index\":1,\"op\":\"SCMP_CMP_MASKED_EQ\",\"value\":" mask ",\"valueTwo\":" value "}"

static void allowance_of_ioctl_keeps_its_meaning_for_all_other_requests(void **state)
{
    (void)state;
    srand48(2);
    check_profile(DENIED("{\"names\":[\"read\",\"ioctl\"],\"action\":\"SCMP_ACT_ALLOW\"}"), EPERM);
    check_profile(DENIED("{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_LOG\"}"), EPERM);
    check_profile("{\"defaultAction\":\"SCMP_ACT_LOG\"}", EPERM);
    check_profile(ALLOWED(""), EPERM);
    check_profile(ALLOWED("{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_LOG\"}"), EPERM);
    check_profile(ALLOWED("{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":22}"), 22);
    check_profile(ALLOWED("{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_ERRNO\",\"args\":[" COND(
                      "1", "EQ", "21522") "]}"),
                  EPERM);
    check_profile(DENIED("{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\"}"), 38);
}

static void conditions_on_the_request_keep_theirs(void **state)
{
    (void)state;
    srand48(3);
    check_profile(DENIED(ALLOWS(COND("0", "EQ", "1"))), EPERM);
    check_profile(DENIED(ALLOWS(COND("1", "NE", "21522"))), EPERM); /* 0x5412 */
    check_profile(DENIED(ALLOWS(COND("1", "NE", "21522") "," COND("0", "EQ", "0"))), EPERM);
    check_profile(DENIED(ALLOWS(COND("1", "EQ", "21505"))), EPERM);
    check_profile(DENIED(ALLOWS(COND("1", "EQ", "1075599392"))), EPERM); /* FS_IOC_FSSETXATTR */
    check_profile(DENIED(ALLOWS(MASKED("255", "2"))), EPERM);
    check_profile(DENIED(ALLOWS(MASKED("255", "18"))), EPERM);
    check_profile(DENIED(ALLOWS(COND("1", "LE", "2147483647"))), EPERM);
    check_profile(DENIED(ALLOWS(COND("1", "LT", "1074292226"))), EPERM); /* FS_IOC_SETFLAGS */
    check_profile(DENIED(ALLOWS(COND("1", "GE", "1074292226"))), EPERM);
    check_profile(DENIED(ALLOWS(COND("1", "GT", "21522"))), EPERM);
    check_profile(DENIED(ALLOWS(COND("1", "LT", "0"))), EPERM);
    check_profile(DENIED(ALLOWS(COND("1", "GT", "4294967295"))), EPERM);
    check_profile(DENIED(ALLOWS(COND("1", "LE", "4294967296"))), EPERM);
}

static void other_calls_of_a_rule_stay_and_a_condition_twice_means_either(void **state)
{
    json_auto_t *p =
        keep(DENIED("{\"names\":[\"read\",\"ioctl\",\"file_setattr\"],\"action\":\"SCMP_ACT_ALLOW\"},"
                    "{\"names\":[\"file_setattr\"],\"action\":\"SCMP_ACT_ALLOW\"}"),
             &newer);
    json_auto_t *twice = keep(DENIED(ALLOWS(COND("1", "EQ", "1") "," COND("1", "EQ", "2"))), &amd64);
    int sys;

    (void)state;
    assert_string_equal(action_of(p, "read", (const uint64_t[6]){ 0 }, &sys), "SCMP_ACT_ALLOW");
    assert_string_equal(action_of(p, "file_setattr", (const uint64_t[6]){ 0 }, &sys), "SCMP_ACT_ERRNO");
    assert_int_equal(sys, 38);
    assert_string_equal(ioctl_of(twice, 0, 1, &sys), "SCMP_ACT_ALLOW");
    assert_string_equal(ioctl_of(twice, 0, 2, &sys), "SCMP_ACT_ALLOW");
    assert_string_equal(ioctl_of(twice, 0, 3, &sys), "SCMP_ACT_ERRNO");
}

static void profile_that_refuses_a_request_itself_keeps_its_answer(void **state)
{
    json_auto_t *p = keep(ALLOWED("{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_KILL\",\"args\":[" MASKED(
                              "4294967295", "1075599392") "]}"),
                          &amd64);
    int sys;

    (void)state;
    assert_string_equal(ioctl_of(p, 0, FS_IOC_FSSETXATTR, &sys), "SCMP_ACT_KILL");
    assert_int_equal(json_array_size(json_object_get(p, "syscalls")), 3);
}

/* ---- a container ---- */

static json_t *resolved(struct fixture *f)
{
    json_t *out = NULL;
    struct err e = { 0 };

    if (rt_seccomp_resolve(&f->rt.host, &f->config, 0, &out, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return out;
}

static void containers_are_kept_unless_privileged_or_in_a_user_namespace(void **state)
{
    struct fixture *f = *state;
    char path[128];
    int sys;

    f->config.keep_projects = true;
    json_auto_t *open = resolved(f);
    assert_string_equal(ioctl_of(open, 0, FS_IOC_SETFLAGS, &sys), "SCMP_ACT_ERRNO");

    fixture_write(f, "seccomp.json", DENIED("{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_ALLOW\"}"));
    snprintf(path, sizeof(path), "%s/seccomp.json", f->dir);
    f->rt.host.seccomp_profile = path;
    f->security.seccomp.type = API_SECCOMP_RUNTIME_DEFAULT;
    json_auto_t *confined = resolved(f);
    assert_string_equal(ioctl_of(confined, 0, FS_IOC_SETFLAGS, &sys), "SCMP_ACT_ERRNO");
    assert_int_equal(sys, EPERM);
    assert_string_equal(ioctl_of(confined, 0, 0x5401, &sys), "SCMP_ACT_ALLOW");

    f->config.userns = "/run/x/user";
    json_auto_t *mapped = resolved(f);
    assert_string_equal(ioctl_of(mapped, 0, FS_IOC_SETFLAGS, &sys), "SCMP_ACT_ALLOW");
    f->security.seccomp.type = API_SECCOMP_UNCONFINED;
    assert_null(resolved(f));
    f->config.userns = NULL;
    f->security.has_privileged = f->security.privileged = true;
    assert_null(resolved(f));
    f->security.privileged = false;
    f->config.keep_projects = false;
    assert_null(resolved(f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_have_all_values_but_those_left_out_once_each),
        cmocka_unit_test(unconfined_container_gets_a_filter_of_these_calls_only),
        cmocka_unit_test(allowance_of_ioctl_keeps_its_meaning_for_all_other_requests),
        cmocka_unit_test(conditions_on_the_request_keep_theirs),
        cmocka_unit_test(other_calls_of_a_rule_stay_and_a_condition_twice_means_either),
        cmocka_unit_test(profile_that_refuses_a_request_itself_keeps_its_answer),
        fixture_test(containers_are_kept_unless_privileged_or_in_a_user_namespace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
