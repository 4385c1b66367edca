/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/admit/resize.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/admit/internal.h"
#include "agent/pod/container/container.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/limits/admission_fit.h"
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/limits/cpu_memory.h"
#include "agent/pod/limits/ctr_limits.h"
#include "agent/pod/placement/placement.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <string.h>

#define AGAIN_NS (5 * INT64_C(1000000000)) /* until less memory is in use */

/* ---- reporting ---- */

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
static void pod_resize_tell(struct pod *p, const struct api_pod *api, bool warning, const char *reason,
                            const char *what, const char *error)
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

static void pod_resize_put_condition(const struct pod *p, json_t *list, const char *type, const char *reason,
                                     const char *message, int64_t since_ns)
{
    json_t *o = json_object();
    char since[CLOCK_RFC3339_SIZE];

    clock_format_s(since_ns, since);
    json_put_str(o, "type", type);
    if (resize_desired(p)->meta.generation != 0)
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
    const struct admit_pod_part *admit = admit_of(p);

    if (admit->resize.desired != NULL)
        pod_resize_put_condition(p, list, "PodResizePending",
                                 admit->resize.infeasible ? "Infeasible" : "Deferred", admit->resize.pending,
                                 admit->resize.pending_ns);
    if (admit->resize.under_way)
        pod_resize_put_condition(p, list, "PodResizeInProgress", admit->resize.error != NULL ? "Error" : NULL,
                                 admit->resize.error, admit->resize.since_ns);
}

static void pod_resize_put_amount(json_t *resources, const char *list, const char *name, int64_t value,
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
    quantity_format_stored(&q, text);
    if (o == NULL)
        json_object_set_new(resources, list, o = json_object());
    json_put_str(o, name, text);
}

void resize_actual(const struct ctr *c, json_t *resources)
{
    struct cpu_memory wanted = cpu_memory_of_container(c);
    const struct cpu_memory *s = &c->cur.sizes;

    if (!s->known || cpu_memory_same(s, &wanted))
        return;
    pod_resize_put_amount(resources, "limits", "cpu", s->cpu_limit, QUANTITY_DECIMAL_SI);
    pod_resize_put_amount(resources, "limits", "memory", s->memory_limit, QUANTITY_BINARY_SI);
    pod_resize_put_amount(resources, "requests", "cpu", s->cpu_request, QUANTITY_DECIMAL_SI);
    pod_resize_put_amount(resources, "requests", "memory", s->memory_request, QUANTITY_BINARY_SI);
}

/* ---- may it be allocated? ---- */

static bool restarts(const struct api_container *c, enum api_resize_resource what)
{
    for (size_t i = 0; i < c->n_resize_policies; i++)
        if (c->resize_policies[i].resource == what)
            return c->resize_policies[i].restart == API_RESIZE_RESTART_CONTAINER;
    return false;
}

/* Its swap would change with its memory request. */
static bool swaps(const struct pod *p, const struct api_pod *api)
{
    for (size_t i = 0; i < p->n_ctrs && p->ctrs[i]->kind != CTR_EPHEMERAL; i++) {
        const struct api_container *c = api_container_at(&api->spec, i);
        struct ctr_limits l;
        ctr_limits_of(p->ctrs[i], &l);
        if (l.swap_max > 0 && !restarts(c, API_RESIZE_MEMORY) &&
            cpu_memory_amount(&c->resources.requests, "memory") !=
                cpu_memory_amount(&p->ctrs[i]->spec->resources.requests, "memory"))
            return true;
    }
    return false;
}

