/* SPDX-License-Identifier: Apache-2.0 */
/* client - one HTTP request to the status socket, blocking; llhttp parses the answer. */
#include "agent/cli/client/client.h"

#include "base/clock.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"
#include "base/codec/websocket.h"

#include <llhttp.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

struct exchange {
    uint64_t until_ms; /* 0: no end */
    llhttp_t llhttp;
    struct cli_response *response;
    cli_data_fn on_data;
    void *arg;
    bool complete, stopped;
    bool upgraded;
    struct buf *rest; /* bytes after the head of an upgrade */
    char header[32];  /* name of the current header */
    char accept[32];  /* Sec-WebSocket-Accept */
};

static int client_on_body(llhttp_t *l, const char *at, size_t n)
{
    struct exchange *x = l->data;

    if (x->on_data == NULL || llhttp_get_status_code(l) != 200) {
        buf_add(&x->response->body, at, n);
        return x->response->body.failed ? HPE_USER : 0;
    }
    if (!x->on_data(at, n, x->arg)) {
        x->stopped = true;
        return HPE_USER;
    }
    return 0;
}

static int on_complete(llhttp_t *l)
{
    struct exchange *x = l->data;

    x->complete = true;
    return HPE_PAUSED;
}

static void client_append(char *to, size_t size, const char *at, size_t n)
{
    size_t used = strlen(to);

    if (n >= size - used)
        n = size - used - 1;
    memcpy(to + used, at, n);
    to[used + n] = '\0';
}

static int client_on_header_field(llhttp_t *l, const char *at, size_t n)
{
    struct exchange *x = l->data;

    client_append(x->header, sizeof(x->header), at, n);
    return 0;
}

static int client_on_header_value(llhttp_t *l, const char *at, size_t n)
{
    struct exchange *x = l->data;

    if (strcasecmp(x->header, "Sec-WebSocket-Accept") == 0)
        client_append(x->accept, sizeof(x->accept), at, n);
    return 0;
}

static int client_on_header_value_complete(llhttp_t *l)
{
    ((struct exchange *)l->data)->header[0] = '\0';
    return 0;
}

static const llhttp_settings_t settings = {
    .on_header_field = client_on_header_field,
    .on_header_value = client_on_header_value,
    .on_header_value_complete = client_on_header_value_complete,
    .on_body = client_on_body,
    .on_message_complete = on_complete,
};

/* Time limit for immediate answers: a daemon that takes longer is stuck. */
static int64_t patience_ms(const struct cli *cli)
{
    return cli->patience_ms != 0 ? cli->patience_ms : CLI_PATIENCE_S * 1000;
}

static void client_no_answer(const struct cli *cli, struct err *e)
{
    err_set(e, ERR_DEADLINE, "coracle at %s does not answer within %gs (--request-timeout); is it stopped?",
            cli->socket, (double)patience_ms(cli) / 1000);
}

static int client_dial(struct cli *cli, bool patient, struct err *e)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const int64_t ms = patience_ms(cli);
    const struct timeval patience = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
    fd_auto fd = -1;

    if (cli->socket[0] == '\0') {
        err_set(e, ERR_INVALID, "--socket: a path is expected");
        return -1;
    }
    if (strlen(cli->socket) >= sizeof(address.sun_path)) {
        err_set(e, ERR_INVALID, "cannot reach coracle at %s: the path is too long for a socket", cli->socket);
        return -1;
    }
    strcpy(address.sun_path, cli->socket);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        err_sys(e, errno, "socket");
        return -1;
    }
    if (ms > 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        const bool denied = errno == EACCES || errno == EPERM;

        if (errno == EAGAIN) { /* its queue of waiting clients is full */
            client_no_answer(cli, e);
            return -1;
        }
        err_set(e, denied ? ERR_PERMISSION : ERR_UNAVAILABLE, "cannot reach coracle at %s: %s%s", cli->socket,
                strerror(errno),
                denied ? "; root and members of the socket's group may" : "; is the daemon running?");
        return -1;
    }
    if (!patient && ms > 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return take_fd(&fd);
}

static enum err_code client_send_all(const struct cli *cli, int fd, const struct buf *b, struct err *e)
{
    size_t sent = 0;

