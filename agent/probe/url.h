/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url - the address of an HTTP check, by the rules of Go's net/url as kubelet uses it: what is sent, what is
 * shown in messages, where a redirect leads.  Pure.
 */
#ifndef AGENT_PROBE_URL_H
#define AGENT_PROBE_URL_H
#include "base/buf.h"

#include <stdbool.h>

#define PROBE_HOST_MAX 255        /* a DNS name's limit */
#define PROBE_URL_MAX (16 * 1024) /* path and query; a manifest or a Location with more is refused */

struct probe_url {
    bool https;
    char host[PROBE_HOST_MAX + 1]; /* without brackets */
    unsigned port;                 /* what is dialled */
    bool has_port;                 /* it was written; else it follows from the scheme */
    char *path;                    /* escaped as sent; may be "" */
    char *query;                   /* without "?"; NULL: none */
    char *fragment;                /* NULL: none; shown, never sent */
};

/*
 * Of a probe or hook: the path may hold a query and a fragment.  One that is no valid URL (a bare "%", a
 * control character) is escaped as a whole, as kubelet does.
 */
enum err_code probe_url_make(struct probe_url *ret, bool https, const char *host, unsigned port,
                             const char *path, struct err *e) MUST_CHECK;
/*
 * Where `location` (a response's header) leads from `from`.  ERR_INVALID with Go's text: it is no URL, or not
 * an HTTP one.
 */
enum err_code probe_url_follow(struct probe_url *ret, const struct probe_url *from, const char *location,
                               struct err *e) MUST_CHECK;
void probe_url_done(struct probe_url *u); /* { 0 } is fine */

void probe_url_add(const struct probe_url *u, struct buf *out);           /* whole, for messages */
void probe_url_add_request(const struct probe_url *u, struct buf *out);   /* "/path?query" */
void probe_url_add_authority(const struct probe_url *u, struct buf *out); /* the Host header */
bool probe_url_is_absolute(const char *location);                         /* has a scheme */
#endif
