#include "agent/cli/internal.h"

#include "base/json.h"

#include <string.h>
#include <strings.h>

static const char *const manifest_kinds[] = { "manifests", "manifest", NULL };
static const char *const image_kinds[] = { "images", "image", NULL };
static const char *const event_kinds[] = { "events", "event", "ev", NULL };

bool get_is_format(const struct get *g, const char *format)
{
    return g->format != NULL && strcmp(g->format, format) == 0;
}

bool get_is_table(const struct get *g)
{
    return g->format == NULL || strcmp(g->format, "wide") == 0;
}

/* "pod/web" or "web" for these kinds: the name; NULL: another kind. */
const char *cli_resource_name(const char *word, const char *const *kinds)
{
    const char *slash = strchr(word, '/');

    if (slash == NULL)
        return word;
    for (; *kinds != NULL; kinds++)
        if (strlen(*kinds) == (size_t)(slash - word) && strncmp(word, *kinds, (size_t)(slash - word)) == 0)
            return slash + 1;
    return NULL;
}

bool cli_is_kind(const char *word, const char *const *kinds)
{
    size_t n = strcspn(word, "/");

    for (; *kinds != NULL; kinds++)
        if (strlen(*kinds) == n && strncmp(word, *kinds, n) == 0)
            return true;
    return false;
}

int get_nothing_found(const struct get *g)
{
    if (g->all)
        fputs("No resources found\n", g->cli->err);
    else
        fprintf(g->cli->err, "No resources found in %s namespace.\n", g->namespace_);
    return EXIT_OK;
}

static json_t *list_of(const json_t *items)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion", "v1", "kind", "List", "metadata",
                     "resourceVersion", "", "items", items);
}

/* ---- pods ------------------------------------------------------------------------------------ */

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
    cli_table_init(t, headers, !g->no_headers);
}

static const char *or_none(const char *text)
{
    return text[0] != '\0' ? text : "<none>";
}

static void readiness_gates(const json_t *pod, char ret[32])
{
    const json_t *gates = cli_at(pod, "spec.readinessGates"), *gate, *c;
    size_t i, k, met = 0;

    json_array_foreach (gates, i, gate) {
        json_array_foreach (cli_at(pod, "status.conditions"), k, c) {
            if (strcmp(cli_text(c, "type"), cli_text(gate, "conditionType")) == 0)
                met += strcmp(cli_text(c, "status"), "True") == 0;
        }
    }
    if (json_array_size(gates) == 0)
        strcpy(ret, "<none>");
    else
        snprintf(ret, 32, "%zu/%zu", met, json_array_size(gates));
}

static void pod_row(const struct get *g, struct cli_table *t, const json_t *pod)
{
    struct cli_pod_summary s;
    char age[CLI_AGE_SIZE], gates[32];

    cli_pod_summary(g->cli, pod, &s);
    cli_age(g->cli, cli_text(pod, "metadata.creationTimestamp"), age);
    if (g->all)
        cli_table_cell(t, cli_text(pod, "metadata.namespace"));
    cli_table_cell(t, cli_text(pod, "metadata.name"));
    cli_table_cell(t, s.ready);
    cli_table_cell(t, s.status);
    cli_table_cell(t, s.restarts);
    cli_table_cell(t, age);
    if (get_is_format(g, "wide")) {
        readiness_gates(pod, gates);
        cli_table_cell(t, or_none(cli_text(json_array_get(cli_at(pod, "status.podIPs"), 0), "ip")));
        cli_table_cell(t, or_none(cli_text(pod, "spec.nodeName")));
        cli_table_cell(t, or_none(cli_text(pod, "status.nominatedNodeName")));
        cli_table_cell(t, gates);
    }
}

static void pods_url(const struct get *g, bool watch, struct buf *url)
{
    buf_adds(url, "/api/v1");
    if (!g->all) {
        buf_adds(url, "/namespaces/");
        cli_add_escaped(url, g->namespace_);
    }
    buf_addf(url, "/pods?%s", watch ? "watch=true&" : "");
    if (g->n_names == 1) {
        buf_adds(url, "fieldSelector=metadata.name%3D");
        cli_add_escaped(url, g->names[0]);
    }
    if (g->selector != NULL) {
        buf_adds(url, "labelSelector=");
        cli_add_escaped(url, g->selector);
    }
}

