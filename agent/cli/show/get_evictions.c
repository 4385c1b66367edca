/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions made when the node was short of a resource, for `get evictions`. */
#include "agent/cli/show/internal.h"

#include <inttypes.h>
#include <stdio.h>

static void add_pods(const json_t *decision, struct buf *out)
{
    const json_t *victims = cli_at(decision, "victims"), *v;
    size_t i;

    json_array_foreach (victims, i, v)
        buf_addf(out, "%s%s", i > 0 ? "," : "", cli_text(v, "pod"));
    if (cli_text(decision, "pod")[0] != '\0')
        buf_adds(out, cli_text(decision, "pod"));
    else if (json_array_size(victims) == 0)
        buf_adds(out, "<none>");
}

/* "images 12, containers 3" */
static void add_reclaimed(const json_t *decision, struct buf *out)
{
    const json_t *list = cli_at(decision, "reclaimed"), *r;
    size_t i;

    json_array_foreach (list, i, r)
        buf_addf(out, "%s%s %lld", i > 0 ? ", " : "", cli_text(r, "what"),
                 (long long)cli_number(r, "objects"));
    if (json_array_size(list) == 0)
        buf_adds(out, "<none>");
}

static void built(struct cli_table *t, const json_t *decision,
                  void (*add)(const json_t *decision, struct buf *out))
{
    buf_auto text = BUF_INIT(64 * 1024);

    add(decision, &text);
    cli_table_cell(t, text.p);
}

static const char *or_dash(const char *text)
{
    return text[0] != '\0' ? text : "-";
}

static void decision_row(const struct get *g, struct cli_table *t, const json_t *d)
{
    const char *outcome = cli_text(d, "outcome");
    char number[24], age[CLI_AGE_SIZE], took[32] = "-";

    snprintf(number, sizeof(number), "%lld", (long long)cli_number(d, "number"));
    if (cli_at(d, "tookUs") != NULL)
        snprintf(took, sizeof(took), "%lld ms", (long long)cli_number(d, "tookUs") / 1000);
    cli_age(g->cli, cli_text(d, "time"), age);
    cli_table_cell(t, number);
    cli_table_cell(t, cli_text(d, "signal")[0] != '\0' ? cli_text(d, "signal") : "limit of the pod");
    cli_table_cell(t, or_dash(cli_text(d, "available")));
    cli_table_cell(t, or_dash(cli_text(d, "threshold")));
    built(t, d, add_pods);
    if (get_is_format(g, "wide")) {
        built(t, d, add_reclaimed);
        cli_table_cell(t, or_dash(cli_text(d, "availableAfter")));
        cli_table_cell(t, outcome[0] != '\0' ? outcome : or_dash(cli_text(d, "message")));
    }
    cli_table_cell(t, took);
    cli_table_cell(t, age);
}

int get_evictions(struct get *g)
{
    static const char *const headers[] = { "NUMBER", "SIGNAL", "AVAILABLE", "THRESHOLD",
                                           "PODS",   "TOOK",   "AGE",       NULL };
    static const char *const wide[] = { "NUMBER", "SIGNAL",  "AVAILABLE", "THRESHOLD", "PODS", "RECLAIMED",
                                        "AFTER",  "OUTCOME", "TOOK",      "AGE",       NULL };
    int code;
    json_auto_t *list = cli_get(g->cli, "/evictions", &code);
    const json_t *items = cli_at(list, "items"), *d;
    struct cli_table table;
    size_t i;

    if (list == NULL)
        return code;
    if (get_is_format(g, "name")) {
        json_array_foreach (items, i, d)
            cli_print(g->cli, "eviction/%lld\n", (long long)cli_number(d, "number"));
        return EXIT_OK;
    }
    if (!get_is_table(g))
        return get_print_objects(g, "eviction", items, false);
    if (json_array_size(items) == 0) {
        fputs("No evictions found\n", g->cli->err);
        return EXIT_OK;
    }
    cli_table_init(&table, get_is_format(g, "wide") ? wide : headers, !g->no_headers);
    json_array_foreach (items, i, d)
        decision_row(g, &table, d);
    cli_table_print(&table, g->cli);
    cli_table_done(&table);
    return EXIT_OK;
}
