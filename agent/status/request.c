/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/request.h"

#include "base/scope.h"

#include <string.h>
#include <strings.h>

/* ---- parsing ---- */

static int status_request_fail(struct status_parser *p, int http_code, const char *error)
{
    if (p->http_code == 0) {
        p->http_code = http_code;
        p->error = error;
    }
    return HPE_USER;
}

static int count_head(struct status_parser *p, size_t n)
{
    p->head_bytes += n;
    return p->head_bytes > STATUS_HEAD_MAX
               ? status_request_fail(p, 431, "the head of the request is too long")
               : 0;
}

static int on_message_begin(llhttp_t *l)
{
    struct status_parser *p = l->data;

    p->begun = true;
    return 0;
}

static int on_url(llhttp_t *l, const char *at, size_t n)
{
    struct status_parser *p = l->data;

    buf_add(&p->url, at, n);
    if (p->url.failed)
        return n > STATUS_URL_MAX - p->url.n ? status_request_fail(p, 414, "the URL is too long")
                                             : status_request_fail(p, 503, "out of memory");
    return count_head(p, n);
}

/* Appends; a text that does not fit stays empty. */
static void status_request_append(char *to, size_t size, bool *too_long, const char *at, size_t n)
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

static int status_request_on_header_field(llhttp_t *l, const char *at, size_t n)
{
    struct status_parser *p = l->data;

    status_request_append(p->header, sizeof(p->header), &p->header_too_long, at, n);
    return count_head(p, n);
}

static int on_header_field_complete(llhttp_t *l)
{
    struct status_upgrade *u = &((struct status_parser *)l->data)->request.upgrade;
    struct status_parser *p = l->data;

    p->header_too_long = false; /* of the value, from now on */
    if (strcasecmp(p->header, "Sec-WebSocket-Protocol") == 0 && u->subprotocols[0] != '\0')
        status_request_append(u->subprotocols, sizeof(u->subprotocols), &p->header_too_long, ",",
                              1); /* a single list */
    return 0;
}

static int status_request_on_header_value(llhttp_t *l, const char *at, size_t n)
{
    struct status_parser *p = l->data;
    struct status_upgrade *u = &p->request.upgrade;
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
            status_request_append(wanted[i].to, wanted[i].size, &p->header_too_long, at, n);
    return count_head(p, n);
}

static int status_request_on_header_value_complete(llhttp_t *l)
{
    struct status_parser *p = l->data;

    p->header[0] = '\0';
    p->header_too_long = false;
    return 0;
}

static int status_request_on_headers_complete(llhttp_t *l)
{
    struct status_parser *p = l->data;

    p->head_done = true;
    return 0;
}

static int status_request_on_body(llhttp_t *l, const char *at, size_t n)
{
    struct status_parser *p = l->data;

    (void)at;
    p->body_bytes += n;
    return p->body_bytes > STATUS_BODY_MAX
               ? status_request_fail(p, 413, "the body of the request is too long")
               : 0;
}

static int status_request_on_message_complete(llhttp_t *l)
{
    struct status_parser *p = l->data;

    p->state = PARSE_DONE;
    return HPE_PAUSED; /* one at a time */
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_message_begin,
    .on_url = on_url,
    .on_header_field = status_request_on_header_field,
    .on_header_field_complete = on_header_field_complete,
    .on_header_value = status_request_on_header_value,
    .on_header_value_complete = status_request_on_header_value_complete,
    .on_headers_complete = status_request_on_headers_complete,
    .on_body = status_request_on_body,
    .on_message_complete = status_request_on_message_complete,
};

void status_parser_init(struct status_parser *p)
{
    *p = (struct status_parser){ 0 };
    buf_init(&p->url, STATUS_URL_MAX);
    llhttp_init(&p->llhttp, HTTP_REQUEST, &settings);
    p->llhttp.data = p;
}

void status_parser_done(struct status_parser *p)
{
    buf_done(&p->url);
}

void status_parser_next(struct status_parser *p)
{
    llhttp_resume(&p->llhttp);
    buf_reset(&p->url);
    p->request = (struct status_request){ 0 };
    p->state = PARSE_MORE;
    p->head_bytes = p->head_fed = p->body_bytes = 0;
    p->begun = p->head_done = p->header_too_long = false;
    p->header[0] = '\0';
}

