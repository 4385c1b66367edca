/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's priority: its number, or its class by name, which is defined by a manifest. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/limits/limits.h"
#include "base/log.h"

#include <string.h>

int32_t pods_priority(const struct node *n, const struct api_pod *api)
{
    const struct api_priority_class *c;

    if (api->spec.has_priority)
        return api->spec.priority;
    if (api->spec.priority_class_name == NULL) {
        c = src_store_default_priority(n->o.store);
        return c != NULL ? c->value : 0;
    }
    if (strcmp(api->spec.priority_class_name, "system-cluster-critical") == 0)
        return 2000000000;
    if (strcmp(api->spec.priority_class_name, "system-node-critical") == 0)
        return 2000001000;
    c = src_store_priority_class(n->o.store, api->spec.priority_class_name);
    return c != NULL ? c->value : 0;
}

static bool priority_is_known(const struct node *n, const struct api_pod *api)
{
    const char *name = api->spec.priority_class_name;

    return api->spec.has_priority || name == NULL || strcmp(name, "system-cluster-critical") == 0 ||
           strcmp(name, "system-node-critical") == 0 || src_store_priority_class(n->o.store, name) != NULL;
}

/* An API server rejects such a pod; here the class may be in a file read after the pod's. */
static void wait_for_class(struct pod *p)
{
    str_auto text = NULL;

    if (pod_is_new(p)) {
        pod_wake_at(p, pod_new_until(p), "priority class may be in a file that is being read");
        return;
    }
    text = str_printf(
        "spec.priorityClassName: no PriorityClass with name \"%s\" was found; without one there are "
        "system-node-critical and system-cluster-critical, and spec.priority for a number",
        p->api->spec.priority_class_name);
    if (text == NULL || str_eq(text, p->message))
        return;
    log_warn("pod waits for its PriorityClass", F_STR("pod", p->key), F_STR("err", text));
    pod_event(p, NULL, true, "PriorityClassNotFound", "%s", text);
    free(p->message);
    p->message = take_ptr(&text);
}

bool priority_step(struct pod *p)
{
    bool known = priority_is_known(p->node, p->api);

    if (!known)
        wait_for_class(p);
    return known;
}
