/* SPDX-License-Identifier: Apache-2.0 */
/* The codes of answers, and the Status objects that carry them. */
#include "agent/status/internal.h"

#include "base/codec/json.h"

static const struct {
    int code;
    const char *phrase, *reason;
} codes[] = {
    { 200, "OK", "" },
    { 201, "Created", "" },
    { 400, "Bad Request", "BadRequest" },
    { 401, "Unauthorized", "Unauthorized" },
    { 403, "Forbidden", "Forbidden" },
    { 404, "Not Found", "NotFound" },
    { 405, "Method Not Allowed", "MethodNotAllowed" },
    { 408, "Request Timeout", "Timeout" },
    { 409, "Conflict", "Conflict" },
    { 413, "Content Too Large", "RequestEntityTooLarge" },
    { 414, "URI Too Long", "RequestURITooLong" },
    { 422, "Unprocessable Content", "Invalid" },
    { 426, "Upgrade Required", "BadRequest" },
    { 431, "Request Header Fields Too Large", "RequestHeaderFieldsTooLarge" },
    { 500, "Internal Server Error", "InternalError" },
    { 501, "Not Implemented", "NotImplemented" },
    { 503, "Service Unavailable", "ServiceUnavailable" },
    { 504, "Gateway Timeout", "Timeout" },
    { 507, "Insufficient Storage", "InsufficientStorage" },
};

const char *status_phrase(int http_code)
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].code == http_code)
            return codes[i].phrase;
    return "Unknown";
}

const char *status_reason(int http_code)
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].code == http_code)
            return codes[i].reason;
    return "InternalError";
}

int status_http_code(enum err_code code)
{
    switch (code) {
    case ERR_OK:
        return 200;
    case ERR_INVALID:
    case ERR_RANGE:
        return 400;
    case ERR_UNAUTHENTICATED:
        return 401;
    case ERR_PERMISSION:
        return 403;
    case ERR_NOT_FOUND:
        return 404;
    case ERR_EXISTS:
    case ERR_PRECONDITION:
    case ERR_ABORTED:
        return 409;
    case ERR_UNIMPLEMENTED:
        return 501;
    case ERR_UNAVAILABLE:
    case ERR_CANCELLED:
        return 503;
    case ERR_DEADLINE:
        return 504;
    case ERR_EXHAUSTED:
        return 507;
    case ERR_UNKNOWN:
    case ERR_INTERNAL:
    case ERR_DATA_LOSS:
        return 500;
    }
    return 500;
}

json_t *status_object(int http_code, const char *reason, const char *kind, const char *name,
                      const char *message)
{
    json_t *o = json_pack("{s:s, s:s, s:{}, s:s}", "kind", "Status", "apiVersion", "v1", "metadata", "status",
                          http_code < 400 ? "Success" : "Failure");

    /* A message may contain a file name, which need not be UTF-8. */
    if (o == NULL || !json_put_str(o, "message", message) ||
        (reason[0] != '\0' && json_object_set_new(o, "reason", json_string(reason)) < 0) ||
        (name != NULL &&
         json_object_set_new(o, "details", json_pack("{s:s, s:s}", "name", name, "kind", kind)) < 0) ||
        json_object_set_new(o, "code", json_integer(http_code)) < 0) {
        json_decref(o);
        return NULL;
    }
    return o;
}