/* False, with the reason for the event, and text. */
static bool fits(struct pod *p, const struct api_pod *api, const char **ret_reason, char reason[64],
                 char text[ADMISSION_FIT_TEXT_SIZE])
{
    static const char *const names[] = { "memory", "cpu" };
    struct shortage lacks[ADMISSION_FIT_SHORTAGES_MAX];

    *ret_reason = "Infeasible";
    if (swaps(p, api)) {
        snprintf(text, ADMISSION_FIT_TEXT_SIZE, "In-place resize of containers with swap is not supported.");
        return false;
    }
    if (placement_refuses_resize(p, api) != NULL) {
        snprintf(text, ADMISSION_FIT_TEXT_SIZE, "%s", placement_refuses_resize(p, api));
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int64_t want = admission_fit_request(api, names[i]), has = node_allocatable(p->node, names[i]);
        if (want <= has)
            continue;
        snprintf(text, ADMISSION_FIT_TEXT_SIZE,
                 "Node didn't have enough capacity: %s, requested: %lld, capacity: %lld", names[i],
                 (long long)want, (long long)has);
        return false;
    }
    if (admission_fit_shortages(p, api, true, lacks) == 0)
        return true;
    admission_fit_text(p->node, &lacks[0], text);
    snprintf(reason, 64, "OutOf%.57s", lacks[0].resource);
    *ret_reason = reason;
    return false;
}

static void not_pending(struct pod *p)
{
    if (admit_of(p)->resize.desired != NULL)
        p->record_dirty = true;
    api_pod_unref(take_ptr(&admit_of(p)->resize.desired));
    free(take_ptr(&admit_of(p)->resize.pending));
}

static void wait_for(struct pod *p, struct api_pod *api, const char *reason, const char *text)
{
    struct admit_pod_part *admit = admit_of(p);
    bool infeasible = strcmp(reason, "Infeasible") == 0;
    bool same_manifest = admit->resize.desired == api;

    if (admit->resize.desired == NULL) {
        admit->resize.pending_ns = clock_wall_ns();
        admit->resize.pending_at = clock_boot();
    }
    if (!same_manifest || infeasible != admit->resize.infeasible) {
        pod_resize_tell(p, api, true, infeasible ? "ResizeInfeasible" : "ResizeDeferred", reason, text);
        log_warn("cannot resize pod now", F_STR("pod", p->key), F_STR("reason", reason), F_STR("err", text));
    }
    admit->resize.infeasible = infeasible;
    str_keep(&admit->resize.pending, text);
    api_pod_ref(api);
    api_pod_unref(admit->resize.desired);
    admit->resize.desired = api;
}

struct api_pod *resize_take(struct pod *p, struct api_pod *api)
{
    struct admit_pod_part *admit = admit_of(p);
    scoped(api_pod_unref) struct api_pod *mixed = NULL;
    char own[64] = "", text[ADMISSION_FIT_TEXT_SIZE] = "";
    const char *reason = own;
    struct err e = { 0 };

    if (!p->admitted || !api_pod_resources_differ(p->api, api)) {
        not_pending(p);
        return api_pod_ref(api);
    }
    if (!fits(p, api, &reason, own, text)) {
        if (api_pod_with_resources_of(api, p->api, &mixed, &e) != ERR_OK) {
            log_error("cannot apply an edit", F_STR("pod", p->key), F_ERR(&e));
            return NULL;
        }
        wait_for(p, api, reason, text);
        return take_ptr(&mixed);
    }
    not_pending(p);
    free(take_ptr(&admit->resize.error));
    admit->resize.since_ns = clock_wall_ns();
    admit->resize.under_way = true;
    pod_resize_tell(p, api, false, "ResizeStarted", "started", NULL);
    return api_pod_ref(api);
}

const struct api_pod *resize_desired(const struct pod *p)
{
    return admit_of(p)->resize.desired != NULL ? admit_of(p)->resize.desired : p->api;
}

bool resize_waits(const struct pod *p)
{
    return admit_of(p)->resize.desired != NULL;
}

static bool wants_more(const struct pod *p)
{
    const struct api_pod *desired = resize_desired(p);

    return admission_fit_request(desired, "cpu") > admission_fit_request(p->api, "cpu") ||
           admission_fit_request(desired, "memory") > admission_fit_request(p->api, "memory");
}

bool resize_before(const struct pod *a, const struct pod *b)
{
    bool a_guaranteed = a->api->qos == API_QOS_GUARANTEED, b_guaranteed = b->api->qos == API_QOS_GUARANTEED;

    if (wants_more(a) != wants_more(b))
        return !wants_more(a);
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a_guaranteed != b_guaranteed)
        return a_guaranteed;
    return clock_boot_is_before(admit_of(a)->resize.pending_at, admit_of(b)->resize.pending_at);
}

