/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of objects other than pods. The AGE of an object from the manifest folder is unknown, unless its
 * file contains the creation time. */
#include "agent/cli/show/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

static void number_cell(struct cli_table *t, int64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)n);
    cli_table_cell(t, text);
}

static const char *get_objects_or_none(const char *text)
{
    return text[0] != '\0' ? text : "<none>";
}

static void node_row(const struct get *g, struct cli_table *t, const json_t *node)
{
    const json_t *ready = cli_find(cli_at(node, "status.conditions"), "type", "Ready");
    const json_t *address = json_array_get(cli_at(node, "status.addresses"), 0);
    const bool good = strcmp(cli_text(ready, "status"), "True") == 0;
    char age[CLI_AGE_SIZE];

    cli_age(g->cli, cli_text(node, "metadata.creationTimestamp"), age);
    get_name_cell(g, t, node);
    cli_table_coloured(t, good ? "Ready" : "NotReady", good ? COLOUR_GOOD : COLOUR_WAITING);
    cli_table_cell(t, "<none>");
    cli_table_cell(t, age);
    cli_table_cell(t, cli_text(node, "status.nodeInfo.kubeletVersion"));
    if (!get_is_format(g, "wide"))
        return;
    cli_table_cell(t, strcmp(cli_text(address, "type"), "InternalIP") == 0 ? cli_text(address, "address")
                                                                           : "<none>");
    cli_table_cell(t, cli_text(node, "status.nodeInfo.kernelVersion"));
    cli_table_cell(t, get_objects_or_none(cli_text(node, "status.nodeInfo.containerRuntimeVersion")));
}

static void age_cell(const struct get *g, struct cli_table *t, const json_t *o)
{
    char age[CLI_AGE_SIZE];

    cli_age(g->cli, cli_text(o, "metadata.creationTimestamp"), age);
    cli_table_cell(t, age);
}

static void config_map_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    get_name_cell(g, t, o);
    number_cell(t, (int64_t)json_object_size(cli_at(o, "sizes")));
    age_cell(g, t, o);
}

static void secret_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    get_name_cell(g, t, o);
    cli_table_cell(t, cli_text(o, "type"));
    number_cell(t, (int64_t)json_object_size(cli_at(o, "sizes")));
    age_cell(g, t, o);
}

static void class_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    get_name_cell(g, t, o);
    number_cell(t, cli_number(o, "value"));
    cli_table_cell(t, cli_true(o, "globalDefault") ? "true" : "false");
}

/* Containers, images and selector of a workload, for -o wide; `selector`: also that. */
static void template_cells(const struct get *g, struct cli_table *t, const json_t *o, bool selector)
{
    buf_auto names = BUF_INIT(64 * 1024), images = BUF_INIT(64 * 1024), labels = BUF_INIT(64 * 1024);
    const json_t *c;
    const char *key;
    json_t *value;
    size_t i;

    if (!get_is_format(g, "wide"))
        return;
    json_array_foreach (cli_at(o, "spec.template.spec.containers"), i, c) {
        buf_addf(&names, "%s%s", i > 0 ? "," : "", cli_text(c, "name"));
        buf_addf(&images, "%s%s", i > 0 ? "," : "", cli_text(c, "image"));
    }
    json_object_foreach (cli_at(o, "spec.selector.matchLabels"), key, value)
        buf_addf(&labels, "%s%s=%s", labels.n > 0 ? "," : "", key,
                 json_is_string(value) ? json_string_value(value) : "");
    cli_table_cell(t, names.n > 0 ? names.p : "");
    cli_table_cell(t, images.n > 0 ? images.p : "");
    if (selector)
        cli_table_cell(t, labels.n > 0 ? labels.p : "<none>");
}

/* "2/3" */
static void ready_cell(struct cli_table *t, const json_t *o)
{
    char text[48];

    snprintf(text, sizeof(text), "%lld/%lld", (long long)cli_number(o, "status.readyReplicas"),
             (long long)cli_number(o, "spec.replicas"));
    cli_table_cell(t, text);
}

static void deployment_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    get_name_cell(g, t, o);
    ready_cell(t, o);
    number_cell(t, cli_number(o, "status.updatedReplicas"));
    number_cell(t, cli_number(o, "status.availableReplicas"));
    age_cell(g, t, o);
    template_cells(g, t, o, true);
}

static void replica_set_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    get_name_cell(g, t, o);
    number_cell(t, cli_number(o, "spec.replicas"));
    number_cell(t, cli_number(o, "status.replicas"));
    number_cell(t, cli_number(o, "status.readyReplicas"));
    age_cell(g, t, o);
    template_cells(g, t, o, true);
}

static void stateful_set_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    get_name_cell(g, t, o);
    ready_cell(t, o);
    age_cell(g, t, o);
    template_cells(g, t, o, false);
}

