/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/quantity.h"

#include <stdio.h>
#include <string.h>

#define NANO 1000000000
#define DIGITS_MAX 200 /* Kubernetes has no limit, but longer quantities do not occur */

static const __int128 nano_per_unit = NANO;
static const __int128 decimal_max = (__int128)1000000000000000000 * 100000000000 * NANO; /* 10^29 units */
static const __int128 binary_max = (__int128)INT64_MAX * NANO;

/* Suffixes as in apimachinery's suffix.go: no K, no KiB, a lone E is 10^18. */
static const struct suffix {
    const char *text;
    int base; /* 10 or 2 */
    int exponent;
} suffixes[] = {
    { "", 10, 0 },   { "n", 10, -9 }, { "u", 10, -6 }, { "m", 10, -3 }, { "k", 10, 3 },  { "M", 10, 6 },
    { "G", 10, 9 },  { "T", 10, 12 }, { "P", 10, 15 }, { "E", 10, 18 }, { "Ki", 2, 10 }, { "Mi", 2, 20 },
    { "Gi", 2, 30 }, { "Ti", 2, 40 }, { "Pi", 2, 50 }, { "Ei", 2, 60 },
};

#define N_SUFFIXES (sizeof(suffixes) / sizeof(suffixes[0]))

static enum err_code quantity_bad(const char *text, const char *what, struct err *e)
{
    return err_set(
        e, ERR_INVALID,
        "quantity \"%.60s\" %s, allowed are numbers with a suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei "
        "or an exponent (500m, 1.5Gi, 12e6)",
        text, what);
}

static bool quantity_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

/* "e3", "E-6": the exponent; false if invalid. Huge ones are clamped to +-1000, beyond any range. */
static bool parse_exponent(const char *s, int *ret)
{
    bool negative = false;
    int value = 0;

    if (*s != 'e' && *s != 'E')
        return false;
    s++;
    if (*s == '+' || *s == '-')
        negative = *s++ == '-';
    if (!quantity_digit(*s))
        return false;
    for (; quantity_digit(*s); s++)
        value = value < 1000 ? value * 10 + (*s - '0') : 1000;
    *ret = negative ? -value : value;
    return *s == '\0';
}

static bool find_suffix(const char *s, int *ret_base, int *ret_exponent, enum quantity_format *ret_format)
{
    for (size_t i = 0; i < N_SUFFIXES; i++) {
        if (strcmp(s, suffixes[i].text) == 0) {
            *ret_base = suffixes[i].base;
            *ret_exponent = suffixes[i].exponent;
            *ret_format = suffixes[i].base == 2 ? QUANTITY_BINARY_SI : QUANTITY_DECIMAL_SI;
            return true;
        }
    }
    *ret_base = 10;
    *ret_format = QUANTITY_DECIMAL_EXPONENT;
    return parse_exponent(s, ret_exponent);
}

/* The number as decimal digits d[0..n) with `point` digits before the point (may be negative or past n).
 * Converts to nano units: up to nine places after the point, rounded up if anything is left. False: more than
 * 10^29 units. */
static bool digits_to_nano(const unsigned char *d, size_t n, long point, __int128 *ret)
{
    __int128 value = 0;
    bool rest = false;

    for (long i = 0; i < point + 9 || i < (long)n; i++) {
        unsigned one = i < (long)n ? d[i] : 0;
        if (i >= point + 9) {
            rest = rest || one != 0;
            continue;
        }
        if (value > (decimal_max - one) / 10)
            return false;
        value = value * 10 + one;
    }
    value += rest;
    *ret = value;
    return value <= decimal_max;
}

/* Binary suffix: doubles the fraction digit by digit, without loss; capped at 2^63-1 units. */
static __int128 binary_to_nano(unsigned char *d, size_t n, size_t point, int exponent)
{
    __int128 whole = 0, nano;
    bool rest = false;

    for (size_t i = 0; i < point; i++) {
        if (whole > INT64_MAX / 10)
            return binary_max;
        whole = whole * 10 + d[i];
    }
    for (int k = 0; k < exponent; k++) {
        unsigned carry = 0;
        for (size_t i = n; i > point; i--) {
            unsigned twice = 2U * d[i - 1] + carry;
            d[i - 1] = (unsigned char)(twice % 10);
            carry = twice / 10;
        }
        whole = whole * 2 + carry;
        if (whole > INT64_MAX)
            return binary_max;
    }
    nano = whole;
    for (size_t i = point; i < point + 9; i++)
        nano = nano * 10 + (i < n ? d[i] : 0);
    for (size_t i = point + 9; i < n; i++)
        rest = rest || d[i] != 0;
    nano += rest;
    return nano > binary_max ? binary_max : nano;
}

enum err_code quantity_parse(const char *text, struct quantity *ret, struct err *e)
{
    unsigned char d[DIGITS_MAX];
    const char *s = text;
    size_t n = 0, point = 0, written = 0;
    enum quantity_format format;
    bool negative = false, dot = false;
    int base, exponent = 0;
    __int128 nano;

