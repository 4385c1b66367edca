/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/resolv.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMESERVERS_MAX 3
#define SEARCHES_MAX 32
#define SEARCH_LENGTH_MAX 2048
#define SEARCH_ONE_MAX 253
/* per line of the node's file; glibc reads six search domains, newer versions any number */
#define LINE_WORDS_MAX 80

struct words {
    char v[64][SEARCH_ONE_MAX + 4];
    size_t n;
    bool cut; /* one was too long, or there were too many */
};

static void add_word(struct words *w, const char *text, size_t n)
{
    if (n == 0)
        return;
    for (size_t i = 0; i < w->n; i++)
        if (strlen(w->v[i]) == n && memcmp(w->v[i], text, n) == 0)
            return;
    if (n > SEARCH_ONE_MAX || w->n >= ARRAY_LEN(w->v)) {
        w->cut = true;
        return;
    }
    memcpy(w->v[w->n], text, n);
    w->v[w->n++][n] = '\0';
}

static void resolv_add_text(struct words *w, const char *text)
{
    add_word(w, text, strlen(text));
}

/* "name" or "name:value"; for equal names the later one wins. */
static void add_option(struct words *w, const char *text, size_t n)
{
    const char *colon = memchr(text, ':', n);
    size_t name_n = colon != NULL ? (size_t)(colon - text) : n;

    for (size_t i = 0; i < w->n; i++)
        if (strncmp(w->v[i], text, name_n) == 0 && (w->v[i][name_n] == ':' || w->v[i][name_n] == '\0') &&
            n < sizeof(w->v[i])) {
            memcpy(w->v[i], text, n);
            w->v[i][n] = '\0';
            return;
        }
    add_word(w, text, n);
}

struct resolv {
    struct words servers, searches, options;
};

/* ---- the node's file ---- */

struct line {
    const char *word[LINE_WORDS_MAX];
    size_t length[LINE_WORDS_MAX], n;
};

static void cut_line(const char *p, const char *end, struct line *ret)
{
    ret->n = 0;
    while (p < end && ret->n < LINE_WORDS_MAX) {
        size_t k = 0;

        while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
            p++;
        while (p + k < end && p[k] != ' ' && p[k] != '\t' && p[k] != '\r')
            k++;
        if (k > 0) {
            ret->word[ret->n] = p;
            ret->length[ret->n++] = k;
        }
        p += k;
    }
}

static bool begins(const struct line *l, const char *keyword)
{
    return l->length[0] == strlen(keyword) && memcmp(l->word[0], keyword, l->length[0]) == 0;
}

static void resolv_parse(const char *text, struct resolv *r)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        struct line l;

        cut_line(text, text + n, &l);
        text += n + (text[n] == '\n');
        if (l.n < 2)
            continue;
        if (begins(&l, "nameserver"))
            add_word(&r->servers, l.word[1], l.length[1]);
        if (begins(&l, "search")) {
            r->searches = (struct words){ 0 }; /* the last such line wins */
            for (size_t i = 1; i < l.n; i++) {
                size_t k = l.length[i];

                if (l.word[i][k - 1] == '.' &&
                    --k == 0) /* "example.test." is "example.test"; "." is nothing */
                    continue;
                add_word(&r->searches, l.word[i], k);
            }
        }
        for (size_t i = 1; begins(&l, "options") && i < l.n; i++)
            add_option(&r->options, l.word[i], l.length[i]);
    }
}

/* ---- by policy ---- */

static void of_cluster(const struct api_pod *pod, const struct resolv_node *node, const struct resolv *host,
                       struct resolv *r)
{
    char text[512];

    for (size_t i = 0; node->cluster_dns[i] != NULL; i++)
        resolv_add_text(&r->servers, node->cluster_dns[i]);
    if (node->cluster_domain[0] != '\0') {
        snprintf(text, sizeof(text), "%s.svc.%s", pod->meta.namespace, node->cluster_domain);
        resolv_add_text(&r->searches, text);
        snprintf(text, sizeof(text), "svc.%s", node->cluster_domain);
        resolv_add_text(&r->searches, text);
        resolv_add_text(&r->searches, node->cluster_domain);
    }
    for (size_t i = 0; i < host->searches.n; i++)
        resolv_add_text(&r->searches, host->searches.v[i]);
    r->searches.cut = r->searches.cut || host->searches.cut;
    resolv_add_text(&r->options, "ndots:5");
}

