/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client/internal.h"
#include "base/codec/json.h"

#include <string.h>

/* "\u0000" outside of an escaped backslash becomes "\ufffd"; both have six bytes. */
static void replace_nul(char *text, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        if (text[i] != '\\')
            continue;
        if (n - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
            memcpy(text + i, "\\ufffd", 6);
        i++; /* an escaped character begins no escape */
    }
}

enum err_code kube_parse(char *text, size_t n, json_t **ret, struct err *e)
{
    json_t *v = NULL;

    replace_nul(text, n);
    if (json_parse(text, n, n, &v, "answer", e) != ERR_OK) {
        e->code = err_is_shortage(e) ? ERR_EXHAUSTED : ERR_INTERNAL;
        return e->code;
    }
    if (!json_is_object(v)) {
        json_decref(v);
        return err_set(e, ERR_INTERNAL, "answer: not a JSON object");
    }
    *ret = v;
    return ERR_OK;
}

void kube_lines_init(struct kube_lines *l, size_t max)
{
    buf_init(&l->text, max + 1); /* with its line feed */
    l->max = max;
}

void kube_lines_done(struct kube_lines *l)
{
    buf_wipe(&l->text); /* it may hold a Secret */
}

static enum err_code hand_line_over(char *text, size_t n, bool (*on_line)(json_t *line, void *arg), void *arg,
                                    bool *ret_ended, struct err *e)
{
    json_t *v = NULL;

    if (n == 0 || (n == 1 && text[0] == '\r'))
        return ERR_OK;
    if (kube_parse(text, n, &v, e) != ERR_OK)
        return e->code;
    *ret_ended = !on_line(v, arg);
    json_decref(v);
    return ERR_OK;
}

/* Pieces may be large: only the rest after the last line feed is kept. */
enum err_code kube_lines_feed(struct kube_lines *l, const char *data, size_t n,
                              bool (*on_line)(json_t *line, void *arg), void *arg, bool *ret_ended,
                              struct err *e)
{
    while (n > 0 && !*ret_ended) {
        const char *end = memchr(data, '\n', n);
        size_t piece = end != NULL ? (size_t)(end - data) : n;

        buf_add(&l->text, data, piece);
        if (l->text.failed)
            return err_set(e, ERR_INTERNAL,
                           "a line of the stream has more than %zu bytes, or memory is short", l->max);
        if (end == NULL)
            return ERR_OK;
        data += piece + 1;
        n -= piece + 1;
        if (hand_line_over(l->text.p, l->text.n, on_line, arg, ret_ended, e) != ERR_OK)
            return e->code;
        if (l->text.cap > (1 << 16))
            kube_lines_done(l); /* one long line is no reason to keep its room */
        else
            buf_reset(&l->text);
    }
    return ERR_OK;
}
