/* SPDX-License-Identifier: Apache-2.0 */
/* The node: its resources, and its pods' requests. */
#include "agent/cli/show/internal.h"

#include "agent/api/quantity.h"
#include "agent/api/serve/serve.h"
#include "base/codec/json.h"

#include <string.h>

/* ---- a pod's requests ---- */

static struct quantity quantity_at(const json_t *resources, const char *list, const char *resource)
{
    const json_t *o = cli_at(resources, list);
    struct quantity q = quantity_from_int(0, QUANTITY_BINARY_SI);

    if (json_str(o, resource) == NULL || quantity_parse(json_str(o, resource), &q, ERR_IGNORED) != ERR_OK)
        return quantity_from_int(0, QUANTITY_BINARY_SI);
    return q;
}

/*
 * A pod's request as the scheduler computes it: the sum of all containers that run in parallel, and at least
 * the maximum of the init containers.
 */
static struct quantity pod_amount(const json_t *pod, const char *list, const char *resource)
{
    struct quantity sum = quantity_at(cli_at(pod, "spec.resources"), list, resource), beside, one, most;
    const json_t *c;
    size_t i;

    if (!quantity_is_zero(&sum))
        return sum;
    beside = most = sum;
    json_array_foreach (cli_at(pod, "spec.initContainers"), i, c) {
        one = quantity_at(cli_at(c, "resources"), list, resource);
        one = quantity_add(&one, &beside);
        if (api_is_sidecar(c))
            beside = one;
        if (quantity_cmp(&one, &most) > 0)
            most = one;
    }
    sum = beside;
    json_array_foreach (cli_at(pod, "spec.containers"), i, c) {
        one = quantity_at(cli_at(c, "resources"), list, resource);
        sum = quantity_add(&sum, &one);
    }
    return quantity_cmp(&most, &sum) > 0 ? most : sum;
}

static void add_amount(struct buf *out, const struct quantity *q, const json_t *node, const char *resource)
{
    const struct quantity all = quantity_at(cli_at(node, "status"), "allocatable", resource);
    char text[QUANTITY_TEXT_SIZE];

    quantity_format(q, text);
    buf_addf(out, "%s (%lld%%)", text,
             quantity_is_zero(&all) ? 0LL : (long long)((double)q->nano / (double)all.nano * 100));
}

static const struct column {
    const char *resource, *list;
} columns[] = {
    { "cpu", "requests" }, { "cpu", "limits" }, { "memory", "requests" }, { "memory", "limits" }
};

static bool describe_node_is_over(const json_t *pod)
{
    const char *phase = cli_text(pod, "status.phase");

    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

/* As in kubectl: the node's extended resources, as plain numbers. */
static bool is_extended(const char *resource)
{
    static const char *const own[] = { "cpu", "ephemeral-storage", "memory", "pods" };

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(resource, own[i]) == 0)
            return false;
    return !str_starts(resource, "hugepages-");
}

static struct quantity total_of(const json_t *pods, const char *list, const char *resource)
{
    struct quantity total = quantity_from_int(0, QUANTITY_DECIMAL_SI);
    const json_t *pod;
    size_t i;

    json_array_foreach (pods, i, pod) {
        struct quantity q = pod_amount(pod, list, resource);

        if (!describe_node_is_over(pod))
            total = quantity_add(&total, &q);
    }
    return total;
}

static void add_extended(const json_t *node, const json_t *pods, struct buf *out)
{
    mem_auto const char **keys = json_sorted_keys(cli_at(node, "status.allocatable"));
    char requests[QUANTITY_TEXT_SIZE], limits[QUANTITY_TEXT_SIZE];

    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
        if (!is_extended(keys[i]))
            continue;
        struct quantity r = total_of(pods, "requests", keys[i]), l = total_of(pods, "limits", keys[i]);

        quantity_format(&r, requests);
        quantity_format(&l, limits);
        buf_addf(out, "  %s\t%s\t%s\n", keys[i], requests, limits);
    }
}

