/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/show/internal.h"
#include "base/codec/percent.h"

#include <string.h>

/* ---- events ---- */

static const char *event_time(const json_t *event, const char *field)
{
    const char *when = cli_text(event, field);

    return when[0] != '\0' ? when : cli_text(event, "eventTime");
}

static int get_tables_by_last_time(const void *a, const void *b)
{
    return strcmp(event_time(*(json_t *const *)a, "lastTimestamp"),
                  event_time(*(json_t *const *)b, "lastTimestamp"));
}

static void event_row(const struct get *g, struct cli_table *t, const json_t *event)
{
    char last[CLI_AGE_SIZE], first[CLI_AGE_SIZE], object[400], source[300], count[24];
    const char *message = cli_text(event, "message"), *host = cli_text(event, "source.host");
    str_auto trimmed = strndup(message, strlen(message));
    size_t n;

    cli_age(g->cli, event_time(event, "lastTimestamp"), last);
    cli_age(g->cli, event_time(event, "firstTimestamp"), first);
    snprintf(object, sizeof(object), "%s/%s", cli_text(event, "involvedObject.kind"),
             cli_text(event, "involvedObject.name"));
    for (char *p = object; *p != '/' && *p != '\0'; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
    snprintf(source, sizeof(source), "%s%s%s", cli_text(event, "source.component"),
             host[0] != '\0' ? ", " : "", host);
    snprintf(count, sizeof(count), "%lld", (long long)cli_number(event, "count"));
    for (n = trimmed != NULL ? strlen(trimmed) : 0; n > 0 && strchr(" \n\t\r", trimmed[n - 1]) != NULL; n--)
        trimmed[n - 1] = '\0';

    if (g->all)
        cli_table_cell(t, cli_text(event, "metadata.namespace"));
    cli_table_cell(t, last);
    cli_table_coloured(t, cli_text(event, "type"), cli_colour_of_event(cli_text(event, "type")));
    cli_table_cell(t, cli_text(event, "reason"));
    cli_table_cell(t, object);
    if (get_is_format(g, "wide")) {
        cli_table_cell(t, cli_text(event, "involvedObject.fieldPath"));
        cli_table_cell(t, source);
    }
    cli_table_cell(t, trimmed != NULL ? trimmed : "");
    if (get_is_format(g, "wide")) {
        cli_table_cell(t, first);
        cli_table_cell(t, count);
        cli_table_cell(t, cli_text(event, "metadata.name"));
    }
}

static void event_table(const struct get *g, struct cli_table *t)
{
    static const char *const narrow[] = { "NAMESPACE", "LAST SEEN", "TYPE", "REASON",
                                          "OBJECT",    "MESSAGE",   NULL };
    static const char *const wide[] = { "NAMESPACE",  "LAST SEEN", "TYPE",   "REASON",
                                        "OBJECT",     "SUBOBJECT", "SOURCE", "MESSAGE",
                                        "FIRST SEEN", "COUNT",     "NAME",   NULL };

    cli_table_init(t, (get_is_format(g, "wide") ? wide : narrow) + (g->all ? 0 : 1), !g->no_headers);
}

int get_events(struct get *g)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL, *events = NULL;
    struct cli_table table;
    json_t *event;
    size_t i;
    int code;

    if (g->n_names > 0 || g->watch)
        return cli_wrong(g->cli, g->watch ? "to watch events, use 'coracle events -w'"
                                          : "events cannot be selected by name");
    if (g->selector != NULL)
        return cli_wrong(g->cli, "events have no labels: use --field-selector, or 'coracle events'");
    buf_adds(&url, "/api/v1");
    if (!g->all) {
        buf_adds(&url, "/namespaces/");
        percent_add(&url, g->namespace_);
    }
    buf_adds(&url, "/events");
    if (g->field_selector != NULL) {
        buf_adds(&url, "?fieldSelector=");
        percent_add(&url, g->field_selector);
    }
    list = cli_get(g->cli, url.p, &code);
    if (list == NULL)
        return code;
    events = cli_sorted(cli_at(list, "items"), get_tables_by_last_time);
    code = get_sort(g, events);
    if (code != EXIT_OK)
        return code;
    if (!get_is_table(g))
        return get_print_objects(g, "event", events, false);
    if (json_array_size(events) == 0)
        return get_nothing_found(g);
    event_table(g, &table);
    json_array_foreach (events, i, event)
        event_row(g, &table, event);
    get_table_print(g, &table);
    cli_table_done(&table);
    return EXIT_OK;
}

/* ---- manifests ---- */

int get_manifests(struct get *g)
{
    static const char *const headers[] = { "NAME", "STATUS", "OBJECTS", "PROBLEMS", "READ", NULL };
    int code;
    json_auto_t *list = cli_get(g->cli, "/manifests", &code);
    const json_t *items = cli_at(list, "items"), *m;
    struct cli_table table;
    size_t i;

    if (list == NULL)
        return code;
    if (!get_is_table(g))
        return get_print_objects(g, "manifest", items, false);
    if (json_array_size(items) == 0) {
        fputs("No manifests found\n", g->cli->err);
        return EXIT_OK;
    }
    cli_table_init(&table, headers, !g->no_headers);
    json_array_foreach (items, i, m) {
        char objects[24], problems[24], age[CLI_AGE_SIZE];
        const char *status = cli_true(m, "ok") ? "OK" : cli_true(m, "stale") ? "Stale" : "Invalid";

        snprintf(objects, sizeof(objects), "%lld", (long long)cli_number(m, "objects"));
        snprintf(problems, sizeof(problems), "%zu", json_array_size(cli_at(m, "problems")));
        cli_age(g->cli, cli_text(m, "read"), age);
        cli_table_cell(&table, cli_text(m, "name"));
        cli_table_coloured(&table, status, cli_colour_of_status(status));
        cli_table_cell(&table, objects);
        cli_table_cell(&table, problems);
        cli_table_cell(&table, age);
    }
    cli_table_print(&table, g->cli);
    cli_table_done(&table);
    if (cli_flush(g->cli))
        cli_show_problems(g->cli, items);
    return EXIT_OK;
}
