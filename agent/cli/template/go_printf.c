/* SPDX-License-Identifier: Apache-2.0 */
/* Go's fmt.Sprintf for values of JSON: the verbs v s q d t f e g x X c T, flags, width and precision. */
#include "agent/cli/template/internal.h"

#include "base/codec/go_quote.h"
#include "base/codec/json.h"

#include <ctype.h>
#include <string.h>

struct verb {
    bool left, plus, zero, blank, sharp, has_precision;
    int width, precision;
    char letter;
};

static int take_digits(const char **p, const char *end)
{
    int n = 0;

    for (; *p < end && isdigit((unsigned char)**p); ++*p)
        n = n < GO_WIDTH_MAX ? n * 10 + (**p - '0') : n;
    return n < GO_WIDTH_MAX ? n : GO_WIDTH_MAX;
}

/* Behind the percent sign. False: the format ends too early. */
static bool take_verb(const char **p, const char *end, struct verb *ret)
{
    *ret = (struct verb){ 0 };
    for (; *p < end; ++*p) {
        bool *flag = **p == '-'   ? &ret->left
                     : **p == '+' ? &ret->plus
                     : **p == '0' ? &ret->zero
                     : **p == ' ' ? &ret->blank
                     : **p == '#' ? &ret->sharp
                                  : NULL;

        if (flag == NULL)
            break;
        *flag = true;
    }
    ret->width = take_digits(p, end);
    if (*p < end && **p == '.') {
        ++*p;
        ret->has_precision = true;
        ret->precision = take_digits(p, end);
    }
    if (*p == end)
        return false;
    ret->letter = *(*p)++;
    return true;
}

static size_t runes(const char *p, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)p[i] & 0xc0) != 0x80;
    return count;
}

static void add_padded(struct buf *out, const struct verb *v, const char *p, size_t n)
{
    size_t have, pad;

    if (v->has_precision && (v->letter == 's' || v->letter == 'v' || v->letter == 'q')) {
        size_t keep = 0, seen = 0;

        for (; keep < n; keep++)
            if (((unsigned char)p[keep] & 0xc0) != 0x80 && seen++ == (size_t)v->precision)
                break;
        n = keep;
    }
    have = runes(p, n);
    pad = (size_t)v->width > have ? (size_t)v->width - have : 0;
    for (size_t i = 0; !v->left && i < pad; i++)
        buf_addc(out, ' ');
    buf_add(out, p, n);
    for (size_t i = 0; v->left && i < pad; i++)
        buf_addc(out, ' ');
}

static void add_number(struct buf *out, const struct verb *v, const json_t *value)
{
    const bool whole = json_is_integer(value);
    char format[16], text[GO_WIDTH_MAX * 2 + 400];
    int n;

    /* at most "%-+0 #*.*lld" */
    n = snprintf(format, sizeof(format), "%%%s%s%s%s%s*.*%s%c", v->left ? "-" : "", v->plus ? "+" : "",
                 v->zero && !v->left ? "0" : "", v->blank ? " " : "", v->sharp ? "#" : "", whole ? "ll" : "",
                 v->letter);
    if (n < 0 || (size_t)n >= sizeof(format))
        return;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (whole)
        n = snprintf(text, sizeof(text), format, v->width, v->has_precision ? v->precision : -1,
                     (long long)json_integer_value(value));
    else
        n = snprintf(text, sizeof(text), format, v->width, v->has_precision ? v->precision : -1,
                     json_real_value(value));
#pragma GCC diagnostic pop
    if (n > 0)
        buf_adds(out, text);
}

static void add_hex(struct buf *out, const struct verb *v, const json_t *value)
{
    const char *text = json_string_value(value);
    buf_auto hex = BUF_INIT(TEMPLATE_MAX * 2);

    for (size_t i = 0; i < json_string_length(value); i++)
        buf_addf(&hex, v->letter == 'x' ? "%02x" : "%02X", (unsigned char)text[i]);
    add_padded(out, v, hex.p, hex.n);
}

static void add_verb(struct buf *out, const struct verb *v, const json_t *value)
{
    const char *const number_verbs = json_is_integer(value) ? "dxXoc" : json_is_real(value) ? "feEgG" : "";
    buf_auto text = BUF_INIT(TEMPLATE_MAX * 64);

    if (v->letter == 'T') {
        add_padded(out, v, go_type_name(value), strlen(go_type_name(value)));
    } else if (v->letter != '\0' && strchr(number_verbs, v->letter) != NULL) {
        add_number(out, v, value);
    } else if ((v->letter == 'x' || v->letter == 'X') && json_is_string(value)) {
        add_hex(out, v, value);
    } else if (v->letter == 'q' && json_is_string(value)) {
        go_quote(&text, json_string_value(value), json_string_length(value));
        add_padded(out, v, text.p, text.n);
    } else if (v->letter == 'v' || (v->letter == 't' && json_is_boolean(value)) ||
               (v->letter == 's' &&
                (json_is_string(value) || json_is_array(value) || json_is_object(value)))) {
        if (v->letter == 'v' && json_is_integer(value)) {
            struct verb number = *v;

            number.letter = 'd';
            add_number(out, &number, value);
            return;
        }
        cli_add_go_value(&text, value);
        add_padded(out, v, text.p, text.n);
    } else if (value == NULL || json_is_null(value)) {
        buf_addf(out, "%%!%c(<nil>)", v->letter);
    } else {
        buf_addf(out, "%%!%c(%s=", v->letter, go_type_name(value));
        cli_add_go_value(out, value);
        buf_addc(out, ')');
    }
}

static void add_extra(struct buf *out, const struct go_call *c, size_t at)
{
    if (at >= c->n)
        return;
    buf_adds(out, "%!(EXTRA ");
    for (size_t i = at; i < c->n; i++) {
        buf_addf(out, "%s%s=", i > at ? ", " : "", go_type_name(c->args[i]));
        cli_add_go_value(out, c->args[i]);
    }
    buf_addc(out, ')');
}

json_t *go_printf(const struct go_call *c, struct err *e)
{
    buf_auto out = BUF_INIT(TEMPLATE_MAX * 64);
    const char *p = json_string_value(c->args[0]), *end;
    struct verb v;
    size_t at = 1;

    if (p == NULL) {
        go_error(e, c->place, "the format of printf is a value of type %s", go_type_name(c->args[0]));
        return NULL;
    }
    end = p + json_string_length(c->args[0]);
    while (p < end) {
        const char *percent = memchr(p, '%', (size_t)(end - p));

        buf_add(&out, p, (size_t)((percent != NULL ? percent : end) - p));
        if (percent == NULL)
            break;
        p = percent + 1;
        if (!take_verb(&p, end, &v))
            buf_adds(&out, "%!(NOVERB)");
        else if (v.letter == '%')
            buf_addc(&out, '%');
        else if (at >= c->n)
            buf_addf(&out, "%%!%c(MISSING)", v.letter);
        else
            add_verb(&out, &v, c->args[at++]);
    }
    add_extra(&out, c, at);
    return buf_check(&out, e) == ERR_OK ? json_string_of(out.p) : NULL;
}
