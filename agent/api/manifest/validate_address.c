/* SPDX-License-Identifier: Apache-2.0 */
/* validate_address - addresses and ranges of addresses of a Service. */
#include "agent/api/manifest/service.h"
#include "base/codec/json.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define ANNOTATION "service.beta.kubernetes.io/load-balancer-source-ranges"
#define CLUSTER_IPS_MAX 2 /* one of each family */
#define NOT_AN_IP "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
#define NOT_A_RANGE "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

struct address {
    unsigned char bytes[16];
    size_t n; /* 4 or 16 */
};

/* ---- reading ---- */

/* "010.1.2.3": once read as decimal numbers, elsewhere as octal ones. False: there are none. */
static bool drop_zeros(char *text)
{
    char *to = text;
    bool dropped = false;

    if (strchr(text, ':') != NULL)
        return false;
    for (const char *from = text; *from != '\0'; from++) {
        bool first = from == text || from[-1] == '.';

        while (first && from[0] == '0' && from[1] >= '0' && from[1] <= '9') {
            dropped = true;
            from++;
        }
        *to++ = *from;
    }
    *to = '\0';
    return dropped;
}

/* False: no address. *ret_zeros: a part begins with a zero. */
static bool read_address(const char *text, struct address *ret, bool *ret_zeros)
{
    char copy[64];

    *ret_zeros = false;
    if (strlen(text) >= sizeof(copy))
        return false;
    memcpy(copy, text, strlen(text) + 1);
    *ret_zeros = drop_zeros(copy);
    ret->n = strchr(copy, ':') != NULL ? 16 : 4;
    return inet_pton(ret->n == 4 ? AF_INET : AF_INET6, copy, ret->bytes) == 1;
}

/* The problem with the address; NULL if there is none. */
static const char *address_rule(const char *text, struct address *ret)
{
    bool zeros;

    if (!read_address(text, ret, &zeros))
        return NOT_AN_IP;
    return zeros ? "must not have leading 0s" : NULL;
}

static bool starts_with_bits(const struct address *a, size_t n, const char *bytes, size_t bits)
{
    for (size_t i = 0; i < bits; i++)
        if (a->n != n || (((unsigned char)bytes[i / 8] ^ a->bytes[i / 8]) & (0x80 >> i % 8)) != 0)
            return false;
    return true;
}

/* Where no service can be reached from outside. */
static const char *special_rule(const struct address *a)
{
    static const char none[16];

    if (starts_with_bits(a, a->n, none, a->n * 8))
        return a->n == 4 ? "may not be unspecified (0.0.0.0)" : "may not be unspecified (::)";
    if (starts_with_bits(a, 4, "\x7f", 8) || starts_with_bits(a, 16, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 128))
        return "may not be in the loopback range (127.0.0.0/8, ::1/128)";
    if (starts_with_bits(a, 4, "\xa9\xfe", 16) || starts_with_bits(a, 16, "\xfe\x80", 10))
        return "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
    if (starts_with_bits(a, 4, "\xe0\0\0", 24) || starts_with_bits(a, 16, "\xff\x02", 16))
        return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
    return NULL;
}

/* "10.1.0.0/16"; NULL: valid. */
static const char *range_rule(const char *text)
{
    const char *slash = strchr(text, '/');
    str_auto address = slash != NULL ? strndup(text, (size_t)(slash - text)) : NULL;
    size_t digits = slash != NULL ? strspn(slash + 1, "0123456789") : 0;
    struct address a;
    bool zeros;
    size_t bits;

    if (address == NULL || digits == 0 || digits > 3 || slash[1 + digits] != '\0' ||
        !read_address(address, &a, &zeros))
        return NOT_A_RANGE;
    bits = strtoul(slash + 1, NULL, 10);
    if (bits > a.n * 8)
        return NOT_A_RANGE;
    if (zeros || (digits > 1 && slash[1] == '0'))
        return "must not have leading 0s in IP or prefix length";
    for (size_t i = bits; i < a.n * 8; i++)
        if ((a.bytes[i / 8] & (0x80 >> i % 8)) != 0)
            return "must not have bits set beyond the prefix length";
    return NULL;
}

static char *trimmed(const char *text, size_t n)
{
    while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
        n--;
    while (n > 0 && strchr(" \t\r\n", *text) != NULL) {
        text++;
        n--;
    }
    return strndup(text, n);
}

/* ---- fields ---- */

