/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts in settings: a quantity, or a share of a capacity. */
#include "agent/eviction/settings.h"
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

uint64_t ev_amount_of(const struct ev_amount *a, uint64_t capacity)
{
    return a->quantity > 0 ? a->quantity : (uint64_t)((double)capacity * (double)a->share);
}

static void number_text(uint64_t value, enum quantity_format format, char ret[QUANTITY_TEXT_SIZE])
{
    struct quantity q = quantity_from_int(value < INT64_MAX ? (int64_t)value : INT64_MAX, format);

    quantity_format(&q, ret);
}

void ev_amount_text(const struct ev_amount *a, uint64_t capacity, char ret[QUANTITY_TEXT_SIZE])
{
    number_text(ev_amount_of(a, capacity), a->quantity > 0 ? a->format : QUANTITY_BINARY_SI, ret);
}

void ev_value_text(enum ev_signal s, uint64_t value, char ret[QUANTITY_TEXT_SIZE])
{
    number_text(value, ev_signal_unit(s) == EV_BYTES ? QUANTITY_BINARY_SI : QUANTITY_DECIMAL_SI, ret);
}

/* Digits and at most one point: strtof() reads more than that. */
static bool is_percentage(const char *text)
{
    unsigned digits = 0, points = 0;

    for (; *text != '%'; text++) {
        digits += *text >= '0' && *text <= '9';
        points += *text == '.';
        if (strchr("0123456789.", *text) == NULL || *text == '\0')
            return false;
    }
    return text[1] == '\0' && digits > 0 && digits <= 40 && points <= 1;
}

static enum err_code parse_share(const char *text, float *ret, struct err *e)
{
    float percent = is_percentage(text) ? strtof(text, NULL) : -1;

    if (!(percent >= 0 && percent <= 100))
        return err_set(e, ERR_INVALID, "\"%.60s\" is not a percentage from 0%% to 100%%", text);
    *ret = percent >= 100 ? 0 : percent / 100;
    return ERR_OK;
}

enum err_code ev_amount_parse(const char *text, bool zero, struct ev_amount *ret, struct err *e)
{
    struct ev_amount a = { 0 };
    struct quantity q;

    if (str_ends(text, "%")) {
        if (parse_share(text, &a.share, e) != ERR_OK)
            return e->code;
    } else {
        if (quantity_parse(text, &q, e) != ERR_OK)
            return e->code;
        if (q.nano < 0)
            return err_set(e, ERR_INVALID, "\"%.60s\" is negative", text);
        if (q.nano == 0 && !zero)
            return err_set(e, ERR_INVALID, "\"%.60s\" is not above 0; 0%% sets no threshold", text);
        a.quantity = (uint64_t)quantity_value(&q);
        a.format = q.format;
    }
    *ret = a;
    return ERR_OK;
}
