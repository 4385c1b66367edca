/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/show/internal.h"

#include <string.h>

static void describe_pod_add_head(const struct cli *cli, const json_t *pod, struct buf *out)
{
    const char *phase = cli_text(pod, "status.phase"), *deleted = cli_text(pod, "metadata.deletionTimestamp");
    const char *node = cli_text(pod, "spec.nodeName");
    char when[CLI_TIME_SIZE], age[CLI_AGE_SIZE];
    static const struct {
        const char *title, *path;
    } optional[] = { { "Priority Class Name", "spec.priorityClassName" },
                     { "Runtime Class Name", "spec.runtimeClassName" },
                     { "Service Account", "spec.serviceAccountName" } };

    buf_addf(out, "Name:\t%s\nNamespace:\t%s\n", cli_text(pod, "metadata.name"),
             cli_text(pod, "metadata.namespace"));
    if (json_is_integer(cli_at(pod, "spec.priority")))
        buf_addf(out, "Priority:\t%lld\n", (long long)cli_number(pod, "spec.priority"));
    for (size_t i = 0; i < ARRAY_LEN(optional); i++)
        if (cli_text(pod, optional[i].path)[0] != '\0')
            buf_addf(out, "%s:\t%s\n", optional[i].title, cli_text(pod, optional[i].path));
    if (node[0] != '\0')
        buf_addf(out, "Node:\t%s/%s\n", node, cli_text(pod, "status.hostIP"));
    else
        buf_adds(out, "Node:\t<none>\n");
    if (cli_text(pod, "status.startTime")[0] != '\0') {
        cli_time(cli_text(pod, "status.startTime"), when);
        buf_addf(out, "Start Time:\t%s\n", when);
    }
    cli_describe_pairs(out, "Labels", cli_at(pod, "metadata.labels"));
    cli_describe_annotations(out, cli_at(pod, "metadata.annotations"));
    if (deleted[0] != '\0' && strcmp(phase, "Failed") != 0 && strcmp(phase, "Succeeded") != 0) {
        cli_age(cli, deleted, age);
        buf_addf(out, "Status:\tTerminating (lasts %s)\n", age);
        buf_addf(out, "Termination Grace Period:\t%llds\n",
                 (long long)cli_number(pod, "metadata.deletionGracePeriodSeconds"));
    } else {
        buf_addf(out, "Status:\t%s\n", phase);
    }
}

static void describe_pod_add_status(const json_t *pod, struct buf *out)
{
    const json_t *ips = cli_at(pod, "status.podIPs"), *ip, *owner;
    size_t i;

    cli_describe_text(out, "Reason", cli_text(pod, "status.reason"));
    cli_describe_text(out, "Message", cli_text(pod, "status.message"));
    cli_describe_text(out, "SeccompProfile", cli_text(pod, "spec.securityContext.seccompProfile.type"));
    cli_describe_text(out, "LocalhostProfile",
                      cli_text(pod, "spec.securityContext.seccompProfile.localhostProfile"));
    buf_addf(out, "IP:\t%s\n", cli_text(pod, "status.podIP"));
    if (json_array_size(ips) == 0)
        buf_adds(out, "IPs:\t<none>\n");
    else
        buf_adds(out, "IPs:\n");
    json_array_foreach (ips, i, ip)
        buf_addf(out, "  IP:\t%s\n", cli_text(ip, "ip"));
    json_array_foreach (cli_at(pod, "metadata.ownerReferences"), i, owner) {
        if (cli_true(owner, "controller"))
            buf_addf(out, "Controlled By:\t%s/%s\n", cli_text(owner, "kind"), cli_text(owner, "name"));
    }
}

static void add_conditions(const json_t *pod, struct buf *out)
{
    const json_t *gates = cli_at(pod, "spec.readinessGates"), *conditions = cli_at(pod, "status.conditions"),
                 *c, *gate;
    size_t i;

    if (json_array_size(gates) > 0)
        buf_adds(out, "Readiness Gates:\n  Type\tStatus\n");
    json_array_foreach (gates, i, gate) {
        c = cli_find(conditions, "type", cli_text(gate, "conditionType"));
        buf_addf(out, "  %s \t%s \n", cli_text(gate, "conditionType"),
                 c != NULL ? cli_text(c, "status") : "<none>");
    }
    if (json_array_size(conditions) > 0)
        buf_adds(out, "Conditions:\n  Type\tStatus\n");
    json_array_foreach (conditions, i, c)
        buf_addf(out, "  %s \t%s \n", cli_text(c, "type"), cli_text(c, "status"));
}