static int by_namespace_and_name(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int order = strcmp(cli_text(x, "metadata.namespace"), cli_text(y, "metadata.namespace"));

    return order != 0 ? order : strcmp(cli_text(x, "metadata.name"), cli_text(y, "metadata.name"));
}

json_t *cli_sorted(const json_t *items, int (*order)(const void *a, const void *b))
{
    size_t n = json_array_size(items), i;
    mem_auto json_t **v = calloc(n + 1, sizeof(*v));
    json_t *ret = json_array(), *item;

    json_array_foreach (items, i, item) {
        if (v != NULL)
            v[i] = item;
    }
    if (v != NULL)
        qsort(v, n, sizeof(*v), order);
    for (i = 0; v != NULL && i < n; i++)
        json_array_append(ret, v[i]);
    return ret;
}

json_t *cli_get_pod(struct cli *cli, const char *namespace_, const char *name)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_t *pod;
    int code;

    cli_add_pod_path(&url, namespace_, name);
    pod = cli_get(cli, url.p, &code);
    if (pod == NULL && code == 404)
        cli_hint_pod(cli, namespace_, name);
    return pod;
}

/* All that were asked for; *ret_code tells of names that were not found. NULL: nothing could be read. */
static json_t *read_pods(struct get *g, int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL;
    json_t *pods;

    *ret_code = EXIT_OK;
    if (g->n_names > 0) {
        pods = json_array();
        for (int i = 0; i < g->n_names; i++) {
            json_t *pod = cli_get_pod(g->cli, g->namespace_, g->names[i]);

            if (pod == NULL)
                *ret_code = EXIT_ERROR;
            else
                json_array_append_new(pods, pod);
        }
        return pods;
    }
    pods_url(g, false, &url);
    list = cli_get(g->cli, url.p, NULL);
    if (list == NULL) {
        *ret_code = EXIT_ERROR;
        return NULL;
    }
    return cli_sorted(cli_at(list, "items"), by_namespace_and_name);
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
    list = list_of(items);
    return cli_print_value(g->cli, list, g->format);
}

/* ---- watching -------------------------------------------------------------------------------- */

struct watch {
    struct get *g;
    struct cli_table table;
    json_t *shown; /* "namespace/name": what was printed last, ages left out */
};

/* The row without what changes by itself. */
static json_t *essence(const struct get *g, const json_t *pod)
{
    struct cli_pod_summary s;

    cli_pod_summary(g->cli, pod, &s);
    s.restarts[strcspn(s.restarts, " ")] = '\0';
    return json_sprintf("%s %s %s %s %s", s.ready, s.status, s.restarts,
                        get_is_format(g, "wide") ? cli_text(pod, "status.podIP") : "",
                        get_is_table(g) ? "" : cli_text(pod, "metadata.resourceVersion"));
}

/* True: it is not what was shown of this pod last. */
static bool note(struct watch *w, const json_t *pod, bool deleted)
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

static void show(struct watch *w, json_t *pod)
{
    json_auto_t *one = json_pack("[O]", pod);

    if (!get_is_table(w->g)) {
        get_print_objects(w->g, "pod", one, true);
    } else {
        pod_row(w->g, &w->table, pod);
        cli_table_print(&w->table, w->g->cli);
    }
}

static void on_change(const char *type, json_t *pod, void *arg)
{
    struct watch *w = arg;

    if (note(w, pod, strcmp(type, "DELETED") == 0))
        show(w, pod);
}

static int watch_pods(struct watch *w)
{
    buf_auto url = BUF_INIT(64 * 1024);

    pods_url(w->g, true, &url);
    return cli_watch(w->g->cli, url.p, on_change, w);
}

