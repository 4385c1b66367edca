/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seccomp: the container cannot change the project of a file, because projects count its disk usage.
 *
 * ioctl(2) has two requests for that (one of them with a second number for 32-bit programs); the kernel
 * ignores the upper 32 bits of a request, so rules compare the lower ones. Within one filter, libseccomp
 * prefers a rule without conditions to all other rules of that call, and a rule can compare each argument
 * only once. So a rule that allows ioctl is replaced by one rule for each set of requests without the refused
 * ones. file_setattr(2) reads its values from memory, which a filter cannot read: it fails as on a kernel
 * without it, and programs fall back to ioctl.
 */
#include "agent/runtime/spec/internal.h"

#include "base/codec/json.h"

#include <errno.h>
#include <linux/fs.h>
#include <string.h>

#define IOCTL "ioctl"
#define SETATTR "file_setattr"

#define LOW UINT64_C(0xffffffff)

enum {
    REQUEST = 1,       /* the argument of ioctl */
    RULES_MAX = 16384, /* a filter has at most 4096 instructions (BPF_MAXINSNS) */
};

static const uint32_t refused[] = { (uint32_t)FS_IOC_FSSETXATTR, (uint32_t)FS_IOC_SETFLAGS,
                                    (uint32_t)FS_IOC32_SETFLAGS };
_Static_assert(ARRAY_LEN(refused) < RT_WITHOUT_MAX, "one more may be left out: of SCMP_CMP_NE");

/* Whether a call with this action may be executed, including by a tracer or a listener. */
static bool action_allows(const char *action)
{
    static const char *const refusals[] = { "SCMP_ACT_ERRNO", "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS",
                                            "SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP" };

    for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
        if (str_eq(action, refusals[i]))
            return false;
    return true;
}

static json_t *condition(struct rt_values v)
{
    if (v.mask == UINT64_MAX)
        return json_pack("{s:i,s:I,s:s}", "index", REQUEST, "value", (json_int_t)v.value, "op",
                         "SCMP_CMP_EQ");
    return json_pack("{s:i,s:I,s:I,s:s}", "index", REQUEST, "value", (json_int_t)v.mask, "valueTwo",
                     (json_int_t)v.value, "op", "SCMP_CMP_MASKED_EQ");
}

/* ---- conditions of a profile ---- */

enum { PREFIXES = 33 };

struct sets { /* of requests; the sets of a range are disjoint, so RT_SPLIT_MAX bounds all their splits
                 together */
    struct rt_values v[PREFIXES + 2 * RT_SPLIT_MAX];
    size_t n;
};

static void sets_add(struct sets *s, struct rt_values in, const uint32_t *also)
{
    uint32_t without[RT_WITHOUT_MAX];
    size_t n = ARRAY_LEN(refused);

    memcpy(without, refused, sizeof(refused));
    if (also != NULL)
        without[n++] = *also;
    s->n += rt_values_without(in, without, n, &s->v[s->n]);
}

/* All values from `v` upwards or downwards, as prefixes of its bits. */
static void sets_add_range(struct sets *s, uint32_t v, bool up)
{
    for (uint32_t bit = UINT32_C(1) << 31; bit != 0; bit >>= 1) {
        uint32_t prefix = ~(bit - 1);

        if (((v & bit) == 0) == up)
            sets_add(s, (struct rt_values){ .mask = prefix, .value = (v ^ bit) & prefix }, NULL);
    }
    sets_add(s, (struct rt_values){ .mask = LOW, .value = v }, NULL);
}

/*
 * The requests of a condition without the refused ones. Only the lower 32 bits are compared: libseccomp
 * compares all 64, and since the kernel ignores the upper ones, a program could set them to choose the
 * result. False: the runtime will reject this operator.
 */
