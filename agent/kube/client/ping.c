/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PING of HTTP/2. libcurl has a function that sends some, curl_easy_upkeep(3), but only for connections of
 * curl_easy_perform(3), not for those of a multi handle. So the frame is built here and sent through
 * libcurl's TLS session (CURLINFO_TLS_SSL_PTR(3)): between two frames of libcurl, and only while all sent
 * data are acknowledged, so that these few bytes fit into the send buffer. It uses a separate BIO, because
 * libcurl's BIO works only inside libcurl. libcurl's nghttp2 reads the answer, and accepts a PING with ACK
 * that it did not request.
 */
#include "agent/kube/client/internal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>

static SSL *ping_session(const struct kube_call *call)
{
    const struct curl_tlssessioninfo *tls = NULL;
    const unsigned char *protocol = NULL;
    unsigned n = 0;

    if (call->access->plain || kube_call_http(call) == 0) /* before a head, deadlines watch */
        return NULL;
    if (curl_easy_getinfo(call->easy, CURLINFO_TLS_SSL_PTR, &tls) != CURLE_OK || tls == NULL ||
        tls->backend != CURLSSLBACKEND_OPENSSL || tls->internals == NULL)
        return NULL;
    SSL_get0_alpn_selected(tls->internals, &protocol, &n);
    return n == 2 && memcmp(protocol, "h2", 2) == 0 ? tls->internals : NULL;
}

static bool all_acknowledged(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t n = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 && info.tcpi_unacked == 0;
}

/* The frame as a TLS record, in a memory BIO; NULL: out of memory, or the session is broken. */
static BIO *ping_record(SSL *ssl)
{
    /* Length 8, type PING, no flag, stream 0; then 8 bytes that mean nothing (RFC 9113, 6.7). */
    static const unsigned char frame[] = {
        0, 0, 8, 6, 0, 0, 0, 0, 0, 'c', 'o', 'r', 'a', 'c', 'l', 'e', '?'
    };
    BIO *record = BIO_new(BIO_s_mem()), *libcurls = SSL_get_wbio(ssl);
    bool made;

    if (record == NULL || libcurls == NULL || BIO_up_ref(libcurls) != 1) {
        BIO_free(record);
        return NULL;
    }
    BIO_up_ref(record);
    SSL_set0_wbio(ssl, record);
    made = SSL_write(ssl, frame, sizeof(frame)) == (int)sizeof(frame);
    SSL_set0_wbio(ssl, libcurls); /* frees the session's reference of the record */
    if (made)
        return record;
    BIO_free(record);
    return NULL;
}

enum silence_asked kube_call_ping(struct kube_call *call, int fd)
{
    SSL *ssl = ping_session(call);
    BIO *record;
    char *data = NULL;
    long n;

    if (ssl == NULL)
        return SILENCE_DEAF;
    if (SSL_want_write(ssl) || !all_acknowledged(fd))
        return SILENCE_LATER; /* bytes that are never acknowledged end it by TCP_USER_TIMEOUT */
    ERR_clear_error();
    record = ping_record(ssl);
    ERR_clear_error();
    if (record == NULL)
        return SILENCE_DEAF;
    n = BIO_get_mem_data(record, &data);
    /* A record that is not sent as a whole spoils the session. */
    if (n <= 0 || send(fd, data, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) != n)
        shutdown(fd, SHUT_RDWR);
    BIO_free(record);
    return SILENCE_ASKED;
}
