/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/request.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *probe_request_value_of(const struct probe_request *q, const char *name)
{
    for (size_t i = 0; i < q->n_headers; i++)
        if (strcasecmp(q->headers[i].name, name) == 0)
            return q->headers[i].value != NULL ? q->headers[i].value : "";
    return NULL;
}

const char *probe_request_host(const struct probe_request *q)
{
    const char *host = probe_request_value_of(q, "Host");

    return host != NULL && host[0] != '\0' ? host : NULL;
}

/* Headers of the manifest that Go sets itself or drops. */
static bool is_excluded(const char *name)
{
    static const char *const names[] = { "Host",    "User-Agent", "Content-Length", "Transfer-Encoding",
                                         "Trailer", "Connection" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_credential(const char *name)
{
    static const char *const names[] = { "Authorization", "Www-Authenticate",    "Cookie",
                                         "Cookie2",       "Proxy-Authorization", "Proxy-Authenticate" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

/* "x-my-header" to "X-My-Header"; an invalid token stays as it is. */
static void add_canonical(const char *name, struct buf *out)
{
    bool up = true;

    for (const char *c = name; *c != '\0'; c++) {
        buf_addc(out, (char)(up ? toupper((unsigned char)*c) : tolower((unsigned char)*c)));
        up = *c == '-';
    }
}

static enum err_code add_header(const char *name, const char *value, struct buf *out, struct err *e)
{
    size_t n;

    for (const char *c = value; *c != '\0'; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f) {
            buf_auto shown = BUF_INIT(256);
            add_canonical(name, &shown);
            return err_set(e, ERR_INVALID, "net/http: invalid header field value for \"%s\"", shown.p);
        }
    value += strspn(value, " \t");
    n = strlen(value);
    while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'))
        n--;
    add_canonical(name, out);
    buf_adds(out, ": ");
    buf_add(out, value, n);
    buf_adds(out, "\r\n");
    return ERR_OK;
}

static int probe_request_by_name(const void *a, const void *b)
{
    const struct probe_header *x = *(const struct probe_header *const *)a,
                              *y = *(const struct probe_header *const *)b;
    int order = strcasecmp(x->name, y->name);

    return order != 0 ? order : (x > y) - (x < y); /* equal names keep the manifest's order */
}

/* The other headers sorted by name, including ours. */
static enum err_code add_rest(const struct probe_request *q, struct buf *out, struct err *e)
{
    const struct probe_header accept = { "Accept", "*/*" }, referer = { "Referer", q->referer };
    const struct probe_header **sorted = calloc(q->n_headers + 2, sizeof(*sorted));
    const char *own_accept = probe_request_value_of(q, "Accept");
    size_t n = 0;

    if (sorted == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < q->n_headers; i++) {
        const struct probe_header *h = &q->headers[i];
        if (is_excluded(h->name) || (q->foreign && is_credential(h->name)) ||
            (strcasecmp(h->name, "Accept") == 0 && own_accept[0] == '\0'))
            continue;
        sorted[n++] = h;
    }
    if (own_accept == NULL)
        sorted[n++] = &accept;
    if (q->referer != NULL && probe_request_value_of(q, "Referer") == NULL)
        sorted[n++] = &referer;
    qsort(sorted, n, sizeof(*sorted), probe_request_by_name);
    for (size_t i = 0; i < n && e->code == ERR_OK; i++)
        if (add_header(sorted[i]->name, sorted[i]->value != NULL ? sorted[i]->value : "", out, e) != ERR_OK)
            break;
    free(sorted);
    return e->code;
}

enum err_code probe_request_build(const struct probe_request *q, const struct probe_url *url, struct buf *out,
                                  struct err *e)
{
    const char *agent = probe_request_value_of(q, "User-Agent");
    buf_auto host = BUF_INIT(1024);

    if (q->host != NULL)
        buf_adds(&host, q->host);
    else
        probe_url_add_authority(url, &host);
    for (size_t i = 0; i < host.n; i++)
        if ((unsigned char)host.p[i] <= ' ' || host.p[i] == '/' || host.p[i] == 0x7f) {
            host.p[i] = '\0'; /* Go truncates a Host header there */
            host.n = i;
        }
    buf_adds(out, "GET ");
    probe_url_add_request(url, out);
    buf_adds(out, " HTTP/1.1\r\n");
    if (add_header("Host", host.p, out, e) != ERR_OK)
        return e->code;
    if (agent == NULL)
        agent = q->user_agent;
    if (agent[0] != '\0' && add_header("User-Agent", agent, out, e) != ERR_OK)
        return e->code;
    if (add_rest(q, out, e) != ERR_OK)
        return e->code;
    buf_adds(out, "Connection: close\r\n\r\n");
    return buf_check(out, e);
}
