/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec/http_request.h"

#include "base/scope.h"

#include <string.h>
#include <strings.h>

/* ---- parsing ---- */

static int http_request_fail(struct http_parser *p, int http_code, const char *error)
{
    if (p->http_code == 0) {
        p->http_code = http_code;
        p->error = error;
    }
    return HPE_USER;
}

static int count_head(struct http_parser *p, size_t n)
{
    p->head_bytes += n;
    return p->head_bytes > HTTP_HEAD_MAX ? http_request_fail(p, 431, "the head of the request is too long")
                                         : 0;
}

static int on_message_begin(llhttp_t *l)
{
    struct http_parser *p = l->data;

    p->begun = true;
    return 0;
}

static int on_url(llhttp_t *l, const char *at, size_t n)
{
    struct http_parser *p = l->data;

    buf_add(&p->url, at, n);
    if (p->url.failed)
        return n > HTTP_URL_MAX - p->url.n ? http_request_fail(p, 414, "the URL is too long")
                                           : http_request_fail(p, 503, "out of memory");
    return count_head(p, n);
}

/* Appends; a text that does not fit stays empty. */
static void http_request_append(char *to, size_t size, bool *too_long, const char *at, size_t n)
{
    size_t used = strlen(to);

    if (*too_long || n >= size - used || memchr(at, '\0', n) != NULL) {
        *too_long = true;
        to[0] = '\0';
        return;
    }
    memcpy(to + used, at, n);
    to[used + n] = '\0';
}

static int http_request_on_header_field(llhttp_t *l, const char *at, size_t n)
{
    struct http_parser *p = l->data;

    http_request_append(p->header, sizeof(p->header), &p->header_too_long, at, n);
    return count_head(p, n);
}

static int on_header_field_complete(llhttp_t *l)
{
    struct http_upgrade *u = &((struct http_parser *)l->data)->request.upgrade;
    struct http_parser *p = l->data;

    p->header_too_long = false; /* of the value, from now on */
    if (strcasecmp(p->header, "Sec-WebSocket-Protocol") == 0 && u->subprotocols[0] != '\0')
        http_request_append(u->subprotocols, sizeof(u->subprotocols), &p->header_too_long, ",",
                            1); /* a single list */
    for (size_t i = 0; i < p->n_keep; i++)
        if (strcasecmp(p->header, p->keep[i].name) == 0 && p->keep[i].to[0] != '\0')
            http_request_append(p->keep[i].to, p->keep[i].size, &p->header_too_long, ",", 1);
    return 0;
}

static int http_request_on_header_value(llhttp_t *l, const char *at, size_t n)
{
    struct http_parser *p = l->data;
    struct http_upgrade *u = &p->request.upgrade;
    const struct {
        const char *name;
        char *to;
        size_t size;
    } wanted[] = {
        { "Upgrade", u->protocol, sizeof(u->protocol) },
        { "Sec-WebSocket-Key", u->key, sizeof(u->key) },
        { "Sec-WebSocket-Version", u->version, sizeof(u->version) },
        { "Sec-WebSocket-Protocol", u->subprotocols, sizeof(u->subprotocols) },
    };

    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (strcasecmp(p->header, wanted[i].name) == 0)
            http_request_append(wanted[i].to, wanted[i].size, &p->header_too_long, at, n);
    for (size_t i = 0; i < p->n_keep; i++)
        if (strcasecmp(p->header, p->keep[i].name) == 0)
            http_request_append(p->keep[i].to, p->keep[i].size, &p->header_too_long, at, n);
    return count_head(p, n);
}

static int http_request_on_header_value_complete(llhttp_t *l)
{
    struct http_parser *p = l->data;

    p->header[0] = '\0';
    p->header_too_long = false;
    return 0;
}

static int http_request_on_headers_complete(llhttp_t *l)
{
    struct http_parser *p = l->data;

    p->head_done = true;
    return 0;
}

static int http_request_on_body(llhttp_t *l, const char *at, size_t n)
{
    struct http_parser *p = l->data;

    if (p->body != NULL && (p->wants_body == NULL || p->wants_body(p->url.p))) {
        bool fits = n <= p->body->max - p->body->n;

        buf_add(p->body, at, n);
        return !p->body->failed ? 0
               : fits           ? http_request_fail(p, 503, "out of memory")
                                : http_request_fail(p, 413, "the body of the request is too long");
    }
    p->body_bytes += n;
    return p->body_bytes > HTTP_BODY_MAX ? http_request_fail(p, 413, "the body of the request is too long")
                                         : 0;
}

