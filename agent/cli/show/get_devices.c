/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of extended resources and the containers that hold them, for `get devices` and `describe node`.
 * */
#include "agent/cli/show/internal.h"

#include "base/codec/json.h"

#include <string.h>

#define DEVICES_URL "/devices"

/* ---- cells ---- */

/* "0,1"; "<none>": its provider names no NUMA node. */
static void add_numa(const json_t *device, struct buf *out)
{
    const json_t *list = cli_at(device, "numaNodes"), *node;
    size_t i;

    json_array_foreach (list, i, node)
        buf_addf(out, "%s%lld", i > 0 ? "," : "", (long long)json_integer_value(node));
    if (json_array_size(list) == 0)
        buf_adds(out, "<none>");
}

static void add_pod(const json_t *device, struct buf *out)
{
    if (cli_at(device, "pod") == NULL)
        buf_adds(out, "<none>");
    else
        buf_addf(out, "%s/%s", cli_text(device, "pod.namespace"), cli_text(device, "pod.name"));
}

static void add_containers(const json_t *device, struct buf *out)
{
    const json_t *list = cli_at(device, "containers"), *one;
    size_t i;

    json_array_foreach (list, i, one)
        buf_addf(out, "%s%s", i > 0 ? "," : "", json_is_string(one) ? json_string_value(one) : "");
    if (json_array_size(list) == 0)
        buf_adds(out, "<none>");
}

static void built_cell(struct cli_table *t, const json_t *device,
                       void (*add)(const json_t *device, struct buf *out))
{
    buf_auto text = BUF_INIT(64 * 1024);

    add(device, &text);
    cli_table_cell(t, text.p);
}

static enum cli_colour colour_of_health(const char *health)
{
    return strcmp(health, "Healthy") == 0     ? COLOUR_GOOD
           : strcmp(health, "Unhealthy") == 0 ? COLOUR_BAD
                                              : COLOUR_WAITING;
}

/* ---- the table ---- */

static void device_row(const struct get *g, struct cli_table *t, const json_t *device)
{
    const char *health = cli_text(device, "health"), *provider = cli_text(device, "provider");

    cli_table_cell(t, cli_text(device, "resource"));
    cli_table_cell(t, cli_text(device, "id"));
    cli_table_coloured(t, health, colour_of_health(health));
    built_cell(t, device, add_numa);
    built_cell(t, device, add_pod);
    built_cell(t, device, add_containers);
    if (get_is_format(g, "wide"))
        cli_table_cell(t, provider[0] != '\0' ? provider : "<none>");
}

static void device_table(const struct get *g, const json_t *devices)
{
    static const char *const headers[] = { "RESOURCE", "DEVICE", "HEALTH", "NUMA", "POD", "CONTAINER", NULL };
    static const char *const wide[] = { "RESOURCE", "DEVICE",    "HEALTH",   "NUMA",
                                        "POD",      "CONTAINER", "PROVIDER", NULL };
    struct cli_table table;
    const json_t *device;
    size_t i;

    cli_table_init(&table, get_is_format(g, "wide") ? wide : headers, !g->no_headers);
    json_array_foreach (devices, i, device)
        device_row(g, &table, device);
    cli_table_print(&table, g->cli);
    cli_table_done(&table);
}

/* ---- the command ---- */

/* The devices of the named resources; *ret_code is set if one of them has none. */
static json_t *named_devices(const struct get *g, const json_t *all, int *ret_code)
{
    json_t *found = json_array(), *device;

    for (int i = 0; i < g->n_names; i++) {
        size_t before = json_array_size(found), k;

        json_array_foreach (all, k, device)
            if (strcmp(cli_text(device, "resource"), g->names[i]) == 0)
                json_array_append(found, device);
        if (json_array_size(found) == before) {
            cli_error(g->cli, "there are no devices of a resource \"%s\"", g->names[i]);
            cli_keep_first(ret_code, EXIT_NOT_FOUND);
        }
    }
    return found;
}

static void print_device_names(const struct get *g, const json_t *devices)
{
    const json_t *device;
    size_t i;

    json_array_foreach (devices, i, device)
        cli_print(g->cli, "%s/%s\n", cli_text(device, "resource"), cli_text(device, "id"));
}

int get_devices(struct get *g)
{
    int code;
    json_auto_t *list = cli_get(g->cli, DEVICES_URL, &code), *named = NULL;
    json_t *devices = cli_at(list, "items");

    if (list == NULL)
        return code;
    if (g->n_names > 0)
        devices = named = named_devices(g, devices, &code);
    cli_keep_first(&code, get_sort(g, devices));
    if (code == EXIT_USAGE || (json_array_size(devices) == 0 && g->n_names > 0))
        return code;
    if (get_is_format(g, "name"))
        print_device_names(g, devices);
    else if (!get_is_table(g))
        cli_keep_first(&code, get_print_objects(g, "device", devices, false));
    else if (json_array_size(devices) == 0)
        fputs("No devices found\n", g->cli->err);
    else
        device_table(g, devices);
    return code;
}

/* ---- for the description of the node ---- */

void cli_describe_devices(const json_t *devices, struct buf *out)
{
    buf_auto rows = BUF_INIT(16u << 20);
    const json_t *device;
    size_t i;

    json_array_foreach (devices, i, device) {
        if (cli_at(device, "pod") == NULL)
            continue; /* it was released meanwhile */
        buf_addf(&rows, "  %s\t", cli_text(device, "resource"));
        cli_add_clean(&rows, cli_text(device, "id"));
        buf_addf(&rows, "\t%s\t%s\t%s\t", cli_text(device, "health"), cli_text(device, "pod.namespace"),
                 cli_text(device, "pod.name"));
        add_containers(device, &rows);
        buf_addc(&rows, '\n');
    }
    if (rows.n > 0)
        buf_addf(out,
                 "Devices in use:\n"
                 "  Resource\tDevice\tHealth\tNamespace\tPod\tContainers\n"
                 "  --------\t------\t------\t---------\t---\t----------\n%s",
                 rows.p);
}

json_t *cli_read_held_devices(struct cli *cli)
{
    json_auto_t *list = cli_get(cli, DEVICES_URL "?held=true", NULL);

    return json_incref(cli_at(list, "items"));
}
