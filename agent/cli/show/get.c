/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/show/internal.h"

#include "agent/api/serve/serve.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"

#include <string.h>

static const char *const manifest_kinds[] = { "manifests", "manifest", NULL };
static const char *const device_kinds[] = { "devices", "device", NULL };
static const char *const eviction_kinds[] = { "evictions", "eviction", NULL };
static const char *const event_kinds[] = { "events", "event", "ev", NULL };

bool get_is_format(const struct get *g, const char *format)
{
    return g->format != NULL && strcmp(g->format, format) == 0;
}

bool get_is_table(const struct get *g)
{
    return g->format == NULL || strcmp(g->format, "wide") == 0;
}

int get_nothing_found(const struct get *g)
{
    if (g->all)
        fputs("No resources found\n", g->cli->err);
    else
        cli_note(g->cli, "No resources found in %s namespace.\n", g->namespace_);
    return EXIT_OK;
}

static json_t *get_list_of(const json_t *items)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion", "v1", "kind", "List", "metadata",
                     "resourceVersion", "", "items", items);
}

/* ---- pods ---- */

static void pod_table(const struct get *g, struct cli_table *t)
{
    const char *headers[CLI_COLUMNS_MAX + 1] = { NULL };
    size_t n = 0;

    if (g->all)
        headers[n++] = "NAMESPACE";
    headers[n++] = "NAME";
    headers[n++] = "READY";
    headers[n++] = "STATUS";
    headers[n++] = "RESTARTS";
    headers[n++] = "AGE";
    if (get_is_format(g, "wide")) {
        headers[n++] = "IP";
        headers[n++] = "NODE";
        headers[n++] = "NOMINATED NODE";
        headers[n++] = "READINESS GATES";
    }
    if (g->show_labels)
        headers[n++] = "LABELS";
    cli_table_init(t, headers, !g->no_headers);
}

static const char *get_or_none(const char *text)
{
    return text[0] != '\0' ? text : "<none>";
}

static void readiness_gates(const json_t *pod, char ret[32])
{
    const json_t *gates = cli_at(pod, "spec.readinessGates"), *gate;
    size_t i, met = 0;

    json_array_foreach (gates, i, gate) {
        const json_t *c = cli_find(cli_at(pod, "status.conditions"), "type", cli_text(gate, "conditionType"));

        met += strcmp(cli_text(c, "status"), "True") == 0;
    }
    if (json_array_size(gates) == 0)
        strcpy(ret, "<none>");
    else
        snprintf(ret, 32, "%zu/%zu", met, json_array_size(gates));
}

/* "app=web,tier=front" */
static void add_labels(struct cli_table *t, const json_t *labels)
{
    mem_auto const char **keys = cli_sorted_keys(labels);
    buf_auto text = BUF_INIT(1u << 20);

    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++)
        buf_addf(&text, "%s%s=%s", i > 0 ? "," : "", keys[i], json_str(labels, keys[i]));
    cli_table_cell(t, text.n > 0 ? text.p : "<none>");
}

static void pod_row(const struct get *g, struct cli_table *t, const json_t *pod)
{
    struct api_pod_summary s;
    char age[CLI_AGE_SIZE], gates[32];

    api_pod_summary(pod, cli_now(g->cli), &s);
    cli_age(g->cli, cli_text(pod, "metadata.creationTimestamp"), age);
    if (g->all)
        cli_table_cell(t, cli_text(pod, "metadata.namespace"));
    cli_table_cell(t, cli_text(pod, "metadata.name"));
    cli_table_cell(t, s.ready);
    cli_table_coloured(t, s.status, cli_colour_of_status(s.status));
    cli_table_cell(t, s.restarts);
    cli_table_cell(t, age);
    if (get_is_format(g, "wide")) {
        readiness_gates(pod, gates);
        cli_table_cell(t, get_or_none(cli_text(json_array_get(cli_at(pod, "status.podIPs"), 0), "ip")));
        cli_table_cell(t, get_or_none(cli_text(pod, "spec.nodeName")));
        cli_table_cell(t, get_or_none(cli_text(pod, "status.nominatedNodeName")));
        cli_table_cell(t, gates);
    }
    if (g->show_labels)
        add_labels(t, cli_at(pod, "metadata.labels"));
}

