/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and end of an exec on the wire: the WebSocket handshake (RFC 6455, 4.2) with Kubernetes'
 * subprotocols (k8s.io/apimachinery/pkg/util/remotecommand), and the Status on the error channel. */
#include "agent/status/internal.h"

#include "base/codec/json.h"
#include "base/codec/websocket.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const protocols[] = { [EXEC_V4] = "v4.channel.k8s.io", [EXEC_V5] = "v5.channel.k8s.io" };

/* ---- handshake ---- */

/* The next element of a comma-separated list, without blanks; NULL at its end. */
static const char *next_token(const char **list, size_t *ret_n)
{
    const char *token = *list + strspn(*list, " \t,");

    if (*token == '\0')
        return NULL;
    *ret_n = strcspn(token, ",");
    *list = token + *ret_n;
    while (*ret_n > 0 && strchr(" \t", token[*ret_n - 1]) != NULL)
        --*ret_n;
    return token;
}

static bool exec_upgrade_list_has(const char *list, const char *wanted)
{
    const char *token;
    size_t n;

    while ((token = next_token(&list, &n)) != NULL)
        if (n == strlen(wanted) && strncasecmp(token, wanted, n) == 0)
            return true;
    return false;
}

/* The client's first supported protocol, in its order of preference. */
static int choose_protocol(const char *list)
{
    const char *token;
    size_t n;

    while ((token = next_token(&list, &n)) != NULL)
        for (int i = EXEC_V4; i <= EXEC_V5; i++)
            if (n == strlen(protocols[i]) && memcmp(token, protocols[i], n) == 0)
                return i;
    return EXEC_NO_PROTOCOL;
}

static void upgrade_required(struct conn *c, const char *message)
{
    json_t *body = status_object(426, status_reason(426), NULL, NULL, message);
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;

    conn_answer(c, 426, "application/json", "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
                text != NULL ? text : "", text != NULL ? strlen(text) : 0);
    json_decref(body);
    free(text);
}

bool exec_handshake(struct conn *c, int *ret_protocol)
{
    const struct http_request *r = &c->parser.request;
    const struct http_upgrade *u = &r->upgrade;

    if (!u->asked || r->http10) {
        conn_status(c, 400, "BadRequest", NULL, NULL, "Upgrade request required");
        return false;
    }
    if (!exec_upgrade_list_has(u->protocol, "websocket")) {
        upgrade_required(c, "exec is served over WebSocket only");
        return false;
    }
    if (r->method != METHOD_GET || !ws_key_valid(u->key)) {
        conn_status(c, 400, "BadRequest", NULL, NULL, "this is not a WebSocket handshake");
        return false;
    }
    if (strcmp(u->version, "13") != 0) {
        upgrade_required(c, "WebSocket version 13 is served only");
        return false;
    }
    *ret_protocol = choose_protocol(u->subprotocols);
    if (*ret_protocol == EXEC_NO_PROTOCOL) {
        conn_status(c, 400, "BadRequest", NULL, NULL,
                    "no subprotocol that is served here: v5.channel.k8s.io, v4.channel.k8s.io");
        return false;
    }
    return true;
}

void exec_accept(struct conn *c, int protocol)
{
    struct buf head = BUF_INIT(1024);

    buf_addf(&head,
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Protocol: %s\r\nSec-WebSocket-Accept: ",
             protocols[protocol]);
    ws_add_accept_key(&head, c->parser.request.upgrade.key);
    buf_adds(&head, "\r\n\r\n");
    conn_upgrade(c, &head);
}

/* ---- the end ---- */

char *exec_status(const struct err *result, int exit_code)
{
    json_auto_t *status = NULL;
    json_t *message;
    char code[16], text[64];

    snprintf(code, sizeof(code), "%d", exit_code);
    snprintf(text, sizeof(text), "command terminated with non-zero exit code: exit status %d", exit_code);
    if (result->code == ERR_OK && exit_code == 0) {
        status = json_pack("{s:{}, s:s}", "metadata", "status", "Success");
    } else if (exit_code != 0) {
        status = json_pack("{s:{}, s:s, s:s, s:s, s:{s:[{s:s, s:s}]}}", "metadata", "status", "Failure",
                           "message", text, "reason", "NonZeroExitCode", "details", "causes", "reason",
                           "ExitCode", "message", code);
    } else {
        message =
            json_sprintf("Internal error occurred: error executing command in container: %s", result->text);
        if (message == NULL) /* not UTF-8 */
            message = json_string("Internal error occurred: error executing command in container");
        status = json_pack("{s:{}, s:s, s:o, s:s, s:i}", "metadata", "status", "Failure", "message", message,
                           "reason", "InternalError", "code", 500);
    }
    return status != NULL ? json_dumps(status, JSON_COMPACT) : NULL;
}

char *forward_status(const struct err *result)
{
    bool ok = result->code == ERR_OK;
    json_auto_t *status = ok ? json_pack("{s:{}, s:s}", "metadata", "status", "Success")
                             : json_pack("{s:{}, s:s, s:s, s:i}", "metadata", "status", "Failure", "reason",
                                         "InternalError", "code", 500);

    if (status == NULL || (!ok && !json_put_str(status, "message", result->text))) /* not always UTF-8 */
        return NULL;
    return status != NULL ? json_dumps(status, JSON_COMPACT) : NULL;
}
