/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/url.h"

#include "agent/probe/text.h"
#include "base/parse.h"
#include "base/scope.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void probe_url_done(struct probe_url *u)
{
    free(u->path);
    free(u->query);
    free(u->fragment);
    *u = (struct probe_url){ 0 };
}

/* ---- escaping ---- */

static bool is_hex2(const char *s)
{
    return isxdigit((unsigned char)s[0]) && isxdigit((unsigned char)s[1]);
}

static bool escapes_are_valid(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] == '%' && (n - i < 3 || !is_hex2(s + i + 1)))
            return false;
    return true;
}

static bool is_unreserved(unsigned char c)
{
    return c < 0x80 && (isalnum(c) || (c != '\0' && strchr("-_.~", c) != NULL));
}

static unsigned probe_url_hex(char c)
{
    return (unsigned)(isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10);
}

/* Like Go's EscapedPath(): a valid encoding is kept; otherwise the path is decoded and encoded again. */
static char *escape_path(const char *s, size_t n, bool decode)
{
    buf_auto out = BUF_INIT(3 * PROBE_URL_MAX);
    bool keep = decode;

    for (size_t i = 0; i < n && keep; i++)
        keep =
            is_unreserved((unsigned char)s[i]) || (s[i] != '\0' && strchr("!$&'()*+,;=:@[]/%", s[i]) != NULL);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (!keep && decode && c == '%') {
            c = (unsigned char)(probe_url_hex(s[i + 1]) << 4 | probe_url_hex(s[i + 2]));
            i += 2;
        }
        if (keep || is_unreserved(c) || (c != '\0' && strchr("$&+,/:;=@", c) != NULL))
            buf_addc(&out, (char)c);
        else
            buf_addf(&out, "%%%02X", c);
    }
    return out.failed ? NULL : buf_detach(&out);
}

/* Like Go's URL.String() with a host: a non-empty path begins with a slash. */
static char *rooted_path(const char *s, size_t n, bool decode)
{
    str_auto path = escape_path(s, n, decode);

    if (path == NULL || path[0] == '\0' || path[0] == '/')
        return take_ptr(&path);
    return str_printf("/%s", path);
}

/* ---- splitting ---- */

struct parts { /* pointers into the text */
    struct str scheme, authority, path, query, fragment;
    bool has_authority, has_query, has_fragment;
};

static size_t scheme_length(const char *text)
{
    size_t n = 0;

    while (isalnum((unsigned char)text[n]) || (n > 0 && text[n] != '\0' && strchr("+-.", text[n]) != NULL))
        n++;
    return n > 0 && isalpha((unsigned char)text[0]) && text[n] == ':' ? n : 0;
}

bool probe_url_is_absolute(const char *location)
{
    return scheme_length(location) > 0;
}

static void probe_url_split(const char *text, struct parts *ret)
{
    const char *p = text, *end = text + strlen(text), *mark = strchr(text, '#');
    size_t n = scheme_length(text);

    *ret = (struct parts){ 0 };
    if (mark != NULL) {
        ret->fragment = (struct str){ mark + 1, (size_t)(end - mark - 1) };
        ret->has_fragment = mark[1] != '\0';
        end = mark;
    }
    mark = memchr(text, '?', (size_t)(end - text));
    if (mark != NULL) {
        ret->query = (struct str){ mark + 1, (size_t)(end - mark - 1) };
        ret->has_query = true;
        end = mark;
    }
    if (n > 0 && p + n < end) {
        ret->scheme = (struct str){ p, n };
        p += n + 1;
    }
    if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
        const char *slash = memchr(p + 2, '/', (size_t)(end - p - 2));
        const char *stop = slash != NULL ? slash : end;
        ret->authority = (struct str){ p + 2, (size_t)(stop - p - 2) };
        ret->has_authority = true;
        p = stop;
    }
    ret->path = (struct str){ p, (size_t)(end - p) };
}

static bool has_control(const char *s)
{
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return true;
    return false;
}