static void pods_url(const struct get *g, bool watch, struct buf *url)
{
    buf_adds(url, "/api/v1");
    if (!g->all) {
        buf_adds(url, "/namespaces/");
        percent_add(url, g->namespace_);
    }
    buf_addf(url, "/pods?%s", watch ? "watch=true&" : "");
    if (g->n_names == 1) {
        buf_adds(url, "fieldSelector=metadata.name%3D");
        percent_add(url, g->names[0]);
    }
    if (g->field_selector != NULL) {
        buf_adds(url, "&fieldSelector=");
        percent_add(url, g->field_selector);
    }
    if (g->selector != NULL) {
        buf_adds(url, "&labelSelector=");
        percent_add(url, g->selector);
    }
}

/* All requested pods; *ret_code is set if names were not found. NULL: nothing could be read. */
static json_t *read_pods(struct get *g, int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL;
    json_t *pods;

    *ret_code = EXIT_OK;
    if (g->n_names > 0) {
        pods = json_array();
        for (int i = 0; i < g->n_names; i++) {
            int code;
            json_t *pod = cli_get_pod(g->cli, g->namespace_, g->names[i], &code);

            cli_keep_first(ret_code, code);
            if (pod != NULL)
                json_array_append_new(pods, pod);
        }
        return pods;
    }
    pods_url(g, false, &url);
    list = cli_get(g->cli, url.p, ret_code);
    return list == NULL ? NULL : cli_sorted(cli_at(list, "items"), cli_by_namespace_and_name);
}

int get_print_objects(const struct get *g, const char *kind, const json_t *items, bool single)
{
    json_auto_t *list = NULL;
    const json_t *item;
    size_t i;

    if (get_is_format(g, "name")) {
        json_array_foreach (items, i, item)
            cli_say(g->cli, "%s/%s\n", kind,
                    cli_text(item, "metadata.name")[0] != '\0' ? cli_text(item, "metadata.name")
                                                               : cli_text(item, "name"));
        return EXIT_OK;
    }
    if (single)
        return cli_print_value(g->cli, json_array_get(items, 0), g->format);
    list = get_list_of(items);
    return cli_print_value(g->cli, list, g->format);
}

/* ---- watching ---- */

struct watch {
    struct get *g;
    struct cli_table table;
    json_t *shown; /* by "namespace/name": the values printed last, without ages */
    int code;      /* the exit code of an output error */
};

/* The row without the parts that change with time. */
static json_t *essence(const struct get *g, const json_t *pod)
{
    str_auto labels = g->show_labels ? json_dumps(cli_at(pod, "metadata.labels"), JSON_SORT_KEYS) : NULL;
    struct api_pod_summary s;

    api_pod_summary(pod, cli_now(g->cli), &s);
    s.restarts[strcspn(s.restarts, " ")] = '\0';
    return json_sprintf("%s %s %s %s %s %s", s.ready, s.status, s.restarts,
                        get_is_format(g, "wide") ? cli_text(pod, "status.podIP") : "",
                        get_is_table(g) ? "" : cli_text(pod, "metadata.resourceVersion"),
                        labels != NULL ? labels : "");
}

/* Returns true if the row differs from the last one printed for this pod. */
static bool get_note(struct watch *w, const json_t *pod, bool deleted)
{
    json_auto_t *now = essence(w->g, pod);
    char key[400];
    bool changed;

    snprintf(key, sizeof(key), "%s/%s", cli_text(pod, "metadata.namespace"), cli_text(pod, "metadata.name"));
    changed = deleted || !json_equal(json_object_get(w->shown, key), now);
    if (deleted)
        json_object_del(w->shown, key);
    else
        json_object_set(w->shown, key, now);
    return changed;
}

static void get_show(struct watch *w, json_t *pod)
{
    json_auto_t *one = json_pack("[O]", pod);

    if (!get_is_table(w->g)) {
        w->code = get_print_objects(w->g, "pod", one, true);
    } else {
        pod_row(w->g, &w->table, pod);
        cli_table_print(&w->table, w->g->cli);
    }
}

static bool get_on_change(const char *type, json_t *pod, void *arg)
{
    struct watch *w = arg;

    if (get_note(w, pod, strcmp(type, "DELETED") == 0))
        get_show(w, pod);
    return cli_flush(w->g->cli) && w->code == EXIT_OK;
}

static int watch_pods(struct watch *w)
{
    buf_auto url = BUF_INIT(64 * 1024);
    int code;

    pods_url(w->g, true, &url);
    code = cli_watch(w->g->cli, url.p, get_on_change, w);
    cli_keep_first(&code, w->code);
    return code;
}