void resize_forget(struct pod *p)
{
    struct admit_pod_part *admit = admit_of(p);

    api_pod_unref(take_ptr(&admit->resize.desired));
    free(take_ptr(&admit->resize.pending));
    free(take_ptr(&admit->resize.error));
    admit->resize.under_way = false;
}

/* ---- steps ---- */

/* Ends containers whose policy requires a restart. */
static void restart_where_asked(struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];
        struct cpu_memory wanted = cpu_memory_of_container(c);
        const struct cpu_memory *s = &c->cur.sizes;
        bool cpu = s->cpu_request != wanted.cpu_request || s->cpu_limit != wanted.cpu_limit;
        bool memory = s->memory_request != wanted.memory_request || s->memory_limit != wanted.memory_limit;

        if (c->state != CTR_RUNNING || !s->known || c->replace ||
            !((cpu && restarts(c->spec, API_RESIZE_CPU)) || (memory && restarts(c->spec, API_RESIZE_MEMORY))))
            continue;
        ctr_replace(c, "Container %s resize requires restart", c->spec->name);
    }
}

static void pod_resize_failed(struct pod *p, const char *text)
{
    struct admit_pod_part *admit = admit_of(p);

    if (admit->resize.error == NULL) {
        pod_resize_tell(p, p->api, true, "ResizeError", "error", text);
        log_warn("cannot resize pod; will retry", F_STR("pod", p->key), F_STR("err", text));
    }
    str_keep(&admit->resize.error, text);
    pod_wake_at(p, clock_boot_in_ns(AGAIN_NS), "resize is tried again");
}

void resize_step(struct pod *p)
{
    struct admit_pod_part *admit = admit_of(p);
    char text[1024];
    struct err e = { 0 };

    if (admit->resize.desired != NULL) {
        char own[64] = "", why[ADMISSION_FIT_TEXT_SIZE] = "";
        const char *reason = own;
        scoped(api_pod_unref) struct api_pod *desired = api_pod_ref(admit->resize.desired);
        if (fits(p, desired, &reason, own, why))
            pod_ask_apply(p, desired);
        else
            wait_for(p, admit->resize.desired, reason, why);
    }
    if (!admit->resize.under_way)
        return;
    /* Record the target first: an agent killed during the writes finds the differences. */
    if (pod_record_awaited(p)) {
        pod_wake(p, "record is written before the resize");
        return;
    }
    restart_where_asked(p);
    if (resize_memory_refuses(p, text, sizeof(text), &e) != ERR_OK) {
        pod_look_again(p, &e);
        return;
    }
    if (text[0] != '\0') {
        pod_resize_failed(p, text);
        return;
    }
    if (resize_apply(p, &e) != ERR_OK) {
        pod_resize_failed(p, e.text);
        return;
    }
    free(take_ptr(&admit->resize.error));
    if (!resize_is_settled(p))
        return; /* each container that ends or starts wakes the pod */
    admit->resize.under_way = false;
    pod_resize_tell(p, p->api, false, "ResizeCompleted", "completed", NULL);
    log_info("pod resized", F_STR("pod", p->key), F_STR("podUID", p->uid));
    pods_wake_pending(p->node, "resize is done"); /* the pod may have become smaller */
}

bool resize_is_under_way(const struct pod *p)
{
    return admit_of(p)->resize.under_way;
}

void resize_explain(const struct pod *p, json_t *steps)
{
    const struct admit_pod_part *admit = admit_of(p);

    if (admit->resize.desired != NULL)
        explain_step(steps, "resize", admit->resize.infeasible ? "failed" : "waiting",
                     admit->resize.pending_ns, admit->resize.pending, 0);
    if (admit->resize.under_way)
        explain_step(
            steps, "resize", admit->resize.error != NULL ? "failed" : "running", admit->resize.since_ns,
            admit->resize.error != NULL ? admit->resize.error : "containers get their new limits", 0);
}
