/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a request. */
#include "agent/status/request.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/scope.h"

#include <string.h>

static const char *request_options_given(const struct http_request *r, const char *key)
{
    const char *value = http_param(r, key);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static enum err_code request_options_number(const struct http_request *r, const char *key, uint64_t min,
                                            uint64_t max, uint64_t *ret, struct err *e)
{
    const char *value = request_options_given(r, key);

    return value == NULL ? ERR_OK : parse_u64(value, min, max, ret, key, e);
}

enum err_code status_log_options(const struct http_request *r, struct status_log_options *ret, struct err *e)
{
    struct status_log_options o = { .container = request_options_given(r, "container"),
                                    .has_tail = request_options_given(r, "tailLines") != NULL };
    const char *since_time = request_options_given(r, "sinceTime"),
               *stream = request_options_given(r, "stream");
    uint64_t since_seconds = 0;

    if (http_param_flag(r, "follow", &o.follow, e) != ERR_OK ||
        http_param_flag(r, "previous", &o.previous, e) != ERR_OK ||
        http_param_flag(r, "timestamps", &o.timestamps, e) != ERR_OK ||
        request_options_number(r, "tailLines", 0, INT64_MAX, &o.tail_lines, e) != ERR_OK ||
        request_options_number(r, "limitBytes", 1, INT64_MAX, &o.limit_bytes, e) != ERR_OK ||
        request_options_number(r, "sinceSeconds", 1, INT32_MAX, &since_seconds, e) != ERR_OK)
        return e->code;
    if (stream != NULL && strcmp(stream, "All") != 0) {
        o.only_stdout = strcmp(stream, "Stdout") == 0;
        o.only_stderr = strcmp(stream, "Stderr") == 0;
        if (!o.only_stdout && !o.only_stderr)
            return err_set(e, ERR_INVALID, "stream: \"%.64s\" is none of All, Stdout, Stderr", stream);
        if (o.has_tail)
            return err_set(e, ERR_INVALID, "tailLines and one stream may not be given together");
    }
    if (since_time != NULL && since_seconds != 0)
        return err_set(e, ERR_INVALID, "at most one of sinceTime and sinceSeconds may be given");
    if (since_time != NULL && clock_parse(since_time, &o.since_ns, e) != ERR_OK)
        return err_wrap(e, "sinceTime");
    if (since_seconds != 0)
        o.since_ns = clock_wall_ns() - (int64_t)since_seconds * 1000000000;
    *ret = o;
    return ERR_OK;
}

enum err_code status_attach_options(const struct http_request *r, struct status_exec_options *ret,
                                    struct err *e)
{
    struct status_exec_options o = { .container = request_options_given(r, "container") };

    if (http_param_flag(r, "stdin", &o.stdin_, e) != ERR_OK ||
        http_param_flag(r, "stdout", &o.stdout_, e) != ERR_OK ||
        http_param_flag(r, "stderr", &o.stderr_, e) != ERR_OK ||
        http_param_flag(r, "tty", &o.tty, e) != ERR_OK)
        return e->code;
    if (o.tty) /* a terminal has a single output; kubelet ignores it, too */
        o.stderr_ = false;
    if (!o.stdin_ && !o.stdout_ && !o.stderr_)
        return err_set(e, ERR_INVALID, "you must specify at least 1 of stdin, stdout, stderr");
    *ret = o;
    return ERR_OK;
}

enum err_code status_exec_options(const struct http_request *r, struct status_exec_options *ret,
                                  struct err *e)
{
    size_t n = 0;

    if (status_attach_options(r, ret, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < r->n_params; i++)
        if (strcmp(r->params[i].key, "command") == 0)
            ret->command[n++] = r->params[i].value;
    if (n == 0)
        return err_set(e, ERR_INVALID, "you must specify at least one command for the container");
    return ERR_OK;
}

enum err_code status_forward_options(const struct http_request *r, struct status_exec_options *ret,
                                     struct err *e)
{
    *ret = (struct status_exec_options){ .stdin_ = true, .stdout_ = true };
    if (request_options_number(r, "port", 1, UINT16_MAX, &ret->port, e) != ERR_OK)
        return e->code;
    return ret->port != 0 ? ERR_OK : err_set(e, ERR_INVALID, "port: required");
}

enum err_code status_archive_options(const struct http_request *r, struct status_exec_options *ret,
                                     struct err *e)
{
    *ret = (struct status_exec_options){ .container = request_options_given(r, "container"),
                                         .path = request_options_given(r, "path"),
                                         .stderr_ = true };
    if (http_param_flag(r, "into", &ret->stdin_, e) != ERR_OK)
        return e->code;
    ret->stdout_ = !ret->stdin_;
    return ret->path != NULL ? ERR_OK : err_set(e, ERR_INVALID, "path: required");
}