static int http_request_on_message_complete(llhttp_t *l)
{
    struct http_parser *p = l->data;

    p->state = PARSE_DONE;
    return HPE_PAUSED; /* one request at a time */
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_message_begin,
    .on_url = on_url,
    .on_header_field = http_request_on_header_field,
    .on_header_field_complete = on_header_field_complete,
    .on_header_value = http_request_on_header_value,
    .on_header_value_complete = http_request_on_header_value_complete,
    .on_headers_complete = http_request_on_headers_complete,
    .on_body = http_request_on_body,
    .on_message_complete = http_request_on_message_complete,
};

void http_parser_init(struct http_parser *p)
{
    *p = (struct http_parser){ 0 };
    buf_init(&p->url, HTTP_URL_MAX);
    llhttp_init(&p->llhttp, HTTP_REQUEST, &settings);
    p->llhttp.data = p;
}

void http_parser_done(struct http_parser *p)
{
    buf_done(&p->url);
}

void http_parser_next(struct http_parser *p)
{
    llhttp_resume(&p->llhttp);
    buf_reset(&p->url);
    if (p->body != NULL)
        buf_reset(p->body);
    p->request = (struct http_request){ 0 };
    p->state = PARSE_MORE;
    p->head_bytes = p->head_fed = p->body_bytes = 0;
    p->begun = p->head_done = p->header_too_long = false;
    p->header[0] = '\0';
    for (size_t i = 0; i < p->n_keep; i++)
        p->keep[i].to[0] = '\0';
}

static int http_request_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Any text may be returned in an answer, and JSON requires UTF-8. */
static bool http_request_is_utf8(const char *s)
{
    while (*s != '\0') {
        unsigned char c = (unsigned char)*s++;
        unsigned n = c < 0x80 ? 0 : (c >> 5) == 6 ? 1 : (c >> 4) == 14 ? 2 : (c >> 3) == 30 ? 3 : 4;
        static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
        uint32_t v = n == 0 ? c : c & (0x3fu >> n);

        if (n == 4)
            return false;
        for (unsigned i = 0; i < n; i++, s++) {
            if (((unsigned char)*s & 0xc0) != 0x80)
                return false;
            v = v << 6 | ((unsigned char)*s & 0x3f);
        }
        if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
            return false;
    }
    return true;
}

/* In place; false: an invalid escape, a zero byte, or invalid UTF-8. */
static bool http_request_decode(char *s, bool plus_is_blank)
{
    char *w = s;

    for (char *r = s; *r != '\0'; r++) {
        if (*r == '%') {
            if (http_request_hex(r[1]) < 0 || http_request_hex(r[2]) < 0 || (r[1] == '0' && r[2] == '0'))
                return false;
            *w++ = (char)(http_request_hex(r[1]) * 16 + http_request_hex(r[2]));
            r += 2;
        } else {
            *w++ = *r == '+' && plus_is_blank ? ' ' : *r;
        }
    }
    *w = '\0';
    return http_request_is_utf8(s);
}

static bool split_path(struct http_request *r, char *path)
{
    char *next;

    for (char *s = path + 1; s != NULL && *s != '\0'; s = next) {
        next = strchr(s, '/');
        if (next != NULL)
            *next++ = '\0';
        if (!http_request_decode(s, false))
            return false;
        if (r->n_segments == HTTP_SEGMENTS_MAX) { /* none of our paths is that deep: not found */
            r->n_segments = 0;
            return true;
        }
        r->segments[r->n_segments++] = s;
    }
    return true;
}

static bool split_query(struct http_request *r, char *query)
{
    char *next;

    for (char *s = query; s != NULL && *s != '\0'; s = next) {
        char *value;

        next = strchr(s, '&');
        if (next != NULL)
            *next++ = '\0';
        if (*s == '\0')
            continue;
        value = strchr(s, '=');
        if (value != NULL)
            *value++ = '\0';
        else
            value = s + strlen(s);
        if (r->n_params == HTTP_PARAMS_MAX || !http_request_decode(s, true) ||
            !http_request_decode(value, true))
            return false;
        r->params[r->n_params++] = (struct http_param){ s, value };
    }
    return true;
}

