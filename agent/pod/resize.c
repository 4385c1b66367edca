#include "agent/pod/resize.h"
#include "agent/pod/allocatable.h"
#include "agent/pod/ctr_limits.h"
#include "agent/pod/fit.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <string.h>

#define AGAIN_NS (5 * INT64_C(1000000000)) /* until memory that is in use has become less */

/* ---- sizes --------------------------------------------------------------------------------------- */

static int64_t amount(const struct api_resource_list *l, const char *name)
{
    const struct quantity *q = api_resource_get(l, name);

    if (q == NULL)
        return -1;
    return strcmp(name, "cpu") == 0 ? quantity_milli(q) : quantity_value(q);
}

struct sizes resize_sizes(const struct api_container *c)
{
    return (struct sizes){
        .known = true,
        .cpu_request = amount(&c->resources.requests, "cpu"),
        .cpu_limit = amount(&c->resources.limits, "cpu"),
        .memory_request = amount(&c->resources.requests, "memory"),
        .memory_limit = amount(&c->resources.limits, "memory"),
    };
}

/* A pod's limit holds only if all of its containers have one. */
static int64_t pod_limit(const struct api_pod *api, const char *name)
{
    bool all = false;
    struct quantity q = resources_pod_limit(api, name, &all);

    if (!all || quantity_is_zero(&q))
        return -1;
    return strcmp(name, "cpu") == 0 ? quantity_milli(&q) : quantity_value(&q);
}

static struct sizes pod_sizes(const struct api_pod *api)
{
    return (struct sizes){
        .known = true,
        .cpu_request = fit_request(api, "cpu"),
        .cpu_limit = pod_limit(api, "cpu"),
        .memory_request = fit_request(api, "memory"),
        .memory_limit = pod_limit(api, "memory"),
    };
}

static bool same(const struct sizes *a, const struct sizes *b)
{
    return a->known && b->known && a->cpu_request == b->cpu_request && a->cpu_limit == b->cpu_limit &&
           a->memory_request == b->memory_request && a->memory_limit == b->memory_limit;
}

static bool is_live(const struct ctr *c)
{
    return c->state == CTR_RUNNING;
}

static bool differs(const struct ctr *c)
{
    struct sizes wanted = resize_sizes(c->spec);

    return !same(&c->cur.sizes, &wanted);
}

/* Limits: none is more than any. */
static bool shrinks(int64_t from, int64_t to)
{
    return to >= 0 && (from < 0 || to < from);
}

static int64_t wider(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? -1 : a > b ? a : b;
}

static struct sizes widest(const struct sizes *a, const struct sizes *b)
{
    return (struct sizes){
        .known = true,
        .cpu_request = a->cpu_request > b->cpu_request ? a->cpu_request : b->cpu_request,
        .cpu_limit = wider(a->cpu_limit, b->cpu_limit),
        .memory_request = a->memory_request > b->memory_request ? a->memory_request : b->memory_request,
        .memory_limit = wider(a->memory_limit, b->memory_limit),
    };
}

void resize_widen(const struct pod *p, struct cg_limits *l)
{
    const struct sizes *k = &p->keep;
    int64_t shares, quota;

    if (!k->known)
        return;
    shares = (int64_t)cg_shares_from_milli(k->cpu_request);
    if (l->cpu_shares < shares)
        l->cpu_shares = shares;
    quota = k->cpu_limit >= 0 ? cg_quota_from_milli(k->cpu_limit, l->cpu_period_us) : -1;
    l->cpu_quota_us = wider(l->cpu_quota_us, quota);
    l->memory_max = wider(l->memory_max, k->memory_limit);
}

/* ---- what is told ---------------------------------------------------------------------------------- */

static json_t *containers_of(const json_t *spec, const char *list)
{
    json_t *found = json_array(), *one;
    size_t i;

    json_array_foreach (json_object_get(spec, list), i, one) {
        json_t *o;
        if (strcmp(list, "initContainers") == 0 && !str_eq(json_str(one, "restartPolicy"), "Always"))
            continue;
        o = json_object();
        json_put_str(o, "name", json_str(one, "name"));
        json_object_set(o, "resources", json_object_get(one, "resources"));
        json_array_append_new(found, o);
    }
    return found;
}