    while (sent < b->n) {
        ssize_t n = send(fd, b->p + sent, b->n - sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EPIPE) /* refused: the answer has the reason */
            return ERR_OK;
        if (n < 0 && errno == EAGAIN) {
            client_no_answer(cli, e);
            return e->code;
        }
        if (n < 0)
            return err_sys(e, errno, "send to coracle");
        sent += (size_t)n;
    }
    return ERR_OK;
}

/* False: timeout. */
static bool wait_for_bytes(const struct exchange *x, int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    while (x->until_ms != 0) {
        const uint64_t now = clock_mono_ms(), left = x->until_ms > now ? x->until_ms - now : 0;
        const int n = poll(&p, 1, left < 60000 ? (int)left : 60000);

        if (n > 0)
            return true;
        if (left == 0)
            return false;
    }
    return true;
}

static enum err_code client_receive(const struct cli *cli, struct exchange *x, int fd, struct err *e)
{
    char piece[64 * 1024];

    while (!x->complete && !x->stopped) {
        enum llhttp_errno code;
        ssize_t n;

        if (!wait_for_bytes(x, fd))
            return err_set(e, ERR_DEADLINE, "timed out");
        n = recv(fd, piece, sizeof(piece), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            client_no_answer(cli, e);
            return e->code;
        }
        if (n < 0)
            return err_sys(e, errno, "read from coracle");
        code = n > 0 ? llhttp_execute(&x->llhttp, piece, (size_t)n) : llhttp_finish(&x->llhttp);
        if (x->rest != NULL && x->llhttp.upgrade != 0 && llhttp_get_status_code(&x->llhttp) == 101 &&
            (code == HPE_PAUSED || code == HPE_PAUSED_UPGRADE)) {
            const char *end = llhttp_get_error_pos(&x->llhttp);

            buf_add(x->rest, end, (size_t)(piece + n - end));
            x->upgraded = true;
            break;
        }
        if (x->complete || x->stopped)
            break;
        if (n == 0)
            return err_set(e, ERR_UNAVAILABLE, "the connection to coracle was closed early");
        if (x->response->body.failed)
            return buf_check(&x->response->body, e);
        if (code != HPE_OK)
            return err_set(e, ERR_DATA_LOSS, "the answer is not HTTP: %s",
                           llhttp_get_error_reason(&x->llhttp));
    }
    x->response->code = llhttp_get_status_code(&x->llhttp);
    return ERR_OK;
}

/* `body`: JSON; NULL: none. */
static enum err_code client_exchange(struct cli *cli, const char *method, const char *url, const char *body,
                                     bool patient, cli_data_fn on_data, void *arg, struct cli_response *ret,
                                     struct err *e)
{
    struct exchange x = {
        .until_ms = patient ? cli->until_ms : 0, .response = ret, .on_data = on_data, .arg = arg
    };
    buf_auto head = BUF_INIT(CLI_BODY_MAX);
    fd_auto fd = -1;

    buf_addf(&head,
             "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: coracle/" CORACLE_VERSION
             "\r\nConnection: close\r\n",
             method, url);
    if (body != NULL)
        buf_addf(&head, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    buf_addf(&head, "\r\n%s", body != NULL ? body : "");
    if (buf_check(&head, e) != ERR_OK)
        return e->code;
    llhttp_init(&x.llhttp, HTTP_RESPONSE, &settings);
    x.llhttp.data = &x;
    fd = client_dial(cli, patient, e);
    if (fd < 0 || client_send_all(cli, fd, &head, e) != ERR_OK)
        return e->code;
    return client_receive(cli, &x, fd, e);
}

enum err_code cli_request(struct cli *cli, const char *method, const char *url, bool patient,
                          cli_data_fn on_data, void *arg, struct cli_response *ret, struct err *e)
{
    return client_exchange(cli, method, url, NULL, patient, on_data, arg, ret, e);
}

enum err_code cli_send(struct cli *cli, const char *method, const char *url, const json_t *body,
                       struct cli_response *ret, struct err *e)
{
    mem_auto char *text = json_dumps(body, JSON_COMPACT);