static void daemon_set_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    get_name_cell(g, t, o);
    number_cell(t, cli_number(o, "status.desiredNumberScheduled"));
    number_cell(t, cli_number(o, "status.currentNumberScheduled"));
    number_cell(t, cli_number(o, "status.numberReady"));
    number_cell(t, cli_number(o, "status.updatedNumberScheduled"));
    number_cell(t, cli_number(o, "status.numberAvailable"));
    age_cell(g, t, o);
    template_cells(g, t, o, true);
}

/* "Complete", "Failed", "Suspended" or "Running": of the conditions, which come in the order of their times.
 */
static const char *job_status(const json_t *o)
{
    const char *found = "Running";
    json_t *one;
    size_t i;

    json_array_foreach (cli_at(o, "status.conditions"), i, one) {
        const char *type = cli_text(one, "type");

        if (strcmp(cli_text(one, "status"), "True") == 0 && strchr(type, '/') == NULL)
            found = type;
    }
    return found;
}

/* "1/3" */
static void job_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    const json_int_t wanted = cli_at(o, "spec.completions") != NULL ? cli_number(o, "spec.completions") : 1;
    char text[48];

    snprintf(text, sizeof(text), "%lld/%lld", (long long)cli_number(o, "status.succeeded"),
             (long long)wanted);
    get_name_cell(g, t, o);
    cli_table_cell(t, job_status(o));
    cli_table_cell(t, text);
    age_cell(g, t, o);
}

static void cron_job_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    const char *zone = cli_text(o, "spec.timeZone");
    char age[CLI_AGE_SIZE];

    get_name_cell(g, t, o);
    cli_table_cell(t, cli_text(o, "spec.schedule"));
    cli_table_cell(t, zone[0] != '\0' ? zone : "<none>");
    cli_table_cell(t, cli_true(o, "spec.suspend") ? "True" : "False");
    number_cell(t, (json_int_t)json_array_size(cli_at(o, "status.active")));
    cli_age(g->cli, cli_text(o, "status.lastScheduleTime"), age);
    cli_table_cell(t, cli_text(o, "status.lastScheduleTime")[0] != '\0' ? age : "<none>");
    age_cell(g, t, o);
}

static void name_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    get_name_cell(g, t, o);
}

#define HEADERS(...)                                                                                         \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        "NAMESPACE", __VA_ARGS__, NULL                                                                       \
    }