static int status_request_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Any text may be returned in an answer, and JSON requires UTF-8. */
static bool status_request_is_utf8(const char *s)
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
static bool status_request_decode(char *s, bool plus_is_blank)
{
    char *w = s;

    for (char *r = s; *r != '\0'; r++) {
        if (*r == '%') {
            if (status_request_hex(r[1]) < 0 || status_request_hex(r[2]) < 0 || (r[1] == '0' && r[2] == '0'))
                return false;
            *w++ = (char)(status_request_hex(r[1]) * 16 + status_request_hex(r[2]));
            r += 2;
        } else {
            *w++ = *r == '+' && plus_is_blank ? ' ' : *r;
        }
    }
    *w = '\0';
    return status_request_is_utf8(s);
}

static bool split_path(struct status_request *r, char *path)
{
    char *next;

    for (char *s = path + 1; s != NULL && *s != '\0'; s = next) {
        next = strchr(s, '/');
        if (next != NULL)
            *next++ = '\0';
        if (!status_request_decode(s, false))
            return false;
        if (r->n_segments == STATUS_SEGMENTS_MAX) { /* none of our paths is that deep: not found */
            r->n_segments = 0;
            return true;
        }
        r->segments[r->n_segments++] = s;
    }
    return true;
}

static bool split_query(struct status_request *r, char *query)
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
        if (r->n_params == STATUS_PARAMS_MAX || !status_request_decode(s, true) ||
            !status_request_decode(value, true))
            return false;
        r->params[r->n_params++] = (struct status_param){ s, value };
    }
    return true;
}

/* "/path?query", or "http://host/path?query" as sent by a proxy. */
static bool split_url(struct status_parser *p)
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

static enum status_method method_of(uint8_t method)
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
    default:
        return METHOD_OTHER;
    }
}

static void status_request_finish(struct status_parser *p, bool upgrade)
{
    struct status_request *r = &p->request;

    r->method = method_of(llhttp_get_method(&p->llhttp));
    r->http10 = llhttp_get_http_major(&p->llhttp) < 1 ||
                (llhttp_get_http_major(&p->llhttp) == 1 && llhttp_get_http_minor(&p->llhttp) == 0);
    r->upgrade.asked = upgrade && r->upgrade.protocol[0] != '\0';
    /* Even if the protocol is not changed, what follows is not HTTP. */
    r->keep_alive = !upgrade && !r->http10 && llhttp_should_keep_alive(&p->llhttp);
    if (!split_url(p) &&
        r->method != METHOD_OTHER) { /* "OPTIONS *", "CONNECT host:port": 405 for any target */
        p->state = PARSE_FAILED;
        status_request_fail(p, 400, "the URL cannot be understood");
    }
}

size_t status_parser_feed(struct status_parser *p, const char *bytes, size_t n)
{
    enum llhttp_errno code;
    size_t used = n;

    if (p->state != PARSE_MORE || n == 0)
        return 0;
    code = llhttp_execute(&p->llhttp, bytes, n);
    if (code == HPE_OK) {
        /* blanks are not part of a name or value */
        if (!p->head_done && (p->head_fed += n) > STATUS_HEAD_MAX) {
            status_request_fail(p, 431, "the head of the request is too long");
            p->state = PARSE_FAILED;
        }
        return used;
    }
    if (llhttp_get_error_pos(&p->llhttp) != NULL)
        used = (size_t)(llhttp_get_error_pos(&p->llhttp) - bytes);
    if (p->state == PARSE_DONE || code == HPE_PAUSED_UPGRADE) {
        p->state = PARSE_DONE;
        status_request_finish(p, code == HPE_PAUSED_UPGRADE || p->llhttp.upgrade != 0);
    } else {
        p->state = PARSE_FAILED;
        status_request_fail(p, 400, "this is not a HTTP/1.1 request");
    }
    return used;
}

/* ---- routes ---- */