    if (text == NULL)
        return err_nomem(e);
    ERR_IGNORE(client_exchange(cli, method, url, text, false, NULL, NULL, ret, e)); /* *e has it */
    explicit_bzero(text, strlen(text));
    return e->code;
}

int cli_upgrade(struct cli *cli, const char *url, const char *subprotocols, struct cli_response *ret,
                struct buf *ret_rest, struct err *e)
{
    struct exchange x = { .response = ret, .rest = ret_rest };
    buf_auto key = BUF_INIT(64), accept = BUF_INIT(64), head = BUF_INIT(64 * 1024);
    unsigned char random[16];
    fd_auto fd = -1;

    if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
        err_sys(e, errno, "random bytes");
        return -1;
    }
    base64_add(&key, random, sizeof(random));
    ws_add_accept_key(&accept, key.p);
    buf_addf(&head,
             "GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: coracle/" CORACLE_VERSION
             "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
             url, key.p, subprotocols);
    if (buf_check(&head, e) != ERR_OK)
        return -1;
    llhttp_init(&x.llhttp, HTTP_RESPONSE, &settings);
    x.llhttp.data = &x;
    fd = client_dial(cli, false, e);
    if (fd < 0 || client_send_all(cli, fd, &head, e) != ERR_OK || client_receive(cli, &x, fd, e) != ERR_OK)
        return -1;
    if (!x.upgraded)
        return -1;
    if (strcmp(x.accept, accept.p) != 0 || ret_rest->failed) {
        err_set(e, ERR_DATA_LOSS, "the answer is not a WebSocket handshake");
        return -1;
    }
    return take_fd(&fd);
}

int cli_status_error(struct cli *cli, const json_t *status)
{
    const char *reason = json_str(status, "reason"), *message = json_str(status, "message");
    buf_auto what = BUF_INIT(64 * 1024);

    if (message == NULL)
        return cli_error(cli, "out of memory");
    buf_adds(&what, "Error from server");
    if (reason != NULL)
        buf_addf(&what, " (%s)", reason);
    buf_adds(&what, ": ");
    cli_complain(cli, what.p, message);
    return cli_exit_of_http((int)json_int(status, "code", 500));
}

int cli_server_error(struct cli *cli, const struct cli_response *r)
{
    json_auto_t *status = NULL;

    if (json_parse(r->body.p, r->body.n, CLI_BODY_MAX, &status, "answer", ERR_IGNORED) != ERR_OK ||
        json_str(status, "message") == NULL) {
        cli_note(cli, "Error from server: HTTP status %d\n", r->code);
        return cli_exit_of_http(r->code);
    }
    cli_status_error(cli, status);
    return cli_exit_of_http(r->code);
}

static json_t *client_call(struct cli *cli, const char *method, const char *url, const char *body,
                           int *ret_code)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    struct err e = { 0 };
    json_t *value = NULL;
    int code = EXIT_OK;

    if (client_exchange(cli, method, url, body, false, NULL, NULL, &r, &e) != ERR_OK)
        code = cli_failed(cli, &e);
    else if (r.code != 200)
        code = r.code == 404 && cli->ignore_not_found ? EXIT_OK : cli_server_error(cli, &r);
    else if (json_parse(r.body.p, r.body.n, CLI_BODY_MAX, &value, "answer", &e) != ERR_OK)
        code = cli_error(cli, "%s", e.text);
    if (r.code == 400)
        code = EXIT_USAGE; /* e.g. an invalid selector */
    if (ret_code != NULL)
        *ret_code = code;
    buf_done(&r.body);
    return value;
}

json_t *cli_call(struct cli *cli, const char *method, const char *url, int *ret_code)
{
    return client_call(cli, method, url, NULL, ret_code);
}

json_t *cli_post(struct cli *cli, const char *url, const json_t *body, int *ret_code)
{
    str_auto text = json_dumps(body, JSON_COMPACT);

    if (text != NULL)
        return client_call(cli, "POST", url, text, ret_code);
    *ret_code = cli_error(cli, "out of memory");
    return NULL;
}

json_t *cli_get(struct cli *cli, const char *url, int *ret_code)
{
    return cli_call(cli, "GET", url, ret_code);
}

void cli_add_pod_path(struct buf *b, const char *namespace_, const char *name)
{
    buf_adds(b, "/api/v1/namespaces/");
    percent_add(b, namespace_);
    buf_adds(b, "/pods/");
    percent_add(b, name);
}