static bool sets_of_condition(const json_t *arg, struct sets *s)
{
    const char *op = json_str(arg, "op");
    uint64_t value = (uint64_t)json_int(arg, "value", 0), two = (uint64_t)json_int(arg, "valueTwo", 0);
    uint32_t low = (uint32_t)value;
    bool fits = value <= UINT32_MAX;

    if (str_eq(op, "SCMP_CMP_EQ"))
        sets_add(s, (struct rt_values){ .mask = UINT64_MAX, .value = value }, NULL);
    else if (str_eq(op, "SCMP_CMP_MASKED_EQ"))
        sets_add(s, (struct rt_values){ .mask = value, .value = two & value }, NULL);
    else if (str_eq(op, "SCMP_CMP_NE"))
        sets_add(s, (struct rt_values){ 0 }, fits ? &low : NULL);
    else if ((str_eq(op, "SCMP_CMP_LT") || str_eq(op, "SCMP_CMP_LE")) && !fits)
        sets_add(s, (struct rt_values){ 0 }, NULL);
    else if (str_eq(op, "SCMP_CMP_LE"))
        sets_add_range(s, low, false);
    else if (str_eq(op, "SCMP_CMP_GE")) {
        if (fits)
            sets_add_range(s, low, true);
    } else if (str_eq(op, "SCMP_CMP_LT")) {
        if (low > 0)
            sets_add_range(s, low - 1, false);
    } else if (str_eq(op, "SCMP_CMP_GT")) {
        if (fits && low < UINT32_MAX)
            sets_add_range(s, low + 1, true);
    } else
        return false;
    return true;
}

/* ---- rules ---- */

struct changing {
    const struct rt_seccomp_host *host;
    json_t *rules; /* the new ones */
    bool too_many;
    bool ioctl_allowed;                  /* for some requests */
    bool ioctl_refused, setattr_refused; /* for all requests, by the profile */
};

/* The rule with other names and arguments; args NULL: without. */
static bool put_rule(struct changing *c, const json_t *rule, const json_t *names, const json_t *args)
{
    json_auto_t *copy = json_copy((json_t *)rule);

    c->too_many = json_array_size(c->rules) >= RULES_MAX;
    if (c->too_many || names == NULL || copy == NULL || json_object_set(copy, "names", (json_t *)names) != 0)
        return false;
    json_object_del(copy, "args");
    if (args != NULL && json_object_set(copy, "args", (json_t *)args) != 0)
        return false;
    return json_array_append(c->rules, copy) == 0;
}

static bool put_sets(struct changing *c, const json_t *rule, const json_t *names, const json_t *others,
                     const struct sets *s)
{
    for (size_t i = 0; i < s->n; i++) {
        json_auto_t *args = json_copy((json_t *)others);

        if (json_array_append_new(args, condition(s->v[i])) != 0 || !put_rule(c, rule, names, args))
            return false;
    }
    return true;
}

/* Each argument occurs once at most. */
static bool put_ioctl(struct changing *c, const json_t *rule, const json_t *args)
{
    json_auto_t *others = json_array(), *names = json_pack("[s]", IOCTL);
    struct sets s; /* 5 KiB */
    bool conditional = false;
    const json_t *arg;
    size_t i;

    s.n = 0;
    c->ioctl_allowed = true;
    json_array_foreach (args, i, arg) {
        if (json_int(arg, "index", 0) != REQUEST) {
            if (json_array_append(others, (json_t *)arg) != 0)
                return false;
            continue;
        }
        conditional = true;
        if (!sets_of_condition(arg, &s))
            return put_rule(c, rule, names, args);
    }
    if (!conditional)
        sets_add(&s, (struct rt_values){ 0 }, NULL);
    return put_sets(c, rule, names, others, &s);
}

static bool has_argument_twice(const json_t *args)
{
    uint64_t seen = 0;
    const json_t *arg;
    size_t i;

    json_array_foreach (args, i, arg) {
        uint64_t bit = UINT64_C(1) << ((uint64_t)json_int(arg, "index", 0) & 63);

        if ((seen & bit) != 0)
            return true;
        seen |= bit;
    }
    return false;
}

/* crun and runc convert a rule that repeats an argument to one rule for each condition. */
static bool split_ioctl(struct changing *c, const json_t *rule)
{
    const json_t *args = json_object_get(rule, "args"), *arg;
    size_t i;

    if (!has_argument_twice(args))
        return put_ioctl(c, rule, args);
    json_array_foreach (args, i, arg) {
        json_auto_t *one = json_pack("[O]", arg);

        if (one == NULL || !put_ioctl(c, rule, one))
            return false;
    }
    return true;
}

static bool other_names(const json_t *names, json_t **ret)
{
    json_auto_t *list = json_array();
    const json_t *name;
    size_t i;

    json_array_foreach (names, i, name) {
        const char *text = json_string_value(name);

        if (!str_eq(text, IOCTL) && !str_eq(text, SETATTR) && json_array_append(list, (json_t *)name) != 0)
            return false;
    }
    *ret = json_incref(list);
    return *ret != NULL;
}

