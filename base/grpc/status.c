/* SPDX-License-Identifier: Apache-2.0 */
#include "base/grpc/status.h"

#include "base/error.h"
#include "base/utf8.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_DIGITS 8

const char *grpc_code_name(int code)
{
    static const char *const names[] = {
        "OK",       "Canceled",        "Unknown",          "InvalidArgument",   "DeadlineExceeded",
        "NotFound", "AlreadyExists",   "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
        "Aborted",  "OutOfRange",      "Unimplemented",    "Internal",          "Unavailable",
        "DataLoss", "Unauthenticated",
    };

    return code >= 0 && (size_t)code < sizeof(names) / sizeof(names[0]) ? names[code] : "Unknown";
}

void grpc_status_set(struct grpc_status *s, int code, const char *fmt, ...)
{
    va_list ap;

    s->code = code;
    s->number = 0;
    s->details = (struct grpc_bytes){ 0 };
    va_start(ap, fmt);
    vsnprintf(s->text, sizeof(s->text), fmt, ap);
    va_end(ap);
}

const char *grpc_status_name(const struct grpc_status *s, char room[GRPC_CODE_SIZE])
{
    if (s->number == 0)
        return grpc_code_name(s->code);
    snprintf(room, GRPC_CODE_SIZE, "Code(%d)", s->number);
    return room;
}

int grpc_status_number(const char *value, size_t n)
{
    int number = 0;

    for (size_t i = 0; i < n; i++) {
        if (value[i] < '0' || value[i] > '9')
            return -1;
        number = number * 10 + value[i] - '0';
        if (number > GRPC_NUMBER_MAX)
            number = GRPC_NUMBER_MAX;
    }
    return n > 0 ? number : -1;
}

/* ---- grpc-message ---- */

void grpc_message_encode(struct buf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (*p >= ' ' && *p <= '~' && *p != '%')
            buf_addc(out, (char)*p);
        else
            buf_addf(out, "%%%02X", *p);
    }
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

void grpc_message_decode(const char *value, size_t n, char ret[GRPC_TEXT_MAX])
{
    char raw[GRPC_TEXT_MAX + 1]; /* one more, to see whether the last character is whole */
    size_t k = 0;

    for (size_t i = 0; i < n && k < GRPC_TEXT_MAX; i++) {
        if (value[i] == '%' && n - i > 2 && hex(value[i + 1]) >= 0 && hex(value[i + 2]) >= 0) {
            raw[k++] = (char)(hex(value[i + 1]) << 4 | hex(value[i + 2]));
            i += 2;
        } else {
            raw[k++] = value[i];
        }
        if (raw[k - 1] == '\0')
            raw[k - 1] = '?';
    }
    raw[k] = '\0';
    if (k == GRPC_TEXT_MAX)
        k = utf8_cut(raw, GRPC_TEXT_MAX - 1);
    memcpy(ret, raw, k);
    ret[k] = '\0';
    text_printable(ret);
}

/* ---- grpc-timeout ---- */

bool grpc_timeout_parse(const char *value, size_t n, uint64_t *ret_ms)
{
    uint64_t v = 0;

    if (n < 2 || n > TIMEOUT_DIGITS + 1)
        return false;
    for (size_t i = 0; i < n - 1; i++) {
        if (value[i] < '0' || value[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(value[i] - '0');
    }
    switch (value[n - 1]) {
    case 'H':
        v *= 60 * 60 * 1000;
        break;
    case 'M':
        v *= 60 * 1000;
        break;
    case 'S':
        v *= 1000;
        break;
    case 'm':
        break;
    case 'u':
        v = (v + 999) / 1000;
        break;
    case 'n':
        v = (v + 999999) / 1000000;
        break;
    default:
        return false;
    }
    *ret_ms = v;
    return true;
}

void grpc_timeout_format(uint64_t ms, char ret[GRPC_TIMEOUT_SIZE])
{
    static const struct {
        uint64_t ms;
        char unit;
    } units[] = { { 1, 'm' }, { 1000, 'S' }, { 60 * 1000, 'M' }, { 60 * 60 * 1000, 'H' } };
    const uint64_t most = 99999999;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        uint64_t v = ms / units[i].ms + (ms % units[i].ms != 0);
        bool last = i + 1 == sizeof(units) / sizeof(units[0]);
        if (v > most && !last)
            continue;
        snprintf(ret, GRPC_TIMEOUT_SIZE, "%u%c", (unsigned)(v < most ? v : most), units[i].unit);
        return;
    }
}

/* ---- codes of HTTP ---- */

int grpc_code_of_http(int http_status) /* grpc-go's HTTPStatusConvTab */
{
    switch (http_status) {
    case 400:
        return ERR_INTERNAL;
    case 401:
        return ERR_UNAUTHENTICATED;
    case 403:
        return ERR_PERMISSION;
    case 404:
        return ERR_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return ERR_UNAVAILABLE;
    default:
        return ERR_UNKNOWN;
    }
}

const char *grpc_http_text(int http_status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        { 400, "Bad Request" },       { 401, "Unauthorized" },          { 403, "Forbidden" },
        { 404, "Not Found" },         { 405, "Method Not Allowed" },    { 415, "Unsupported Media Type" },
        { 429, "Too Many Requests" }, { 500, "Internal Server Error" }, { 501, "Not Implemented" },
        { 502, "Bad Gateway" },       { 503, "Service Unavailable" },   { 504, "Gateway Timeout" },
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].status == http_status)
            return texts[i].text;
    return "";
}

int grpc_code_of_reset(uint32_t http2_error) /* grpc-go's http2ErrConvTab */
{
    switch (http2_error) {
    case NGHTTP2_REFUSED_STREAM:
        return ERR_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return ERR_CANCELLED;
    case NGHTTP2_FLOW_CONTROL_ERROR:
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return ERR_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY:
        return ERR_PERMISSION;
    default:
        return ERR_INTERNAL;
    }
}

bool grpc_is_content_type(const char *type)
{
    static const char base[] = "application/grpc";

    return strncmp(type, base, sizeof(base) - 1) == 0 &&
           (type[sizeof(base) - 1] == '\0' || type[sizeof(base) - 1] == '+' || type[sizeof(base) - 1] == ';');
}
