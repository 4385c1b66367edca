/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url - servers and proxies as Go's net/url and k8s.io/client-go/rest/url_utils.go read them: "host:port" has
 * no scheme (the text before the colon would be one, or no URL at all), query and fragment do not count, and
 * the name and password in front of the host become basic authentication.
 */
#include "agent/kube/config/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void kube_url_done(struct kube_url *u)
{
    free(u->scheme);
    free(u->host);
    free(u->path);
    free(u->user);
    if (u->password != NULL)
        explicit_bzero(u->password, strlen(u->password));
    free(u->password);
    *u = (struct kube_url){ 0 };
}

static int hex_of(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch |= 0x20;
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* NULL: an escape is incomplete, makes a NUL, or memory is short. */
static char *unescape(const char *text, size_t n)
{
    char *out = malloc(n + 1);
    size_t at = 0;

    for (size_t i = 0; out != NULL && i < n; i++) {
        char ch = text[i];
        if (ch == '%') {
            int high = i + 2 < n ? hex_of(text[i + 1]) : -1, low = i + 2 < n ? hex_of(text[i + 2]) : -1;
            ch = (char)(high * 16 + low);
            if (high < 0 || low < 0 || ch == '\0') {
                free(out);
                return NULL;
            }
            i += 2;
        }
        out[at++] = ch;
    }
    if (out != NULL)
        out[at] = '\0';
    return out;
}

/* The length of "scheme" in "scheme:...", 0: there is none; SIZE_MAX: the text begins with the colon. */
static size_t scheme_length(const char *text)
{
    size_t n = 0;

    for (; text[n] != '\0'; n++) {
        char ch = text[n];
        if (isalpha((unsigned char)ch))
            continue;
        if (n > 0 && (isdigit((unsigned char)ch) || ch == '+' || ch == '-' || ch == '.'))
            continue;
        if (ch == ':')
            return n == 0 ? SIZE_MAX : n;
        return 0;
    }
    return 0;
}

static bool valid_port(const char *text) /* ":123", ":" or "" */
{
    if (*text == '\0')
        return true;
    if (*text++ != ':')
        return false;
    return text[strspn(text, "0123456789")] == '\0';
}

static bool host_is_valid(const char *host)
{
    const char *close = strrchr(host, ']');

    if (host[0] == '[')
        return close != NULL && close > host + 1 && valid_port(close + 1) &&
               strspn(host + 1, "0123456789abcdefABCDEF:.%") >= strcspn(host + 1, "]%");
    for (const char *p = host; *p != '\0'; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f || strchr("\"<>\\^`{|}%", *p) != NULL)
            return false;
    return strchr(host, ':') == NULL || valid_port(strrchr(host, ':'));
}

static bool take_authority(struct kube_url *u, const char *text, size_t n, const char **ret_why)
{
    const char *at = memrchr(text, '@', n);
    size_t lead = at != NULL ? (size_t)(at - text) : 0;

    if (at != NULL) {
        const char *colon = memchr(text, ':', lead);
        size_t user = colon != NULL ? (size_t)(colon - text) : lead;
        u->user = unescape(text, user);
        u->password = unescape(colon != NULL ? colon + 1 : "", colon != NULL ? lead - user - 1 : 0);
        *ret_why = "its name and password cannot be decoded";
        if (u->user == NULL || u->password == NULL)
            return false;
        n -= lead + 1;
        text = at + 1;
    }
    u->host = strndup(text, n);
    *ret_why = "it has no valid host and port";
    return u->host != NULL && host_is_valid(u->host);
}

bool kube_url_parse(const char *text, struct kube_url *ret, const char **ret_why)
{
    struct kube_url u = { 0 };
    const char *why = "it has no scheme", *rest;
    size_t n = scheme_length(text);
    bool ok = false;

    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f) {
            n = 0;
            why = "it has a control character";
        }
    if (n != 0 && n != SIZE_MAX && (u.scheme = strndup(text, n)) != NULL) {
        size_t end, host;
        for (char *p = u.scheme; *p != '\0'; p++)
            *p = (char)tolower((unsigned char)*p);
        rest = text + n + 1;
        end = strcspn(rest, "?#");
        why = "it has no host";
        if (strncmp(rest, "//", 2) == 0) {
            rest += 2;
            end -= 2;
            host = strcspn(rest, "/?#");
            ok = take_authority(&u, rest, host, &why) && u.host[0] != '\0';
            u.path = ok ? strndup(rest + host, end - host) : NULL;
            ok = u.path != NULL;
        }
    }
    if (ret_why != NULL)
        *ret_why = why;
    if (!ok)
        kube_url_done(&u);
    else
        *ret = u;
    return ok;
}

enum err_code kube_url_server(const char *text, struct kube_url *ret, struct err *e)
{
    str_auto with = NULL;

    if (kube_url_parse(text, ret, NULL)) {
        if (strcmp(ret->scheme, "http") == 0 || strcmp(ret->scheme, "https") == 0)
            return ERR_OK;
        err_set(e, ERR_INVALID, "server: unsupported protocol scheme \"%.40s\", must be http or https",
                ret->scheme);
        kube_url_done(ret);
        return e->code;
    }
    with = str_printf("http://%s", text);
    if (with == NULL)
        return err_nomem(e);
    if (kube_url_parse(with, ret, NULL)) {
        if (ret->path[0] == '\0' || strcmp(ret->path, "/") == 0)
            return ERR_OK;
        kube_url_done(ret);
    }
    return err_set(e, ERR_INVALID, "server: host must be a URL or a host:port pair: \"%.200s\"", text);
}

enum err_code kube_url_proxy(const char *text, struct err *e)
{
    struct kube_url u = { 0 };
    size_t n = scheme_length(text), shown = strcspn(text, "?#");
    const char *why = NULL;
    bool ok;

    if (memrchr(text, '@', shown) != NULL) /* a password may be in front of it */
        shown = 0;
    if (n != 0 && n != SIZE_MAX) {
        bool known = (n == 4 && strncasecmp(text, "http", 4) == 0) ||
                     (n == 5 && strncasecmp(text, "https", 5) == 0) ||
                     (n == 6 && strncasecmp(text, "socks5", 6) == 0);
        if (!known)
            return err_set(e, ERR_INVALID,
                           "invalid 'proxy-url': unsupported scheme \"%.*s\", must be http, https, or socks5",
                           (int)(n < 40 ? n : 40), text);
    }
    ok = kube_url_parse(text, &u, &why);
    kube_url_done(&u);
    if (!ok)
        return err_set(e, ERR_INVALID, "invalid 'proxy-url' \"%.*s\": %s", (int)(shown < 200 ? shown : 200),
                       text, why);
    return ERR_OK;
}

bool kube_url_split(const struct kube_url *u, char **ret_host, char **ret_port)
{
    const char *host = u->host, *colon = strrchr(host, ':'), *close = strchr(host, ']');

    if (host[0] == '[' && close != NULL) {
        *ret_host = strndup(host + 1, (size_t)(close - host) - 1);
        *ret_port = strdup(close[1] == ':' ? close + 2 : "");
    } else {
        *ret_host = strndup(host, colon != NULL ? (size_t)(colon - host) : strlen(host));
        *ret_port = strdup(colon != NULL ? colon + 1 : "");
    }
    if (*ret_host != NULL && *ret_port != NULL)
        return true;
    free(take_ptr(ret_host));
    free(take_ptr(ret_port));
    return false;
}
