/* SPDX-License-Identifier: Apache-2.0 */
/* How far the rollout of a workload is, in the words of kubectl (k8s.io/kubectl pkg/polymorphichelpers). */
#include "agent/cli/change/internal.h"

#include <string.h>

static bool is_observed(const json_t *o)
{
    return cli_number(o, "status.observedGeneration") >= cli_number(o, "metadata.generation");
}

static enum rollout_state deployment(const json_t *o, struct buf *text)
{
    const char *name = cli_text(o, "metadata.name");
    const long long wanted = cli_number(o, "spec.replicas"), all = cli_number(o, "status.replicas"),
                    updated = cli_number(o, "status.updatedReplicas"),
                    available = cli_number(o, "status.availableReplicas");
    const json_t *progress = cli_find(cli_at(o, "status.conditions"), "type", "Progressing");

    if (!is_observed(o)) {
        buf_adds(text, "Waiting for deployment spec update to be observed...");
        return ROLLOUT_GOES_ON;
    }
    if (strcmp(cli_text(progress, "reason"), "ProgressDeadlineExceeded") == 0) {
        buf_addf(text, "deployment \"%s\" exceeded its progress deadline", name);
        return ROLLOUT_FAILED;
    }
    if (updated < wanted)
        buf_addf(text,
                 "Waiting for deployment \"%s\" rollout to finish: %lld out of %lld new replicas have been "
                 "updated...",
                 name, updated, wanted);
    else if (all > updated)
        buf_addf(text,
                 "Waiting for deployment \"%s\" rollout to finish: %lld old replicas are pending "
                 "termination...",
                 name, all - updated);
    else if (available < updated)
        buf_addf(text,
                 "Waiting for deployment \"%s\" rollout to finish: %lld of %lld updated replicas are "
                 "available...",
                 name, available, updated);
    else
        buf_addf(text, "deployment \"%s\" successfully rolled out", name);
    return updated < wanted || all > updated || available < updated ? ROLLOUT_GOES_ON : ROLLOUT_DONE;
}

static enum rollout_state daemon_set(const json_t *o, struct buf *text)
{
    const char *name = cli_text(o, "metadata.name");
    const long long wanted = cli_number(o, "status.desiredNumberScheduled"),
                    updated = cli_number(o, "status.updatedNumberScheduled"),
                    available = cli_number(o, "status.numberAvailable");

    if (strcmp(cli_text(o, "spec.updateStrategy.type"), "OnDelete") == 0) {
        buf_adds(text, "rollout status is only available for RollingUpdate strategy type");
        return ROLLOUT_FAILED;
    }
    if (!is_observed(o))
        buf_adds(text, "Waiting for daemon set spec update to be observed...");
    else if (updated < wanted)
        buf_addf(text,
                 "Waiting for daemon set \"%s\" rollout to finish: %lld out of %lld new pods have been "
                 "updated...",
                 name, updated, wanted);
    else if (available < wanted)
        buf_addf(
            text,
            "Waiting for daemon set \"%s\" rollout to finish: %lld of %lld updated pods are available...",
            name, available, wanted);
    else
        buf_addf(text, "daemon set \"%s\" successfully rolled out", name);
    return !is_observed(o) || updated < wanted || available < wanted ? ROLLOUT_GOES_ON : ROLLOUT_DONE;
}

static enum rollout_state stateful_set(const json_t *o, struct buf *text)
{
    const long long wanted = cli_at(o, "spec.replicas") != NULL ? cli_number(o, "spec.replicas") : 1,
                    ready = cli_number(o, "status.readyReplicas"),
                    updated = cli_number(o, "status.updatedReplicas"),
                    partition = cli_number(o, "spec.updateStrategy.rollingUpdate.partition");
    const char *revision = cli_text(o, "status.updateRevision");

    if (strcmp(cli_text(o, "spec.updateStrategy.type"), "OnDelete") == 0) {
        buf_adds(text, "rollout status is only available for RollingUpdate strategy type");
        return ROLLOUT_FAILED;
    }
    if (!is_observed(o)) {
        buf_adds(text, "Waiting for statefulset spec update to be observed...");
    } else if (ready < wanted) {
        buf_addf(text, "Waiting for %lld pods to be ready...", wanted - ready);
    } else if (partition > 0 && updated < wanted - partition) {
        buf_addf(text,
                 "Waiting for partitioned roll out to finish: %lld out of %lld new pods have been updated...",
                 updated, wanted - partition);
    } else if (partition > 0) {
        buf_addf(text, "partitioned roll out complete: %lld new pods have been updated...", updated);
        return ROLLOUT_DONE;
    } else if (strcmp(revision, cli_text(o, "status.currentRevision")) != 0) {
        buf_addf(text, "waiting for statefulset rolling update to complete %lld pods at revision %s...",
                 updated, revision);
    } else {
        buf_addf(text, "statefulset rolling update complete %lld pods at revision %s...",
                 (long long)cli_number(o, "status.currentReplicas"), revision);
        return ROLLOUT_DONE;
    }
    return ROLLOUT_GOES_ON;
}

enum rollout_state rollout_state_of(enum api_kind kind, const json_t *object, struct buf *text)
{
    buf_reset(text);
    return kind == API_KIND_DEPLOYMENT   ? deployment(object, text)
           : kind == API_KIND_DAEMON_SET ? daemon_set(object, text)
                                         : stateful_set(object, text);
}
