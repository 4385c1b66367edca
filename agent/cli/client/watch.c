/* SPDX-License-Identifier: Apache-2.0 */
/* A watch: a line of JSON per change. */
#include "agent/cli/client/client.h"

#include "base/codec/json.h"

#include <string.h>

struct watch {
    cli_change_fn fn;
    void *arg;
    struct buf line;
    bool enough;
    struct err err;
};

static void on_line(struct watch *w)
{
    json_auto_t *event = NULL;

    if (w->line.n > 0 &&
        json_parse(w->line.p, w->line.n, CLI_BODY_MAX, &event, "watch event", &w->err) == ERR_OK)
        w->enough = !w->fn(cli_text(event, "type"), cli_at(event, "object"), w->arg);
    if (w->err.code == ERR_INVALID)
        w->err.code = ERR_INTERNAL; /* the daemon's bug, not the user's */
}

static bool cli_watch_on_data(const char *data, size_t n, void *arg)
{
    struct watch *w = arg;

    while (n > 0 && !w->enough && w->err.code == ERR_OK) {
        const char *newline = memchr(data, '\n', n);
        size_t part = newline != NULL ? (size_t)(newline - data) : n;

        buf_add(&w->line, data, part);
        if (buf_check(&w->line, &w->err) != ERR_OK || newline == NULL)
            break;
        on_line(w);
        buf_reset(&w->line);
        data += part + 1;
        n -= part + 1;
    }
    return !w->enough && w->err.code == ERR_OK;
}

enum err_code cli_follow(struct cli *cli, const char *url, cli_change_fn fn, void *arg,
                         struct cli_response *ret, struct err *e)
{
    struct watch w = { .fn = fn, .arg = arg, .line = BUF_INIT(CLI_BODY_MAX) };

    if (cli_request(cli, "GET", url, true, cli_watch_on_data, &w, ret, e) == ERR_OK && ret->code == 200) {
        if (w.err.code != ERR_OK)
            *e = w.err;
        else if (!w.enough)
            err_set(e, ERR_UNAVAILABLE, "coracle ended the watch");
    }
    buf_done(&w.line);
    return e->code;
}

int cli_watch(struct cli *cli, const char *url, cli_change_fn fn, void *arg)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    struct err e = { 0 };
    int code = EXIT_OK;

    if (cli_follow(cli, url, fn, arg, &r, &e) != ERR_OK)
        code = cli_failed(cli, &e);
    else if (r.code != 200)
        code = cli_server_error(cli, &r);
    buf_done(&r.body);
    return code;
}

bool cli_pod_is_there(struct cli *cli, const char *namespace_, const char *name)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    buf_auto url = BUF_INIT(64 * 1024);
    bool there;

    cli_add_pod_path(&url, namespace_, name);
    there = cli_request(cli, "GET", url.p, false, NULL, NULL, &r, ERR_IGNORED) != ERR_OK || r.code != 404;
    buf_done(&r.body);
    return there;
}