    if (*s == '\0')
        return quantity_bad(text, "is empty", e);
    if (*s == '+' || *s == '-')
        negative = *s++ == '-';
    for (; quantity_digit(*s) || (*s == '.' && !dot); s++) {
        if (*s == '.') {
            dot = true;
            continue;
        }
        written++;
        if (!dot && n == 0 && *s == '0')
            continue; /* leading zero */
        if (n == DIGITS_MAX)
            return quantity_bad(text, "has too many digits", e);
        d[n++] = (unsigned char)(*s - '0');
        if (!dot)
            point++;
    }
    if (written == 0)
        return quantity_bad(text, "is not a number", e);
    if (!find_suffix(s, &base, &exponent, &format))
        return quantity_bad(text, "has an unknown suffix", e);

    if (base == 2)
        nano = binary_to_nano(d, n, point, exponent);
    else if (n == 0)
        nano = 0;
    else if (!digits_to_nano(d, n, (long)point + exponent, &nano))
        return quantity_bad(text, "is too large", e);
    /* Kubernetes uses decimal form for binary quantities below 1. */
    if (base == 2 && nano > 0 && nano < nano_per_unit)
        format = QUANTITY_DECIMAL_SI;

    ret->nano = negative ? -nano : nano;
    ret->format = format;
    return ERR_OK;
}

static void quantity_write_number(__int128 value, const char *suffix, char ret[QUANTITY_TEXT_SIZE])
{
    char digits[48], *p = digits + sizeof(digits);
    bool negative = value < 0;

    *--p = '\0';
    if (negative)
        value = -value;
    do {
        *--p = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value != 0);
    snprintf(ret, QUANTITY_TEXT_SIZE, "%s%s%s", negative ? "-" : "", p, suffix);
}

static void write_decimal(const struct quantity *q, char ret[QUANTITY_TEXT_SIZE])
{
    static const char *const si[] = { "n", "u", "m", "", "k", "M", "G", "T", "P", "E" };
    __int128 value = q->nano;
    char suffix[16];
    int exponent = -9;

    /* The largest power of 1000 that keeps an integer; there are no suffix letters beyond E. */
    while (value % 1000 == 0 && (exponent < 18 || q->format == QUANTITY_DECIMAL_EXPONENT)) {
        value /= 1000;
        exponent += 3;
    }
    if (q->format == QUANTITY_DECIMAL_EXPONENT && exponent != 0)
        snprintf(suffix, sizeof(suffix), "e%d", exponent);
    else if (q->format == QUANTITY_DECIMAL_EXPONENT)
        suffix[0] = '\0';
    else
        snprintf(suffix, sizeof(suffix), "%s", si[(exponent + 9) / 3]);
    quantity_write_number(value, suffix, ret);
}

void quantity_format(const struct quantity *q, char ret[QUANTITY_TEXT_SIZE])
{
    static const char *const binary[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
    const __int128 small = 1024 * nano_per_unit;
    __int128 value = q->nano / nano_per_unit;
    int step = 0;

    if (q->nano == 0) {
        snprintf(ret, QUANTITY_TEXT_SIZE, "0");
        return;
    }
    if (q->format != QUANTITY_BINARY_SI) {
        write_decimal(q, ret);
        return;
    }
    if (q->nano % nano_per_unit != 0 || (q->nano > -small && q->nano < small)) {
        struct quantity decimal = { .nano = q->nano, .format = QUANTITY_DECIMAL_SI };
        write_decimal(&decimal, ret);
        return;
    }
    while (step < 6 && value % 1024 == 0) {
        value /= 1024;
        step++;
    }
    quantity_write_number(value, binary[step], ret);
}

void quantity_format_stored(const struct quantity *q, char ret[QUANTITY_TEXT_SIZE])
{
    struct quantity read;

    quantity_format(q, ret);
    if (quantity_parse(ret, &read, ERR_IGNORED) == ERR_OK)
        quantity_format(&read, ret);
}

/* nano / divisor, away from zero, clamped to int64. */
static int64_t scaled(__int128 nano, __int128 divisor)
{
    __int128 v = nano / divisor;

    if (nano % divisor != 0)
        v += nano > 0 ? 1 : -1;
    if (v > INT64_MAX)
        return INT64_MAX;
    if (v < INT64_MIN)
        return INT64_MIN;
    return (int64_t)v;
}

int64_t quantity_value(const struct quantity *q)
{
    return scaled(q->nano, nano_per_unit);
}

int64_t quantity_milli(const struct quantity *q)
{
    return scaled(q->nano, nano_per_unit / 1000);
}

int quantity_cmp(const struct quantity *a, const struct quantity *b)
{
    return (a->nano > b->nano) - (a->nano < b->nano);
}

struct quantity quantity_add(const struct quantity *a, const struct quantity *b)
{
    struct quantity sum = { .format = a->format };

    /* A zero takes the other's format, as in apimachinery's Add. */
    if (a->nano == 0)
        sum.format = b->format;
    if (__builtin_add_overflow(a->nano, b->nano, &sum.nano))
        sum.nano = a->nano > 0 ? decimal_max : -decimal_max;
    if (sum.nano > decimal_max)
        sum.nano = decimal_max;
    if (sum.nano < -decimal_max)
        sum.nano = -decimal_max;
    return sum;
}

struct quantity quantity_from_int(int64_t units, enum quantity_format format)
{
    return (struct quantity){ .nano = units * nano_per_unit, .format = format };
}
