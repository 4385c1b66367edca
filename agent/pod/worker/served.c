/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served - pods of the apiserver: it decides their content and their end, under one uid. An edit never makes
 * a new pod of one that keeps its uid; a deletion is a grace period that begins or gets shorter. The pod
 * stays here until the apiserver has removed it.
 */
#include "agent/pod/core/events.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/worker/internal.h"
#include "agent/pod/worker/pods.h"
#include "agent/pod/worker/worker.h"
#include "base/log.h"

#include <string.h>

static bool same_names(const struct api_container *a, const struct api_container *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(a[i].name, b[i].name) != 0)
            return false;
    return true;
}

/* An apiserver refuses such a change; if it sends one anyway, it must not reach our arrays. */
static bool same_containers(const struct api_pod_spec *a, const struct api_pod_spec *b)
{
    return a->n_containers == b->n_containers && a->n_init_containers == b->n_init_containers &&
           same_names(a->containers, b->containers, a->n_containers) &&
           same_names(a->init_containers, b->init_containers, a->n_init_containers);
}

/* Ephemeral ones are only ever added. *ret_new: how many there are beside the pod's. */
static bool keeps_ephemeral(const struct pod *p, const struct api_pod_spec *b, size_t *ret_new)
{
    *ret_new = b->n_ephemeral_containers;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        if (p->ctrs[i]->kind != CTR_EPHEMERAL)
            continue;
        if (api_ephemeral_find(b, p->ctrs[i]->spec->name) == NULL)
            return false;
        --*ret_new;
    }
    return true;
}

bool served_takes_edit(struct pod *p, const struct api_pod *api)
{
    const char *why = api->served.problem;
    size_t added;
    bool same = same_containers(&p->api->spec, &api->spec) && keeps_ephemeral(p, &api->spec, &added);

    if (p->api->served.problem != NULL)
        return same;
    if (why == NULL && same && added <= p->max_ctrs - p->n_ctrs)
        return true;
    if (why == NULL)
        why = same ? "it has too many ephemeral containers" : "its containers are others";
    log_warn("an edit of the pod cannot be applied; it continues unchanged", F_STR("pod", p->key),
             F_STR("podUID", p->uid), F_STR("why", why));
    pod_event(p, NULL, true, "FailedUpdate", "The edit cannot be applied on this node: %s", why);
    return false;
}

void served_deletion(struct pod *p, const struct api_pod *api)
{
    if (!api->served.deleting)
        return;
    pod_begin_termination(p, api->served.deletion_grace_seconds, false, "it is deleted in the cluster");
}

/* Like kubelet's FailedMount: the pod stays Pending, and the missing part is reported once. */
static void tell_problem(struct pod *p, const char *problem)
{
    bool of_volume = strncmp(problem, "spec.volumes", strlen("spec.volumes")) == 0;
    str_auto text = str_printf("this node cannot run the pod: %s", problem);

    if (text == NULL || str_eq(text, p->message))
        return;
    log_warn("pod cannot be run on this node", F_STR("pod", p->key), F_STR("podUID", p->uid),
             F_STR("why", problem));
    pod_event(p, NULL, true, of_volume ? "FailedMount" : "FailedCreatePodContainer", "%s", text);
    free(p->message);
    p->message = take_ptr(&text);
}

bool served_step(struct pod *p)
{
    if (p->api->origin != API_FROM_SERVER)
        return true;
    if (p->api->served.deleting || p->deletion_ns != 0) {
        pod_begin_termination(p, 0, false, "it is deleted in the cluster");
        return false;
    }
    if (p->api->served.problem == NULL)
        return true;
    tell_problem(p, p->api->served.problem);
    return false;
}
