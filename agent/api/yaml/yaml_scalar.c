/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a YAML scalar to a JSON value: the rules of sigs.k8s.io/yaml (YAML 1.1 core types; no base 60
 * numbers; timestamps stay strings), except y, Y, n and N, which are strings as in most readers and in every
 * manifest that uses them on purpose. */
#include "agent/api/yaml/internal.h"
#include "agent/api/yaml/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char yaml_no_memory[] = "out of memory";

#define NUMBER_MAX 128 /* bytes; longer plain scalars are strings */

static bool one_of(const char *s, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(s, *words) == 0)
            return true;
    }
    return false;
}

static bool yaml_scalar_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool float_syntax(const char *s)
{
    size_t before = 0, after = 0;

    if (*s == '+' || *s == '-')
        s++;
    for (; yaml_scalar_digit(*s); s++)
        before++;
    if (*s == '.') {
        for (s++; yaml_scalar_digit(*s); s++)
            after++;
    }
    if (before == 0 && after == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '+' || *s == '-')
            s++;
        if (!yaml_scalar_digit(*s))
            return false;
        while (yaml_scalar_digit(*s))
            s++;
    }
    return *s == '\0';
}

static json_t *made(json_t *v, const char **problem)
{
    if (v == NULL)
        *problem = yaml_no_memory;
    return v;
}

/* Whole number with 0x, 0o, 0b or a leading 0 (octal). A number beyond int64 becomes a real. */
static json_t *whole_number(const char *s, const char **problem)
{
    const char *p = s, *digits;
    bool negative = false;
    unsigned long long value;
    int base = 10;
    char *end;

    if (*p == '+' || *p == '-')
        negative = *p++ == '-';
    digits = p;
    if (p[0] == '0' && p[1] != '\0') {
        base = 8;
        digits = p + 1;
        if (p[1] == 'x' || p[1] == 'X')
            base = 16;
        else if (p[1] == 'b' || p[1] == 'B')
            base = 2;
        if (p[1] == 'o' || p[1] == 'O' || base != 8)
            digits = p + 2;
    }
    /* strtoull would accept blanks, a second sign and a second prefix. */
    for (p = digits; *p != '\0'; p++) {
        bool hex = (*p >= 'a' && *p <= 'f') || (*p >= 'A' && *p <= 'F');
        if (!(yaml_scalar_digit(*p) && *p - '0' < base) && !(hex && base == 16))
            return NULL;
    }
    if (p == digits)
        return NULL;
    errno = 0;
    value = strtoull(digits, &end, base);
    if (errno == ERANGE)
        return base == 10 ? made(json_real(strtod(s, NULL)), problem) : NULL;
    if (negative && value <= (unsigned long long)INT64_MAX + 1)
        return made(json_integer(value == 0 ? 0 : -(json_int_t)(value - 1) - 1), problem);
    if (!negative && value <= INT64_MAX)
        return made(json_integer((json_int_t)value), problem);
    return made(json_real(negative ? -(double)value : (double)value), problem);
}

static json_t *yaml_scalar_number(const char *s, const char **problem)
{
    char plain[NUMBER_MAX];
    size_t n = 0;
    json_t *v;
    double real;

    for (; *s != '\0'; s++) {
        if (*s == '_')
            continue;
        if (n + 1 == sizeof(plain))
            return NULL;
        plain[n++] = *s;
    }
    plain[n] = '\0';
    v = whole_number(plain, problem);
    if (v != NULL || *problem != NULL || !float_syntax(plain))
        return v;
    errno = 0;
    real = strtod(plain, NULL);
    return isfinite(real) ? made(json_real(real), problem) : NULL; /* 1e999 stays a string */
}

json_t *yaml_plain_value(const char *s, const char **problem)
{
    static const char *const yes[] = { "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", NULL };
    static const char *const no[] = {
        "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", NULL
    };
    static const char *const null[] = { "", "~", "null", "Null", "NULL", NULL };
    static const char *const infinite[] = { ".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF", "+.inf",
                                            "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", NULL };

    if (one_of(s, null))
        return json_null();
    if (one_of(s, yes))
        return json_true();
    if (one_of(s, no))
        return json_false();
    if (one_of(s, infinite)) {
        *problem = "is not a valid JSON number, put it in quotes if it is a text";
        return NULL;
    }
    if (yaml_scalar_digit(*s) || *s == '+' || *s == '-' || *s == '.')
        return yaml_scalar_number(s, problem);
    return NULL;
}

json_t *yaml_scalar_letter(const char *s)
{
    if (strcmp(s, "y") == 0 || strcmp(s, "Y") == 0)
        return json_true();
    return strcmp(s, "n") == 0 || strcmp(s, "N") == 0 ? json_false() : NULL;
}

static bool tag_is(const char *tag, const char *name)
{
    static const char prefix[] = "tag:yaml.org,2002:";

    return strncmp(tag, prefix, sizeof(prefix) - 1) == 0 && strcmp(tag + sizeof(prefix) - 1, name) == 0;
}

static bool tag_agrees(const char *tag, json_t **v)
{
    if (tag_is(tag, "int"))
        return json_is_integer(*v);
    if (tag_is(tag, "bool"))
        return json_is_boolean(*v);
    if (tag_is(tag, "null"))
        return json_is_null(*v);
    if (!json_is_number(*v))
        return false;
    if (json_is_integer(*v)) { /* !!float 1 */
        json_t *real = json_real((double)json_integer_value(*v));
        json_decref(*v);
        *v = real;
    }
    return *v != NULL;
}

json_t *yaml_scalar_value(const char *s, size_t n, bool plain, const char *tag, const char **problem)
{
    json_t *v = NULL;

    if (memchr(s, '\0', n) != NULL) {
        *problem = "contains a NUL character";
        return NULL;
    }
    if (tag != NULL && !tag_is(tag, "str") && strcmp(tag, "!") != 0) {
        if (!tag_is(tag, "int") && !tag_is(tag, "float") && !tag_is(tag, "bool") && !tag_is(tag, "null")) {
            *problem = "has a tag that is not supported, allowed are !!str !!int !!float !!bool !!null";
            return NULL;
        }
        v = yaml_plain_value(s, problem);
        if (v == NULL || !tag_agrees(tag, &v)) {
            json_decref(v);
            if (*problem != yaml_no_memory)
                *problem = "does not fit its tag";
            return NULL;
        }
        return v;
    }
    if (plain && tag == NULL) {
        v = yaml_plain_value(s, problem);
        if (v != NULL || *problem != NULL)
            return v;
    }
    return made(json_stringn(s, n), problem); /* the parser accepts only valid UTF-8 */
}
