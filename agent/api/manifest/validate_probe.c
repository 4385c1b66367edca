/* SPDX-License-Identifier: Apache-2.0 */
/* Probes and lifecycle hooks: where they are allowed, and their numbers. */
#include "agent/api/manifest/internal.h"

static void check_sleep(struct api_check *c, const char *field, const struct api_handler *h,
                        int64_t grace_seconds)
{
    size_t mark;

    if (h == NULL || h->kind != API_HANDLER_SLEEP)
        return;
    mark = api_enter(c, field);
    if (h->sleep_seconds < 0 || h->sleep_seconds > grace_seconds)
        api_fault_at(c, "sleep",
                     "%lld is out of range, allowed are 0 to terminationGracePeriodSeconds (%lld)",
                     (long long)h->sleep_seconds, (long long)grace_seconds);
    api_leave(c, mark);
}

static void check_threshold(struct api_check *c, const char *field, const struct api_probe *p)
{
    size_t mark;

    if (p == NULL || p->success_threshold == 1)
        return;
    mark = api_enter(c, field);
    if (p->success_threshold != 0) /* 0: it was not a valid number */
        api_fault_at(c, "successThreshold", "%d is not allowed, it must be 1", (int)p->success_threshold);
    api_leave(c, mark);
}

/* A plain init container runs to completion: no probes, no hooks. */
static void check_plain_init(struct api_check *c, const struct api_container *container, const json_t *object)
{
    static const char reason[] = "not allowed for init containers without restartPolicy Always";

    if (json_object_get(object, "lifecycle") != NULL)
        api_fault_at(c, "lifecycle", "%s", reason);
    if (container->liveness != NULL)
        api_fault_at(c, "livenessProbe", "%s", reason);
    if (container->readiness != NULL)
        api_fault_at(c, "readinessProbe", "%s", reason);
    if (container->startup != NULL)
        api_fault_at(c, "startupProbe", "%s", reason);
}

void api_validate_probes(struct api_check *c, const struct api_container *container, const json_t *object,
                         bool init, int64_t grace_seconds)
{
    if (init && container->restart_policy != API_RESTART_ALWAYS) {
        check_plain_init(c, container, object);
        return;
    }
    check_threshold(c, "livenessProbe", container->liveness);
    check_threshold(c, "startupProbe", container->startup);
    if (container->readiness != NULL && container->readiness->has_termination_grace)
        api_fault_at(c, "readinessProbe.terminationGracePeriodSeconds", "not allowed for readiness probes");
    check_sleep(c, "lifecycle.postStart", container->post_start, grace_seconds);
    check_sleep(c, "lifecycle.preStop", container->pre_stop, grace_seconds);
}