/* kubelet's form: {"containers":[{"name":"a","resources":{...}}],"generation":2,"error":"..."} */
static void tell(struct pod *p, const struct api_pod *api, bool warning, const char *reason, const char *what,
                 const char *error)
{
    json_auto_t *o = json_object(), *manifest = json_loads(api->json, 0, NULL);
    const json_t *spec = json_object_get(manifest, "spec");
    json_t *init = containers_of(spec, "initContainers");

    if (json_array_size(init) > 0)
        json_object_set(o, "initContainers", init);
    json_decref(init);
    json_object_set_new(o, "containers", containers_of(spec, "containers"));
    if (api->meta.generation != 0)
        json_object_set_new(o, "generation", json_integer(api->meta.generation));
    json_put_str(o, "error", error);
    str_auto text = json_text(o);
    if (text != NULL)
        pod_event(p, NULL, warning, reason, "Pod resize %s: %s", what, text);
}

static void put_condition(const struct pod *p, json_t *list, const char *type, const char *reason,
                          const char *message, int64_t since_ns)
{
    json_t *o = json_object();
    char since[CLOCK_RFC3339_SIZE];

    clock_format_s(since_ns, since);
    json_put_str(o, "type", type);
    json_object_set_new(o, "observedGeneration", json_integer(resize_desired(p)->meta.generation));
    json_put_str(o, "status", "True");
    json_object_set_new(o, "lastProbeTime", json_null());
    json_put_str(o, "lastTransitionTime", since);
    json_put_str(o, "reason", reason);
    json_put_str(o, "message", message);
    json_array_append_new(list, o);
}

void resize_conditions(const struct pod *p, json_t *list)
{
    if (p->desired != NULL)
        put_condition(p, list, "PodResizePending", p->resize.infeasible ? "Infeasible" : "Deferred",
                      p->resize.pending, p->resize.pending_ns);
    if (p->resize.under_way)
        put_condition(p, list, "PodResizeInProgress", p->resize.error != NULL ? "Error" : NULL,
                      p->resize.error, p->resize.since_ns);
}

static void put_amount(json_t *resources, const char *list, const char *name, int64_t value,
                       enum quantity_format format)
{
    json_t *o = json_object_get(resources, list);
    struct quantity q = quantity_from_int(value, format);
    char text[QUANTITY_TEXT_SIZE];

    if (value < 0) {
        json_object_del(o, name);
        return;
    }
    if (strcmp(name, "cpu") == 0)
        q.nano /= 1000;
    quantity_format(&q, text);
    if (o == NULL)
        json_object_set_new(resources, list, o = json_object());
    json_put_str(o, name, text);
}

void resize_actual(const struct ctr *c, json_t *resources)
{
    struct sizes wanted = resize_sizes(c->spec);
    const struct sizes *s = &c->cur.sizes;

    if (!s->known || same(s, &wanted))
        return;
    put_amount(resources, "limits", "cpu", s->cpu_limit, QUANTITY_DECIMAL_SI);
    put_amount(resources, "limits", "memory", s->memory_limit, QUANTITY_BINARY_SI);
    put_amount(resources, "requests", "cpu", s->cpu_request, QUANTITY_DECIMAL_SI);
    put_amount(resources, "requests", "memory", s->memory_request, QUANTITY_BINARY_SI);
}

/* ---- may it be allocated? ---------------------------------------------------------------------------- */

static bool restarts(const struct api_container *c, enum api_resize_resource what)
{
    for (size_t i = 0; i < c->n_resize_policies; i++)
        if (c->resize_policies[i].resource == what)
            return c->resize_policies[i].restart == API_RESIZE_RESTART_CONTAINER;
    return false;
}

/* Its swap would follow from its memory request. */
static bool swaps(const struct pod *p, const struct api_pod *api)
{
    size_t inits = api->spec.n_init_containers;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct api_container *c =
            i < inits ? &api->spec.init_containers[i] : &api->spec.containers[i - inits];
        struct ctr_limits l;
        ctr_limits_of(&p->ctrs[i], &l);
        if (l.swap_max > 0 && !restarts(c, API_RESIZE_MEMORY) &&
            amount(&c->resources.requests, "memory") !=
                amount(&p->ctrs[i].spec->resources.requests, "memory"))
            return true;
    }
    return false;
}

