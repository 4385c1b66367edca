/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request on the status socket, through parser, routing, parameters and selectors; no sockets.
 */
#include "agent/status/internal.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct http_request *r)
{
    struct status_match m = status_route(r);
    struct selection selection = { 0 };
    struct status_exec_options exec;
    struct status_log_options o;
    struct err e = { 0 };
    json_t *pod;

    assert(r->n_segments <= HTTP_SEGMENTS_MAX && r->n_params <= HTTP_PARAMS_MAX);
    for (size_t i = 0; i < r->n_params; i++)
        assert(http_param(r, r->params[i].key) != NULL);
    if (m.route == ROUTE_POD_LOG)
        assert(m.namespace_ != NULL && m.name != NULL);
    if (status_log_options(r, &o, &e) != ERR_OK)
        assert(e.code == ERR_INVALID || e.code == ERR_RANGE);
    e = (struct err){ 0 };
    if (status_exec_options(r, &exec, &e) == ERR_OK)
        assert(exec.command[0] != NULL && exec.command[HTTP_PARAMS_MAX] == NULL);
    assert(!r->upgrade.asked || r->upgrade.protocol[0] != '\0');
    e = (struct err){ 0 };
    if (selection_parse(r, m.route == ROUTE_EVENTS ? SELECT_EVENTS : SELECT_PODS, m.namespace_, &selection,
                        &e) != ERR_OK) {
        assert(e.code == ERR_INVALID);
        return;
    }
    pod = json_pack("{s:{s:s, s:s, s:{s:s, s:s}}, s:{s:s}}", "metadata", "namespace", "default", "name",
                    "web", "labels", "app", "web", "tier", "front", "status", "phase", "Running");
    selection_matches(&selection, pod);
    json_decref(pod);
    selection_done(&selection);
}

/* All requests of a connection, fed in pieces of `piece` bytes; how many there were. */
static size_t feed(const char *text, size_t size, size_t piece)
{
    struct http_parser p;
    size_t requests = 0;

    http_parser_init(&p);
    for (size_t at = 0; at < size && p.state != PARSE_FAILED;) {
        size_t n = size - at < piece ? size - at : piece, used = http_parser_feed(&p, text + at, n);

        assert(used <= n);
        at += used;
        if (p.state == PARSE_DONE) {
            use(&p.request);
            requests++;
            if (!p.request.keep_alive)
                break;
            http_parser_next(&p);
        }
    }
    if (p.state == PARSE_FAILED)
        assert(p.http_code >= 400 && p.error != NULL);
    http_parser_done(&p);
    return requests;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t whole = feed(text, size, size);

    if (size <= HTTP_HEAD_MAX) /* longer ones may meet a limit sooner in one way than in the other */
        assert(feed(text, size, 1) == whole);
    return 0;
}