static const struct view {
    const char *kind;
    const char *const *headers, *const *wide; /* after NAMESPACE */
    void (*row)(const struct get *g, struct cli_table *t, const json_t *o);
} views[] = {
    { "nodes", HEADERS("NAME", "STATUS", "ROLES", "AGE", "VERSION"),
      HEADERS("NAME", "STATUS", "ROLES", "AGE", "VERSION", "INTERNAL-IP", "KERNEL-VERSION",
              "CONTAINER-RUNTIME"),
      node_row },
    { "configmaps", HEADERS("NAME", "DATA", "AGE"), HEADERS("NAME", "DATA", "AGE"), config_map_row },
    { "secrets", HEADERS("NAME", "TYPE", "DATA", "AGE"), HEADERS("NAME", "TYPE", "DATA", "AGE"), secret_row },
    { "priorityclasses", HEADERS("NAME", "VALUE", "GLOBAL-DEFAULT"),
      HEADERS("NAME", "VALUE", "GLOBAL-DEFAULT"), class_row },
    { "deployments", HEADERS("NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"),
      HEADERS("NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"),
      deployment_row },
    { "replicasets", HEADERS("NAME", "DESIRED", "CURRENT", "READY", "AGE"),
      HEADERS("NAME", "DESIRED", "CURRENT", "READY", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"),
      replica_set_row },
    { "statefulsets", HEADERS("NAME", "READY", "AGE"),
      HEADERS("NAME", "READY", "AGE", "CONTAINERS", "IMAGES"), stateful_set_row },
    { "daemonsets", HEADERS("NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"),
      HEADERS("NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES",
              "SELECTOR"),
      daemon_set_row },
    { "jobs", HEADERS("NAME", "STATUS", "COMPLETIONS", "AGE"),
      HEADERS("NAME", "STATUS", "COMPLETIONS", "AGE"), job_row },
    { "persistentvolumeclaims",
      HEADERS("NAME", "STATUS", "VOLUME", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS",
              "AGE"),
      HEADERS("NAME", "STATUS", "VOLUME", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "VOLUMEATTRIBUTESCLASS",
              "AGE", "VOLUMEMODE"),
      get_claim_row },
    { "persistentvolumes",
      HEADERS("NAME", "CAPACITY", "ACCESS MODES", "RECLAIM POLICY", "STATUS", "CLAIM", "STORAGECLASS",
              "VOLUMEATTRIBUTESCLASS", "REASON", "AGE"),
      HEADERS("NAME", "CAPACITY", "ACCESS MODES", "RECLAIM POLICY", "STATUS", "CLAIM", "STORAGECLASS",
              "VOLUMEATTRIBUTESCLASS", "REASON", "AGE", "VOLUMEMODE"),
      get_volume_row },
    { "cronjobs", HEADERS("NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST SCHEDULE", "AGE"),
      HEADERS("NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST SCHEDULE", "AGE"), cron_job_row },
    { NULL, HEADERS("NAME"), HEADERS("NAME"), name_row }, /* kinds that are only kept and shown */
};

/* ---- objects ---- */

static json_t *read_named(const struct get *g, const struct api_kind_row *kind, int *ret_code)
{
    json_t *found = json_array();

    *ret_code = EXIT_OK;
    for (int i = 0; i < g->n_names; i++) {
        int code;
        json_t *one = cli_get_one(g->cli, kind, g->namespace_, g->names[i], &code);

        cli_keep_first(ret_code, code);
        if (one != NULL)
            json_array_append_new(found, one);
    }
    return found;
}

/* With the parts omitted in lists: each object is requested by name. */
static json_t *get_objects_whole(const struct get *g, const struct api_kind_row *kind, json_t *items,
                                 int *ret_code)
{
    json_t *found = json_array(), *item;
    size_t i;

    json_array_foreach (items, i, item) {
        int code;
        json_t *one = cli_get_one(g->cli, kind, cli_text(item, "metadata.namespace"),
                                  cli_text(item, "metadata.name"), &code);

        if (one != NULL)
            json_array_append_new(found, one);
        else if (code != EXIT_NOT_FOUND) /* removed in the meantime */
            cli_keep_first(ret_code, code);
    }
    json_decref(items);
    return found;
}

static json_t *get_objects_read_all(const struct get *g, const struct api_kind_row *kind, int *ret_code)
{
    const struct cli_selectors selectors = { .labels = g->selector, .fields = g->field_selector };
    json_auto_t *items = cli_get_all(g->cli, kind, g->all ? NULL : g->namespace_, &selectors, ret_code);
    json_t *sorted = items != NULL ? cli_sorted(items, cli_by_namespace_and_name) : NULL;

    return sorted == NULL || get_is_table(g) ||
                   kind->id != API_KIND_CONFIG_MAP /* whose list omits the data */
               ? sorted
               : get_objects_whole(g, kind, sorted, ret_code);
}

static void get_objects_print_table(struct get *g, const struct api_kind_row *kind, const json_t *items)
{
    const bool namespaces = g->all && kind->namespaced;
    const struct view *v = views;
    struct cli_table table;
    json_t *o;
    size_t i;

    while (v->kind != NULL && strcmp(v->kind, kind->plural) != 0)
        v++;
    get_table_init(g, &table, (get_is_format(g, "wide") ? v->wide : v->headers) + !namespaces);
    json_array_foreach (items, i, o) {
        if (namespaces)
            cli_table_cell(&table, cli_text(o, "metadata.namespace"));
        v->row(g, &table, o);
        get_label_cells(g, &table, o);
    }
    get_table_print(g, &table);
    cli_table_done(&table);
}

/* Printed objects can be used as manifests again. */
static void drop_sizes(const struct api_kind_row *kind, const json_t *items)
{
    json_t *o;
    size_t i;

    if (kind->id == API_KIND_CONFIG_MAP)
        json_array_foreach (items, i, o)
            json_object_del(o, "sizes");
}

int get_objects(struct get *g, const struct api_kind_row *kind)
{
    json_auto_t *items = NULL;
    int code;

    if (get_check_names(g) != EXIT_OK)
        return EXIT_USAGE;
    if (g->watch)
        return cli_wrong(g->cli, "%s cannot be watched", kind->plural);
    items = g->n_names > 0 ? read_named(g, kind, &code) : get_objects_read_all(g, kind, &code);
    if (items == NULL || (json_array_size(items) == 0 && g->n_names > 0))
        return code;
    cli_keep_first(&code, get_sort(g, items));
    if (code == EXIT_USAGE)
        return code;
    if (!get_is_table(g)) {
        drop_sizes(kind, items);
        cli_keep_first(&code, get_print_objects(g, g->kind, items, g->n_names == 1));
    } else if (json_array_size(items) > 0) {
        get_objects_print_table(g, kind, items);
    } else if (kind->namespaced) {
        get_nothing_found(g);
    } else if (!g->many && !g->ignore_not_found) {
        fputs("No resources found\n", g->cli->err);
    }
    return code;
}
