/* A watch: a line of JSON for each change, as it comes. */
#include "agent/cli/internal.h"

#include "base/json.h"

#include <string.h>

struct watch {
    struct cli *cli;
    cli_object_fn fn;
    void *arg;
    struct buf line;
    bool failed, unread;
};

static void on_line(struct watch *w)
{
    json_auto_t *event = NULL;
    struct err e = { 0 };

    if (w->line.n == 0)
        return;
    if (json_parse(w->line.p, w->line.n, CLI_BODY_MAX, &event, "watch event", &e) != ERR_OK) {
        cli_error(w->cli, "%s", e.text);
        w->failed = true;
        return;
    }
    w->fn(cli_text(event, "type"), cli_at(event, "object"), w->arg);
    w->unread = !cli_flush(w->cli);
}

static bool on_data(const char *data, size_t n, void *arg)
{
    struct watch *w = arg;

    while (n > 0 && !w->failed && !w->unread) {
        const char *newline = memchr(data, '\n', n);
        size_t part = newline != NULL ? (size_t)(newline - data) : n;

        buf_add(&w->line, data, part);
        if (newline == NULL)
            return !w->line.failed;
        on_line(w);
        buf_reset(&w->line);
        data += part + 1;
        n -= part + 1;
    }
    return !w->failed && !w->unread;
}

int cli_watch(struct cli *cli, const char *url, cli_object_fn fn, void *arg)
{
    struct watch w = { .cli = cli, .fn = fn, .arg = arg, .line = BUF_INIT(CLI_BODY_MAX) };
    struct cli_response r = CLI_RESPONSE_INIT;
    struct err e = { 0 };
    int code = EXIT_OK;

    if (cli_request(cli, "GET", url, true, on_data, &w, &r, &e) != ERR_OK)
        code = cli_error(cli, "%s", e.text);
    else if (r.code != 200)
        code = cli_server_error(cli, &r);
    else if (w.failed)
        code = EXIT_ERROR;
    else if (!w.unread)
        code = cli_error(cli, "coracle ended the watch");
    buf_done(&r.body);
    buf_done(&w.line);
    return code;
}