static void choose(const struct api_pod *pod, const struct resolv_node *node, const struct resolv *host,
                   struct resolv *r, bool *ret_no_cluster_dns)
{
    const struct api_pod_spec *s = &pod->spec;
    bool cluster = str_eq(s->dns_policy, "ClusterFirstWithHostNet") ||
                   (str_eq(s->dns_policy, "ClusterFirst") && !s->host_network);
    bool known = node->cluster_dns != NULL && node->cluster_dns[0] != NULL;

    *ret_no_cluster_dns = cluster && !known;
    if (str_eq(s->dns_policy, "None"))
        return; /* only dnsConfig applies */
    if (cluster && known) {
        of_cluster(pod, node, host, r);
    } else if (node->file == NULL) { /* the default of a resolver without servers, made explicit */
        resolv_add_text(&r->servers, node->ipv6 ? "::1" : "127.0.0.1");
        resolv_add_text(&r->searches, ".");
    } else {
        *r = *host;
    }
}

static void resolv_add_config(const struct api_pod_spec *s, struct resolv *r)
{
    for (size_t i = 0; i < s->dns_nameservers.n; i++)
        resolv_add_text(&r->servers, s->dns_nameservers.v[i]);
    for (size_t i = 0; i < s->dns_searches.n; i++)
        resolv_add_text(&r->searches, s->dns_searches.v[i]);
    for (size_t i = 0; i < s->n_dns_options; i++) {
        const struct api_dns_option *o = &s->dns_options[i];
        bool valued = o->value != NULL && o->value[0] != '\0';
        char text[SEARCH_ONE_MAX + 1];
        int n = snprintf(text, sizeof(text), "%s%s%s", o->name, valued ? ":" : "", valued ? o->value : "");

        if (n > 0 && (size_t)n < sizeof(text))
            add_option(&r->options, text, (size_t)n);
    }
}

/* ---- limits and text ---- */

static void resolv_join(const struct words *w, struct buf *out)
{
    for (size_t i = 0; i < w->n; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", w->v[i]);
}

static void resolv_limit(struct resolv *r, struct resolv_warnings *ret)
{
    size_t joined = 0, fit = 0;

    if (r->servers.n > NAMESERVERS_MAX) {
        r->servers.n = NAMESERVERS_MAX;
        buf_adds(&ret->servers, "Nameserver limits were exceeded, some nameservers have been omitted, the "
                                "applied nameserver line is: ");
        resolv_join(&r->servers, &ret->servers);
    }
    for (; fit < r->searches.n && fit < SEARCHES_MAX; fit++) {
        joined += strlen(r->searches.v[fit]) + (fit > 0);
        if (joined > SEARCH_LENGTH_MAX)
            break;
    }
    if (fit == r->searches.n && !r->searches.cut)
        return;
    r->searches.n = fit;
    buf_adds(&ret->searches, "Search Line limits were exceeded, some search paths have been omitted, the "
                             "applied search line is: ");
    resolv_join(&r->searches, &ret->searches);
}

void resolv_text(const struct api_pod *pod, const struct resolv_node *node, struct buf *out,
                 struct resolv_warnings *ret)
{
    struct resolv *host = calloc(1, sizeof(*host)), *r = calloc(1, sizeof(*r));

    if (host == NULL || r == NULL) {
        out->failed = true;
    } else {
        resolv_parse(node->file != NULL ? node->file : "", host);
        choose(pod, node, host, r, &ret->no_cluster_dns);
        resolv_add_config(&pod->spec, r);
        resolv_limit(r, ret);
        if (r->searches.n > 0) {
            buf_adds(out, "search ");
            resolv_join(&r->searches, out);
            buf_addc(out, '\n');
        }
        for (size_t i = 0; i < r->servers.n; i++)
            buf_addf(out, "nameserver %s\n", r->servers.v[i]);
        if (r->options.n > 0) {
            buf_adds(out, "options ");
            resolv_join(&r->options, out);
            buf_addc(out, '\n');
        }
    }
    free(host);
    free(r);
}