/* False, with what is to be said: reason for the event, and text. */
static bool fits(struct pod *p, const struct api_pod *api, const char **ret_reason, char reason[64],
                 char text[FIT_TEXT_SIZE])
{
    static const char *const names[] = { "memory", "cpu" };
    struct shortage lacks[FIT_SHORTAGES_MAX];

    *ret_reason = "Infeasible";
    if (swaps(p, api)) {
        snprintf(text, FIT_TEXT_SIZE, "In-place resize of containers with swap is not supported.");
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int64_t want = fit_request(api, names[i]), has = node_allocatable(p->node, names[i]);
        if (want <= has)
            continue;
        snprintf(text, FIT_TEXT_SIZE, "Node didn't have enough capacity: %s, requested: %lld, capacity: %lld",
                 names[i], (long long)want, (long long)has);
        return false;
    }
    if (fit_shortages(p, api, true, lacks) == 0)
        return true;
    fit_text(p->node, &lacks[0], text);
    snprintf(reason, 64, "OutOf%.57s", lacks[0].resource);
    *ret_reason = reason;
    return false;
}

static void set_text(char **at, const char *text)
{
    free(*at);
    *at = strdup(text);
}

static void not_pending(struct pod *p)
{
    if (p->desired != NULL)
        p->record_dirty = true;
    api_pod_unref(take_ptr(&p->desired));
    free(take_ptr(&p->resize.pending));
}

static void wait_for(struct pod *p, struct api_pod *api, const char *reason, const char *text)
{
    bool infeasible = strcmp(reason, "Infeasible") == 0;
    bool same_manifest = p->desired == api;

    if (p->desired == NULL)
        p->resize.pending_ns = clock_wall_ns();
    if (!same_manifest || infeasible != p->resize.infeasible) {
        tell(p, api, true, infeasible ? "ResizeInfeasible" : "ResizeDeferred", reason, text);
        log_warn("pod cannot be resized now", F_STR("pod", p->key), F_STR("reason", reason),
                 F_STR("err", text));
    }
    p->resize.infeasible = infeasible;
    set_text(&p->resize.pending, text);
    api_pod_ref(api);
    api_pod_unref(p->desired);
    p->desired = api;
}

struct api_pod *resize_take(struct pod *p, struct api_pod *api)
{
    scoped(api_pod_unref) struct api_pod *mixed = NULL;
    char own[64] = "", text[FIT_TEXT_SIZE] = "";
    const char *reason = own;
    struct err e = { 0 };

    if (!p->admitted || !api_pod_resources_differ(p->api, api)) {
        not_pending(p);
        return api_pod_ref(api);
    }
    if (!fits(p, api, &reason, own, text)) {
        if (api_pod_with_resources_of(api, p->api, &mixed, &e) != ERR_OK) {
            log_error("an edit cannot be applied", F_STR("pod", p->key), F_ERR(&e));
            return NULL;
        }
        wait_for(p, api, reason, text);
        return take_ptr(&mixed);
    }
    not_pending(p);
    free(take_ptr(&p->resize.error));
    p->resize.since_ns = clock_wall_ns();
    p->resize.under_way = true;
    tell(p, api, false, "ResizeStarted", "started", NULL);
    return api_pod_ref(api);
}

const struct api_pod *resize_desired(const struct pod *p)
{
    return p->desired != NULL ? p->desired : p->api;
}

void resize_forget(struct pod *p)
{
    api_pod_unref(take_ptr(&p->desired));
    free(take_ptr(&p->resize.pending));
    free(take_ptr(&p->resize.error));
    p->resize.under_way = false;
}

/* ---- cgroups ------------------------------------------------------------------------------------------- */

/* The pod's own, nowhere less than *keep says. */
static enum err_code write_pod(struct pod *p, const struct sizes *keep, struct err *e)
{
    struct sizes target = pod_sizes(p->api);