static enum err_code copy_rest(struct probe_url *u, const struct parts *p, struct err *e)
{
    if (p->has_query && (u->query = strndup(p->query.p, p->query.n)) == NULL)
        return err_nomem(e);
    if (p->has_fragment && (u->fragment = strndup(p->fragment.p, p->fragment.n)) == NULL)
        return err_nomem(e);
    return u->path == NULL ? err_nomem(e) : ERR_OK;
}

enum err_code probe_url_make(struct probe_url *ret, bool https, const char *host, unsigned port,
                             const char *path, struct err *e)
{
    struct probe_url u = { .https = https, .port = port, .has_port = true };
    struct parts p;

    if (strlen(host) > PROBE_HOST_MAX || strlen(path) > PROBE_URL_MAX)
        return err_set(e, ERR_INVALID, "host or path is too long");
    memcpy(u.host, host, strlen(host) + 1);
    probe_url_split(path, &p);
    if (has_control(path) || !escapes_are_valid(p.path.p, p.path.n)) {
        p = (struct parts){ 0 };
        u.path = rooted_path(path, strlen(path), false);
    } else {
        u.path = rooted_path(p.path.p, p.path.n, true);
    }
    if (copy_rest(&u, &p, e) != ERR_OK) {
        probe_url_done(&u);
        return e->code;
    }
    *ret = u;
    return ERR_OK;
}

/* ---- following ---- */

/* "host", "host:port", "[v6]:port", after user information, which is ignored. */
static enum err_code take_authority(struct probe_url *u, struct str a, struct err *e)
{
    const char *at = a.n > 0 ? memrchr(a.p, '@', a.n) : NULL, *colon, *end;
    char port[8] = "";
    uint64_t number = 0;

    if (at != NULL) {
        a.n -= (size_t)(at + 1 - a.p);
        a.p = at + 1;
    }
    if (a.n > 0 && a.p[0] == '[') {
        end = memchr(a.p, ']', a.n);
        if (end == NULL)
            return err_set(e, ERR_INVALID, "missing ']' in host");
        colon = end + 1 < a.p + a.n ? end + 1 : NULL;
        if (colon != NULL && *colon != ':')
            return err_set(e, ERR_INVALID, "invalid port after host");
        a.p++;
    } else {
        colon = a.n > 0 ? memchr(a.p, ':', a.n) : NULL;
        end = colon != NULL ? colon : a.p + a.n;
    }
    if (end == a.p || (size_t)(end - a.p) > PROBE_HOST_MAX)
        return err_set(e, ERR_INVALID, "no Host in request URL");
    for (const char *c = a.p; c < end; c++)
        if (!is_unreserved((unsigned char)*c) && *c != ':' && *c != '%')
            return err_set(e, ERR_INVALID, "invalid character in host name");
    memset(u->host, 0, sizeof(u->host));
    memcpy(u->host, a.p, (size_t)(end - a.p));
    if (at != NULL || colon == NULL)
        u->has_port = false;
    if (colon == NULL)
        return ERR_OK;
    snprintf(port, sizeof(port), "%.*s", (int)((end = strpbrk(colon, "/?#")) != NULL ? end - colon - 1 : 7),
             colon + 1);
    u->has_port = port[0] != '\0';
    if (u->has_port && parse_u64(port, 1, 65535, &number, "port", e) != ERR_OK)
        return err_set(e, ERR_INVALID, "invalid port \":%s\" after host", port);
    u->port = (unsigned)number;
    return ERR_OK;
}

/* "a/b/../c/./d" to "a/c/d", RFC 3986 5.2.4. */
static char *without_dots(const char *path)
{
    buf_auto out = BUF_INIT(2 * PROBE_URL_MAX);
    const char *p = path;

    while (*p != '\0') {
        size_t n = strcspn(p, "/");
        bool last = p[n] == '\0';

        if (n == 2 && p[0] == '.' && p[1] == '.') {
            if (out.n > 1) {
                size_t k = out.n - 1; /* the trailing slash */
                while (k > 0 && out.p[k - 1] != '/')
                    k--;
                out.n = k;
                out.p[k] = '\0';
            }
        } else if (!(n == 1 && p[0] == '.')) {
            buf_add(&out, p, n);
            if (!last)
                buf_addc(&out, '/');
        }
        p += last ? n : n + 1;
    }
    return out.failed ? NULL : buf_detach(&out);
}

