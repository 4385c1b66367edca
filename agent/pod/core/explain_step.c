/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/explain_step.h"

#include "base/clock.h"
#include "base/codec/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void explain_put_ns(json_t *o, const char *key, int64_t ns)
{
    char text[CLOCK_RFC3339_SIZE];

    if (ns == 0)
        return;
    clock_format_us(ns, text);
    json_put_str(o, key, text);
}

void explain_why(json_t *why, const char *fmt, ...)
{
    char text[8192];
    size_t n;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL;)
        text[--n] = '\0';
    for (n = 0; text[n] != '\0'; n++) /* one line each, because the output of a program may have several */
        text[n] = strchr("\t\r\n", text[n]) != NULL ? ' ' : text[n];
    json_array_append_new(why, json_string_of(text));
}

void explain_step(json_t *steps, const char *name, const char *state, int64_t since_ns, const char *detail,
                  int64_t next_ns)
{
    json_t *o = json_object();

    json_put_str(o, "name", name);
    json_put_str(o, "state", state);
    explain_put_ns(o, "since", since_ns);
    json_put_str(o, "detail", detail);
    if (next_ns > clock_wall_ns())
        explain_put_ns(o, "nextTry", next_ns);
    json_array_append_new(steps, o);
}

bool explain_names(const char *subject, const char *name)
{
    const char *at = name[0] != '\0' ? strstr(subject, name) : NULL;

    return at != NULL && strchr("/ :", at[strlen(name)]) != NULL; /* or its end */
}
