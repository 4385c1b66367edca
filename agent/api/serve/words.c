/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/serve/words.h"

#include "agent/api/serve/words_names.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WORDS_MAX (1u << 20) /* of one text: it may show a part of the object */

/* ---- values by path ---- */

/* The next step of "spec.containers[0].name" or "data[tls.crt]"; NULL: the end. */
static const char *step(const char *at, char *name, size_t size, bool *index)
{
    size_t n;

    if (*at == '.')
        at++;
    if (*at == '\0')
        return NULL;
    *index = *at == '[';
    if (*index)
        at++;
    n = *index ? strcspn(at, "]") : strcspn(at, ".[");
    snprintf(name, size, "%.*s", (int)(n < size ? n : size - 1), at);
    at += n;
    return *index && *at == ']' ? at + 1 : at;
}

static json_t *value_at(const json_t *object, const char *field)
{
    json_t *v = (json_t *)(uintptr_t)object;
    char name[300];
    bool index;

    for (const char *at = field; v != NULL && (at = step(at, name, sizeof(name), &index)) != NULL;)
        v = json_is_array(v) ? json_array_get(v, strtoul(name, NULL, 10)) : json_object_get(v, name);
    return v;
}

/* The last key of a path: "tls.crt" of "data[tls.crt]". */
static void last_key(const char *field, char *ret, size_t size)
{
    bool index;

    ret[0] = '\0';
    for (const char *at = field; (at = step(at, ret, size, &index)) != NULL;)
        ;
}

/* The path without its last step. */
static char *parent_of(const char *field)
{
    size_t n = strlen(field);

    if (n > 0 && field[n - 1] == ']')
        while (n > 0 && field[n] != '[')
            n--;
    else
        while (n > 0 && field[n] != '.')
            n--;
    return strndup(field, n);
}

/* ---- patterns ---- */

enum where { HERE_, PARENT };

