/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/serve/words_names.h"

#include "agent/api/check.h"
#include "agent/api/status.h"
#include "base/buf.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

#define LABEL_RULE                                                                                           \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "  \
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "   \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define DOMAIN_RULE                                                                                          \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "    \
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "   \
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define CONFIG_RULE                                                                                          \
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "     \
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
#define NAME_RULE                                                                                            \
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "     \
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define VALUE_RULE                                                                                           \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "     \
    "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex " \
    "used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
#define KEY_RULE                                                                                             \
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end "    \
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "           \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and "   \
    "'/' (e.g. 'example.com/MyName')"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* ---- patterns ---- */

bool words_fit(const char *pattern, const char *text, struct words_parts *parts, size_t part)
{
    for (; *pattern != '*'; pattern++, text++) {
        if (*pattern != *text)
            return false;
        if (*pattern == '\0')
            return true;
    }
    for (size_t n = 0;; n++) {
        if (words_fit(pattern + 1, text + n, parts, part + 1)) {
            if (part < WORDS_PARTS) {
                parts->at[part] = text;
                parts->size[part] = n;
            }
            return true;
        }
        if (text[n] == '\0')
            return false;
    }
}

void words_cause(json_t *causes, const char *reason, const char *field, const char *text)
{
    ERR_IGNORE(json_array_append_new(causes, api_status_cause(reason, field, "%s", text)));
}

/* ---- which name ---- */

static char *full(const char *part, size_t n, const json_t *value, const char *key)
{
    const bool quoted = n >= 2 && part[0] == '"', cut = n > 5 && strncmp(part + n - 4, "...\"", 4) == 0;
    const size_t size = cut ? n - 5 : n - 2;

    if (!quoted)
        return NULL;
    if (json_is_string(value) && strncmp(json_string_value(value), part + 1, size) == 0 &&
        (cut || json_string_length(value) == size))
        return strdup(json_string_value(value));
    if (strncmp(key, part + 1, size) == 0 && (cut || key[size] == '\0'))
        return strdup(key);
    return strndup(part + 1, n - 2);
}

/* A key that an apiserver checks as a name, given or not. */
static bool is_key(const char *field)
{
    struct words_parts unused;

    return words_fit("*.onPodConditions[*].type", field, &unused, 0) ||
           words_fit("*.matchExpressions[*].key", field, &unused, 0);
}

bool words_of_name(const char *message, const char *field, const json_t *value, const char *key,
                   struct words_name *ret)
{
    static const struct {
        const char *pattern;
        enum words_rule rule;
        bool of_member;
    } names[] = {
        { "the key * must be 1 to 253 letters*", WORDS_CONFIG_KEY, false },
        { "the key * must be a name of 1 to 63*", WORDS_KEY, true },
        { "the value * must be empty or 1 to 63 *", WORDS_VALUE, true },
        { "* must be a name of 1 to 63*", WORDS_KEY, false },
        { "* must be empty or 1 to 63 *", WORDS_VALUE, false },
        { "* must be 1 to 63 characters of a-z*", WORDS_LABEL, false },
        { "* must be a DNS name: at most 253*", WORDS_DOMAIN, false },
        { "* must be 1 to 15 characters of a-z*", WORDS_PORT, false },
    };
    struct words_parts parts = { 0 };