static void add_pods(const struct cli *cli, const json_t *node, const json_t *pods, struct buf *out)
{
    struct quantity total[ARRAY_LEN(columns)];
    buf_auto rows = BUF_INIT(16u << 20);
    char age[CLI_AGE_SIZE];
    const json_t *pod;
    size_t i, n = 0;

    for (size_t k = 0; k < ARRAY_LEN(columns); k++)
        total[k] = quantity_from_int(0, QUANTITY_BINARY_SI);
    json_array_foreach (pods, i, pod) {
        if (describe_node_is_over(pod))
            continue;
        n++;
        buf_addf(&rows, "  %s\t%s\t", cli_text(pod, "metadata.namespace"), cli_text(pod, "metadata.name"));
        for (size_t k = 0; k < ARRAY_LEN(columns); k++) {
            struct quantity q = pod_amount(pod, columns[k].list, columns[k].resource);

            total[k] = quantity_add(&total[k], &q);
            add_amount(&rows, &q, node, columns[k].resource);
            buf_addc(&rows, '\t');
        }
        cli_age(cli, cli_text(pod, "metadata.creationTimestamp"), age);
        buf_addf(&rows, "%s\n", age);
    }
    buf_addf(out,
             "Non-terminated Pods:\t(%zu in total)\n"
             "  Namespace\tName\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge\n"
             "  ---------\t----\t------------\t----------\t---------------\t-------------\t---\n%s"
             "Allocated resources:\n"
             "  (Total limits may be over 100 percent, i.e., overcommitted.)\n"
             "  Resource\tRequests\tLimits\n"
             "  --------\t--------\t------\n",
             n, rows.n > 0 ? rows.p : "");
    for (size_t k = 0; k < ARRAY_LEN(columns); k++) {
        if (k % 2 == 0)
            buf_addf(out, "  %s\t", columns[k].resource);
        add_amount(out, &total[k], node, columns[k].resource);
        buf_adds(out, k % 2 == 0 ? "\t" : "\n");
    }
    add_extended(node, pods, out);
}

/* ---- the node ---- */

static void add_taints(const json_t *taints, struct buf *out)
{
    const json_t *t;
    size_t i;

    buf_adds(out, json_array_size(taints) == 0 ? "Taints:\t<none>\n" : "Taints:\t");
    json_array_foreach (taints, i, t)
        buf_addf(out, "%s%s%s%s:%s\n", i > 0 ? "\t" : "", cli_text(t, "key"),
                 cli_text(t, "value")[0] != '\0' ? "=" : "", cli_text(t, "value"), cli_text(t, "effect"));
}

static void add_list(const char *title, const json_t *amounts, struct buf *out)
{
    mem_auto const char **keys = json_sorted_keys(amounts);

    buf_addf(out, "%s:\n", title);
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++)
        buf_addf(out, "  %s:\t%s\n", keys[i], json_str(amounts, keys[i]));
}

static void add_info(const json_t *node, struct buf *out)
{
    static const struct {
        const char *title, *member;
    } rows[] = { { "Boot ID", "bootID" },
                 { "Kernel Version", "kernelVersion" },
                 { "Operating System", "operatingSystem" },
                 { "Architecture", "architecture" },
                 { "Container Runtime Version", "containerRuntimeVersion" },
                 { "Kubelet Version", "kubeletVersion" } };
    const json_t *info = cli_at(node, "status.nodeInfo");

    buf_adds(out, "System Info:\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (json_str(info, rows[i].member) != NULL)
            buf_addf(out, "  %s:\t%s\n", rows[i].title, json_str(info, rows[i].member));
}

void cli_describe_node(const struct cli *cli, const json_t *node, const json_t *pods, const json_t *devices,
                       const json_t *placement, struct buf *out)
{
    char when[CLI_TIME_SIZE];
    const json_t *o;
    size_t i;

    buf_addf(out, "Name:\t%s\nRoles:\t<none>\n", cli_text(node, "metadata.name"));
    cli_describe_pairs(out, "Labels", cli_at(node, "metadata.labels"));
    cli_describe_annotations(out, cli_at(node, "metadata.annotations"));
    cli_time(cli_text(node, "metadata.creationTimestamp"), when);
    buf_addf(out, "CreationTimestamp:\t%s\n", when);
    add_taints(cli_at(node, "spec.taints"), out);
    buf_adds(out, "Conditions:\n  Type\tStatus\tReason\tMessage\n  ----\t------\t------\t-------\n");
    json_array_foreach (cli_at(node, "status.conditions"), i, o) {
        buf_addf(out, "  %s\t%s\t%s\t", cli_text(o, "type"), cli_text(o, "status"), cli_text(o, "reason"));
        cli_add_clean(out, cli_text(o, "message"));
        buf_addc(out, '\n');
    }
    buf_adds(out, "Addresses:\n");
    json_array_foreach (cli_at(node, "status.addresses"), i, o)
        buf_addf(out, "  %s:\t%s\n", cli_text(o, "type"), cli_text(o, "address"));
    add_list("Capacity", cli_at(node, "status.capacity"), out);
    add_list("Allocatable", cli_at(node, "status.allocatable"), out);
    add_info(node, out);
    cli_describe_text(out, "PodCIDR", cli_text(node, "spec.podCIDR"));
    add_pods(cli, node, pods, out);
    cli_describe_placement(placement, out);
    cli_describe_devices(devices, out);
}