static int cli_get_pods(struct get *g)
{
    struct watch w = { .g = g };
    json_auto_t *pods = NULL;
    json_t *pod;
    size_t i;
    int code;

    if (g->n_names > 0 && (g->selector != NULL || g->field_selector != NULL || g->all))
        return cli_wrong(g->cli, g->all ? "a resource cannot be retrieved by name across all namespaces"
                                        : "name cannot be provided when a selector is specified");
    if (g->watch && g->n_names > 1)
        return cli_wrong(g->cli, "you may only watch a single resource or type of resource at a time");
    pods = read_pods(g, &code);
    if (pods == NULL)
        return code;
    cli_keep_first(&code, get_sort(g, pods));
    if (code == EXIT_USAGE)
        return code;

    w.shown = json_object();
    if (get_is_table(g)) {
        pod_table(g, &w.table);
        json_array_foreach (pods, i, pod) {
            get_note(&w, pod, false);
            pod_row(g, &w.table, pod);
        }
        if (json_array_size(pods) > 0)
            cli_table_print(&w.table, g->cli);
        else if (g->n_names == 0 && !g->watch)
            code = get_nothing_found(g);
    } else if (!g->watch && (json_array_size(pods) > 0 || g->n_names == 0)) {
        code = get_print_objects(g, "pod", pods, g->n_names == 1);
    }
    if (cli_flush(g->cli)) {
        if (get_is_table(g))
            cli_warn_manifests(g->cli);
        if (g->watch && code == EXIT_OK)
            code = watch_pods(&w);
    }
    cli_table_done(&w.table);
    json_decref(w.shown);
    return code;
}

/* ---- the command ---- */

static int check_format(const struct get *g)
{
    static const char *const formats[] = { "json", "name", "wide", "yaml" };

    if (g->format == NULL || str_starts(g->format, CLI_JSONPATH))
        return EXIT_OK;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (strcmp(g->format, formats[i]) == 0)
            return EXIT_OK;
    if (strcmp(g->format, "jsonpath") == 0)
        return cli_wrong(g->cli, "-o jsonpath needs a template: -o jsonpath={.status.podIP}");
    return cli_wrong(g->cli,
                     "unable to match a printer suitable for the output format \"%s\", allowed formats are: "
                     "json,jsonpath,name,wide,yaml",
                     g->format);
}

/* "pods web db", "pod/web pod/db"; image names contain slashes */
static int get_take_names(struct get *g, const struct cli_kind *kind, char **words, int n)
{
    const bool slashes = strchr(words[0], '/') != NULL, image = strcmp(kind->names[0], "images") == 0;

    g->names = slashes ? words : words + 1;
    g->n_names = slashes ? n : n - 1;
    for (int i = 0; i < g->n_names && (slashes || !image); i++) {
        const char *name = cli_resource_name(g->names[i], kind->names);

        if (name != NULL && name[0] == '\0')
            return cli_wrong(g->cli, "the name of a resource may not be empty");
        if (slashes != (strchr(g->names[i], '/') != NULL) || name == NULL)
            return cli_wrong(
                g->cli, "there is no need to specify a resource type as a separate argument when passing "
                        "arguments in resource/name form (e.g. 'coracle get pod/NAME')");
        g->names[i] = (char *)(uintptr_t)name;
    }
    return EXIT_OK;
}

static int get_images(const struct get *g)
{
    if (g->watch || g->selector != NULL || g->field_selector != NULL || g->sort_by != NULL)
        return cli_wrong(g->cli, "images cannot be watched, selected by labels, or sorted");
    return cli_list_images(g->cli, g->format, g->no_headers, g->names, g->n_names);
}

static int get_devices_of(struct get *g, const char *word)
{
    if (g->watch || g->selector != NULL || g->field_selector != NULL)
        return cli_wrong(g->cli, "devices cannot be watched or selected by labels");
    if (strchr(word, '/') != NULL)
        return cli_wrong(g->cli, "devices are listed by resource: 'coracle get devices example.com/gpu'");
    return get_devices(g);
}

