/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coracle-probe KIND HOST PORT - makes one connection for a check in a separate process: with TLS (`https`),
 * or to a host given by name (`http`, `tcp`). Reads the request from standard input and writes the response
 * to standard output, as far as a check needs it. Exit 0: there is a response (for tcp: a connection); exit
 * 1: the error is on standard error, with Go's text. The parent enforces the deadline. Certificates are not
 * verified, as in kubelet.
 */
#include "agent/probe/reply.h"
#include "agent/probe/text.h"
#include "base/parse.h"
#include "base/scope.h"

#include <grp.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define REQUEST_MAX (256 * 1024)
#define NOBODY 65534

struct peer {
    int fd;
    SSL *ssl;               /* NULL: plain */
    char name[300];         /* "10.0.0.1:443" */
    unsigned char first[5]; /* of the TLS server's bytes */
    bool have_first;
    char alert[80];
};

static int helper_fail(const char *fmt, ...) PRINTF_LIKE(1, 2);
static int helper_fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return EXIT_FAILURE;
}

/* The input is hostile and no capabilities are needed, so drop them all. */
static bool confine(void)
{
    /* With a core limit of 0 the kernel would still run the program of core_pattern. */
    const struct rlimit none = { 1, 1 }, no_file = { 0, 0 }, few = { 64, 64 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if ((setrlimit(RLIMIT_CORE, &none) != 0 && setrlimit(RLIMIT_CORE, &no_file) != 0) ||
        setrlimit(RLIMIT_NOFILE, &few) != 0)
        return false;
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) != 0))
        return false;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* again: a change of user clears it */
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static bool read_request(struct buf *b)
{
    char piece[4096];
    ssize_t n;

    while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0)
        buf_add(b, piece, (size_t)n);
    return n == 0 && !b->failed;
}

/* ---- the connection ---- */

static void helper_name_of(const struct addrinfo *a, char *ret, size_t size)
{
    char host[64] = "?", port[8] = "?";

    getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof(host), port, sizeof(port),
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(ret, size, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

static int helper_dial(struct peer *p, const char *host, const char *port)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV };
    struct addrinfo *list = NULL;
    char why[PROBE_ERRNO_SIZE];
    int first = 0, status = getaddrinfo(host, port, &hints, &list);

    if (status != 0)
        return helper_fail("dial tcp: lookup %s: %s", host,
                           status == EAI_NONAME || status == EAI_NODATA ? "no such host"
                                                                        : gai_strerror(status));
    for (struct addrinfo *a = list; a != NULL && p->fd < 0; a = a->ai_next) {
        fd_auto fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
            p->fd = take_fd(&fd);
            helper_name_of(a, p->name, sizeof(p->name));
        } else if (first == 0) { /* of several errors, Go reports the first */
            first = errno;
            helper_name_of(a, p->name, sizeof(p->name));
        }
    }
    freeaddrinfo(list);
    if (p->fd >= 0)
        return EXIT_SUCCESS;
    probe_errno(first, why);
    return helper_fail("dial tcp %s: connect: %s", p->name, why);
}

/* ---- TLS ---- */

static void on_message(int sent, int version, int type, const void *data, size_t n, SSL *ssl, void *arg)
{
    struct peer *p = arg;

    (void)version;
    (void)ssl;
    if (!sent && type == SSL3_RT_HEADER && n >= sizeof(p->first) && !p->have_first) {
        memcpy(p->first, data, sizeof(p->first));
        p->have_first = true;
    }
}