    if (strcmp(message, "required") == 0 && is_key(field)) {
        *ret = (struct words_name){ .rule = WORDS_KEY, .text = strdup("") };
        return ret->text != NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (words_fit(names[i].pattern, message, &parts, 0)) {
            *ret = (struct words_name){ .rule = names[i].rule,
                                        .of_member = names[i].of_member,
                                        .text = full(parts.at[0], parts.size[0], value, key) };
            return ret->text != NULL;
        }
    return false;
}

void words_name_done(struct words_name *w)
{
    free(w->text);
    w->text = NULL;
}

/* ---- what is wrong with it ---- */

struct telling {
    json_t *causes;
    const char *field, *shown; /* shown: the name, as JSON */
};

static void tell(const struct telling *t, const char *rule)
{
    str_auto text = str_printf("Invalid value: %s: %s", t->shown, rule);

    if (text != NULL)
        words_cause(t->causes, "FieldValueInvalid", t->field, text);
}

static void tell_domain(const struct telling *t, const char *domain, bool prefix)
{
    if (strlen(domain) > 253)
        tell(t,
             prefix ? "prefix part must be no more than 253 bytes" : "must be no more than 253 characters");
    else
        tell(t, prefix ? "prefix part " DOMAIN_RULE : DOMAIN_RULE);
}

/* Whether it consists of what a part of a label's key may. */
static bool is_part(const char *text, size_t n)
{
    str_auto copy = strndup(text, n < 63 ? n : 63);

    return n > 0 && copy != NULL && api_format_rule(API_FMT_LABEL_KEY, copy) == NULL;
}

static void tell_key(const struct telling *t, const char *key)
{
    const char *slash = strchr(key, '/'), *name = slash != NULL ? slash + 1 : key;
    str_auto prefix = slash != NULL ? strndup(key, (size_t)(slash - key)) : NULL;

    if (strchr(name, '/') != NULL) {
        tell(t, KEY_RULE);
        return;
    }
    if (prefix != NULL && prefix[0] == '\0')
        tell(t, "prefix part must be non-empty");
    else if (prefix != NULL && api_format_rule(API_FMT_SUBDOMAIN, prefix) != NULL)
        tell_domain(t, prefix, true);
    if (name[0] == '\0')
        tell(t, "name part must be non-empty");
    else if (strlen(name) > 63)
        tell(t, "name part must be no more than 63 bytes");
    if (!is_part(name, strlen(name)))
        tell(t, NAME_RULE);
}

static void tell_config_key(const struct telling *t, const char *key)
{
    if (strlen(key) > 253)
        tell(t, "must be no more than 253 characters");
    if (key[0] == '\0' || key[strspn(key, LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "-_.")] != '\0')
        tell(t, CONFIG_RULE);
    if (strcmp(key, ".") == 0)
        tell(t, "must not be '.'");
    else if (strcmp(key, "..") == 0)
        tell(t, "must not be '..'");
    else if (strncmp(key, "..", 2) == 0)
        tell(t, "must not start with '..'");
}

static void tell_port(const struct telling *t, const char *name)
{
    const size_t n = strlen(name);

    if (n > 15)
        tell(t, "must be no more than 15 characters");
    if (n == 0 || name[strspn(name, LOWER DIGITS "-")] != '\0')
        tell(t, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    else if (strpbrk(name, LOWER) == NULL)
        tell(t, "must contain at least one letter (a-z)");
    if (strstr(name, "--") != NULL)
        tell(t, "must not contain consecutive hyphens");
    if (n > 0 && (name[0] == '-' || name[n - 1] == '-'))
        tell(t, "must not begin or end with a hyphen");
}

/* At most 63 characters, of those that `format` allows. */
static void tell_short(const struct telling *t, const char *text, enum api_format format,
                       const char *too_long, const char *rule)
{
    str_auto start = strndup(text, 63);

    if (strlen(text) > 63)
        tell(t, too_long);
    /* a cut after a dash is no mistake of the whole */
    if (strlen(text) <= 63 || (start != NULL && api_format_rule(format, start) != NULL && start[62] != '-' &&
                               start[62] != '.' && start[62] != '_'))
        tell(t, rule);
}

static const char *const rules[] = {
    [WORDS_KEY] = NAME_RULE,      [WORDS_VALUE] = VALUE_RULE,       [WORDS_LABEL] = LABEL_RULE,
    [WORDS_DOMAIN] = DOMAIN_RULE, [WORDS_CONFIG_KEY] = CONFIG_RULE, [WORDS_PORT] = LABEL_RULE
};

void words_name_causes(json_t *causes, const char *field, const struct words_name *w)
{
    json_auto_t *name = json_string(w->text);
    str_auto shown = name != NULL ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
    const struct telling t = { causes, field, shown };
    const size_t before = json_array_size(causes);

    if (shown == NULL)
        return;
    switch (w->rule) {
    case WORDS_KEY:
        tell_key(&t, w->text);
        break;
    case WORDS_VALUE:
        tell_short(&t, w->text, API_FMT_LABEL_VALUE, "must be no more than 63 bytes", VALUE_RULE);
        break;
    case WORDS_LABEL:
        tell_short(&t, w->text, API_FMT_LABEL, "must be no more than 63 characters", LABEL_RULE);
        break;
    case WORDS_DOMAIN:
        tell_domain(&t, w->text, false);
        break;
    case WORDS_CONFIG_KEY:
        tell_config_key(&t, w->text);
        break;
    case WORDS_PORT:
        tell_port(&t, w->text);
        break;
    }
    if (json_array_size(causes) == before) /* the name is not known in full */
        tell(&t, rules[w->rule]);
}