    p->keep = *keep;
    if (resources_pod_cgroup(p, e) == ERR_OK) {
        p->sizes = keep->known ? widest(&target, keep) : target;
        p->record_dirty = true;
    }
    p->keep.known = false;
    return e->code;
}

enum err_code resize_pod_cgroup(struct pod *p, struct err *e)
{
    struct sizes target = pod_sizes(p->api), before = p->sizes;
    bool cut_off = before.known && !same(&before, &target);

    for (size_t i = 0; i < p->n_ctrs; i++)
        cut_off = cut_off || (is_live(&p->ctrs[i]) && p->ctrs[i].cur.sizes.known && differs(&p->ctrs[i]));
    if (cut_off && !p->resize.under_way) {
        p->resize.under_way = true;
        p->resize.since_ns = clock_wall_ns();
    }
    return write_pod(p, &before, e);
}

static enum err_code write_ctr(struct ctr *c, struct err *e)
{
    struct node *n = c->pod->node;
    struct rt_identity identity;
    struct ctr_limits l;
    struct cg_limits g = CG_LIMITS_NONE;

    if (!rt_identity(n->rt, c->cur.id, &identity) || identity.cgroup_path[0] == '\0')
        return err_set(e, ERR_NOT_FOUND, "container %s: its cgroup is not known", c->spec->name);
    ctr_limits_of(c, &l);
    g.cpu_shares = l.cpu_shares;
    g.cpu_period_us = l.cpu_period_us;
    g.cpu_quota_us = l.cpu_quota_us;
    g.memory_max = l.memory_max;
    g.memory_min = l.memory_min;
    g.memory_low = l.memory_low;
    g.oom_group = l.oom_group;
    if (cg_resize(n->o.cgroups, identity.cgroup_path, &g, n->o.resources.memory_qos ? l.memory_high : -1,
                  e) != ERR_OK)
        return err_wrap(e, "container %s", c->spec->name);
    c->cur.sizes = resize_sizes(c->spec);
    c->pod->record_dirty = true;
    return ERR_OK;
}

/* ---- memory that is in use ----------------------------------------------------------------------------- */

static bool in_use(struct cg_tree *t, const char *path, int64_t limit, uint64_t *ret)
{
    struct cg_usage usage = { 0 };
    struct err ignored = { 0 };

    if (cg_usage(t, path, &usage, &ignored) != ERR_OK || usage.memory_bytes < (uint64_t)limit)
        return false;
    *ret = usage.memory_bytes;
    return true;
}

/* In kubelet's words; false: nothing is in the way. */
static bool memory_refuses(struct pod *p, char *ret, size_t size)
{
    struct cg_tree *t = p->node->o.cgroups;
    struct sizes target = pod_sizes(p->api);
    buf_auto b = BUF_INIT(4096);
    char path[512];
    struct err ignored = { 0 };
    uint64_t used;
    size_t n = 0;

    if (p->sizes.known && shrinks(p->sizes.memory_limit, target.memory_limit) &&
        resources_cgroup_path(p, path, sizeof(path), &ignored) == ERR_OK &&
        in_use(t, path, target.memory_limit, &used)) {
        buf_addf(&b, "attempting to set pod memory limit (%lld) below current usage (%llu)",
                 (long long)target.memory_limit, (unsigned long long)used);
        n++;
    }
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = &p->ctrs[i];
        struct sizes wanted = resize_sizes(c->spec);
        struct rt_identity identity;
        if (!is_live(c) || !c->cur.sizes.known || c->replace ||
            !shrinks(c->cur.sizes.memory_limit, wanted.memory_limit) ||
            !rt_identity(p->node->rt, c->cur.id, &identity) ||
            !in_use(t, identity.cgroup_path, wanted.memory_limit, &used))
            continue;
        buf_addf(&b, "%sattempting to set container \"%s\" memory limit (%lld) below current usage (%llu)",
                 n++ > 0 ? ", " : "", c->spec->name, (long long)wanted.memory_limit,
                 (unsigned long long)used);
    }
    snprintf(ret, size,
             n > 1 ? "cannot decrease memory limits: [%.900s]" : "cannot decrease memory limits: %.900s",
             b.n > 0 ? b.p : "");
    return n > 0;
}

/* ---- steps -----------------------------------------------------------------------------------------------
 */

