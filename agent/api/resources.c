/* SPDX-License-Identifier: Apache-2.0 */
/* Resource names, their support and rules; the sums and the QoS class derived from them. */
#include "agent/api/resources.h"
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

/* A name that ends in '-' is a prefix; "" matches every name with a '/'. */
const struct api_resource_rule api_resource_rules[] = {
    { "cpu", API_ACTED, NULL },
    { "memory", API_ACTED, NULL },
    { "ephemeral-storage", API_ACTED, NULL },
    { "hugepages-", API_ACTED, NULL },
    { "", API_ACTED,
      "a resource that nothing on this node offers is ignored after a wait (kubelet: at once)" },
    { NULL, API_ACTED, NULL },
};

static bool huge(const char *name)
{
    return str_starts(name, "hugepages-");
}

static bool extended(const char *name)
{
    return strchr(name, '/') != NULL;
}

/* Quotas put "requests." in front of an extended resource, which therefore does not begin so. */
static bool quota_name(const char *name)
{
    return extended(name) && str_starts(name, "requests.") && strstr(name, "kubernetes.io/") == NULL;
}

static bool compute(const char *name)
{
    return strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0;
}

static const struct api_resource_rule *find_rule(const char *name)
{
    const struct api_resource_rule *rule = api_resource_rules;

    for (; rule->name != NULL; rule++) {
        if (strcmp(rule->name, name) == 0 || (huge(name) && huge(rule->name)) ||
            (rule->name[0] == '\0' && extended(name)))
            break;
    }
    return rule;
}

/* ---- one resource list ---- */
static bool valid_name(struct api_check *c, const char *name, bool pod_level)
{
    const char *rule = api_format_rule(API_FMT_LABEL_KEY, name);
    bool known = compute(name) || huge(name) ||
                 (!pod_level && (strcmp(name, "ephemeral-storage") == 0 || extended(name)));

    if (rule != NULL)
        api_fault(c, "the resource name %s %s", QUOTE(name), rule);
    else if (!known)
        api_fault(c, "%s is not a resource of a %s, allowed are cpu, memory, %shugepages-<size>%s",
                  QUOTE(name), pod_level ? "pod" : "container", pod_level ? "and " : "ephemeral-storage, ",
                  pod_level ? "" : " and names with a domain (example.com/thing)");
    else if (quota_name(name))
        api_fault(c, "the resource name %s doesn't follow extended resource name standard", QUOTE(name));
    return rule == NULL && known && !quota_name(name);
}

static void check_huge(struct api_check *c, const struct api_resource *r)
{
    struct quantity page;
    struct err e = { 0 };

    if (quantity_parse(r->name + strlen("hugepages-"), &page, &e) != ERR_OK || page.nano <= 0)
        api_fault(c, "%s names no page size, such as hugepages-2Mi", QUOTE(r->name));
    else if (r->amount.nano % page.nano != 0)
        api_fault(c, "must be a multiple of the page size");
}

static bool counts_bytes(const char *name)
{
    return strcmp(name, "memory") == 0 || strcmp(name, "ephemeral-storage") == 0;
}

static void api_resources_check_amount(struct api_check *c, const struct api_resource *r)
{
    const __int128 unit = 1000000000;
    char text[QUANTITY_TEXT_SIZE];

    quantity_format(&r->amount, text);
    if (r->amount.nano < 0)
        api_fault(c, "%s is negative, allowed are 0 and more", text);
    else if ((huge(r->name) || extended(r->name)) && r->amount.nano % unit != 0)
        api_fault(c, "%s is not a whole number", text);
    else if (huge(r->name))
        check_huge(c, r);
    /* Probably a mistake for M or Mi; the API server warns, too. (0.1Gi is deliberate, although not whole
     * either.) */
    else if (counts_bytes(r->name) && r->amount.nano % unit != 0 && r->amount.format != QUANTITY_BINARY_SI)
        api_ignore(c, "a fraction of a byte, rounded up: \"m\" is a thousandth, \"M\" a million");
}

