/* SPDX-License-Identifier: Apache-2.0 */
/* The NUMA nodes of this machine, and the owners of their processors and memory, for `describe node`. */
#include "agent/cli/show/internal.h"

#include "agent/api/quantity.h"
#include "base/codec/json.h"

#include <string.h>

/* "1Gi", or "1Gi on 0,1" if several nodes provide it together. */
static void add_memory(const json_t *part, struct buf *out)
{
    const json_t *nodes = cli_at(part, "memoryNodes"), *node;
    char text[QUANTITY_TEXT_SIZE];
    struct quantity bytes;
    size_t i;

    if (cli_at(part, "memory") == NULL) {
        buf_adds(out, "-");
        return;
    }
    bytes = quantity_from_int(json_integer_value(cli_at(part, "memory")), QUANTITY_BINARY_SI);
    quantity_format(&bytes, text);
    buf_adds(out, text);
    if (json_array_size(nodes) < 2)
        return;
    buf_adds(out, " on ");
    json_array_foreach (nodes, i, node)
        buf_addf(out, "%s%lld", i > 0 ? "," : "", (long long)json_integer_value(node));
}

static void add_holder(const json_t *part, struct buf *out)
{
    if (cli_at(part, "pod") == NULL)
        buf_addf(out, "<%s>", strcmp(cli_text(part, "role"), "Reserved") == 0 ? "reserved" : "shared");
    else
        buf_addf(out, "%s/%s (%s)", cli_text(part, "pod.namespace"), cli_text(part, "pod.name"),
                 cli_text(part, "container"));
    if (json_is_true(cli_at(part, "isolated")))
        buf_adds(out, ", isolated");
    else if (cli_at(part, "notIsolated") != NULL)
        buf_addf(out, ", not isolated: %s", cli_text(part, "notIsolated"));
}

static void add_node(const json_t *node, struct buf *out)
{
    const json_t *part;
    size_t i;

    json_array_foreach (cli_at(node, "parts"), i, part) {
        const char *cpus = cli_text(part, "cpus");

        buf_addf(out, "  %lld\t%s\t", (long long)json_integer_value(cli_at(node, "node")),
                 cpus[0] != '\0' ? cpus : "-");
        add_memory(part, out);
        buf_addc(out, '\t');
        add_holder(part, out);
        buf_addc(out, '\n');
    }
}

void cli_describe_placement(const json_t *nodes, struct buf *out)
{
    const json_t *node;
    size_t i;

    if (json_array_size(nodes) == 0)
        return;
    buf_adds(out, "NUMA nodes:\n"
                  "  Node\tProcessors\tMemory\tUsed by\n"
                  "  ----\t----------\t------\t-------\n");
    json_array_foreach (nodes, i, node)
        add_node(node, out);
}

json_t *cli_read_placement(struct cli *cli)
{
    json_auto_t *list = cli_get(cli, "/placements", NULL);

    return json_incref(cli_at(list, "items"));
}
