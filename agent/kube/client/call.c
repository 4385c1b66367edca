/* SPDX-License-Identifier: Apache-2.0 */
/* One transfer of libcurl. */
#include "agent/kube/client/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Go's dialer and TLS handshake: 30 s and 10 s. */
#define CONNECT_MS 30000L
/* The least that libcurl takes; each transfer has one. */
#define UPLOAD_BUFFER 16384L
#define DOWNLOAD_BUFFER 8192L

/* ---- callbacks of libcurl ---- */

static int call_on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    /* The connection to a peer that does not answer is closed after KUBE_SILENCE_S, whether we have sent
     * something or not. */
    const int yes = 1, idle_s = 30, every_s = 5, times = (KUBE_SILENCE_S - 30) / 5;
    const unsigned unanswered_ms = KUBE_SILENCE_S * 1000;

    (void)arg;
    (void)purpose;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof(unanswered_ms));
    return CURL_SOCKOPT_OK;
}

static int call_on_sending(void *arg, char *remote, char *local, int remote_port, int local_port)
{
    struct kube_call *call = arg;

    (void)remote;
    (void)local;
    (void)remote_port;
    call->local_port = local_port;
    call->sent_ms = clock_mono_ms();
    return CURL_PREREQFUNC_OK;
}

int kube_call_http(const struct kube_call *call)
{
    long http = 0;

    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &http);
    return (int)http;
}

static void call_note_version(const struct kube_call *call)
{
    long version = 0;

    curl_easy_getinfo(call->easy, CURLINFO_HTTP_VERSION, &version);
    call->c->two = version == CURL_HTTP_VERSION_2_0;
}

/* An interim head (1xx) does not count; the blank line of a trailer is the second one. */
static void call_tally(struct kube_call *call)
{
    const int http = kube_call_http(call);

    if (call->tallied || http < 200)
        return;
    call->tallied = true;
    kube_tally_add(&call->c->tally, call->method, http);
}

/* The blank line after the head: from here on a stream has no deadline. */
static size_t call_on_header(char *data, size_t size, size_t n, void *arg)
{
    struct kube_call *call = arg;

    (void)size;
    if (n > 2 || (data[0] != '\r' && data[0] != '\n'))
        return n;
    call_note_version(call);
    call_tally(call);
    if (call->on_line == NULL || call->doomed)
        return n;
    if (kube_call_http(call) != 200)
        return n;
    op_no_deadline(&call->r->op);
    if (call->on_head != NULL)
        call->on_head(call->r->op.owner);
    return n;
}

static bool call_on_line(json_t *line, void *arg)
{
    struct kube_call *call = arg;

    return call->on_line(line, call->r->op.owner) && !call->doomed;
}

static size_t call_on_data(char *data, size_t size, size_t n, void *arg)
{
    struct kube_call *call = arg;

    (void)size;
    if (call->doomed)
        return CURL_WRITEFUNC_ERROR;
    if (call->on_line != NULL && kube_call_http(call) == 200) {
        if (kube_lines_feed(&call->lines, data, n, call_on_line, call, &call->ended, &call->failure) !=
                ERR_OK ||
            call->ended)
            return CURL_WRITEFUNC_ERROR;
        return n;
    }
    buf_add(&call->answer, data, n);
    if (!call->answer.failed)
        return n;
    err_set(&call->failure, ERR_INTERNAL, "the answer has more than %zu bytes, or memory is exhausted",
            call->answer.max);
    return CURL_WRITEFUNC_ERROR;
}

/* ---- sending ---- */

