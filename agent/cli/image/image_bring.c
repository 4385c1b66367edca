/* SPDX-License-Identifier: Apache-2.0 */
/* image import and pull. The progress reported by the daemon goes to standard error: on a terminal as one
 * line that is updated, elsewhere as a line per step. */
#include "agent/cli/image/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"

#include <stdlib.h>
#include <string.h>

#define ERASE_LINE "\r\033[K"

struct view {
    struct cli *cli;
    struct buf line; /* of JSON, as far as received */
    json_t *answer;  /* the last line */
    bool terminal;   /* one line, updated */
    bool shown;      /* a step was shown */
    char step[16];   /* the step shown */
    int64_t layers;  /* completed */
    uint64_t since_ms, begun_ms;
    int64_t bytes_before; /* when the step was first seen */
    struct err err;
};

/* ---- lines ---- */

static void add_rate(const struct view *v, const json_t *now, struct buf *out)
{
    const uint64_t ms = clock_mono_ms() - v->since_ms;
    const int64_t bytes = cli_number(now, "bytes"), come = bytes - v->bytes_before;
    char size[CLI_AGE_SIZE];

    if (bytes <= 0)
        return;
    cli_size((uint64_t)bytes, size);
    buf_addf(out, ", %s", size);
    if (come <= 0 || ms < 1000)
        return;
    cli_size((uint64_t)((double)come * 1000 / (double)ms), size);
    buf_addf(out, ", %s/s", size);
}

/* The line for a terminal. */
static void cli_image_bring_describe(const struct view *v, const json_t *now, struct buf *out)
{
    const int64_t layers = cli_number(now, "layers"), of = cli_number(now, "ofLayers");

    buf_adds(out, v->step);
    if (of > 0)
        buf_addf(out, " layer %lld of %lld", (long long)(layers < of ? layers + 1 : of), (long long)of);
    add_rate(v, now, out);
}

static void cli_image_bring_show(struct view *v, const json_t *now)
{
    const bool new_step = strcmp(v->step, cli_text(now, "step")) != 0;
    const int64_t layers = cli_number(now, "layers");
    buf_auto text = BUF_INIT(1024);
    buf_auto clean = BUF_INIT(4096);

    if (new_step) {
        snprintf(v->step, sizeof(v->step), "%s", cli_text(now, "step"));
        v->since_ms = clock_mono_ms();
        v->bytes_before = cli_number(now, "bytes");
        v->layers = 0;
    }
    if (v->terminal)
        cli_image_bring_describe(v, now, &text);
    else if (layers > v->layers)
        buf_addf(&text, "layer %lld of %lld unpacked", (long long)layers,
                 (long long)cli_number(now, "ofLayers"));
    else if (new_step)
        buf_adds(&text, v->step);
    v->layers = layers;
    if (text.n == 0)
        return;
    cli_add_clean(&clean, text.p);
    fprintf(v->cli->err, v->terminal ? ERASE_LINE "%s" : "%s\n", clean.p);
    fflush(v->cli->err);
    v->shown = true;
}

static bool cli_image_bring_take_line(struct view *v)
{
    json_t *value = NULL;

    if (json_parse(v->line.p, v->line.n, CLI_BODY_MAX, &value, "answer", &v->err) != ERR_OK)
        return false;
    buf_reset(&v->line);
    if (cli_at(value, "step") != NULL) {
        cli_image_bring_show(v, value);
        json_decref(value);
        return true;
    }
    json_decref(v->answer);
    v->answer = value;
    return true;
}

static bool cli_image_bring_on_data(const char *data, size_t n, void *arg)
{
    struct view *v = arg;
    const char *end;

    while ((end = memchr(data, '\n', n)) != NULL) {
        const size_t part = (size_t)(end - data) + 1;

        buf_add(&v->line, data, part);
        if (buf_check(&v->line, &v->err) != ERR_OK || !cli_image_bring_take_line(v))
            return false;
        data += part;
        n -= part;
    }
    buf_add(&v->line, data, n);
    return buf_check(&v->line, &v->err) == ERR_OK;
}

/* ---- the request ---- */

static void say_names(struct view *v)
{
    const uint64_t ms = clock_mono_ms() - v->begun_ms;
    char size[CLI_AGE_SIZE];
    const json_t *one;
    size_t i;

    if (v->shown) {
        cli_size((uint64_t)cli_number(v->answer, "sizeBytes"), size);
        fprintf(v->cli->err, "done: %s in %.1f s\n", size, (double)ms / 1000);
    }
    json_array_foreach (cli_at(v->answer, "names"), i, one)
        cli_print(v->cli, "image/%s imported\n", json_string_value(one));
}

/* A failure in the last line looks like a failure as the whole answer. */
static int cli_image_bring_say_failure(struct view *v, struct cli_response *r)
{
    str_auto text = json_text(v->answer);

    if (text != NULL)
        buf_adds(&r->body, text);
    r->code = (int)cli_number(v->answer, "code");
    return cli_server_error(v->cli, r);
}

static int cli_image_bring_finish(struct view *v, struct cli_response *r, const struct err *e)
{
    if (v->terminal && v->shown)
        fputs(ERASE_LINE, v->cli->err);
    if (e->code != ERR_OK || v->err.code != ERR_OK)
        return e->code != ERR_OK ? cli_failed(v->cli, e) : cli_error(v->cli, "%s", v->err.text);
    if (r->code != 200)
        return cli_server_error(v->cli, r);
    if (strcmp(cli_text(v->answer, "kind"), "Status") == 0)
        return cli_image_bring_say_failure(v, r);
    if (v->answer == NULL)
        return cli_error(v->cli, "coracle's answer is empty");
    say_names(v);
    return EXIT_OK;
}

int cli_bring_image(struct cli *cli, const char *source, const char *name, bool quiet)
{
    struct view v = { .cli = cli,
                      .line = BUF_INIT(CLI_BODY_MAX),
                      .terminal = cli_is_terminal(fileno(cli->err), getenv("TERM")),
                      .begun_ms = clock_mono_ms() };
    struct cli_response r = CLI_RESPONSE_INIT;
    buf_auto url = BUF_INIT(64 * 1024);
    struct err e = { 0 };
    int code;

    buf_adds(&url, "/images?source=");
    percent_add(&url, source);
    if (name != NULL) {
        buf_adds(&url, "&name=");
        percent_add(&url, name);
    }
    if (!quiet)
        buf_adds(&url, "&progress=1");
    ERR_IGNORE(cli_request(cli, "POST", url.p, true, cli_image_bring_on_data, &v, &r, &e));
    code = cli_image_bring_finish(&v, &r, &e);
    buf_done(&v.line);
    buf_done(&r.body);
    json_decref(v.answer);
    return code;
}
