/* SPDX-License-Identifier: Apache-2.0 */
/* cron_parse - reads a schedule as robfig/cron's standard parser does, and says what is wrong in its words.
 */
#include "agent/api/cron.h"
#include "base/buf.h"
#include "base/duration.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHOWN 60 /* characters of a text in a message */
#define BLANKS " \t\n\v\f\r"

static const char *const month_names[] = { "jan", "feb", "mar", "apr", "may", "jun",
                                           "jul", "aug", "sep", "oct", "nov", "dec" };
static const char *const weekday_names[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" };

static const struct field {
    unsigned min, max;
    const char *const *names; /* of min and those after it */
    size_t n_names;
} fields[] = {
    { 0, 59, NULL, 0 }, /* minute, hour, day of the month, month, day of the week */
    { 0, 23, NULL, 0 },
    { 1, 31, NULL, 0 },
    { 1, 12, month_names, ARRAY_LEN(month_names) },
    { 0, 6, weekday_names, ARRAY_LEN(weekday_names) },
};

static const struct {
    const char *word, *fields;
} words[] = {
    { "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" },
    { "@weekly", "0 0 * * 0" }, { "@daily", "0 0 * * *" },    { "@midnight", "0 0 * * *" },
    { "@hourly", "0 * * * *" },
};

/* ---- numbers ---- */

/* As strconv.Atoi: a sign, and digits. */
static enum err_code number(const char *text, int64_t *ret, struct err *e)
{
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    const size_t n = strspn(digits, "0123456789");

    if (n == 0 || digits[n] != '\0')
        return err_set(e, ERR_INVALID,
                       "failed to parse int from %.*s: strconv.Atoi: parsing \"%.*s\": invalid syntax", SHOWN,
                       text, SHOWN, text);
    if (n > 18)
        return err_set(e, ERR_INVALID,
                       "failed to parse int from %.*s: strconv.Atoi: parsing \"%.*s\": value out of range",
                       SHOWN, text, SHOWN, text);
    *ret = strtoll(text, NULL, 10);
    if (*ret < 0)
        return err_set(e, ERR_INVALID, "negative number (%lld) not allowed: %.*s", (long long)*ret, SHOWN,
                       text);
    return ERR_OK;
}

static enum err_code number_or_name(const struct field *f, const char *text, int64_t *ret, struct err *e)
{
    for (size_t i = 0; i < f->n_names; i++)
        if (strcasecmp(text, f->names[i]) == 0) {
            *ret = (int64_t)(i + f->min);
            return ERR_OK;
        }
    return number(text, ret, e);
}

/* ---- a part of a field: "5", "1-5", "*", each perhaps with "/2" ---- */

struct part {
    int64_t from, to, step;
    bool star, single;
};

/* Ends the text at the first `separator`, and returns what follows; NULL: there is none. */
static char *cut(char *text, char separator)
{
    char *at = strchr(text, separator);

    if (at != NULL)
        *at++ = '\0';
    return at;
}

static enum err_code read_range(const struct field *f, char *text, const char *whole, struct part *ret,
                                struct err *e)
{
    char *to = cut(text, '-');

    ret->single = to == NULL;
    ret->star = strcmp(text, "*") == 0 || strcmp(text, "?") == 0;
    if (ret->star) {
        ret->from = f->min;
        ret->to = f->max;
        return ERR_OK;
    }
    if (number_or_name(f, text, &ret->from, e) != ERR_OK)
        return e->code;
    ret->to = ret->from;
    if (to != NULL && strchr(to, '-') != NULL)
        return err_set(e, ERR_INVALID, "too many hyphens: %.*s", SHOWN, whole);
    return to != NULL ? number_or_name(f, to, &ret->to, e) : ERR_OK;
}

static enum err_code read_step(const struct field *f, const char *step, const char *whole, struct part *ret,
                               struct err *e)
{
    ret->step = 1;
    if (step == NULL)
        return ERR_OK;
    if (strchr(step, '/') != NULL)
        return err_set(e, ERR_INVALID, "too many slashes: %.*s", SHOWN, whole);
    if (number(step, &ret->step, e) != ERR_OK)
        return e->code;
    if (ret->single)
        ret->to = f->max;
    if (ret->step > 1)
        ret->star = false;
    return ERR_OK;
}

static enum err_code check(const struct field *f, const struct part *p, const char *whole, struct err *e)
{
    if (p->from < f->min)
        return err_set(e, ERR_INVALID, "beginning of range (%lld) below minimum (%u): %.*s",
                       (long long)p->from, f->min, SHOWN, whole);
    if (p->to > f->max)
        return err_set(e, ERR_INVALID, "end of range (%lld) above maximum (%u): %.*s", (long long)p->to,
                       f->max, SHOWN, whole);
    if (p->from > p->to)
        return err_set(e, ERR_INVALID, "beginning of range (%lld) beyond end of range (%lld): %.*s",
                       (long long)p->from, (long long)p->to, SHOWN, whole);
    if (p->step == 0)
        return err_set(e, ERR_INVALID, "step of range should be a positive number: %.*s", SHOWN, whole);
    return ERR_OK;
}

static enum err_code read_part(const struct field *f, const char *whole, uint64_t *bits, bool *any,
                               struct err *e)
{
    str_auto text = strdup(whole);
    struct part p = { 0 };
    char *step;

    if (text == NULL)
        return err_nomem(e);
    step = cut(text, '/');
    if (read_range(f, text, whole, &p, e) != ERR_OK || read_step(f, step, whole, &p, e) != ERR_OK ||
        check(f, &p, whole, e) != ERR_OK)
        return e->code;
    *any = *any || p.star;
    for (int64_t v = p.from; v <= p.to; v += p.step)
        *bits |= UINT64_C(1) << v;
    return ERR_OK;
}

/* Empty parts between commas mean nothing. */
static enum err_code read_field(const struct field *f, char *text, uint64_t *bits, bool *any, struct err *e)
{
    char *rest, *one;

    *bits = 0;
    *any = false;
    for (one = strtok_r(text, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest))
        if (read_part(f, one, bits, any, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* ---- whole schedules ---- */

static enum err_code count_fields(const char *text, struct err *e)
{
    buf_auto list = BUF_INIT(SHOWN * 4);
    size_t n = 0;

    for (const char *p = text + strspn(text, BLANKS); *p != '\0'; p += strspn(p, BLANKS)) {
        buf_addf(&list, "%s%.*s", n > 0 ? " " : "", (int)strcspn(p, BLANKS), p);
        p += strcspn(p, BLANKS);
        n++;
    }
    if (n == ARRAY_LEN(fields))
        return ERR_OK;
    return err_set(e, ERR_INVALID, "expected exactly %zu fields, found %zu: [%s]", ARRAY_LEN(fields), n,
                   list.failed || list.p == NULL ? "" : list.p);
}

static enum err_code read_fields(const char *text, struct api_cron *ret, struct err *e)
{
    str_auto copy = strdup(text);
    uint64_t bits[ARRAY_LEN(fields)];
    bool any[ARRAY_LEN(fields)];
    char *rest, *one;

    if (copy == NULL)
        return err_nomem(e);
    if (count_fields(text, e) != ERR_OK)
        return e->code;
    one = strtok_r(copy, BLANKS, &rest);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++, one = strtok_r(NULL, BLANKS, &rest))
        if (read_field(&fields[i], one, &bits[i], &any[i], e) != ERR_OK)
            return e->code;
    *ret = (struct api_cron){ .minutes = bits[0],
                              .hours = (uint32_t)bits[1],
                              .days = (uint32_t)bits[2],
                              .months = (uint32_t)bits[3],
                              .weekdays = (uint32_t)bits[4],
                              .any_day = any[2],
                              .any_weekday = any[4] };
    return ERR_OK;
}

/* What time.ParseDuration says of it. */
static enum err_code bad_duration(const char *text, const char *duration, struct err *e)
{
    static const char *const units[] = { "ns", "us", "ms", "s", "m", "h" };
    const char *p = duration + (duration[0] == '-' || duration[0] == '+'),
               *unit = p + strspn(p, "0123456789.");
    const size_t n = strcspn(unit, "0123456789.");
    bool known = false;

    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        known = known || (strlen(units[i]) == n && strncmp(units[i], unit, n) == 0);
    if (unit == p || known)
        return err_set(e, ERR_INVALID, "failed to parse duration %.*s: time: invalid duration \"%.*s\"",
                       SHOWN, text, SHOWN, duration);
    if (n == 0)
        return err_set(e, ERR_INVALID,
                       "failed to parse duration %.*s: time: missing unit in duration \"%.*s\"", SHOWN, text,
                       SHOWN, duration);
    return err_set(e, ERR_INVALID,
                   "failed to parse duration %.*s: time: unknown unit \"%.*s\" in duration \"%.*s\"", SHOWN,
                   text, (int)(n < SHOWN ? n : SHOWN), unit, SHOWN, duration);
}

/* Whole seconds, and at least one. */
static enum err_code read_every(const char *text, const char *duration, struct api_cron *ret, struct err *e)
{
    int64_t ns;

    if (!duration_parse(duration, &ns))
        return bad_duration(text, duration, e);
    *ret = (struct api_cron){ .every_s = ns >= 1000000000 ? ns / 1000000000 : 1 };
    return ERR_OK;
}

enum err_code api_cron_parse(const char *text, struct api_cron *ret, struct err *e)
{
    static const char every[] = "@every ";

    if (text[0] == '\0')
        return err_set(e, ERR_INVALID, "empty spec string");
    if (strncmp(text, "TZ=", 3) == 0 || strncmp(text, "CRON_TZ=", 8) == 0)
        return err_set(e, ERR_INVALID, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    if (strncmp(text, every, sizeof(every) - 1) == 0)
        return read_every(text, text + sizeof(every) - 1, ret, e);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(text, words[i].word) == 0)
            return read_fields(words[i].fields, ret, e);
    if (text[0] == '@')
        return err_set(e, ERR_INVALID, "unrecognized descriptor: %.*s", SHOWN, text);
    return read_fields(text, ret, e);
}