static void note_support(struct api_check *c, const struct api_resource *r)
{
    const struct api_resource_rule *rule = find_rule(r->name);

    if (rule->name == NULL || rule->support == API_ACTED || r->amount.nano == 0)
        return;
    if (rule->support == API_IGNORED)
        api_ignore(c, rule->why);
    else
        api_fault(c, "not supported: %s", rule->why);
}

static void api_resources_check_one(struct api_check *c, const struct api_resource *r, bool pod_level)
{
    if (!valid_name(c, r->name, pod_level))
        return;
    api_resources_check_amount(c, r);
    note_support(c, r);
}

static void check_against_limit(struct api_check *c, const struct api_resource *r,
                                const struct quantity *limit)
{
    bool strict = huge(r->name) || extended(r->name); /* cannot be overcommitted */
    char request_text[QUANTITY_TEXT_SIZE], limit_text[QUANTITY_TEXT_SIZE];

    quantity_format(&r->amount, request_text);
    if (limit == NULL) {
        if (strict)
            api_fault(c, "a limit for %s is required, equal to the request", QUOTE(r->name));
        return;
    }
    quantity_format(limit, limit_text);
    if (strict && quantity_cmp(&r->amount, limit) != 0)
        api_fault(c, "%s must be equal to the %s limit of %s", request_text, r->name, limit_text);
    else if (quantity_cmp(&r->amount, limit) > 0)
        api_fault(c, "%s must be less than or equal to the %s limit of %s", request_text, r->name,
                  limit_text);
}

void api_validate_resources(struct api_check *c, const struct api_resources *r, bool pod_level)
{
    bool has_huge = false, has_compute = false;
    size_t outer;

    outer = api_enter(c, "limits");
    for (size_t i = 0; i < r->limits.n; i++) {
        size_t mark = api_enter_key(c, r->limits.v[i].name);
        api_resources_check_one(c, &r->limits.v[i], pod_level);
        has_huge = has_huge || huge(r->limits.v[i].name);
        has_compute = has_compute || compute(r->limits.v[i].name);
        api_leave(c, mark);
    }
    api_leave(c, outer);
    outer = api_enter(c, "requests");
    for (size_t i = 0; i < r->requests.n; i++) {
        const struct api_resource *request = &r->requests.v[i];
        const struct quantity *limit = api_resource_get(&r->limits, request->name);
        size_t mark = api_enter_key(c, request->name);
        /* A request equal to its limit (perhaps derived from it) was checked there. */
        if (limit == NULL || quantity_cmp(limit, &request->amount) != 0) {
            api_resources_check_one(c, request, pod_level);
            check_against_limit(c, request, limit);
        }
        has_huge = has_huge || huge(request->name);
        has_compute = has_compute || compute(request->name);
        api_leave(c, mark);
    }
    api_leave(c, outer);
    if (has_huge && !has_compute)
        api_fault(c, "huge pages need cpu or memory next to them");
}

