/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/pod_merge.h"

#include "agent/kube/decide/patch.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

bool pod_phase_is_final(const char *phase)
{
    return str_eq(phase, "Succeeded") || str_eq(phase, "Failed");
}

bool pod_may_run(const json_t *status)
{
    static const char *const lists[] = { "initContainerStatuses", "containerStatuses",
                                         "ephemeralContainerStatuses" };
    json_t *c;
    size_t k;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        json_array_foreach (json_object_get(status, lists[i]), k, c)
            if (json_object_get(json_object_get(c, "state"), "running") != NULL)
                return true;
    return false;
}

/* ---- conditions ---- */

/* pkg/kubelet/types/pod_status.go, and the agent's own. */
bool pod_condition_is_of_node(const char *type)
{
    static const char *const types[] = { "PodReadyToStartContainers",
                                         "Initialized",
                                         "Ready",
                                         "ContainersReady",
                                         "PodScheduled",
                                         "PodResizePending",
                                         "PodResizeInProgress",
                                         "AllContainersRestarting" };

    if (type == NULL)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return str_starts(type, "coracle.dev/");
}

static json_t *condition(const json_t *status, const char *type)
{
    json_t *c;
    size_t i;

    json_array_foreach (json_object_get(status, "conditions"), i, c)
        if (str_eq(json_str(c, "type"), type))
            return c;
    return NULL;
}

static void pod_merge_time(const json_t *theirs, json_t *c)
{
    const json_t *before = condition(theirs, json_str(c, "type"));
    json_t *since = json_object_get(before, "lastTransitionTime");

    if (since != NULL && !json_is_null(since) && str_eq(json_str(before, "status"), json_str(c, "status")))
        json_object_set(c, "lastTransitionTime", since);
}

static json_t *pod_merge_conditions(const json_t *theirs, const json_t *ours, bool ends)
{
    json_t *list = json_array(), *c, *copy;
    bool disrupted = false;
    size_t i;

    json_array_foreach (json_object_get(ours, "conditions"), i, c)
        disrupted = disrupted || (ends && str_eq(json_str(c, "type"), "DisruptionTarget"));
    json_array_foreach (json_object_get(theirs, "conditions"), i, c)
        if (!pod_condition_is_of_node(json_str(c, "type")) &&
            !(disrupted && str_eq(json_str(c, "type"), "DisruptionTarget")))
            json_array_append(list, c);
    json_array_foreach (json_object_get(ours, "conditions"), i, c) {
        if (!pod_condition_is_of_node(json_str(c, "type")) &&
            !(disrupted && str_eq(json_str(c, "type"), "DisruptionTarget")))
            continue;
        copy = json_deep_copy(c);
        pod_merge_time(theirs, copy);
        if (json_object_get(copy, "lastProbeTime") == NULL) /* as Go encodes one that never was */
            json_object_set_new(copy, "lastProbeTime", json_null());
        json_array_append_new(list, copy);
    }
    return list;
}

static void make_unready(json_t *status, const json_t *theirs, const char *type, const char *phase)
{
    json_t *c = condition(status, type);

    if (!str_eq(json_str(c, "status"), "True"))
        return;
    json_object_set_new(c, "status", json_string("False"));
    json_object_set_new(c, "reason", json_string(phase[0] == 'S' ? "PodCompleted" : "PodFailed"));
    json_object_del(c, "message");
    pod_merge_time(theirs, c);
}

/* ---- the whole ---- */

static void keep_member(json_t *to, const json_t *theirs, const char *key)
{
    json_t *v = json_object_get(theirs, key);

    if (v != NULL)
        json_object_set(to, key, v);
    else
        json_object_del(to, key);
}

static void pod_merge_members(json_t *to, const json_t *theirs, const json_t *ours)
{
    /* The node's members of PodStatus; all others belong to someone else, or never change. */
    static const char *const of_node[] = { "observedGeneration",
                                           "phase",
                                           "message",
                                           "reason",
                                           "hostIP",
                                           "hostIPs",
                                           "podIP",
                                           "podIPs",
                                           "startTime",
                                           "initContainerStatuses",
                                           "containerStatuses",
                                           "ephemeralContainerStatuses",
                                           "resize",
                                           "allocatedResources",
                                           "resources" };

    for (size_t i = 0; i < ARRAY_LEN(of_node); i++) {
        json_t *v = json_object_get(ours, of_node[i]);

        if (v == NULL || json_is_null(v))
            json_object_del(to, of_node[i]);
        else
            json_object_set_new(to, of_node[i], json_deep_copy(v));
    }
    if (json_object_get(theirs, "startTime") != NULL && !json_is_null(json_object_get(theirs, "startTime")))
        keep_member(to, theirs, "startTime"); /* it never changes */
    if (json_object_get(to, "qosClass") == NULL && json_str(ours, "qosClass") != NULL)
        json_put_str(to, "qosClass", json_str(ours, "qosClass"));
}

json_t *pod_merge(const json_t *theirs, const json_t *ours, bool ended)
{
    json_t *to = theirs != NULL ? json_deep_copy(theirs) : json_object();
    const char *before = json_str(theirs, "phase"), *phase;
    bool runs = !ended && pod_may_run(ours), ends;

    if (to == NULL)
        return NULL;
    pod_merge_members(to, theirs, ours);
    if (json_str(to, "phase") == NULL) /* an empty phase is Pending, which the apiserver set */
        keep_member(to, theirs, "phase");
    if (ended && !pod_phase_is_final(json_str(to, "phase")))
        json_object_set_new(to, "phase", json_string(pod_phase_is_final(before) ? before : "Failed"));
    ends = !pod_phase_is_final(before) && pod_phase_is_final(json_str(to, "phase"));
    json_object_set_new(to, "conditions", pod_merge_conditions(theirs, ours, ends && !runs));
    if (ends && runs) {
        keep_member(to, theirs, "phase");
        keep_member(to, theirs, "reason");
        keep_member(to, theirs, "message");
    }
    phase = json_str(to, "phase");
    if (pod_phase_is_final(phase)) {
        make_unready(to, theirs, "ContainersReady", phase);
        make_unready(to, theirs, "Ready", phase);
    }
    return to;
}

json_t *pod_status_patch(const char *uid, const json_t *theirs, const json_t *merged)
{
    json_t *status = patch_two_way(theirs, merged), *body = NULL;

    if (json_object_size(status) > 0)
        body = json_pack("{s:{s:s}, s:O}", "metadata", "uid", uid, "status", status);
    json_decref(status);
    return body;
}
