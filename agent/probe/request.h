/* SPDX-License-Identifier: Apache-2.0 */
/* request - the text of a check's HTTP request, as Go's net/http writes it for kubelet. Pure. */
#ifndef AGENT_PROBE_REQUEST_H
#define AGENT_PROBE_REQUEST_H
#include "agent/probe/probe.h"
#include "agent/probe/url.h"

#define PROBE_REQUEST_MAX (256 * 1024) /* a manifest hardly has more in headers */

struct probe_request {
    const struct probe_header *headers; /* of the manifest */
    size_t n_headers;
    const char *user_agent;
    const char *host;    /* kept through a relative redirect; NULL: the URL's */
    const char *referer; /* after a redirect; may be NULL */
    bool foreign;        /* not the first host: send no credentials */
};

/* ERR_INVALID with Go's text for an invalid header. */
enum err_code probe_request_build(const struct probe_request *q, const struct probe_url *url, struct buf *out,
                                  struct err *e) MUST_CHECK;
/* The manifest's Host header; NULL if none or empty. */
const char *probe_request_host(const struct probe_request *q);
#endif
