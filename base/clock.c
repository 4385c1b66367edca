/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NS = 1000000000 };

int64_t clock_boot_to_wall_ns(struct boot_time t)
{
    return t.ns == 0 ? 0 : clock_wall_ns() + clock_boot_left_ns(t);
}

struct boot_time clock_boot_of_wall(int64_t wall_ns)
{
    int64_t now = clock_boot().ns, age = clock_wall_ns() - wall_ns;

    return (struct boot_time){ age <= 0 ? now : age >= now ? 1 : now - age };
}

/* Counts years from March, in eras of 400 years, so that leap days come last and regularly. */
void clock_utc(int64_t s, struct tm *ret)
{
    int64_t days = s / 86400 - (s % 86400 < 0), of_day = s - days * 86400;
    int64_t shifted = days + 719468; /* from 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day = shifted - era * 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t of_year = day - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* from March */

    *ret = (struct tm){ .tm_sec = (int)(of_day % 60),
                        .tm_min = (int)(of_day / 60 % 60),
                        .tm_hour = (int)(of_day / 3600),
                        .tm_mday = (int)(of_year - (153 * month + 2) / 5 + 1),
                        .tm_mon = (int)(month < 10 ? month + 2 : month - 10),
                        .tm_year = (int)(year + era * 400 + (month >= 10) - 1900) };
}

/* Writes the date and time without fraction and zone; returns the remaining nanoseconds. */
static int seconds(int64_t wall_ns, char ret[CLOCK_RFC3339_SIZE])
{
    int64_t s = wall_ns / NS;
    int ns = (int)(wall_ns % NS);
    struct tm tm;

    if (ns < 0) { /* before 1970: round down */
        ns += NS;
        s--;
    }
    clock_utc(s, &tm);
    snprintf(ret, CLOCK_RFC3339_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
    return ns;
}

void clock_format_s(int64_t wall_ns, char ret[CLOCK_RFC3339_SIZE])
{
    seconds(wall_ns, ret);
    strcat(ret, "Z");
}

void clock_format_us(int64_t wall_ns, char ret[CLOCK_RFC3339_SIZE])
{
    int ns = seconds(wall_ns, ret);
    size_t n = strlen(ret);

    snprintf(ret + n, CLOCK_RFC3339_SIZE - n, ".%06dZ", ns / 1000);
}

void clock_format_nano(int64_t wall_ns, char ret[CLOCK_RFC3339_SIZE])
{
    int ns = seconds(wall_ns, ret);
    size_t n = strlen(ret);

    if (ns != 0) {
        snprintf(ret + n, CLOCK_RFC3339_SIZE - n, ".%09d", ns);
        n += 10;
        while (ret[n - 1] == '0')
            n--;
    }
    ret[n] = 'Z';
    ret[n + 1] = '\0';
}

/* Exactly n digits; -1 if there are fewer. */
static int clock_number(const char **p, int n)
{
    int v = 0;

    while (n-- > 0) {
        if (**p < '0' || **p > '9')
            return -1;
        v = v * 10 + (*(*p)++ - '0');
    }
    return v;
}

static bool literal(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

static int days_in(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && leap ? 29 : days[month - 1];
}

/* RFC 3339 as accepted by Go's time.Parse: capital T and Z, no leap second, any number of fraction digits
 * (those beyond nanoseconds are ignored). */
static bool parse_text(const char *p, struct tm *tm, int *ns, int *offset_s)
{
    int sign, hours, minutes, scale = NS / 10;

    *tm = (struct tm){ 0 };
    *ns = 0;
    *offset_s = 0;

    if ((tm->tm_year = clock_number(&p, 4)) < 0 || !literal(&p, '-') ||
        (tm->tm_mon = clock_number(&p, 2)) < 1 || tm->tm_mon > 12 || !literal(&p, '-') ||
        (tm->tm_mday = clock_number(&p, 2)) < 1 || tm->tm_mday > days_in(tm->tm_year, tm->tm_mon) ||
        !literal(&p, 'T') || (tm->tm_hour = clock_number(&p, 2)) < 0 || tm->tm_hour > 23 ||
        !literal(&p, ':') || (tm->tm_min = clock_number(&p, 2)) < 0 || tm->tm_min > 59 || !literal(&p, ':') ||
        (tm->tm_sec = clock_number(&p, 2)) < 0 || tm->tm_sec > 59)
        return false;
    tm->tm_year -= 1900;
    tm->tm_mon -= 1;

    if (literal(&p, '.')) {
        if (*p < '0' || *p > '9')
            return false;
        for (; *p >= '0' && *p <= '9'; p++, scale /= 10)
            *ns += (*p - '0') * scale;
    }
    if (literal(&p, 'Z'))
        return *p == '\0';

    sign = *p == '+' ? 1 : *p == '-' ? -1 : 0;
    if (sign == 0)
        return false;
    p++;
    if ((hours = clock_number(&p, 2)) < 0 || hours > 23 || !literal(&p, ':') ||
        (minutes = clock_number(&p, 2)) < 0 || minutes > 59)
        return false;
    *offset_s = sign * (hours * 3600 + minutes * 60);
    return *p == '\0';
}

enum err_code clock_parse(const char *rfc3339, int64_t *ret_wall_ns, struct err *e)
{
    char quoted[CLOCK_RFC3339_SIZE + 1];
    int ns, offset_s;
    struct tm tm;
    int64_t wall;

    snprintf(quoted, sizeof(quoted), "%.40s", rfc3339);
    text_printable(quoted);
    if (!parse_text(rfc3339, &tm, &ns, &offset_s))
        return err_set(e, ERR_INVALID, "\"%s\" is not an RFC 3339 time", quoted);
    if (__builtin_mul_overflow((int64_t)timegm(&tm) - offset_s, (int64_t)NS, &wall) ||
        __builtin_add_overflow(wall, (int64_t)ns, &wall))
        return err_set(e, ERR_RANGE, "time \"%s\" is outside the years 1678 to 2261", quoted);
    *ret_wall_ns = wall;
    return ERR_OK;
}
