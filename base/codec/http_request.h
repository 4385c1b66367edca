/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_request - the head of an HTTP/1.1 request: bytes in, a request and its route out; no I/O.
 *
 *     http_parser_init(&p);
 *     used = http_parser_feed(&p, bytes, n);    until p.state is no longer PARSE_MORE
 *     PARSE_DONE: p.request is filled in; use it, then call http_parser_next(&p) for the next one
 *     PARSE_FAILED: answer p.http_code with p.error and close; the rest cannot be parsed
 *
 * Hostile input: everything is bounded. Percent-encoding is decoded; zero bytes and invalid UTF-8 are
 * rejected. A body is skipped, or stored in `body` if it is wanted, within that buffer's limit.
 */
#ifndef BASE_CODEC_HTTP_REQUEST_H
#define BASE_CODEC_HTTP_REQUEST_H
#include "base/buf.h"

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_URL_MAX (32 * 1024)  /* 414 if longer; a script given to exec is the longest content */
#define HTTP_HEAD_MAX (40 * 1024) /* URL, names and values of headers: 431 if longer */
#define HTTP_BODY_MAX (64 * 1024) /* of a skipped body: 413 if longer */
#define HTTP_PARAMS_MAX 256       /* exec: one for each argument */
#define HTTP_SEGMENTS_MAX 8

enum http_method {
    METHOD_GET = 1,
    METHOD_HEAD = 2,
    METHOD_POST = 4,
    METHOD_DELETE = 8,
    METHOD_OTHER = 16,
    METHOD_PUT = 32,
    METHOD_PATCH = 64,
};

struct http_param {
    const char *key, *value; /* value "" when there is none */
};

/* A request to change the protocol; "" if a header is absent or too long. */
struct http_upgrade {
    bool asked; /* "Connection: upgrade" and an Upgrade header */
    char protocol[64];
    char key[64], version[8], subprotocols[256]; /* Sec-WebSocket-Key, -Version, -Protocol */
};

struct http_request { /* strings live in the parser until http_parser_next() */
    enum http_method method;
    const char *segments[HTTP_SEGMENTS_MAX]; /* "/api/v1/pods" is {"api", "v1", "pods"} */
    size_t n_segments;
    struct http_param params[HTTP_PARAMS_MAX];
    size_t n_params;
    bool keep_alive; /* the client wants (and may have) another request on this connection */
    bool http10;     /* no chunked encoding */
    struct http_upgrade upgrade;
};

/* Another header whose value is wanted; repeated headers are joined with commas; "" if it is absent or too
 * long. Emptied by http_parser_next(). */
struct http_keep {
    const char *name; /* at most 31 characters */
    char *to;
    size_t size;
};

struct http_parser {
    enum { PARSE_MORE, PARSE_DONE, PARSE_FAILED } state;
    struct http_request request;
    int http_code; /* PARSE_FAILED */
    const char *error;
    bool begun;                   /* the first byte of a request has arrived */
    const struct http_keep *keep; /* borrowed; set after http_parser_init() */
    size_t n_keep;
    struct buf *body; /* borrowed, set like `keep`; NULL: a body is skipped. Emptied by http_parser_next(). */
    bool (*wants_body)(const char *url); /* NULL: every body is wanted */
    /* private */
    llhttp_t llhttp;
    struct buf url;
    char header[32]; /* name of the current header; "": too long to matter */
    bool header_too_long;
    size_t head_bytes, head_fed, body_bytes;
    bool head_done;
};

void http_parser_init(struct http_parser *p);
void http_parser_done(struct http_parser *p);
/* Returns the number of bytes used. */
size_t http_parser_feed(struct http_parser *p, const char *bytes, size_t n);
void http_parser_next(struct http_parser *p);

/* The (last) parameter of that name, or NULL. */
const char *http_param(const struct http_request *r, const char *key);
/* *ret is unchanged if absent or empty. ERR_INVALID has parameter and value. */
enum err_code http_param_flag(const struct http_request *r, const char *key, bool *ret,
                              struct err *e) MUST_CHECK;

#endif