/* Kinds that are not objects of Kubernetes' API, or have no names. */
static int get_others(struct get *g, const char *word)
{
    bool evictions = cli_is_kind(word, eviction_kinds);

    if (cli_is_kind(word, event_kinds))
        return get_events(g);
    if (cli_is_kind(word, device_kinds))
        return get_devices_of(g, word);
    if (!evictions && !cli_is_kind(word, manifest_kinds))
        return cli_unknown_kind(g->cli, word, ", devices, evictions, manifests, events");
    if (g->n_names > 0 || g->watch || g->selector != NULL || g->field_selector != NULL ||
        g->sort_by != NULL || strchr(word, '/') != NULL)
        return cli_wrong(g->cli, "%s are listed as a whole: no names, selectors, order or watch",
                         evictions ? "evictions" : "manifests");
    return evictions ? get_evictions(g) : get_manifests(g);
}

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct get, namespace_, "the namespace (default)"),
    { "all-namespaces", 'A', FLAG_SWITCH, offsetof(struct get, all), NULL, "all namespaces" },
    CLI_OUTPUT(struct get, format, "wide|json|yaml|name|jsonpath=",
               "wide, json, yaml, name or jsonpath=TEMPLATE: {.status.podIP}"),
    { "selector", 'l', FLAG_TEXT, offsetof(struct get, selector), "SELECTOR",
      "only pods with these labels: app=web,tier!=db" },
    { "field-selector", 0, FLAG_TEXT, offsetof(struct get, field_selector), "SELECTOR",
      "only pods or events with these fields: status.phase=Running,spec.nodeName!=a" },
    { "show-labels", 0, FLAG_SWITCH, offsetof(struct get, show_labels), NULL,
      "pods: add a column with their labels" },
    { "sort-by", 0, FLAG_TEXT, offsetof(struct get, sort_by), "PATH",
      "sort by this path, lowest first: .metadata.creationTimestamp" },
    { "watch", 'w', FLAG_SWITCH, offsetof(struct get, watch), NULL, "continue with changes" },
    { "no-headers", 0, FLAG_SWITCH, offsetof(struct get, no_headers), NULL, "do not print headers" },
    CLI_FLAGS_END,
};

static int get_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct get g = { .cli = cli, .command = command, .namespace_ = "default" };
    const struct cli_kind *kind;
    int code;

    if (!cli_parse(cli, command, &g, &argc, argv, &code))
        return code;
    if (argc < 1)
        return cli_usage_error(
            cli, command,
            "you must specify what to get: pods, nodes, configmaps, secrets, priorityclasses, "
            "images, devices, evictions, manifests or events");
    code = check_format(&g);
    if (code != EXIT_OK)
        return code;
    if (g.sort_by != NULL && g.watch)
        return cli_wrong(cli, "--sort-by and --watch cannot be given together");
    kind = cli_kind_find(argv[0]);
    if (kind == NULL) {
        g.names = argv + 1;
        g.n_names = argc - 1;
        return get_others(&g, argv[0]);
    }
    code = get_take_names(&g, kind, argv, argc);
    if (code != EXIT_OK)
        return code;
    return kind->names == cli_pod_kinds            ? cli_get_pods(&g)
           : strcmp(kind->names[0], "images") == 0 ? get_images(&g)
                                                   : get_objects(&g, kind);
}

static const struct cli_example examples[] = {
    { "all pods of all namespaces, with their addresses", "coracle get pods -A -o wide" },
    { "one pod with its status", "coracle get pod web -o yaml" },
    { "a pod's address, for a script", "coracle get pod web -o jsonpath={.status.podIP}" },
    { "follow changes", "coracle get pods -w" },
    { "the content of a ConfigMap", "coracle get configmap settings -o yaml" },
    { "the devices of a resource, and the pods that have them", "coracle get devices example.com/gpu" },
    { "why pods were evicted, and whom else it could have been", "coracle get evictions -o yaml" },
    { "the files of the manifest folder and their problems", "coracle get manifests" },
    { NULL, NULL },
};

const struct cli_command command_get = {
    .name = "get",
    .run = get_run,
    .summary = "list pods, nodes, configmaps, secrets, images ...",
    .usage = "get pods|nodes|configmaps|secrets|priorityclasses|images [NAME...] [flags]\n"
             "get devices [RESOURCE...] [flags]\n"
             "get evictions|manifests|events [flags]",
    .about = "Lists objects in a table, or whole objects with -o json|yaml.  For a Secret it shows the keys "
             "and the sizes of their values, never a value: the daemon does not disclose them.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "describe explain",
    .words =
        "pods|nodes|configmaps|secrets|priorityclasses|images|devices|evictions|manifests|events @named ...",
};
