/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/show/internal.h"

#include "agent/api/problems.h"
#include "base/codec/json.h"

enum { WARNED_MAX = 3 /* more bad files become one line: `get` is about something else */ };

static void warn_problem(struct cli *cli, const json_t *problem, bool stale)
{
    struct api_place place = { (uint32_t)cli_number(problem, "line"),
                               (uint32_t)cli_number(problem, "column") };
    const struct api_problem p = { .file = cli_text(problem, "file"),
                                   .place = place,
                                   .field = cli_text(problem, "field"),
                                   .message = cli_text(problem, "message") };
    buf_auto line = BUF_INIT(64 * 1024);

    api_problem_add_text(&p, "warning: ", &line);
    if (stale)
        buf_adds(&line, " (the running pod stays as it was)");
    cli_note(cli, "%s\n", line.p);
}

static size_t count_bad(const json_t *manifests)
{
    const json_t *m;
    size_t i, n = 0;

    json_array_foreach (manifests, i, m)
        n += json_array_size(cli_at(m, "problems")) > 0;
    return n;
}

void cli_show_problems(struct cli *cli, const json_t *manifests)
{
    const json_t *m, *p;
    size_t i, k;

    json_array_foreach (manifests, i, m) {
        json_array_foreach (cli_at(m, "problems"), k, p)
            warn_problem(cli, p, cli_true(m, "stale"));
    }
}

void cli_warn_manifests(struct cli *cli)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    json_auto_t *list = NULL;
    const json_t *items;
    size_t bad;

    if (cli_request(cli, "GET", "/manifests", false, NULL, NULL, &r, ERR_IGNORED) == ERR_OK && r.code == 200)
        ERR_IGNORE(json_parse(r.body.p, r.body.n, CLI_BODY_MAX, &list, "manifests", ERR_IGNORED));
    buf_done(&r.body);
    items = cli_at(list, "items");
    bad = count_bad(items);
    if (bad > WARNED_MAX)
        cli_note(cli, "warning: %zu manifests have problems: see `coracle get manifests`\n", bad);
    else
        cli_show_problems(cli, items);
}
