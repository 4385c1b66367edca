/* SPDX-License-Identifier: Apache-2.0 */
/*
 * validate_workload - rules of the workloads that keep pods running, as pkg/apis/apps/validation has them.
 * The texts are those of an apiserver, so that both ways to a node say the same.
 */
#include "agent/api/manifest/internal.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 63 /* of names that become host names */

/* ---- numbers and percentages ---- */

/* The number in 5 or "5%". Any other value is reported and counts as 0. */
static int64_t number_of(const json_t *v)
{
    return json_is_string(v) ? strtoll(json_string_value(v), NULL, 10) : json_integer_value(v);
}

static void check_percent(struct api_check *c, const json_t *rolling, const char *field)
{
    const json_t *v = json_object_get(rolling, field);

    if (json_is_string(v) && strchr(json_string_value(v), '%') != NULL && number_of(v) > 100)
        api_fault_at(c, field, "must not be greater than 100%%");
}

/* ---- selectors ---- */

/* "empty selector is invalid for ...": a ReplicaSet is checked by the rules of a Deployment. */
static const char *name_in_selector(enum api_kind kind)
{
    return kind == API_KIND_STATEFUL_SET ? "statefulset"
           : kind == API_KIND_DAEMON_SET ? "daemonset"
                                         : "deployment";
}

/* Where the selector is not valid, the template is not looked at. */
static void check_selector(struct api_check *c, enum api_kind kind, const struct api_workload *w,
                           const json_t *spec)
{
    const json_t *selector = json_object_get(spec, "selector");
    size_t mark = api_enter(c, "selector");
    const bool valid = selector == NULL || api_validate_selector(c, selector);
    const bool empty = json_object_size(json_object_get(selector, "matchLabels")) == 0 &&
                       json_array_size(json_object_get(selector, "matchExpressions")) == 0;

    if (json_is_object(selector) && empty)
        api_fault(c, "empty selector is invalid for %s", name_in_selector(kind));
    if (!valid)
        api_fault(c, "invalid label selector");
    api_leave(c, mark);
    if (valid && (selector == NULL || !empty))
        api_validate_selected(c, selector != NULL ? &w->selector : NULL, json_object_get(spec, "template"));
}

/* ---- ways to update ---- */

static void check_deployment(struct api_check *c, const struct api_workload *w, const json_t *spec)
{
    const json_t *rolling = json_at(spec, "strategy.rollingUpdate"),
                 *unavailable = json_object_get(rolling, "maxUnavailable"),
                 *surge = json_object_get(rolling, "maxSurge");
    size_t mark = api_enter(c, "strategy.rollingUpdate");

    if (w->update == API_UPDATE_RECREATE && rolling != NULL)
        api_fault(c, "not allowed with type Recreate");
    if (unavailable != NULL && surge != NULL && number_of(unavailable) == 0 && number_of(surge) == 0)
        api_fault_at(c, "maxUnavailable", "may not be 0 when maxSurge is 0");
    check_percent(c, rolling, "maxUnavailable");
    api_leave(c, mark);
    if (w->progress_deadline_seconds <= w->min_ready_seconds)
        api_fault_at(c, "progressDeadlineSeconds", "must be greater than minReadySeconds");
}

static void check_daemon_set(struct api_check *c, const struct api_workload *w, const json_t *spec)
{
    const json_t *rolling = json_at(spec, "updateStrategy.rollingUpdate"),
                 *unavailable = json_object_get(rolling, "maxUnavailable");
    const bool ends = unavailable == NULL || number_of(unavailable) != 0, /* 1 by default */
        surges = number_of(json_object_get(rolling, "maxSurge")) != 0;
    size_t mark = api_enter(c, "updateStrategy.rollingUpdate");

    if (w->update == API_UPDATE_ROLLING && rolling != NULL) {
        if (ends && surges)
            api_fault_at(c, "maxSurge", "may not be set when maxUnavailable is non-zero");
        if (!ends && !surges)
            api_fault_at(c, "maxUnavailable", "required: cannot be 0 when maxSurge is 0");
        check_percent(c, rolling, "maxUnavailable");
        check_percent(c, rolling, "maxSurge");
    }
    api_leave(c, mark);
}

/* ---- StatefulSets ---- */

void api_validate_host_name(struct api_check *c, const char *field, const char *name)
{
    const char *rule = name != NULL && name[0] != '\0' ? api_format_rule(API_FMT_LABEL, name) : NULL;

    if (rule == NULL)
        return;
    if (strchr(name, '.') != NULL)
        api_fault_at(c, field, "must not contain dots");
    else if (strlen(name) > NAME_MAX_LENGTH)
        api_fault_at(c, field, "must be no more than %d characters", NAME_MAX_LENGTH);
    else
        api_fault_at(c, field, "%s %s", QUOTE(name), rule);
}

static void check_claims(struct api_check *c, const json_t *templates)
{
    size_t outer = api_enter(c, "volumeClaimTemplates"), i;
    json_t *one;

    json_array_foreach ((json_t *)(uintptr_t)templates, i, one) {
        size_t mark = api_enter_index(c, i);

        api_enter(c, "spec");
        api_validate_claim(c, json_object_get(one, "spec"));
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

static void check_stateful_set(struct api_check *c, const struct api_workload *w, const json_t *spec)
{
    if (w->update == API_UPDATE_ON_DELETE && json_at(spec, "updateStrategy.rollingUpdate") != NULL)
        api_fault_at(c, "updateStrategy.rollingUpdate", "only allowed for updateStrategy 'RollingUpdate'");
    api_validate_host_name(c, "serviceName", w->service_name);
    check_claims(c, json_object_get(spec, "volumeClaimTemplates"));
}

/* ---- all of them ---- */

static void check_template(struct api_check *c, enum api_kind kind, const struct api_pod *pod)
{
    const char *name = kind == API_KIND_DEPLOYMENT ? "ReplicaSet" : api_kind_name(kind);
    size_t mark = api_enter(c, "template.spec");

    if (pod->spec.restart_policy != API_RESTART_ALWAYS)
        api_fault_at(c, "restartPolicy", "must be Always: a %s keeps its pods running", api_kind_name(kind));
    if (pod->spec.has_active_deadline)
        api_fault_at(c, "activeDeadlineSeconds", "not allowed: activeDeadlineSeconds in %s is not Supported",
                     name);
    api_leave(c, mark);
}

void api_validate_workload(struct api_check *c, enum api_kind kind, const struct api_generic *o,
                           const json_t *spec)
{
    const struct api_workload *w = o->workload;

    if (kind == API_KIND_DEPLOYMENT)
        check_deployment(c, w, spec);
    else if (kind == API_KIND_DAEMON_SET)
        check_daemon_set(c, w, spec);
    else if (kind == API_KIND_STATEFUL_SET)
        check_stateful_set(c, w, spec);
    check_selector(c, kind, w, spec);
    if (w->pods.pod != NULL)
        check_template(c, kind, w->pods.pod);
}

/* The pods of a StatefulSet are called after it. */
void api_validate_set_name(struct api_check *c, const struct api_meta *meta)
{
    size_t mark = api_enter(c, "metadata");

    /* A name that is not even a subdomain is refused for every kind of object. */
    if (meta->name != NULL && api_format_rule(API_FMT_SUBDOMAIN, meta->name) == NULL)
        api_validate_host_name(c, "name", meta->name);
    api_leave(c, mark);
}
