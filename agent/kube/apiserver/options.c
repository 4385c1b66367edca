/* SPDX-License-Identifier: Apache-2.0 */
/* options - the parameters of lists and watches, checked as apimachinery's ValidateListOptions does. */
#include "agent/kube/apiserver/internal.h"

#include "base/codec/json.h"
#include "base/parse.h"

#include <stdlib.h>
#include <string.h>

#define MATCH "resourceVersionMatch"

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static void forbid(json_t *causes, const char *field, const char *why)
{
    ERR_IGNORE(
        json_array_append_new(causes, api_status_cause("FieldValueForbidden", field, "Forbidden: %s", why)));
}

static void unsupported(json_t *causes, const char *match, const char *supported)
{
    ERR_IGNORE(json_array_append_new(
        causes, api_status_cause("FieldValueNotSupported", MATCH,
                                 "Unsupported value: \"%.64s\": supported values: %s", match, supported)));
}

static void check_list(const struct http_request *r, json_t *causes)
{
    const char *match = http_param(r, MATCH), *version = http_param(r, "resourceVersion");

    if (is_given(match)) {
        if (!is_given(version))
            forbid(causes, MATCH, MATCH " is forbidden unless resourceVersion is provided");
        if (is_given(http_param(r, "continue")))
            forbid(causes, MATCH, MATCH " is forbidden when continue is provided");
        if (strcmp(match, "Exact") != 0 && strcmp(match, "NotOlderThan") != 0)
            unsupported(causes, match, "\"Exact\", \"NotOlderThan\", \"\"");
        if (strcmp(match, "Exact") == 0 && str_eq(version, "0"))
            forbid(causes, MATCH, MATCH " \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if (is_given(http_param(r, "sendInitialEvents")))
        forbid(causes, "sendInitialEvents", "sendInitialEvents is forbidden for list");
}

static void check_watch(const struct http_request *r, json_t *causes)
{
    const char *match = http_param(r, MATCH);
    const bool initial = is_given(http_param(r, "sendInitialEvents"));

    if (initial && !str_eq(match, "NotOlderThan"))
        forbid(causes, MATCH, "sendInitialEvents requires setting " MATCH " to NotOlderThan");
    if (is_given(match) && !initial)
        forbid(causes, MATCH, MATCH " is forbidden for watch unless sendInitialEvents is provided");
    if (is_given(match) && strcmp(match, "NotOlderThan") != 0)
        unsupported(causes, match, "\"NotOlderThan\"");
    if (is_given(http_param(r, "continue")))
        forbid(causes, MATCH, MATCH " is forbidden when continue is provided");
}

/* 422; NULL: nothing is wrong. Steals `causes`. */
static json_t *invalid(json_t *causes)
{
    json_t *status;

    if (json_array_size(causes) == 0) {
        json_decref(causes);
        return NULL;
    }
    status = api_status_invalid("meta.k8s.io", "ListOptions", "", causes);
    return status != NULL ? status : api_status(500, NULL, NULL, "out of memory");
}

/* A number that is not negative; absent: *ret stays. NULL: it is one, otherwise its Status. */
static json_t *read_number(const struct http_request *r, const char *key, uint64_t *ret)
{
    const char *text = http_param(r, key);
    uint64_t number;
    bool minus = text != NULL && text[0] == '-';

    if (!is_given(text))
        return NULL;
    if (parse_u64(text + minus, 0, INT64_MAX, &number, key, ERR_IGNORED) != ERR_OK)
        return api_status(400, "BadRequest", NULL, "strconv.ParseInt: parsing \"%.64s\": invalid syntax",
                          text);
    *ret = minus ? 0 : number; /* as if it were not given */
    return NULL;
}

json_t *api_version_read(const struct http_request *r, bool list, uint64_t *ret)
{
    const char *text = http_param(r, "resourceVersion");

    *ret = 0;
    if (!is_given(text) || parse_u64(text, 0, INT64_MAX, ret, "resourceVersion", ERR_IGNORED) == ERR_OK)
        return NULL;
    return api_status(list ? 400 : 500, list ? "BadRequest" : NULL, NULL,
                      "%sresourceVersion: Invalid value: \"%.64s\": strconv.ParseUint: parsing \"%.64s\": "
                      "invalid syntax",
                      list ? "invalid resource version: " : "", text, text);
}

json_t *api_version_too_large(uint64_t version, const struct stock *s)
{
    return api_status(504, "Timeout",
                      json_pack("{s:[{s:s, s:s}], s:i}", "causes", "reason", "ResourceVersionTooLarge",
                                "message", "Too large resource version", "retryAfterSeconds", 1),
                      "Timeout: Too large resource version: %llu, current: %llu", (unsigned long long)version,
                      (unsigned long long)s->version);
}

json_t *api_list_options_read(const struct http_request *r, struct api_list_options *ret)
{
    json_t *causes = json_array(), *status;
    const char *token = http_param(r, "continue"), *version = http_param(r, "resourceVersion");

    *ret = (struct api_list_options){ .exact = str_eq(http_param(r, MATCH), "Exact"),
                                      .token = is_given(token) ? token : NULL };
    check_list(r, causes);
    if ((status = read_number(r, "limit", &ret->limit)) != NULL) {
        json_decref(causes);
        return status;
    }
    if ((status = invalid(causes)) != NULL)
        return status;
    if (ret->token != NULL && is_given(version) && strcmp(version, "0") != 0)
        return api_status(400, "BadRequest", NULL,
                          "specifying resource version is not allowed when using continue");
    return api_version_read(r, true, &ret->version);
}

json_t *api_watch_options_read(const struct http_request *r, struct api_watch_options *ret)
{
    json_t *causes = json_array(), *status;
    struct err e = { 0 };

    *ret = (struct api_watch_options){ .initial_given = is_given(http_param(r, "sendInitialEvents")) };
    check_watch(r, causes);
    if ((status = read_number(r, "timeoutSeconds", &ret->timeout_s)) != NULL) {
        json_decref(causes);
        return status;
    }
    if ((status = invalid(causes)) != NULL)
        return status;
    if (http_param_flag(r, "allowWatchBookmarks", &ret->bookmarks, &e) != ERR_OK ||
        http_param_flag(r, "sendInitialEvents", &ret->initial, &e) != ERR_OK)
        return api_status(400, "BadRequest", NULL, "%s", e.text);
    if (ret->timeout_s == 0 || ret->timeout_s > API_WATCH_MAX_S)
        ret->timeout_s = API_WATCH_S;
    return api_version_read(r, false, &ret->version);
}