/* Those whose policy says so end, and start anew. */
static void restart_where_asked(struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = &p->ctrs[i];
        struct sizes wanted = resize_sizes(c->spec);
        const struct sizes *s = &c->cur.sizes;
        bool cpu = s->cpu_request != wanted.cpu_request || s->cpu_limit != wanted.cpu_limit;
        bool memory = s->memory_request != wanted.memory_request || s->memory_limit != wanted.memory_limit;

        if (!is_live(c) || !s->known || c->replace ||
            !((cpu && restarts(c->spec, API_RESIZE_CPU)) || (memory && restarts(c->spec, API_RESIZE_MEMORY))))
            continue;
        snprintf(c->stop_text, sizeof(c->stop_text), "Container %s resize requires restart", c->spec->name);
        c->replace = true;
        c->backoff_ms = 0; /* it does not crash */
        p->record_dirty = true;
    }
}

static bool grows(const struct ctr *c)
{
    struct sizes wanted = resize_sizes(c->spec);

    return shrinks(wanted.memory_limit, c->cur.sizes.memory_limit) ||
           shrinks(wanted.cpu_limit, c->cur.sizes.cpu_limit) || wanted.cpu_request > c->cur.sizes.cpu_request;
}

static enum err_code apply(struct pod *p, struct err *e)
{
    struct sizes before = p->sizes, none = { .known = false };

    if (write_pod(p, &before, e) != ERR_OK)
        return err_wrap(e, "pod");
    for (int growing = 0; growing < 2; growing++) /* what shrinks makes room first */
        for (size_t i = 0; i < p->n_ctrs; i++) {
            struct ctr *c = &p->ctrs[i];
            if (is_live(c) && !c->replace && differs(c) && grows(c) == (growing == 1) &&
                write_ctr(c, e) != ERR_OK)
                return e->code;
        }
    if (write_pod(p, &none, e) != ERR_OK)
        return err_wrap(e, "pod");
    resources_qos_update(p->node);
    return ERR_OK;
}

/* No instance is left, or on its way, that has other sizes than it should. */
static bool is_settled(const struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = &p->ctrs[i];
        struct sizes wanted = resize_sizes(c->spec);
        if (c->state == CTR_MOUNTING || c->state == CTR_CREATING) {
            if (!same(&c->building, &wanted))
                return false;
        } else if (c->state != CTR_NONE && differs(c)) {
            return false;
        }
    }
    return true;
}

static void failed(struct pod *p, const char *text)
{
    if (p->resize.error == NULL) {
        tell(p, p->api, true, "ResizeError", "error", text);
        log_warn("pod cannot be resized; trying again", F_STR("pod", p->key), F_STR("err", text));
    }
    set_text(&p->resize.error, text);
    pod_wake_at(p, clock_wall_ns() + AGAIN_NS);
}

void resize_step(struct pod *p)
{
    char text[1024];
    struct err e = { 0 };

    if (p->desired != NULL) {
        char own[64] = "", why[FIT_TEXT_SIZE] = "";
        const char *reason = own;
        scoped(api_pod_unref) struct api_pod *desired = api_pod_ref(p->desired);
        if (fits(p, desired, &reason, own, why))
            pods_apply(p, desired);
        else
            wait_for(p, p->desired, reason, why);
    }
    if (!p->resize.under_way)
        return;
    /* First what shall be is in the record: an agent that is killed amid the writes finds what differs. */
    if (p->record_dirty && p->record_error[0] == '\0') {
        pod_wake(p);
        return;
    }
    restart_where_asked(p);
    if (memory_refuses(p, text, sizeof(text))) {
        failed(p, text);
        return;
    }
    if (apply(p, &e) != ERR_OK) {
        failed(p, e.text);
        return;
    }
    free(take_ptr(&p->resize.error));
    if (!is_settled(p))
        return; /* each container that ends or starts wakes the pod */
    p->resize.under_way = false;
    tell(p, p->api, false, "ResizeCompleted", "completed", NULL);
    log_info("pod resized", F_STR("pod", p->key), F_STR("podUID", p->uid));
    pods_wake_pending(p->node); /* it may have become smaller */
}