/* "/path?query", or "http://host/path?query" as sent by a proxy. */
static bool split_url(struct http_parser *p)
{
    char *url = p->url.p, *query;

    if (strncasecmp(url, "http://", 7) == 0) {
        url = strchr(url + 7, '/');
        if (url == NULL)
            return false;
    }
    if (url[0] != '/' || memchr(p->url.p, '\0', p->url.n) != NULL)
        return false;
    query = strchr(url, '?');
    if (query != NULL)
        *query++ = '\0';
    return split_path(&p->request, url) && split_query(&p->request, query);
}

static enum http_method method_of(uint8_t method)
{
    switch (method) {
    case HTTP_GET:
        return METHOD_GET;
    case HTTP_HEAD:
        return METHOD_HEAD;
    case HTTP_POST:
        return METHOD_POST;
    case HTTP_DELETE:
        return METHOD_DELETE;
    case HTTP_PUT:
        return METHOD_PUT;
    case HTTP_PATCH:
        return METHOD_PATCH;
    default:
        return METHOD_OTHER;
    }
}

static void http_request_finish(struct http_parser *p, bool upgrade)
{
    struct http_request *r = &p->request;

    r->method = method_of(llhttp_get_method(&p->llhttp));
    r->http10 = llhttp_get_http_major(&p->llhttp) < 1 ||
                (llhttp_get_http_major(&p->llhttp) == 1 && llhttp_get_http_minor(&p->llhttp) == 0);
    r->upgrade.asked = upgrade && r->upgrade.protocol[0] != '\0';
    /* Even if the protocol is not changed, the following bytes are not HTTP. */
    r->keep_alive = !upgrade && !r->http10 && llhttp_should_keep_alive(&p->llhttp);
    if (!split_url(p) &&
        r->method != METHOD_OTHER) { /* "OPTIONS *", "CONNECT host:port": 405 for any target */
        p->state = PARSE_FAILED;
        http_request_fail(p, 400, "the URL cannot be understood");
    }
}

size_t http_parser_feed(struct http_parser *p, const char *bytes, size_t n)
{
    enum llhttp_errno code;
    size_t used = n;

    if (p->state != PARSE_MORE || n == 0)
        return 0;
    code = llhttp_execute(&p->llhttp, bytes, n);
    if (code == HPE_OK) {
        /* blanks are not part of a name or value */
        if (!p->head_done && (p->head_fed += n) > HTTP_HEAD_MAX) {
            http_request_fail(p, 431, "the head of the request is too long");
            p->state = PARSE_FAILED;
        }
        return used;
    }
    if (llhttp_get_error_pos(&p->llhttp) != NULL)
        used = (size_t)(llhttp_get_error_pos(&p->llhttp) - bytes);
    if (p->state == PARSE_DONE || code == HPE_PAUSED_UPGRADE) {
        p->state = PARSE_DONE;
        http_request_finish(p, code == HPE_PAUSED_UPGRADE || p->llhttp.upgrade != 0);
    } else {
        p->state = PARSE_FAILED;
        http_request_fail(p, 400, "this is not a HTTP/1.1 request");
    }
    return used;
}

/* ---- parameters ---- */

const char *http_param(const struct http_request *r, const char *key)
{
    for (size_t i = r->n_params; i-- > 0;)
        if (strcmp(r->params[i].key, key) == 0)
            return r->params[i].value;
    return NULL;
}

/* The values of Go's strconv.ParseBool, as in the apiserver. */
enum err_code http_param_flag(const struct http_request *r, const char *key, bool *ret, struct err *e)
{
    static const char *const yes[] = { "1", "t", "T", "true", "TRUE", "True" };
    static const char *const no[] = { "0", "f", "F", "false", "FALSE", "False" };
    const char *value = http_param(r, key);

    if (value == NULL || value[0] == '\0')
        return ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (strcmp(value, yes[i]) == 0 || strcmp(value, no[i]) == 0) {
            *ret = strcmp(value, yes[i]) == 0;
            return ERR_OK;
        }
    }
    return err_set(e, ERR_INVALID, "%s: \"%.64s\" is neither true nor false", key, value);
}
