/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of pods and of workloads: apps and batch. */
#include "agent/api/serve/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/duration.h"

#include <stdio.h>
#include <string.h>

#define CONTAINERS                                                                                           \
    {                                                                                                        \
        "Containers", "string", 1, "Names of each container in the template."                                \
    }
#define IMAGES                                                                                               \
    {                                                                                                        \
        "Images", "string", 1, "Images referenced by each container in the template."                        \
    }
#define SELECTOR                                                                                             \
    {                                                                                                        \
        "Selector", "string", 1, "The labels of the pods that belong to it."                                 \
    }

static void name_cell(json_t **cells, const json_t *o)
{
    api_cell(cells, api_text_at(o, "metadata.name"));
}

/* "2/3" */
static void ratio_cell(json_t **cells, int64_t part, int64_t whole)
{
    char text[48];

    snprintf(text, sizeof(text), "%lld/%lld", (long long)part, (long long)whole);
    api_cell(cells, text);
}

static void container_cells(json_t **cells, const json_t *template)
{
    const json_t *containers = json_at(template, "spec.containers");

    api_cell_list(cells, containers, "name");
    api_cell_list(cells, containers, "image");
}

/* ---- pods ---- */

static const struct api_column pod_columns[] = {
    API_COLUMN_NAME,
    { "Ready", "string", 0, "How many of the pod's containers are ready." },
    { "Status", "string", 0, "The state of the pod in one word, as its containers and its phase say it." },
    { "Restarts", "string", 0, "How often containers of the pod were restarted, and when the last one was." },
    API_COLUMN_AGE,
    { "IP", "string", 1, "The address of the pod." },
    { "Node", "string", 1, "The node on which the pod runs." },
    { "Nominated Node", "string", 1, "The node on which room is being made for the pod." },
    { "Readiness Gates", "string", 1, "How many of the conditions that the pod waits for are true." },
    { 0 },
};

static void gates_cell(json_t **cells, const json_t *pod)
{
    const json_t *gates = json_at(pod, "spec.readinessGates"), *gate;
    int64_t met = 0;
    size_t i;

    json_array_foreach (gates, i, gate)
        met += api_condition_is(pod, api_text_at(gate, "conditionType"), "True");
    if (json_array_size(gates) == 0)
        api_cell(cells, "<none>");
    else
        ratio_cell(cells, met, (int64_t)json_array_size(gates));
}

static void pod_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    const char *ip = api_text_at(json_array_get(json_at(o, "status.podIPs"), 0), "ip");
    struct api_pod_summary s = { 0 };

    api_pod_summary(o, now_ns, &s);
    name_cell(cells, o);
    api_cell(cells, s.ready);
    api_cell(cells, s.status);
    api_cell(cells, s.restarts);
    api_cell_age(cells, o, now_ns);
    api_cell_or(cells, ip[0] != '\0' ? ip : api_text_at(o, "status.podIP"), "<none>");
    api_cell_or(cells, api_text_at(o, "spec.nodeName"), "<none>");
    api_cell_or(cells, api_text_at(o, "status.nominatedNodeName"), "<none>");
    gates_cell(cells, o);
}

/* ---- apps ---- */

static const struct api_column deployment_columns[] = {
    API_COLUMN_NAME,
    { "Ready", "string", 0, "How many of the wanted pods are ready." },
    { "Up-to-date", "string", 0, "How many pods are of the newest template." },
    { "Available", "string", 0, "How many pods have been ready for spec.minReadySeconds." },
    API_COLUMN_AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
    { 0 },
};

static void deployment_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    name_cell(cells, o);
    ratio_cell(cells, api_number_at(o, "status.readyReplicas"), api_number_at(o, "spec.replicas"));
    api_cell_number(cells, api_number_at(o, "status.updatedReplicas"));
    api_cell_number(cells, api_number_at(o, "status.availableReplicas"));
    api_cell_age(cells, o, now_ns);
    container_cells(cells, json_at(o, "spec.template"));
    api_cell_selector(cells, json_at(o, "spec.selector"));
}

static const struct api_column replica_set_columns[] = {
    API_COLUMN_NAME,
    { "Desired", "integer", 0, "How many pods are wanted." },
    { "Current", "integer", 0, "How many pods there are." },
    { "Ready", "integer", 0, "How many of them are ready." },
    API_COLUMN_AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
    { 0 },
};

static void replica_set_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    name_cell(cells, o);
    api_cell_number(cells, api_number_at(o, "spec.replicas"));
    api_cell_number(cells, api_number_at(o, "status.replicas"));
    api_cell_number(cells, api_number_at(o, "status.readyReplicas"));
    api_cell_age(cells, o, now_ns);
    container_cells(cells, json_at(o, "spec.template"));
    api_cell_selector(cells, json_at(o, "spec.selector"));
}

static const struct api_column stateful_set_columns[] = {
    API_COLUMN_NAME, { "Ready", "string", 0, "How many of the wanted pods are ready." },
    API_COLUMN_AGE,  CONTAINERS,
    IMAGES,          { 0 },
};

static void stateful_set_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    name_cell(cells, o);
    ratio_cell(cells, api_number_at(o, "status.readyReplicas"), api_number_at(o, "spec.replicas"));
    api_cell_age(cells, o, now_ns);
    container_cells(cells, json_at(o, "spec.template"));
}