static int by_toleration_key(const void *a, const void *b)
{
    return strcmp(cli_text(*(json_t *const *)a, "key"), cli_text(*(json_t *const *)b, "key"));
}

static void add_tolerations(const json_t *tolerations, struct buf *out)
{
    size_t n = json_array_size(tolerations), i;
    mem_auto json_t **v = calloc(n + 1, sizeof(*v));
    json_t *t;

    buf_adds(out, "Tolerations:\t");
    if (n == 0 || v == NULL) {
        buf_adds(out, "<none>\n");
        return;
    }
    json_array_foreach (tolerations, i, t)
        v[i] = t;
    qsort(v, n, sizeof(*v), by_toleration_key);
    for (i = 0; i < n; i++) {
        const char *value = cli_text(v[i], "value"), *effect = cli_text(v[i], "effect");
        bool exists = strcmp(cli_text(v[i], "operator"), "Exists") == 0 && value[0] == '\0';

        buf_addf(out, "%s%s%s%s%s%s", i > 0 ? "\t" : "", cli_text(v[i], "key"), value[0] != '\0' ? "=" : "",
                 value, effect[0] != '\0' ? ":" : "", effect);
        if (exists)
            buf_adds(out, cli_text(v[i], "key")[0] != '\0' || effect[0] != '\0' ? " op=Exists" : "op=Exists");
        if (json_is_integer(cli_at(v[i], "tolerationSeconds")))
            buf_addf(out, " for %llds", (long long)cli_number(v[i], "tolerationSeconds"));
        buf_addc(out, '\n');
    }
}

/* Prints a condition that only this agent has: each part of `a; b` on its own line. */
static void add_own_condition(const json_t *pod, const char *type, const char *title, struct buf *out)
{
    const json_t *c;
    size_t i;

    json_array_foreach (cli_at(pod, "status.conditions"), i, c) {
        str_auto text = strdup(cli_text(c, "message"));
        char *next;

        if (strcmp(cli_text(c, "type"), type) != 0 || text == NULL || text[0] == '\0')
            continue;
        buf_addf(out, "%s:\n", title);
        for (char *one = text; one != NULL; one = next) {
            next = strstr(one, "; ");
            if (next != NULL) {
                *next = '\0';
                next += 2;
            }
            buf_adds(out, "  ");
            cli_add_clean(out, one);
            buf_addc(out, '\n');
        }
    }
}

void cli_describe_pod(const struct cli *cli, const json_t *pod, const json_t *events, struct buf *out)
{
    const json_t *init = cli_at(pod, "spec.initContainers"),
                 *ephemeral = cli_at(pod, "spec.ephemeralContainers");

    describe_pod_add_head(cli, pod, out);
    describe_pod_add_status(pod, out);
    if (cli_at(pod, "spec.resources") != NULL) {
        buf_adds(out, "Resources:\n");
        cli_describe_resources(cli_at(pod, "spec.resources"), "  ", out);
    }
    if (json_array_size(init) > 0)
        cli_describe_containers("Init Containers", pod, init, cli_at(pod, "status.initContainerStatuses"),
                                out);
    cli_describe_containers("Containers", pod, cli_at(pod, "spec.containers"),
                            cli_at(pod, "status.containerStatuses"), out);
    if (json_array_size(ephemeral) > 0)
        cli_describe_containers("Ephemeral Containers", pod, ephemeral,
                                cli_at(pod, "status.ephemeralContainerStatuses"), out);
    add_conditions(pod, out);
    cli_describe_volumes(cli_at(pod, "spec.volumes"), out);
    buf_addf(out, "QoS Class:\t%s\n", cli_text(pod, "status.qosClass"));
    cli_describe_pairs(out, "Node-Selectors", cli_at(pod, "spec.nodeSelector"));
    add_tolerations(cli_at(pod, "spec.tolerations"), out);
    add_own_condition(pod, "coracle.dev/FieldsIgnored", "Ignored fields", out);
    add_own_condition(pod, "coracle.dev/VolumeFilesHidden", "Hidden files of volumes", out);
    add_own_condition(pod, "coracle.dev/EnvironmentOutdated", "Outdated environments", out);
    cli_describe_events(cli, events, out);
}