static const struct word {
    const char *pattern, *reason;
    const char
        *text; /* $1: the first '*'; $v: the value as JSON; $k: the path's last key; $l: a list of $2 */
    enum where where;
} words[] = {
    { "required", "FieldValueRequired", "Required value", HERE_ },
    { "required for type *", "FieldValueRequired", "Required value", HERE_ },
    { "required: *", "FieldValueRequired", "Required value: $1", HERE_ },
    { "* is out of range, allowed are 0 to 2147483647", "FieldValueInvalid",
      "Invalid value: $1: must be greater than or equal to 0", HERE_ },
    { "* is out of range, allowed are 0 to 9223372036854775807", "FieldValueInvalid",
      "Invalid value: $1: must be greater than or equal to 0", HERE_ },
    { "* is out of range, allowed are * to *", "FieldValueInvalid",
      "Invalid value: $1: must be between $2 and $3, inclusive", HERE_ },
    { "* is negative, allowed are 0 and more", "FieldValueInvalid",
      "Invalid value: $1: must be greater than or equal to 0", HERE_ },
    { "* is not supported, allowed are *", "FieldValueNotSupported",
      "Unsupported value: $1: supported values: $l", HERE_ },
    { "must be Always: a * keeps its pods running", "FieldValueNotSupported",
      "Unsupported value: $v: supported values: \"Always\"", HERE_ },
    { "Always (the default) is not allowed for a Job, *", "FieldValueRequired",
      "Required value: valid values: \"OnFailure\", \"Never\"", HERE_ },
    { "* is the name of another container of this pod, too", "FieldValueDuplicate", "Duplicate value: $1",
      HERE_ },
    { "* is given twice in this container", "FieldValueInvalid", "Invalid value: $1: must be unique", HERE_ },
    { "* is used by another port of this pod, too", "FieldValueDuplicate", "Duplicate value: \"$1\"", HERE_ },
    { "* is given twice", "FieldValueDuplicate", "Duplicate value: $1", HERE_ },
    { "there is no volume * in this pod", "FieldValueNotFound", "Not found: $1", HERE_ },
    { "there is no container * in this pod", "FieldValueNotFound", "Not found: $1", HERE_ },
    { "the key is in binaryData, too", "FieldValueInvalid",
      "Invalid value: \"$k\": duplicate of key present in binaryData", HERE_ },
    { "the taint * has the key and effect of another one", "FieldValueDuplicate",
      "Duplicate value: $1: taints must be unique by key and effect pair", HERE_ },
    { "must not contain dots", "FieldValueInvalid", "Invalid value: $v: must not contain dots", HERE_ },
    { "not allowed: *", "FieldValueForbidden", "Forbidden: $1", HERE_ },
    { "\"*\" must be a valid *", "FieldValueInvalid", "Invalid value: \"$1\": must be a valid $2", HERE_ },
    { "\"*\" must not have *", "FieldValueInvalid", "Invalid value: \"$1\": must not have $2", HERE_ },
    { "not allowed with type Recreate", "FieldValueForbidden",
      "Forbidden: may not be specified when strategy `type` is 'Recreate'", HERE_ },
    { "not allowed when value is not empty", "FieldValueInvalid",
      "Invalid value: \"\": may not be specified when `value` is not empty", HERE_ },
    { "the labels do not match the selector", "FieldValueInvalid",
      "Invalid value: $v: `selector` does not match template `labels`", HERE_ },
    { "*must not begin or end with white space", "FieldValueInvalid",
      "Invalid value: $v: must not have leading or trailing whitespace", HERE_ },
    { "* must be less than or equal to the * limit of *", "FieldValueInvalid",
      "Invalid value: $1: must be less than or equal to $2 limit of $3", PARENT },
    { "must be Exists when there is no key", "FieldValueInvalid",
      "Invalid value: $v: operator must be Exists when `key` is empty, which means \"match all values and "
      "all keys\"",
      HERE_ },
    { "must be empty with operator Exists", "FieldValueInvalid",
      "Invalid value: $v: value must be empty when `operator` is 'Exists'", HERE_ },
    { "must be NoExecute when tolerationSeconds is set", "FieldValueInvalid",
      "Invalid value: $v: effect must be 'NoExecute' when `tolerationSeconds` is set", HERE_ },
    { "*: names that begin with \"system-\" are reserved", "FieldValueForbidden",
      "Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: $k is "
      "not a known system priority class",
      HERE_ },
    { "must be greater than minReadySeconds", "FieldValueInvalid",
      "Invalid value: $v: must be greater than minReadySeconds", HERE_ },
    { "may not be 0 when maxSurge is 0", "FieldValueInvalid",
      "Invalid value: $v: may not be 0 when `maxSurge` is 0", HERE_ },
    { "* bytes are too many, at most * (1 MiB) are allowed", "FieldValueTooLong",
      "Too long: may not be more than $2 bytes", HERE_ },
    { "* bytes are too many, at most * are allowed", "FieldValueTooLong",
      "Too long: may not be more than $2 bytes", HERE_ },
    { "* must be a number, or a percentage*", "FieldValueInvalid",
      "Invalid value: $v: a valid percent string must be a numeric string followed by an ending '%' (e.g. "
      "'1%',  or '93%', regex used for validation is '[0-9]+%')",
      HERE_ },
    { "* are too many, at most * are allowed", "FieldValueTooMany",
      "Too many: $1: must have at most $2 items", HERE_ },
    { "* must be greater than zero", "FieldValueInvalid", "Invalid value: $1: must be greater than zero",
      HERE_ },
    { "one of onExitCodes and onPodConditions is required", "FieldValueInvalid",
      "Invalid value: specifying one of OnExitCodes and OnPodConditions is required", HERE_ },
    { "only one of onExitCodes and onPodConditions is allowed", "FieldValueInvalid",
      "Invalid value: specifying both OnExitCodes and OnPodConditions is not supported", HERE_ },
    { "* cannot be true when hostUsers is false", "FieldValueForbidden",
      "Forbidden: when `hostUsers` is false", HERE_ },
};

/* `OnFailure and Never` as `"OnFailure", "Never"`. */
static void add_list(struct buf *b, const char *text, size_t n)
{
    size_t at = 0, size;

    while (at < n) {
        size = 0;
        while (at + size < n && strncmp(text + at + size, ", ", 2) != 0 &&
               strncmp(text + at + size, " and ", 5) != 0)
            size++;
        if (text[at] == '"')
            buf_addf(b, "%.*s", (int)size, text + at);
        else
            buf_addf(b, "\"%.*s\"", (int)size, text + at);
        at += size;
        if (at < n) {
            at += text[at] == ',' ? 2 : 5;
            buf_adds(b, ", ");
        }
    }
}

static void add_value(struct buf *b, const json_t *v)
{
    mem_auto char *text = v != NULL ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    buf_adds(b, text != NULL ? text : "null");
}

/* A text in quotes that the daemon has shortened is shown in full. */
static void add_part(struct buf *b, const char *part, size_t n, const json_t *value, const char *key)
{
    const bool cut = n > 5 && part[0] == '"' && strncmp(part + n - 4, "...\"", 4) == 0;
    const char *text = json_string_value(value);

    if (cut && text != NULL && strncmp(text, part + 1, n - 5) == 0)
        add_value(b, value);
    else if (cut && strncmp(key, part + 1, n - 5) == 0)
        buf_addf(b, "\"%s\"", key);
    else
        buf_add(b, part, n);
}

