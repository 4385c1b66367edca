/* SPDX-License-Identifier: Apache-2.0 */
/* The same request in the words of the status socket. */
#include "agent/kube/server/route.h"

#include "base/codec/percent.h"
#include "base/parse.h"
#include "base/scope.h"

#include <string.h>

void route_pod_target(const struct route *to, const char *what, struct buf *ret)
{
    buf_adds(ret, "/api/v1/namespaces/");
    percent_add(ret, to->namespace_);
    buf_adds(ret, "/pods/");
    percent_add(ret, to->pod);
    if (what[0] != '\0')
        buf_addf(ret, "/%s", what);
}

/* "&key=value"; the first one with "?". */
static void target_add_param(struct buf *b, const char *key, const char *value)
{
    buf_addf(b, "%c%s=", strchr(b->p, '?') == NULL ? '?' : '&', key);
    percent_add(b, value);
}

static const char *target_given(const struct http_request *r, const char *key)
{
    const char *value = http_param(r, key);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* ---- logs ---- */

enum err_code route_log_target(const struct http_request *r, const struct route *to, struct buf *ret,
                               struct err *e)
{
    static const char *const flags[] = { "follow", "previous", "timestamps" };
    static const struct {
        const char *key;
        uint64_t min, max;
    } numbers[] = { { "limitBytes", 1, INT64_MAX }, { "sinceSeconds", 1, INT32_MAX } };
    const char *tail = target_given(r, "tail"), *stream = target_given(r, "stream");
    uint64_t number;

    route_pod_target(to, "log", ret);
    target_add_param(ret, "container", to->container);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        bool flag = false;

        if (http_param_flag(r, flags[i], &flag, e) != ERR_OK)
            return err_set(e, ERR_INVALID, "{\"message\": \"Unable to decode query.\"}");
        if (flag)
            target_add_param(ret, flags[i], "true");
    }
    if (tail == NULL) /* "tail" is its old name, with "all" */
        tail = target_given(r, "tailLines");
    if (tail != NULL && !(target_given(r, "tail") != NULL && strcmp(tail, "all") == 0)) {
        if (parse_u64(tail, 0, INT64_MAX, &number, "tailLines", ERR_IGNORED) != ERR_OK)
            return err_set(e, tail[0] == '-' ? ERR_RANGE : ERR_INVALID, "{\"message\": \"%s\"}",
                           tail[0] == '-' ? "Invalid request." : "Unable to decode query.");
        target_add_param(ret, "tailLines", tail);
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        const char *value = target_given(r, numbers[i].key);

        if (value == NULL)
            continue;
        if (parse_u64(value, numbers[i].min, numbers[i].max, &number, numbers[i].key, ERR_IGNORED) != ERR_OK)
            return err_set(e, ERR_RANGE, "{\"message\": \"Invalid request.\"}");
        target_add_param(ret, numbers[i].key, value);
    }
    if (target_given(r, "sinceTime") != NULL) {
        if (target_given(r, "sinceSeconds") != NULL)
            return err_set(e, ERR_RANGE, "{\"message\": \"Invalid request.\"}");
        target_add_param(ret, "sinceTime", target_given(r, "sinceTime"));
    }
    if (stream != NULL && strcmp(stream, "All") != 0) {
        if (strcmp(stream, "Stdout") != 0 && strcmp(stream, "Stderr") != 0)
            return err_set(e, ERR_RANGE, "{\"message\": \"Invalid request.\"}");
        if (tail != NULL) /* validation of PodLogOptions: not with one stream */
            return err_set(e, ERR_RANGE, "{\"message\": \"Invalid request.\"}");
        target_add_param(ret, "stream", stream);
    }
    return buf_check(ret, e);
}

/* ---- exec, attach, run ---- */

/* Query parameters of nodes (input, output, error) in those of pods; Go's "1" and nothing else is true. */
static bool target_on(const struct http_request *r, const char *key)
{
    const char *value = http_param(r, key);

    return value != NULL && strcmp(value, "1") == 0;
}

/* run: "cmd", its words between blanks. */
static void target_add_words(struct buf *b, const char *words)
{
    while (*words != '\0') {
        size_t n = strcspn(words, " ");
        char word[1024];

        if (n > 0 && n < sizeof(word)) {
            memcpy(word, words, n);
            word[n] = '\0';
            target_add_param(b, "command", word);
        }
        words += n + (words[n] == ' ');
    }
}

enum err_code route_stream_target(const struct http_request *r, const struct route *to, struct buf *ret,
                                  struct err *e)
{
    bool tty = target_on(r, "tty"), in = target_on(r, "input"), out = target_on(r, "output"),
         err = target_on(r, "error") && !tty;

    route_pod_target(to, to->kind == PATH_ATTACH ? "attach" : "exec", ret);
    target_add_param(ret, "container", to->container);
    if (to->kind == PATH_RUN) {
        target_add_words(ret, http_param(r, "cmd") != NULL ? http_param(r, "cmd") : "");
        buf_adds(ret, "&stdout=true&stderr=true");
        return buf_check(ret, e);
    }
    if (!in && !out && !err)
        return err_set(e, ERR_INVALID, "you must specify at least 1 of stdin, stdout, stderr");
    for (size_t i = 0; i < r->n_params && to->kind == PATH_EXEC; i++)
        if (strcmp(r->params[i].key, "command") == 0)
            target_add_param(ret, "command", r->params[i].value);
    buf_addf(ret, "%s%s%s%s", in ? "&stdin=true" : "", out ? "&stdout=true" : "", err ? "&stderr=true" : "",
             tty ? "&tty=true" : "");
    return buf_check(ret, e);
}