static char *resolve_path(const struct probe_url *from, const struct parts *p)
{
    buf_auto joined = BUF_INIT(4 * PROBE_URL_MAX);
    str_auto own = escape_path(p->path.p, p->path.n, true);
    const char *slash = strrchr(from->path, '/');

    if (own == NULL)
        return NULL;
    if (own[0] != '/' && !p->has_authority) {
        if (own[0] == '\0')
            return strdup(from->path);
        buf_add(&joined, from->path, slash != NULL ? (size_t)(slash - from->path + 1) : 0);
    }
    if (joined.n == 0 && own[0] != '/')
        buf_addc(&joined, '/');
    buf_adds(&joined, own);
    return joined.failed ? NULL : without_dots(joined.p);
}

enum err_code probe_url_follow(struct probe_url *ret, const struct probe_url *from, const char *location,
                               struct err *e)
{
    struct probe_url u = { .https = from->https, .port = from->port, .has_port = from->has_port };
    struct parts p;

    if (strlen(location) > PROBE_URL_MAX)
        return err_set(e, ERR_INVALID, "too long");
    probe_url_split(location, &p);
    if (has_control(location))
        return err_set(e, ERR_INVALID, "net/url: invalid control character in URL");
    if (!escapes_are_valid(p.path.p, p.path.n))
        return err_set(e, ERR_INVALID, "invalid URL escape");
    memcpy(u.host, from->host, sizeof(u.host));
    if (p.scheme.n > 0) {
        u.https = p.scheme.n == 5 && strncasecmp(p.scheme.p, "https", 5) == 0;
        if (!u.https && !(p.scheme.n == 4 && strncasecmp(p.scheme.p, "http", 4) == 0))
            return err_set(e, ERR_INVALID, "unsupported protocol scheme \"%.*s\"",
                           (int)(p.scheme.n < 40 ? p.scheme.n : 40), p.scheme.p);
        if (!p.has_authority)
            return err_set(e, ERR_INVALID, "http: no Host in request URL");
    }
    if (p.has_authority && take_authority(&u, p.authority, e) != ERR_OK)
        return e->code;
    if (!u.has_port)
        u.port = u.https ? 443 : 80;
    u.path = resolve_path(from, &p);
    if (u.path != NULL && p.path.n == 0 && !p.has_authority && !p.has_query && from->query != NULL &&
        (u.query = strdup(from->query)) == NULL) {
        probe_url_done(&u);
        return err_nomem(e);
    }
    if (copy_rest(&u, &p, e) != ERR_OK) {
        probe_url_done(&u);
        return e->code;
    }
    *ret = u;
    return ERR_OK;
}

/* ---- showing ---- */

void probe_url_add_authority(const struct probe_url *u, struct buf *out)
{
    if (u->has_port)
        probe_add_address(out, u->host, u->port);
    else
        buf_addf(out, strchr(u->host, ':') != NULL ? "[%s]" : "%s", u->host);
}

void probe_url_add_request(const struct probe_url *u, struct buf *out)
{
    buf_adds(out, u->path[0] != '\0' ? u->path : "/");
    if (u->query != NULL)
        buf_addf(out, "?%s", u->query);
}

void probe_url_add(const struct probe_url *u, struct buf *out)
{
    buf_adds(out, u->https ? "https://" : "http://");
    probe_url_add_authority(u, out);
    buf_adds(out, u->path);
    if (u->query != NULL)
        buf_addf(out, "?%s", u->query);
    if (u->fragment != NULL)
        buf_addf(out, "#%s", u->fragment);
}