static void add_text(struct buf *b, const char *text, const struct words_parts *parts, const json_t *value,
                     const char *key)
{
    for (; *text != '\0'; text++) {
        if (*text != '$') {
            buf_addc(b, *text);
            continue;
        }
        text++;
        if (*text == 'v')
            add_value(b, value);
        else if (*text == 'k')
            buf_adds(b, key);
        else if (*text == 'l')
            add_list(b, parts->at[1], parts->size[1]);
        else
            add_part(b, parts->at[*text - '1'], parts->size[*text - '1'], value, key);
    }
}

/* ---- those that need more than a pattern ---- */

/* Members of one object that exclude each other, in the order in which an apiserver checks them: each one
 * after the first is a cause. */
static bool one_of(json_t *causes, const json_t *object, const char *field, const char *message)
{
    static const char *const volumes[] = { "emptyDir",    "hostPath", "secret",
                                           "nfs",         "iscsi",    "persistentVolumeClaim",
                                           "downwardAPI", "fc",       "configMap",
                                           "projected",   "csi",      "ephemeral",
                                           "image",       NULL };
    static const char *const handlers[] = { "exec", "httpGet", "tcpSocket", "grpc", "sleep", NULL };
    const bool volume = strcmp(message, "only one volume type is allowed") == 0,
               handler = strncmp(message, "only one of exec, httpGet", 25) == 0;
    const json_t *v = value_at(object, field);
    bool first = true;

    for (const char *const *name = volume ? volumes : handlers; (volume || handler) && *name != NULL;
         name++) {
        str_auto path = str_printf("%s.%s", field, *name);

        if (json_object_get(v, *name) == NULL)
            continue;
        if (!first && path != NULL)
            words_cause(causes, "FieldValueForbidden", path,
                        volume ? "Forbidden: may not specify more than 1 volume type"
                               : "Forbidden: may not specify more than 1 handler type");
        first = false;
    }
    return !first;
}

/* Fields of which an apiserver speaks in its own way, where a value is missing or not one of the allowed
 * ones.
 */
static bool own_way(json_t *causes, const json_t *object, const char *field, const char *message)
{
    static const struct {
        const char *field, *message, *reason, *text;
        enum where where;
    } fields[] = {
        { "*.action", "required", "FieldValueRequired",
          "Required value: valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]", HERE_ },
        { "*.onExitCodes.operator", "required", "FieldValueRequired",
          "Required value: valid values: [\"In\" \"NotIn\"]", HERE_ },
        { "*.successPolicy.rules", "required", "FieldValueRequired",
          "Required value: at least one rules must be specified when the successPolicy is specified", HERE_ },
        { "*.httpGet.port", "required", "FieldValueInvalid",
          "Invalid value: 0: must be between 1 and 65535, inclusive", HERE_ },
        { "*.tcpSocket.port", "required", "FieldValueInvalid",
          "Invalid value: 0: must be between 1 and 65535, inclusive", HERE_ },
        { "spec.clusterIPs[0]", "may not be set to *", "FieldValueInvalid",
          "Invalid value: \"None\": may not be set to $1", HERE_ },
        { "*.podManagementPolicy", "* is not supported, *", "FieldValueInvalid",
          "Invalid value: $v: must be 'OrderedReady' or 'Parallel'", HERE_ },
        { "*Expressions[*].operator", "* is not supported, *", "FieldValueInvalid",
          "Invalid value: $v: not a valid selector operator", HERE_ },
        { "spec.ports[*]", "*/* is given twice", "FieldValueDuplicate",
          "Duplicate value: {\"Name\":\"\",\"Protocol\":\"$2\",\"AppProtocol\":null,\"Port\":$1,"
          "\"TargetPort\":0,\"NodePort\":0}",
          HERE_ },
        { "*.accessModes[*]", "* is not supported, allowed are *", "FieldValueNotSupported",
          "Unsupported value: $1: supported values: $l", PARENT },
    };
    str_auto parent = parent_of(field);
    buf_auto text = BUF_INIT(WORDS_MAX);
    struct words_parts parts, unused;

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        parts = (struct words_parts){ 0 };
        if (!words_fit(fields[i].field, field, &unused, 0) ||
            !words_fit(fields[i].message, message, &parts, 0))
            continue;
        add_text(&text, fields[i].text, &parts, value_at(object, field), "");
        if (!text.failed)
            words_cause(causes, fields[i].reason,
                        fields[i].where == PARENT && parent != NULL ? parent : field, text.p);
        return true;
    }
    return false;
}