static bool change_rule(struct changing *c, const json_t *rule)
{
    const json_t *names = json_object_get(rule, "names");
    bool has_ioctl = json_has(names, IOCTL), has_setattr = json_has(names, SETATTR);
    json_auto_t *others = NULL;

    if (!action_allows(json_str(rule, "action"))) {
        bool all = json_array_size(json_object_get(rule, "args")) == 0;

        c->ioctl_refused |= all && has_ioctl;
        c->setattr_refused |= all && has_setattr;
        return json_array_append(c->rules, (json_t *)rule) == 0;
    }
    if (!has_ioctl && !has_setattr)
        return json_array_append(c->rules, (json_t *)rule) == 0;
    if (!other_names(names, &others))
        return false;
    if (json_array_size(others) > 0 && !put_rule(c, rule, others, json_object_get(rule, "args")))
        return false;
    return !has_ioctl || split_ioctl(c, rule);
}

/* libseccomp accepts a rule twice, but not with two actions. */
static bool has_refusal(const struct changing *c, const json_t *args)
{
    const json_t *rule;
    size_t i;

    json_array_foreach (c->rules, i, rule)
        if (json_has(json_object_get(rule, "names"), IOCTL) &&
            json_equal(json_object_get(rule, "args"), args))
            return true;
    return false;
}

static bool put_refusals(struct changing *c)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        json_auto_t *args =
            json_pack("[o]", condition((struct rt_values){ .mask = LOW, .value = refused[i] }));
        json_auto_t *rule = json_pack("{s:[s],s:s,s:i,s:O}", "names", IOCTL, "action", "SCMP_ACT_ERRNO",
                                      "errnoRet", EPERM, "args", args);

        if (rule == NULL || (!has_refusal(c, args) && json_array_append(c->rules, rule) != 0))
            return false;
    }
    return true;
}

static bool host_has_setattr(const struct rt_seccomp_host *host)
{
    return host->kernel_major > 6 || (host->kernel_major == 6 && host->kernel_minor >= 17);
}

/* Runtimes omit rules that equal the default action, and warn about calls unknown to libseccomp; so
 * file_setattr is only named where the kernel has it. */
static bool change_rules(struct changing *c, const json_t *profile)
{
    const char *action = json_str(profile, "defaultAction");
    bool allows = action_allows(action);
    bool says_eperm =
        str_eq(action, "SCMP_ACT_ERRNO") && json_int(profile, "defaultErrnoRet", EPERM) == EPERM;
    const json_t *rule;
    size_t i;

    json_array_foreach (json_object_get(profile, "syscalls"), i, rule)
        if (!change_rule(c, rule))
            return false;
    if ((allows || c->ioctl_allowed) && !c->ioctl_refused && !says_eperm && !put_refusals(c))
        return false;
    if (!allows || c->setattr_refused || !host_has_setattr(c->host))
        return true;
    return json_array_append_new(c->rules, json_pack("{s:[s],s:s,s:i}", "names", SETATTR, "action",
                                                     "SCMP_ACT_ERRNO", "errnoRet", ENOSYS)) == 0;
}

static enum err_code make_open(const struct rt_seccomp_host *host, json_t **ret, struct err *e)
{
    json_auto_t *architectures = NULL;

    if (rt_seccomp_architectures(host->machine, &architectures, e) != ERR_OK)
        return e->code;
    *ret = json_pack("{s:s,s:O*}", "defaultAction", "SCMP_ACT_ALLOW", "architectures", architectures);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

enum err_code rt_seccomp_keep_projects(json_t **profile, const struct rt_seccomp_host *host, struct err *e)
{
    json_auto_t *rules = json_array();
    struct changing c = { .host = host, .rules = rules };

    if (*profile == NULL && make_open(host, profile, e) != ERR_OK)
        return e->code;
    if (rules == NULL || !change_rules(&c, *profile))
        return c.too_many ? err_set(e, ERR_INVALID,
                                    "seccomp profile: without the calls that change projects of files it "
                                    "has more than %d rules",
                                    RULES_MAX)
                          : err_nomem(e);
    return json_object_set(*profile, "syscalls", rules) == 0 ? ERR_OK : err_nomem(e);
}