static const struct {
    enum status_route route;
    unsigned methods;
    const char *segments[STATUS_SEGMENTS_MAX + 1]; /* "{ns}" and "{name}" take any */
} routes[] = {
    { ROUTE_HEALTHZ, METHOD_GET, { "healthz" } },
    { ROUTE_READYZ, METHOD_GET, { "readyz" } },
    { ROUTE_VERSION, METHOD_GET, { "version" } },
    { ROUTE_METRICS, METHOD_GET, { "metrics" } },
    { ROUTE_METRICS_CADVISOR, METHOD_GET, { "metrics", "cadvisor" } },
    { ROUTE_METRICS_RESOURCE, METHOD_GET, { "metrics", "resource" } },
    { ROUTE_STATS, METHOD_GET, { "stats", "summary" } },
    { ROUTE_PODS, METHOD_GET, { "api", "v1", "pods" } },
    { ROUTE_PODS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "pods" } },
    { ROUTE_POD, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "pods", "{name}" } },
    { ROUTE_POD_LOG, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "log" } },
    { ROUTE_POD_EXEC,
      METHOD_GET | METHOD_POST,
      { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "exec" } },
    { ROUTE_POD_ATTACH,
      METHOD_GET | METHOD_POST,
      { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "attach" } },
    { ROUTE_POD_FORWARD,
      METHOD_GET | METHOD_POST,
      { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "portforward" } },
    { ROUTE_POD_ARCHIVE,
      METHOD_GET | METHOD_POST,
      { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "archive" } },
    { ROUTE_POD_RESTART, METHOD_POST, { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "restart" } },
    { ROUTE_EVENTS, METHOD_GET, { "api", "v1", "events" } },
    { ROUTE_EVENTS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "events" } },
    { ROUTE_NODES, METHOD_GET, { "api", "v1", "nodes" } },
    { ROUTE_NODES, METHOD_GET, { "api", "v1", "nodes", "{name}" } },
    { ROUTE_CONFIG_MAPS, METHOD_GET, { "api", "v1", "configmaps" } },
    { ROUTE_CONFIG_MAPS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "configmaps" } },
    { ROUTE_CONFIG_MAPS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "configmaps", "{name}" } },
    { ROUTE_SECRETS, METHOD_GET, { "api", "v1", "secrets" } },
    { ROUTE_SECRETS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "secrets" } },
    { ROUTE_SECRETS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "secrets", "{name}" } },
    { ROUTE_PRIORITY_CLASSES, METHOD_GET, { "apis", "scheduling.k8s.io", "v1", "priorityclasses" } },
    { ROUTE_PRIORITY_CLASSES,
      METHOD_GET,
      { "apis", "scheduling.k8s.io", "v1", "priorityclasses", "{name}" } },
    { ROUTE_EXPLAIN, METHOD_GET, { "explain" } },
    { ROUTE_EXPLAIN, METHOD_GET, { "explain", "{ns}", "{name}" } },
    { ROUTE_MANIFESTS, METHOD_GET, { "manifests" } },
    { ROUTE_CONFIG, METHOD_GET, { "configz" } },
    { ROUTE_DEVICES, METHOD_GET, { "devices" } },
    { ROUTE_EVICTIONS, METHOD_GET, { "evictions" } },
    { ROUTE_IMAGES, METHOD_GET | METHOD_POST | METHOD_DELETE, { "images" } },
    { ROUTE_IMAGE_TASK, METHOD_POST, { "images", "{name}" } },
    { ROUTE_OPERATIONS, METHOD_GET, { "debug", "operations" } },
};

struct status_match status_route(const struct status_request *r)
{
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        struct status_match m = { .route = routes[i].route, .methods = routes[i].methods };
        const char *const *want = routes[i].segments;
        size_t n = 0;

        if (m.methods & METHOD_GET)
            m.methods |= METHOD_HEAD;
        for (; n < r->n_segments && want[n] != NULL; n++) {
            const char *got = r->segments[n];

            if (strcmp(want[n], "{ns}") == 0 && got[0] != '\0')
                m.namespace_ = got;
            else if (strcmp(want[n], "{name}") == 0 && got[0] != '\0')
                m.name = got;
            else if (strcmp(want[n], got) != 0)
                break;
        }
        if (n > 0 && n == r->n_segments && want[n] == NULL)
            return m;
    }
    return (struct status_match){ .route = ROUTE_NONE };
}