/* With the names of Go's members. */
static void add_rolling(struct buf *b, const json_t *rolling, bool of_set)
{
    const char *const names[] = { of_set ? "partition" : "maxUnavailable",
                                  of_set ? "maxUnavailable" : "maxSurge" };

    if (rolling == NULL) {
        buf_adds(b, "null");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        buf_addf(b, "%s\"%c%s\":", i == 0 ? "{" : ",", toupper((unsigned char)names[i][0]), names[i] + 1);
        add_value(b, json_object_get(rolling, names[i]));
    }
    buf_addc(b, '}');
}

/* The type of a strategy: an apiserver shows the whole struct. */
static bool strategy(json_t *causes, const json_t *object, const char *field, const char *message)
{
    str_auto parent = parent_of(field);
    const json_t *v = parent != NULL ? value_at(object, parent) : NULL;
    buf_auto text = BUF_INIT(WORDS_MAX);
    const size_t n = strlen(field);
    struct words_parts parts = { 0 };
    const bool of_set = str_eq(json_str(object, "kind"), "StatefulSet");

    if (n < 13 || strcasecmp(field + n - 13, "strategy.type") != 0 ||
        !words_fit("* is not supported, allowed are *", message, &parts, 0))
        return false;
    buf_addf(&text, "%s value: {\"Type\":%.*s,\"RollingUpdate\":", of_set ? "Invalid" : "Unsupported",
             (int)parts.size[0], parts.at[0]);
    add_rolling(&text, json_object_get(v, "rollingUpdate"), of_set);
    buf_adds(&text, of_set ? "}: must be 'RollingUpdate' or 'OnDelete'" : "}: supported values: ");
    if (!of_set)
        add_list(&text, parts.at[1], parts.size[1]);
    if (!text.failed)
        words_cause(causes, of_set ? "FieldValueInvalid" : "FieldValueNotSupported", parent, text.p);
    return true;
}

/* An apiserver writes one as Go does, and texts of a Secret are data when it looks at them. */
static void rename_field(char *field)
{
    static const char name[] = "spec.loadBalancerSourceRanges";

    if (strncmp(field, name, sizeof(name) - 1) == 0)
        field[strlen("spec.")] = 'L';
    if (strncmp(field, "stringData[", 11) == 0)
        memmove(field, field + strlen("string"), strlen(field + strlen("string")) + 1);
    if (strncmp(field, "Data[", 5) == 0)
        field[0] = 'd';
}

/* "spec.template.labels": an apiserver leaves out "metadata" where a label or an annotation is not valid. */
static char *of_template(char *field)
{
    static const char end[] = "template.metadata.";
    char *at = strstr(field, end);

    if (at != NULL && (at == field || at[-1] == '.'))
        memmove(at + strlen("template."), at + strlen(end), strlen(at + strlen(end)) + 1);
    return field;
}

void words_add(json_t *causes, const json_t *object, const char *field, const char *message)
{
    const json_t *value = value_at(object, field);
    buf_auto text = BUF_INIT(WORDS_MAX);
    str_auto parent = parent_of(field);
    struct words_parts parts = { 0 };
    str_auto shown = strdup(field);
    const char *where = shown;
    struct words_name w;
    char key[300];
    size_t i = 0;

    if (one_of(causes, object, field, message) || strategy(causes, object, field, message) ||
        own_way(causes, object, field, message))
        return;
    if (shown == NULL)
        return;
    rename_field(shown);
    last_key(field, key, sizeof(key));
    if (words_of_name(message, field, value, key, &w)) {
        words_name_causes(causes, w.of_member && parent != NULL ? of_template(parent) : shown, &w);
        words_name_done(&w);
        return;
    }
    if (strcmp(key, "name") == 0 && json_is_string(value))
        snprintf(key, sizeof(key), "%s", json_string_value(value));
    while (i < ARRAY_LEN(words) && !words_fit(words[i].pattern, message, &parts, 0))
        i++;
    if (i == ARRAY_LEN(words)) {
        buf_adds(&text, "Invalid value: ");
        add_value(&text, value);
        buf_addf(&text, ": %s", message);
    } else {
        if (words[i].where == PARENT && parent != NULL)
            where = of_template(parent);
        add_text(&text, words[i].text, &parts, value, key);
    }
    if (strncmp(text.failed ? "" : text.p, "Too long", 8) == 0 && strcmp(field, "data") == 0)
        where = "[]";
    if (!text.failed)
        words_cause(causes, i < ARRAY_LEN(words) ? words[i].reason : "FieldValueInvalid", where, text.p);
}