static const struct api_column daemon_set_columns[] = {
    API_COLUMN_NAME,
    { "Desired", "integer", 0, "On how many nodes its pod should run." },
    { "Current", "integer", 0, "On how many of them it runs." },
    { "Ready", "integer", 0, "On how many of them it is ready." },
    { "Up-to-date", "integer", 0, "On how many of them it is of the newest template." },
    { "Available", "integer", 0, "On how many of them it has been ready for spec.minReadySeconds." },
    { "Node Selector", "string", 0, "The labels that a node needs for it." },
    API_COLUMN_AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
    { 0 },
};

static void daemon_set_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    name_cell(cells, o);
    api_cell_number(cells, api_number_at(o, "status.desiredNumberScheduled"));
    api_cell_number(cells, api_number_at(o, "status.currentNumberScheduled"));
    api_cell_number(cells, api_number_at(o, "status.numberReady"));
    api_cell_number(cells, api_number_at(o, "status.updatedNumberScheduled"));
    api_cell_number(cells, api_number_at(o, "status.numberAvailable"));
    api_cell_pairs(cells, json_at(o, "spec.template.spec.nodeSelector"));
    api_cell_age(cells, o, now_ns);
    container_cells(cells, json_at(o, "spec.template"));
    api_cell_selector(cells, json_at(o, "spec.selector"));
}

/* ---- batch ---- */

static const struct api_column job_columns[] = {
    API_COLUMN_NAME,
    { "Status", "string", 0, "Whether the job runs, is complete or has failed." },
    { "Completions", "string", 0, "How many pods have succeeded, of how many that have to." },
    { "Duration", "string", 0, "How long the job has taken." },
    API_COLUMN_AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
    { 0 },
};

static const char *job_status(const json_t *o)
{
    static const char *const conditions[] = { "Suspended", "FailureTarget", "SuccessCriteriaMet" };

    if (api_condition_is(o, "Complete", "True"))
        return "Complete";
    if (api_condition_is(o, "Failed", "True"))
        return "Failed";
    if (api_text_at(o, "metadata.deletionTimestamp")[0] != '\0')
        return "Terminating";
    for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
        if (api_condition_is(o, conditions[i], "True"))
            return conditions[i];
    }
    return "Running";
}

static void completions_cell(json_t **cells, const json_t *o)
{
    const int64_t succeeded = api_number_at(o, "status.succeeded");
    const int64_t parallelism = api_number_at(o, "spec.parallelism");
    char text[64];

    if (json_at(o, "spec.completions") != NULL) {
        ratio_cell(cells, succeeded, api_number_at(o, "spec.completions"));
    } else if (parallelism > 1) {
        snprintf(text, sizeof(text), "%lld/1 of %lld", (long long)succeeded, (long long)parallelism);
        api_cell(cells, text);
    } else {
        ratio_cell(cells, succeeded, 1);
    }
}

static void job_duration_cell(json_t **cells, const json_t *o, int64_t now_ns)
{
    int64_t start, end;

    if (clock_parse(api_text_at(o, "status.startTime"), &start, ERR_IGNORED) != ERR_OK) {
        api_cell(cells, "");
        return;
    }
    if (clock_parse(api_text_at(o, "status.completionTime"), &end, ERR_IGNORED) != ERR_OK)
        end = now_ns;
    api_cell(cells, duration_human(end - start).s);
}

static void job_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    name_cell(cells, o);
    api_cell(cells, job_status(o));
    completions_cell(cells, o);
    job_duration_cell(cells, o, now_ns);
    api_cell_age(cells, o, now_ns);
    container_cells(cells, json_at(o, "spec.template"));
    api_cell_selector(cells, json_at(o, "spec.selector"));
}

static const struct api_column cron_job_columns[] = {
    API_COLUMN_NAME,
    { "Schedule", "string", 0, "When jobs are made, in cron's format." },
    { "Timezone", "string", 0, "The time zone of the schedule." },
    { "Suspend", "boolean", 0, "Whether no jobs are made." },
    { "Active", "integer", 0, "How many of its jobs run." },
    { "Last Schedule", "string", 0, "The time since the last job was made." },
    API_COLUMN_AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
    { 0 },
};

static void cron_job_cells(json_t **cells, const json_t *o, int64_t now_ns)
{
    const json_t *suspend = json_at(o, "spec.suspend");

    name_cell(cells, o);
    api_cell(cells, api_text_at(o, "spec.schedule"));
    api_cell_or(cells, api_text_at(o, "spec.timeZone"), "<none>");
    api_cell(cells, suspend == NULL ? "<unset>" : json_is_true(suspend) ? "True" : "False");
    api_cell_number(cells, (int64_t)json_array_size(json_at(o, "status.active")));
    if (api_text_at(o, "status.lastScheduleTime")[0] == '\0')
        api_cell(cells, "<none>");
    else
        api_cell_since(cells, api_text_at(o, "status.lastScheduleTime"), now_ns);
    api_cell_age(cells, o, now_ns);
    container_cells(cells, json_at(o, "spec.jobTemplate.spec.template"));
    api_cell_selector(cells, json_at(o, "spec.jobTemplate.spec.selector"));
}

const struct api_columns api_columns_work[] = {
    { "", "Pod", pod_columns, pod_cells },
    { "apps", "DaemonSet", daemon_set_columns, daemon_set_cells },
    { "apps", "Deployment", deployment_columns, deployment_cells },
    { "apps", "ReplicaSet", replica_set_columns, replica_set_cells },
    { "apps", "StatefulSet", stateful_set_columns, stateful_set_cells },
    { "batch", "CronJob", cron_job_columns, cron_job_cells },
    { "batch", "Job", job_columns, job_cells },
    { 0 },
};