static void on_info(const SSL *ssl, int where, int ret)
{
    struct peer *p = SSL_get_app_data(ssl);

    if ((where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT && (ret >> 8) == SSL3_AL_FATAL)
        snprintf(p->alert, sizeof(p->alert), "%s", SSL_alert_desc_string_long(ret));
}

static int handshake(struct peer *p, const char *host)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    int status, sys;

    if (context == NULL)
        return helper_fail("tls: out of memory");
    /* As in Go with InsecureSkipVerify: any certificate and key, TLS 1.2 and up. */
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_LEGACY_SERVER_CONNECT | SSL_OP_IGNORE_UNEXPECTED_EOF);
    p->ssl = SSL_new(context);
    SSL_CTX_free(context);
    if (p->ssl == NULL || SSL_set_fd(p->ssl, p->fd) != 1)
        return helper_fail("tls: out of memory");
    SSL_set_app_data(p->ssl, p);
    SSL_set_msg_callback(p->ssl, on_message);
    SSL_set_msg_callback_arg(p->ssl, p);
    SSL_set_info_callback(p->ssl, on_info);
    if (!probe_host_is_address(host))
        SSL_set_tlsext_host_name(p->ssl, host);
    errno = 0;
    status = SSL_connect(p->ssl);
    sys = errno;
    if (status == 1)
        return EXIT_SUCCESS;
    if (p->have_first && memcmp(p->first, "HTTP/", 5) == 0)
        return helper_fail("http: server gave HTTP response to HTTPS client");
    if (p->alert[0] != '\0')
        return helper_fail("remote error: tls: %s", p->alert);
    if (p->have_first && (p->first[0] < 20 || p->first[0] > 23 || p->first[1] != 3))
        return helper_fail("tls: first record does not look like a TLS handshake");
    if (!p->have_first && sys == ECONNRESET)
        return helper_fail("read tcp %s: read: connection reset by peer", p->name);
    if (!p->have_first)
        return helper_fail("EOF");
    return helper_fail("tls: %s", ERR_reason_error_string(ERR_peek_error()) != NULL
                                      ? ERR_reason_error_string(ERR_peek_error())
                                      : "handshake failed");
}

/* ---- talking ---- */

static bool helper_send_all(struct peer *p, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t k = p->ssl != NULL ? SSL_write(p->ssl, data, n < INT_MAX ? (int)n : INT_MAX)
                                   : send(p->fd, data, n, MSG_NOSIGNAL);
        if (k <= 0)
            return false;
        data += k;
        n -= (size_t)k;
    }
    return true;
}

/* Bytes, 0 at the end, -1 with errno. */
static ssize_t helper_receive(struct peer *p, char *data, size_t n)
{
    int k;

    if (p->ssl == NULL)
        return recv(p->fd, data, n, 0);
    errno = 0;
    k = SSL_read(p->ssl, data, (int)n);
    if (k > 0)
        return k;
    switch (SSL_get_error(p->ssl, k)) {
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        if (errno == 0)
            return 0;
        return -1;
    default:
        errno = EPROTO;
        return -1;
    }
}

static bool helper_write_out(const char *data, size_t n)
{
    while (n > 0) {
        ssize_t k = write(STDOUT_FILENO, data, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        data += k;
        n -= (size_t)k;
    }
    return true;
}

static int helper_talk(struct peer *p, const struct buf *request)
{
    static char piece[16 * 1024];
    struct probe_reply reply;
    char why[PROBE_ERRNO_SIZE];
    int code = EXIT_SUCCESS;

    helper_send_all(p, request->p, request->n); /* reading will report a failure */
    probe_reply_init(&reply);
    while (reply.state == REPLY_HEAD || reply.state == REPLY_BODY) {
        ssize_t n = helper_receive(p, piece, sizeof(piece));
        if (n < 0) {
            probe_errno(errno, why);
            code = p->alert[0] != '\0' ? helper_fail("remote error: tls: %s", p->alert)
                                       : helper_fail("read tcp %s: read: %s", p->name, why);
            break;
        }
        if (n == 0 || !helper_write_out(piece, (size_t)n))
            break;
        probe_reply_feed(&reply, piece, (size_t)n);
        if (reply.state == REPLY_BODY && reply.status / 100 == 3 && reply.location.n > 0)
            break; /* the body of a redirect is not needed */
    }
    probe_reply_done(&reply);
    return code;
}

int main(int argc, char **argv)
{
    struct peer p = { .fd = -1 };
    buf_auto request = BUF_INIT(REQUEST_MAX);
    struct err e = { 0 };
    uint64_t port;
    int code;

    if (argc != 4 || parse_u64(argv[3], 1, 65535, &port, "port", &e) != ERR_OK ||
        (strcmp(argv[1], "https") != 0 && strcmp(argv[1], "http") != 0 && strcmp(argv[1], "tcp") != 0)) {
        fprintf(stderr, "usage: coracle-probe https|http|tcp HOST PORT < request\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (!confine())
        return helper_fail("coracle-probe: cannot drop privileges: %s", strerror(errno));
    if (!read_request(&request))
        return helper_fail("coracle-probe: cannot read the request");
    code = helper_dial(&p, argv[2], argv[3]);
    if (code == EXIT_SUCCESS && strcmp(argv[1], "https") == 0)
        code = handshake(&p, argv[2]);
    if (code == EXIT_SUCCESS && strcmp(argv[1], "tcp") != 0)
        code = helper_talk(&p, &request);
    SSL_free(p.ssl);
    if (p.fd >= 0)
        close(p.fd);
    return code;
}