static int get_pods(struct get *g)
{
    struct watch w = { .g = g };
    json_auto_t *pods = NULL;
    json_t *pod;
    size_t i;
    int code;

    if (g->n_names > 0 && (g->selector != NULL || g->all))
        return cli_error(g->cli, g->all ? "a resource cannot be retrieved by name across all namespaces"
                                        : "name cannot be provided when a selector is specified");
    if (g->watch && g->n_names > 1)
        return cli_error(g->cli, "you may only watch a single resource or type of resource at a time");
    pods = read_pods(g, &code);
    if (pods == NULL)
        return code;

    w.shown = json_object();
    if (get_is_table(g)) {
        pod_table(g, &w.table);
        json_array_foreach (pods, i, pod) {
            note(&w, pod, false);
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

/* ---- the command ----------------------------------------------------------------------------- */

static int check_format(const struct get *g)
{
    static const char *const formats[] = { "json", "name", "wide", "yaml" };

    for (size_t i = 0; g->format != NULL && i < ARRAY_LEN(formats); i++)
        if (strcmp(g->format, formats[i]) == 0)
            return EXIT_OK;
    if (g->format == NULL)
        return EXIT_OK;
    return cli_error(g->cli,
                     "unable to match a printer suitable for the output format \"%s\", allowed formats are: "
                     "json,name,wide,yaml",
                     g->format);
}

/* "pods web db", "pod/web pod/db" */
static int take_names(struct get *g, const char *const *kinds, char **words, int n)
{
    bool slashes = strchr(words[0], '/') != NULL;

    g->names = slashes ? words : words + 1;
    g->n_names = slashes ? n : n - 1;
    for (int i = 0; i < g->n_names; i++) {
        const char *name = cli_resource_name(g->names[i], kinds);

        if (slashes != (strchr(g->names[i], '/') != NULL) || name == NULL || name[0] == '\0')
            return cli_error(
                g->cli, "there is no need to specify a resource type as a separate argument when passing "
                        "arguments in resource/name form (e.g. 'coracle get pod/NAME')");
        g->names[i] = (char *)(uintptr_t)name;
    }
    return EXIT_OK;
}

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct get, namespace_, "the namespace (default)"),
    { "all-namespaces", 'A', FLAG_SWITCH, offsetof(struct get, all), NULL, "all namespaces" },
    CLI_OUTPUT(struct get, format, "wide|json|yaml|name", "wide, json, yaml or name"),
    { "selector", 'l', FLAG_TEXT, offsetof(struct get, selector), "SELECTOR",
      "only pods with these labels: app=web,tier!=db" },
    { "watch", 'w', FLAG_SWITCH, offsetof(struct get, watch), NULL, "go on with what changes" },
    { "no-headers", 0, FLAG_SWITCH, offsetof(struct get, no_headers), NULL, "no line of headers" },
    CLI_FLAGS_END,
};

static int run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct get g = { .cli = cli, .command = command, .namespace_ = "default" };
    int code;

    if (!cli_parse(cli, command, &g, &argc, argv, &code))
        return code;
    if (argc < 1)
        return cli_usage_error(cli, command,
                               "you must specify what to get: pods, manifests, images or events");
    code = check_format(&g);
    if (code != EXIT_OK)
        return code;
    if (cli_is_kind(argv[0], cli_pod_kinds)) {
        code = take_names(&g, cli_pod_kinds, argv, argc);
        return code != EXIT_OK ? code : get_pods(&g);
    }
    g.n_names = argc - 1;
    if (cli_is_kind(argv[0], event_kinds))
        return get_events(&g);
    if (!cli_is_kind(argv[0], manifest_kinds) && !cli_is_kind(argv[0], image_kinds))
        return cli_error(cli, "the server doesn't have a resource type \"%s\"", argv[0]);
    if (g.n_names > 0 || g.watch || g.selector != NULL || strchr(argv[0], '/') != NULL)
        return cli_error(cli, "%s are listed as a whole: no names, selectors or watch", argv[0]);
    return cli_is_kind(argv[0], manifest_kinds) ? get_manifests(&g)
                                                : cli_list_images(cli, g.format, g.no_headers);
}

static const struct cli_example examples[] = {
    { "all pods of all namespaces, with their addresses", "coracle get pods -A -o wide" },
    { "one pod as the agent sees it", "coracle get pod web -o yaml" },
    { "what changes, as it changes", "coracle get pods -w" },
    { "files of the manifest folder that have problems", "coracle get manifests" },
    { NULL, NULL },
};

const struct cli_command command_get = {
    .name = "get",
    .run = run,
    .summary = "pods, manifests, images or events",
    .usage = "get pods|manifests|images|events [NAME...] [flags]",
    .about = "Shows what runs: a table, or whole objects with -o json|yaml.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "describe explain",
    .words = "pods|manifests|images|events @pod ...",
};
