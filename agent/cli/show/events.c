/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle events`, like `kubectl events`. */
#include "agent/cli/show/internal.h"
#include "base/codec/percent.h"

#include <string.h>
#include <strings.h>

struct events {
    struct cli *cli;
    const char *namespace_, *format, *about, *types;
    bool all, watch, no_headers;
    struct cli_table table;
    json_t *shown; /* by name: the values printed last */
};

static const char *cli_events_time_of(const json_t *event, const char *field)
{
    const char *when = cli_text(event, field);

    return when[0] != '\0' ? when : cli_text(event, "eventTime");
}

static int cli_events_by_last_time(const void *a, const void *b)
{
    return strcmp(cli_events_time_of(*(json_t *const *)a, "lastTimestamp"),
                  cli_events_time_of(*(json_t *const *)b, "lastTimestamp"));
}

/* ---- selecting ---- */

/* "pod/web": the kind as used in events; NULL if unknown. */
static const char *cli_events_kind_of(const char *word, size_t n)
{
    static const char *const nodes[] = { "node", "nodes", "no", NULL };

    for (const char *const *p = cli_pod_kinds; *p != NULL; p++)
        if (strlen(*p) == n && strncasecmp(*p, word, n) == 0)
            return "Pod";
    for (const char *const *p = nodes; *p != NULL; p++)
        if (strlen(*p) == n && strncasecmp(*p, word, n) == 0)
            return "Node";
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++)
        if (k->held == API_HELD_WORKLOAD && api_kind_is_word(k, word, n))
            return k->kind;
    return NULL;
}

static enum err_code check_about(const struct events *v, struct err *e)
{
    const char *slash = v->about != NULL ? strchr(v->about, '/') : NULL;

    if (v->about == NULL)
        return ERR_OK;
    if (slash == NULL || slash[1] == '\0' || strchr(slash + 1, '/') != NULL)
        return err_set(e, ERR_INVALID, "--for must be in resource/name form (pod/web)");
    if (cli_events_kind_of(v->about, (size_t)(slash - v->about)) == NULL)
        return err_set(e, ERR_INVALID,
                       "--for: there are events of pods, workloads and nodes only, not of \"%.*s\"",
                       (int)(slash - v->about), v->about);
    return ERR_OK;
}

/* Whether "Normal,Warning" contains this word; `type` NULL: whether all its words are types. */
static bool has_type(const char *types, const char *type)
{
    bool found = false;

    for (const char *p = types; *p != '\0';) {
        size_t n = strcspn(p, ",");
        bool normal = n == 6 && strncasecmp(p, "Normal", n) == 0;
        bool warning = n == 7 && strncasecmp(p, "Warning", n) == 0;

        if (type == NULL && !normal && !warning)
            return false;
        found = found || (type != NULL && strlen(type) == n && strncasecmp(p, type, n) == 0);
        p += n + (p[n] == ',');
    }
    return type == NULL || found;
}

static void events_url(const struct events *v, bool watch, struct buf *url)
{
    const char *slash = v->about != NULL ? strchr(v->about, '/') : NULL;

    buf_adds(url, "/api/v1");
    if (!v->all) {
        buf_adds(url, "/namespaces/");
        percent_add(url, v->namespace_);
    }
    buf_addf(url, "/events?%s", watch ? "watch=true&" : "");
    if (slash != NULL) {
        buf_addf(url, "fieldSelector=involvedObject.kind%%3D%s%%2CinvolvedObject.name%%3D",
                 cli_events_kind_of(v->about, (size_t)(slash - v->about)));
        percent_add(url, slash + 1);
    }
}

/* ---- output ---- */

static void row(struct events *v, const json_t *event)
{
    char last[CLI_AGE_SIZE], first[CLI_AGE_SIZE], seen[3 * CLI_AGE_SIZE], object[400];
    long long count = (long long)cli_number(event, "count");
    str_auto message = cli_event_text(event);

    cli_age(v->cli, cli_events_time_of(event, "lastTimestamp"), last);
    cli_age(v->cli, cli_events_time_of(event, "firstTimestamp"), first);
    if (count > 1)
        snprintf(seen, sizeof(seen), "%s (x%lld over %s)", last, count, first);
    else
        snprintf(seen, sizeof(seen), "%s", first);
    snprintf(object, sizeof(object), "%s/%s", cli_text(event, "involvedObject.kind"),
             cli_text(event, "involvedObject.name"));
    if (v->all)
        cli_table_cell(&v->table, cli_text(event, "metadata.namespace"));
    cli_table_cell(&v->table, seen);
    cli_table_coloured(&v->table, cli_text(event, "type"), cli_colour_of_event(cli_text(event, "type")));
    cli_table_cell(&v->table, cli_text(event, "reason"));
    cli_table_cell(&v->table, object);
    cli_table_cell(&v->table, message != NULL ? message : "");
}

static json_t *chosen(const struct events *v, const json_t *list)
{
    json_auto_t *sorted = cli_sorted(cli_at(list, "items"), cli_events_by_last_time);
    json_t *ret = json_array(), *event;
    size_t i;

    json_array_foreach (sorted, i, event) {
        if (v->types == NULL || has_type(v->types, cli_text(event, "type")))
            json_array_append(ret, event);
    }
    return ret;
}

/* Returns true if the event differs from its last printed version. */
static bool cli_events_note(struct events *v, const json_t *event)
{
    json_auto_t *now = json_sprintf("%s %lld %s", cli_text(event, "lastTimestamp"),
                                    (long long)cli_number(event, "count"), cli_text(event, "message"));
    char key[600];

    snprintf(key, sizeof(key), "%s/%s", cli_text(event, "metadata.namespace"),
             cli_text(event, "metadata.name"));
    if (json_equal(json_object_get(v->shown, key), now))
        return false;
    json_object_set(v->shown, key, now);
    return true;
}

static void cli_events_print_one(struct events *v, json_t *event)
{
    if (v->format != NULL) {
        cli_print_value(v->cli, event, v->format);
        return;
    }
    row(v, event);
    cli_table_print(&v->table, v->cli);
}

static bool cli_events_on_change(const char *type, json_t *event, void *arg)
{
    struct events *v = arg;
    char key[600];

    if (strcmp(type, "DELETED") == 0) { /* newer events have replaced it */
        snprintf(key, sizeof(key), "%s/%s", cli_text(event, "metadata.namespace"),
                 cli_text(event, "metadata.name"));
        json_object_del(v->shown, key);
    } else if ((v->types == NULL || has_type(v->types, cli_text(event, "type"))) &&
               cli_events_note(v, event)) {
        cli_events_print_one(v, event);
    }
    return cli_flush(v->cli);
}

static int print_list(struct events *v, const json_t *events)
{
    json_t *event;
    size_t i;

    if (v->format != NULL && !v->watch) {
        json_auto_t *list = json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion", "v1", "kind", "EventList",
                                      "metadata", "resourceVersion", "", "items", events);

        return cli_print_value(v->cli, list, v->format);
    }
    if (json_array_size(events) == 0 && !v->watch) {
        if (v->all)
            fputs("No events found.\n", v->cli->err);
        else
            cli_note(v->cli, "No events found in %s namespace.\n", v->namespace_);
        return EXIT_OK;
    }
    json_array_foreach (events, i, event) {
        cli_events_note(v, event);
        if (v->format != NULL)
            cli_print_value(v->cli, event, v->format);
        else
            row(v, event);
    }
    if (v->format == NULL && json_array_size(events) > 0)
        cli_table_print(&v->table, v->cli);
    return EXIT_OK;
}

static int cli_events_show(struct events *v)
{
    static const char *const headers[] = { "NAMESPACE", "LAST SEEN", "TYPE", "REASON",
                                           "OBJECT",    "MESSAGE",   NULL };
    buf_auto url = BUF_INIT(64 * 1024), watch_url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL, *events = NULL;
    int code;

    events_url(v, false, &url);
    list = cli_get(v->cli, url.p, &code);
    if (list == NULL)
        return code;
    events = chosen(v, list);
    v->shown = json_object();
    cli_table_init(&v->table, headers + (v->all ? 0 : 1), !v->no_headers);
    code = print_list(v, events);
    if (v->watch && cli_flush(v->cli)) {
        events_url(v, true, &watch_url);
        code = cli_watch(v->cli, watch_url.p, cli_events_on_change, v);
    }
    cli_table_done(&v->table);
    json_decref(v->shown);
    return code;
}

/* ---- the command ---- */

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct events, namespace_, "the namespace (default)"),
    { "all-namespaces", 'A', FLAG_SWITCH, offsetof(struct events, all), NULL, "all namespaces" },
    { "for", 0, FLAG_TEXT, offsetof(struct events, about), "POD", "only events of pod/NAME or node/NAME",
      "@object" },
    { "types", 0, FLAG_TEXT, offsetof(struct events, types), "TYPES", "only these types: Normal,Warning" },
    { "watch", 'w', FLAG_SWITCH, offsetof(struct events, watch), NULL, "watch for new events" },
    CLI_OUTPUT(struct events, format, "json|yaml", "json or yaml"),
    { "no-headers", 0, FLAG_SWITCH, offsetof(struct events, no_headers), NULL, "do not print headers" },
    CLI_FLAGS_END,
};

static int cli_events_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct events v = { .cli = cli, .namespace_ = "default" };
    struct err e = { 0 };
    int code;

    if (!cli_parse(cli, command, &v, &argc, argv, &code))
        return code;
    if (argc > 0)
        return cli_usage_error(cli, command, "events takes no names: use --for pod/NAME");
    code = cli_check_format(cli, v.format);
    if (code != EXIT_OK)
        return code;
    if (v.types != NULL && !has_type(v.types, NULL))
        return cli_wrong(cli, "valid --types are Normal or Warning");
    if (check_about(&v, &e) != ERR_OK)
        return cli_failed(cli, &e);
    return cli_events_show(&v);
}

static const struct cli_example examples[] = {
    { "the events of a pod", "coracle events --for pod/web" },
    { "follow warnings", "coracle events -A -w --types Warning" },
    { NULL, NULL },
};

const struct cli_command command_events = {
    .name = "events",
    .run = cli_events_run,
    .summary = "show events of pods and the node",
    .usage = "events [--for pod/NAME] [-w] [flags]",
    .about = "Shows the newest 1000 events, oldest first.  Repeated events are counted.  If an object "
             "has more than ten events with different texts within ten minutes, further events are "
             "merged into one.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "describe explain",
    .words = "@nothing",
};
