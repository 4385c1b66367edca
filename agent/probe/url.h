/* SPDX-License-Identifier: Apache-2.0 */
/* url - the URL of an HTTP check, by the rules of Go's net/url as used by kubelet: the sent form, the form in
 * messages, and the targets of redirects. Pure. */
#ifndef AGENT_PROBE_URL_H
#define AGENT_PROBE_URL_H
#include "base/buf.h"

#include <stdbool.h>

#define PROBE_HOST_MAX 255        /* a DNS name's limit */
#define PROBE_URL_MAX (16 * 1024) /* path and query; longer ones are rejected */

struct probe_url {
    bool https;
    char host[PROBE_HOST_MAX + 1]; /* without brackets */
    unsigned port;                 /* the port to connect to */
    bool has_port;                 /* given explicitly, rather than by the scheme */
    char *path;                    /* escaped as sent; may be "" */
    char *query;                   /* without "?"; NULL: none */
    char *fragment;                /* may be NULL; shown, never sent */
};

/* The URL of a probe or hook: the path may contain a query and a fragment. An invalid one (a bare "%", a
 * control character) is escaped as a whole, as in kubelet. */
enum err_code probe_url_make(struct probe_url *ret, bool https, const char *host, unsigned port,
                             const char *path, struct err *e) MUST_CHECK;
/* The target of `location` (a response's header) relative to `from`. ERR_INVALID with Go's text: not a URL,
 * or not an HTTP one. */
enum err_code probe_url_follow(struct probe_url *ret, const struct probe_url *from, const char *location,
                               struct err *e) MUST_CHECK;
void probe_url_done(struct probe_url *u); /* { 0 } is fine */

void probe_url_add(const struct probe_url *u, struct buf *out);           /* the whole URL, for messages */
void probe_url_add_request(const struct probe_url *u, struct buf *out);   /* "/path?query" */
void probe_url_add_authority(const struct probe_url *u, struct buf *out); /* the Host header */
bool probe_url_is_absolute(const char *location);                         /* has a scheme */
#endif
