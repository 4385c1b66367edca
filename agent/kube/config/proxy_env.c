/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_env - the proxy that the environment names for a server, as Go's golang.org/x/net/http/httpproxy
 * does: HTTPS_PROXY for https, HTTP_PROXY for http, NO_PROXY; names in lower case count where the others are
 * not set. None for localhost and loopback addresses.
 */
#include "agent/kube/config/proxy_env.h"
#include "agent/kube/config/internal.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct address { /* IPv4 as in IPv6: ::ffff:a.b.c.d */
    unsigned char b[16];
};

static bool address_of(const char *text, struct address *ret)
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

    if (inet_pton(AF_INET6, text, ret->b) == 1)
        return true;
    memcpy(ret->b, mapped, sizeof(mapped));
    return inet_pton(AF_INET, text, ret->b + 12) == 1;
}

static bool is_v4(const struct address *a)
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

    return memcmp(a->b, mapped, sizeof(mapped)) == 0;
}

static bool is_loopback(const struct address *a)
{
    static const unsigned char one[16] = { [15] = 1 };

    return is_v4(a) ? a->b[12] == 127 : memcmp(a->b, one, sizeof(one)) == 0;
}

static bool in_network(const char *network, const struct address *a)
{
    const char *slash = strchr(network, '/');
    str_auto text = slash != NULL ? strndup(network, (size_t)(slash - network)) : NULL;
    struct address net;
    char *end;
    unsigned long bits;

    if (text == NULL || !address_of(text, &net) || is_v4(&net) != is_v4(a) ||
        !isdigit((unsigned char)slash[1]))
        return false;
    bits = strtoul(slash + 1, &end, 10);
    if (*end != '\0' || bits > (is_v4(a) ? 32 : 128))
        return false;
    if (is_v4(a))
        bits += 96;
    for (unsigned long i = 0; i < bits; i++)
        if ((a->b[i / 8] ^ net.b[i / 8]) & (0x80U >> (i % 8)))
            return false;
    return true;
}

struct server {
    const char *host, *port; /* host in lower case */
    bool numeric;
    struct address address;
};

/* One element of NO_PROXY, in lower case, without blanks around it. */
static bool excludes(char *element, const struct server *s)
{
    char *host = element, *port = (char *)"", *colon = strrchr(element, ':'), *close = strchr(element, ']');
    struct address a;
    size_t n, host_n = strlen(s->host);

    if (strcmp(element, "*") == 0)
        return true;
    if (strchr(element, '/') != NULL)
        return s->numeric && in_network(element, &s->address);
    if (element[0] == '[' && close != NULL) {
        host = element + 1;
        port = close[1] == ':' ? close + 2 : port;
        *close = '\0';
    } else if (colon != NULL && strchr(element, ':') == colon) {
        port = colon + 1;
        *colon = '\0';
    }
    if (*host == '\0' || (*port != '\0' && strcmp(port, s->port) != 0))
        return false;
    if (address_of(host, &a))
        return s->numeric && memcmp(a.b, s->address.b, sizeof(a.b)) == 0;
    if (strncmp(host, "*.", 2) == 0)
        host++;
    n = strlen(host);
    if (host[0] == '.')
        return host_n > n && strcmp(s->host + host_n - n, host) == 0;
    if (strcmp(s->host, host) == 0)
        return true;
    return host_n > n && s->host[host_n - n - 1] == '.' && strcmp(s->host + host_n - n, host) == 0;
}

static void lower(char *text)
{
    for (; *text != '\0'; text++)
        *text = (char)tolower((unsigned char)*text);
}

static bool is_excluded(const char *list, const struct server *s)
{
    str_auto copy = strdup(list);
    char *left = copy, *element;

    if (copy == NULL)
        return false;
    lower(copy);
    while ((element = strsep(&left, ",")) != NULL) {
        size_t n;
        element += strspn(element, " \t");
        for (n = strlen(element); n > 0 && (element[n - 1] == ' ' || element[n - 1] == '\t'); n--)
            element[n - 1] = '\0';
        if (element[0] != '\0' && excludes(element, s))
            return true;
    }
    return false;
}

static const char *either(const char *const *environment, const char *upper, const char *lower_case)
{
    const char *v = kube_env(environment, upper);

    return v != NULL && v[0] != '\0' ? v : kube_env(environment, lower_case);
}

char *kube_proxy_of(const char *const *environment, const char *server)
{
    const char *proxy, *none = either(environment, "NO_PROXY", "no_proxy");
    struct kube_url u = { 0 }, parsed = { 0 };
    str_auto host = NULL;
    str_auto port = NULL;
    str_auto given = NULL;
    bool https, applies;
    struct server s;

    if (!kube_url_parse(server, &u, NULL))
        return NULL;
    https = strcmp(u.scheme, "https") == 0;
    proxy = https ? either(environment, "HTTPS_PROXY", "https_proxy")
                  : either(environment, "HTTP_PROXY", "http_proxy");
    applies = proxy != NULL && proxy[0] != '\0' && kube_url_split(&u, &host, &port);
    kube_url_done(&u);
    if (!applies)
        return NULL;
    lower(host);
    s = (struct server){ .host = host, .port = port[0] != '\0' ? port : https ? "443" : "80" };
    s.numeric = address_of(host, &s.address);
    if (strcmp(host, "localhost") == 0 || (s.numeric && is_loopback(&s.address)) ||
        (none != NULL && is_excluded(none, &s)))
        return NULL;
    if (kube_url_parse(proxy, &parsed, NULL))
        given = strdup(proxy);
    else
        given = str_printf("http://%s", proxy);
    kube_url_done(&parsed);
    return take_ptr(&given);
}
