/* SPDX-License-Identifier: Apache-2.0 */
/* get pods, also with --watch. */
#include "agent/cli/show/internal.h"

#include "agent/api/serve/serve.h"
#include "base/codec/percent.h"

#include <string.h>

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
    get_table_init(g, t, headers);
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

static void pod_row(const struct get *g, struct cli_table *t, const json_t *pod)
{
    struct api_pod_summary s;
    char age[CLI_AGE_SIZE], gates[32];

    api_pod_summary(pod, cli_now(g->cli), &s);
    cli_age(g->cli, cli_text(pod, "metadata.creationTimestamp"), age);
    if (g->all)
        cli_table_cell(t, cli_text(pod, "metadata.namespace"));
    get_name_cell(g, t, pod);
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
    get_label_cells(g, t, pod);
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
    str_auto labels = g->show_labels || g->label_columns.n > 0
                          ? json_dumps(cli_at(pod, "metadata.labels"), JSON_SORT_KEYS)
                          : NULL;
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

int get_pods(struct get *g)
{
    struct watch w = { .g = g };
    json_auto_t *pods = NULL;
    json_t *pod;
    size_t i;
    int code;

    if (get_check_names(g) != EXIT_OK)
        return EXIT_USAGE;
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
            get_table_print(g, &w.table);
        else if (g->n_names == 0 && !g->watch)
            code = get_nothing_found(g);
    } else if (!g->watch && (json_array_size(pods) > 0 || g->n_names == 0)) {
        code = get_print_objects(g, "pod", pods, g->n_names == 1);
    }
    if (cli_flush(g->cli)) {
        if (get_is_table(g) && !g->many)
            cli_warn_manifests(g->cli);
        if (g->watch && code == EXIT_OK)
            code = watch_pods(&w);
    }
    cli_table_done(&w.table);
    json_decref(w.shown);
    return code;
}