static void set_access(const struct kube_call *call)
{
    struct kube_access *a = call->access;
    CURL *x = call->easy;

    curl_easy_setopt(x, CURLOPT_PROTOCOLS_STR, a->plain ? "http" : "https");
    curl_easy_setopt(x, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(x, CURLOPT_PIPEWAIT, 1L);    /* rather one connection than one for each request */
    curl_easy_setopt(x, CURLOPT_PROXY, a->proxy); /* "": not that of the environment either */
    curl_easy_setopt(x, CURLOPT_NOPROXY, "");
    curl_easy_setopt(x, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(x, CURLOPT_SSL_VERIFYPEER, a->insecure ? 0L : 1L);
    curl_easy_setopt(x, CURLOPT_SSL_VERIFYHOST, a->insecure ? 0L : 2L);
    if (a->ca.len > 0) {
        curl_easy_setopt(x, CURLOPT_CAINFO_BLOB, &a->ca);
        curl_easy_setopt(x, CURLOPT_CAPATH, NULL); /* the given one alone, and not the system's as well */
    }
    if (a->certificate.len > 0) {
        curl_easy_setopt(x, CURLOPT_SSLCERT_BLOB, &a->certificate);
        curl_easy_setopt(x, CURLOPT_SSLKEY_BLOB, &a->key);
    }
    if (a->compressed && call->on_line == NULL)
        curl_easy_setopt(x, CURLOPT_ACCEPT_ENCODING, "gzip");
}

static enum err_code set_url(struct kube_call *call, struct err *e)
{
    char *url = str_printf("%s%s", call->access->base, call->path);

    if (url == NULL)
        return err_nomem(e);
    curl_easy_setopt(call->easy, CURLOPT_URL, url);
    free(url);
    return ERR_OK;
}

static void set_body(struct kube_call *call)
{
    CURL *x = call->easy;

    call->headers[0] = (struct curl_slist){ call->content_type, call->access->headers };
    if (call->body.n == 0) {
        if (strcmp(call->method, "GET") != 0)
            curl_easy_setopt(x, CURLOPT_CUSTOMREQUEST, call->method);
        curl_easy_setopt(x, CURLOPT_HTTPHEADER, call->access->headers);
        return;
    }
    curl_easy_setopt(x, CURLOPT_POST, 1L);
    curl_easy_setopt(x, CURLOPT_POSTFIELDS, call->body.p);
    curl_easy_setopt(x, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.n);
    curl_easy_setopt(x, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
    if (strcmp(call->method, "POST") != 0)
        curl_easy_setopt(x, CURLOPT_CUSTOMREQUEST, call->method);
    curl_easy_setopt(x, CURLOPT_HTTPHEADER, call->headers);
}

enum err_code kube_call_send(struct kube_call *call, struct err *e)
{
    CURL *x = call->easy = curl_easy_init();
    CURLMcode code;

    if (x == NULL || set_url(call, e) != ERR_OK)
        return err_nomem(e);
    curl_easy_setopt(x, CURLOPT_PRIVATE, call);
    curl_easy_setopt(x, CURLOPT_ERRORBUFFER, call->words);
    curl_easy_setopt(x, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(x, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* those of a proxy */
    curl_easy_setopt(x, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(x, CURLOPT_BUFFERSIZE, DOWNLOAD_BUFFER);
    curl_easy_setopt(x, CURLOPT_SOCKOPTFUNCTION, call_on_socket);
    curl_easy_setopt(x, CURLOPT_PREREQFUNCTION, call_on_sending);
    curl_easy_setopt(x, CURLOPT_PREREQDATA, call);
    curl_easy_setopt(x, CURLOPT_HEADERFUNCTION, call_on_header);
    curl_easy_setopt(x, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(x, CURLOPT_WRITEFUNCTION, call_on_data);
    curl_easy_setopt(x, CURLOPT_WRITEDATA, call);
    set_access(call);
    set_body(call);
    if (call->access->connect_to != NULL) {
        call->headers[1] = (struct curl_slist){ call->access->connect_to, NULL };
        curl_easy_setopt(x, CURLOPT_CONNECT_TO, &call->headers[1]);
    }
    code = curl_multi_add_handle(call->c->sockets.multi, x);
    if (code != CURLM_OK)
        return err_set(e, ERR_EXHAUSTED, "start a request: %s", curl_multi_strerror(code));
    return ERR_OK;
}

/* ---- the result ---- */

static void call_retry_after(struct kube_call *call)
{
    struct kube_request *r = call->r;
    const json_t *details = json_object_get(r->answer, "details");
    json_int_t body_s = r->http >= 400 ? json_int(details, "retryAfterSeconds", 0) : 0;
    curl_off_t head_s = 0;

    curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &head_s);
    if (head_s < body_s)
        head_s = body_s;
    if (head_s > 0) /* a server may ask for years: the caller's back-off bounds it, here only the number */
        r->retry_after_ms = (uint64_t)(head_s < 86400 ? head_s : 86400) * 1000;
}

/* One of the two clocks may be wrong: then nothing else helps people. */
static bool is_matter_of_clocks(const struct kube_call *call, CURLcode code)
{
    long verified = 0;

    if (code != CURLE_PEER_FAILED_VERIFICATION)
        return false;
    curl_easy_getinfo(call->easy, CURLINFO_SSL_VERIFYRESULT, &verified);
    return verified == X509_V_ERR_CERT_NOT_YET_VALID || verified == X509_V_ERR_CERT_HAS_EXPIRED;
}

static void call_add_clock(const struct kube_call *call, CURLcode code, struct err *e)
{
    char now[CLOCK_RFC3339_SIZE], end[CLOCK_RFC3339_SIZE], why[sizeof(e->text)];

    clock_format_s(clock_wall_ns(), now);
    snprintf(why, sizeof(why), "%s", e->text);
    if (is_matter_of_clocks(call, code)) {
        err_set(e, e->code, "%.300s; this node's clock says %s", why, now);
    } else if (call->access->not_after_s != 0 && kube_access_expired(call->access)) {
        clock_format_s(call->access->not_after_s * 1000000000, end);
        err_set(e, e->code, "%.300s; the client certificate expired at %s", why, end);
    }
}

static void call_transport_err(struct kube_call *call, CURLcode code, struct err *e)
{
    long sys = 0;

    curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &sys);
    err_set(e, ERR_UNAVAILABLE, "%s", call->words[0] != '\0' ? call->words : curl_easy_strerror(code));
    call_add_clock(call, code, e);
    e->sys = (int)sys;
}

static void call_answer(struct kube_call *call, struct err *e)
{
    struct kube_request *r = call->r;
    struct err garbage = { 0 };

    if (call->answer.n > 0)
        ERR_IGNORE(kube_parse(call->answer.p, call->answer.n, &r->answer, &garbage));
    if (r->http >= 300)
        kube_status_err(r->answer, r->http, e);
    else if (garbage.code != ERR_OK)
        *e = garbage;
    else if (call->on_line != NULL && call->lines.text.n > 0 && !call->ended)
        err_set(e, ERR_UNAVAILABLE, "the stream ended within a line");
    if (r->http == 401)
        call_add_clock(call, CURLE_OK, e);
    call_retry_after(call);
}

void kube_call_result(struct kube_call *call, CURLcode code, struct err *e)
{
    call->r->http = kube_call_http(call);
    if (call->failure.code != ERR_OK)
        *e = call->failure;
    else if (code != CURLE_OK && !call->ended)
        call_transport_err(call, code, e);
    else
        call_answer(call, e);
    if (e->code != ERR_OK && call->r->http == 0 && call->r->op.subject[0] != '\0')
        err_wrap(e, "%s", call->r->op.subject);
}

void kube_call_free(struct kube_call *call)
{
    if (call->easy != NULL) {
        curl_multi_remove_handle(call->c->sockets.multi, call->easy);
        curl_easy_cleanup(call->easy);
    }
    kube_access_unref(call->access);
    buf_wipe(&call->body);
    buf_wipe(&call->answer);
    kube_lines_done(&call->lines);
    free(call->method);
    free(call->path);
    free(call);
}