void api_validate_overhead(struct api_check *c, const char *field, const struct api_resource_list *l)
{
    size_t outer = api_enter(c, field);

    for (size_t i = 0; i < l->n; i++) {
        size_t mark = api_enter_key(c, l->v[i].name);
        if (valid_name(c, l->v[i].name, false))
            api_resources_check_amount(c, &l->v[i]);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

/* ---- sums ---- */
static struct quantity request_of(const struct api_container *container, const char *name, bool *found)
{
    const struct quantity *q = api_resource_get(&container->resources.requests, name);

    if (q == NULL)
        return (struct quantity){ 0 };
    *found = true;
    return *q;
}

bool api_sum_requests(const struct api_pod_spec *spec, const char *name, struct quantity *ret)
{
    struct quantity sidecars = { 0 }, regular = { 0 }, init = { 0 };
    bool found = false;

    for (size_t i = 0; i < spec->n_init_containers; i++) {
        const struct api_container *container = &spec->init_containers[i];
        struct quantity own = request_of(container, name, &found), at_once;
        at_once = quantity_add(&sidecars, &own);
        if (container->restart_policy == API_RESTART_ALWAYS)
            sidecars = at_once;
        if (quantity_cmp(&at_once, &init) > 0)
            init = at_once;
    }
    for (size_t i = 0; i < spec->n_containers; i++) {
        struct quantity own = request_of(&spec->containers[i], name, &found);
        regular = quantity_add(&regular, &own);
    }
    regular = quantity_add(&regular, &sidecars);
    *ret = quantity_cmp(&init, &regular) > 0 ? init : regular;
    return found;
}

static void check_pod_limits(struct api_check *c, const struct api_pod_spec *spec)
{
    for (size_t i = 0; i < spec->n_containers; i++) {
        const struct api_resource_list *limits = &spec->containers[i].resources.limits;
        for (size_t k = 0; k < limits->n; k++) {
            const struct quantity *pod = api_resource_get(&spec->resources.limits, limits->v[k].name);
            char text[QUANTITY_TEXT_SIZE], child[200];
            if (pod == NULL || quantity_cmp(&limits->v[k].amount, pod) <= 0)
                continue;
            quantity_format(pod, text);
            snprintf(child, sizeof(child), "containers[%zu].resources.limits[%.100s]", i, limits->v[k].name);
            api_fault_at(c, child, "must be less than or equal to the pod's limit of %s", text);
        }
    }
}

void api_validate_pod_resources(struct api_check *c, const struct api_pod_spec *spec)
{
    static const char *const names[] = { "cpu", "memory" };
    size_t mark;

    if (!spec->has_resources)
        return;
    mark = api_enter(c, "resources");
    api_validate_resources(c, &spec->resources, true);
    for (size_t i = 0; i < 2; i++) {
        const struct quantity *pod = api_resource_get(&spec->resources.requests, names[i]);
        struct quantity sum, none = { 0 };
        char sum_text[QUANTITY_TEXT_SIZE], child[64];
        if (!api_sum_requests(spec, names[i], &sum) || quantity_cmp(&sum, pod != NULL ? pod : &none) <= 0)
            continue;
        quantity_format(&sum, sum_text);
        snprintf(child, sizeof(child), "requests[%s]", names[i]);
        api_fault_at(c, child, "must be at least what the containers request together, %s", sum_text);
    }
    api_leave(c, mark);
    check_pod_limits(c, spec);
}

/* ---- QoS ---- */
void api_qos_add(struct api_qos_sum *sum, const struct quantity *const requests[2],
                 const struct quantity *const limits[2])
{
    for (size_t i = 0; i < 2; i++) {
        if (requests[i] != NULL && requests[i]->nano > 0)
            sum->requests[i] = quantity_add(&sum->requests[i], requests[i]);
        if (limits[i] != NULL && limits[i]->nano > 0)
            sum->limits[i] = quantity_add(&sum->limits[i], limits[i]);
        else
            sum->some_unlimited = true;
    }
}

enum api_qos api_qos_of(const struct api_qos_sum *sum)
{
    bool any = false, equal = true;

    for (size_t i = 0; i < 2; i++) {
        any = any || sum->requests[i].nano > 0 || sum->limits[i].nano > 0;
        equal = equal && quantity_cmp(&sum->requests[i], &sum->limits[i]) == 0;
    }
    if (!any)
        return API_QOS_BEST_EFFORT;
    return equal && !sum->some_unlimited ? API_QOS_GUARANTEED : API_QOS_BURSTABLE;
}

static void qos_add(struct api_qos_sum *sum, const struct api_resources *r)
{
    const struct quantity *const requests[] = { api_resource_get(&r->requests, "cpu"),
                                                api_resource_get(&r->requests, "memory") };
    const struct quantity *const limits[] = { api_resource_get(&r->limits, "cpu"),
                                              api_resource_get(&r->limits, "memory") };

    api_qos_add(sum, requests, limits);
}

enum api_qos api_compute_qos(const struct api_pod_spec *spec)
{
    struct api_qos_sum sum = { 0 };

    if (spec->has_resources) {
        qos_add(&sum, &spec->resources);
        return api_qos_of(&sum);
    }
    for (size_t i = 0; i < spec->n_containers; i++)
        qos_add(&sum, &spec->containers[i].resources);
    for (size_t i = 0; i < spec->n_init_containers; i++)
        qos_add(&sum, &spec->init_containers[i].resources);
    return api_qos_of(&sum);
}