void service_check_ranges(struct api_check *c, const json_t *spec)
{
    size_t outer = api_enter(c, "loadBalancerSourceRanges"), i;
    const char *rule;
    json_t *v;

    json_array_foreach (json_object_get(spec, "loadBalancerSourceRanges"), i, v) {
        size_t mark = api_enter_index(c, i);
        const char *text = json_string_value(v);
        str_auto bare = trimmed(text != NULL ? text : "", text != NULL ? strlen(text) : 0);

        rule = bare != NULL ? range_rule(bare) : NULL;
        if (rule != NULL)
            api_fault(c, "%s", rule);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

void service_check_annotation(struct api_check *c, const struct api_meta *meta, const json_t *spec)
{
    const char *text = api_kvs_get(&meta->annotations, ANNOTATION), *rule;
    size_t outer = api_enter(c, "annotations"), mark = api_enter_key(c, ANNOTATION);

    if (json_array_size(json_object_get(spec, "loadBalancerSourceRanges")) > 0)
        text = NULL; /* it replaces the annotation */
    if (text != NULL && service_type_of(spec) != SERVICE_LOAD_BALANCER) {
        api_fault(c, "not allowed: may only be used when `type` is 'LoadBalancer'");
        text = NULL;
    }
    while (text != NULL && text[0] != '\0') {
        size_t n = strcspn(text, ",");
        str_auto one = trimmed(text, n);

        rule = one != NULL ? range_rule(one) : NULL;
        if (rule != NULL)
            api_fault(c, "%s %s", QUOTE(one), rule);
        text = text[n] == ',' ? text + n + 1 : NULL;
    }
    api_leave(c, mark);
    api_leave(c, outer);
}

void service_check_external_ips(struct api_check *c, const json_t *spec)
{
    size_t outer = api_enter(c, "externalIPs"), i;
    struct address a;
    const char *rule;
    json_t *v;

    json_array_foreach (json_object_get(spec, "externalIPs"), i, v) {
        size_t mark = api_enter_index(c, i);

        if (json_is_string(v)) {
            rule = address_rule(json_string_value(v), &a);
            if (rule == NULL)
                rule = special_rule(&a);
            if (rule != NULL)
                api_fault(c, "%s", rule);
        }
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

/* ---- addresses of the cluster ---- */

static void check_families(struct api_check *c, const json_t *spec)
{
    const json_t *families = json_object_get(spec, "ipFamilies");
    const char *policy = json_str(spec, "ipFamilyPolicy");
    size_t outer = api_enter(c, "ipFamilies"), i;
    bool good = true;
    json_t *v;

    json_array_foreach ((json_t *)(uintptr_t)families, i, v) {
        size_t mark = api_enter_index(c, i);
        const char *text = json_string_value(v);
        bool twice = false;

        for (size_t k = 0; k < i; k++)
            twice = twice || json_equal(json_array_get(families, k), v);
        if (text != NULL && strcmp(text, "IPv4") != 0 && strcmp(text, "IPv6") != 0)
            api_fault(c, "%s is not supported, allowed are IPv4 and IPv6", QUOTE(text));
        else if (text != NULL && twice)
            api_fault(c, "%s is given twice", QUOTE(text));
        good = good && !twice;
        api_leave(c, mark);
    }
    api_leave(c, outer);
    if (good && json_array_size(families) > 1 && policy != NULL && strcmp(policy, "SingleStack") == 0)
        api_fault_at(
            c, "ipFamilyPolicy",
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified");
}

/* The addresses that are given: in clusterIPs, or one in clusterIP. */
static size_t cluster_ips(const json_t *spec, const char *ret[CLUSTER_IPS_MAX + 1])
{
    const json_t *list = json_object_get(spec, "clusterIPs");
    const char *one = service_text(spec, "clusterIP", NULL);
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(list) && n <= CLUSTER_IPS_MAX; i++)
        if (json_is_string(json_array_get(list, i)))
            ret[n++] = json_string_value(json_array_get(list, i));
    if (json_array_size(list) == 0 && one != NULL)
        ret[n++] = one;
    return n;
}

/* clusterIPs repeats clusterIP. */
static void check_first(struct api_check *c, const json_t *spec)
{
    const json_t *list = json_object_get(spec, "clusterIPs");
    const char *one = service_text(spec, "clusterIP", NULL),
               *first = json_string_value(json_array_get(list, 0));

    if (json_array_size(list) == 0)
        return;
    if (one == NULL)
        api_fault_at(c, "clusterIPs", "must be empty when `clusterIP` is not specified");
    else if (first == NULL || strcmp(first, one) != 0)
        api_fault_at(c, "clusterIPs", "first value must match `clusterIP`");
}

void service_check_addresses(struct api_check *c, const json_t *spec)
{
    const enum service_type type = service_type_of(spec);
    const char *ips[CLUSTER_IPS_MAX + 1], *rule;
    const size_t n = cluster_ips(spec, ips);
    struct address a[CLUSTER_IPS_MAX + 1];
    bool good = true, same = false;
    size_t outer;

    check_first(c, spec);
    if (n > CLUSTER_IPS_MAX)
        api_fault_at(c, "clusterIPs", "may only hold up to %d values", CLUSTER_IPS_MAX);
    outer = api_enter(c, "clusterIPs");
    for (size_t i = 0; i < n; i++) {
        const bool none = strcmp(ips[i], "None") == 0;
        size_t mark = api_enter_index(c, i);

        rule = none ? NULL : address_rule(ips[i], &a[i]);
        if (none && i == 0 && (type == SERVICE_NODE_PORT || type == SERVICE_LOAD_BALANCER))
            api_fault(c, "may not be set to 'None' for %s services", json_str(spec, "type"));
        else if (rule != NULL)
            api_fault(c, "%s %s", QUOTE(ips[i]), rule);
        api_leave(c, mark);
        if (none && n > 1)
            api_fault(c, "'None' must be the first and only value");
        good = good && !none && rule == NULL;
        same = same || (good && i > 0 && a[i].n == a[i - 1].n);
    }
    if (good && same)
        api_fault(c, "may specify no more than one IP for each IP family");
    api_leave(c, outer);
    check_families(c, spec);
}
