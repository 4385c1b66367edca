/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_call - one call of grpc.health.v1.Health/Check over HTTP/2, without I/O: server bytes in, client bytes
 * out. The server is a container, hence hostile: headers, messages and the whole conversation are bounded.
 * Texts and codes are grpc-go's. */
#ifndef AGENT_PROBE_GRPC_CALL_H
#define AGENT_PROBE_GRPC_CALL_H
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GRPC_MESSAGE_MAX (16 * 1024)    /* for the single small answer, and for grpc-message */
#define GRPC_HEADERS_MAX (16 * 1024)    /* announced to the server as SETTINGS_MAX_HEADER_LIST_SIZE */
#define GRPC_RECEIVED_MAX (1024 * 1024) /* more is not a health check's answer */

enum grpc_call_state {
    GRPC_GREETING, /* the server's SETTINGS have not arrived: it may not speak HTTP/2 at all */
    GRPC_ASKED,
    GRPC_ANSWERED, /* the fields below are valid */
    GRPC_BROKEN,   /* the conversation cannot continue; while greeting: try another connection */
};

struct grpc_call;

struct grpc_answer {
    int code;           /* gRPC status */
    char message[1024]; /* if the status is not OK */
    uint64_t serving;   /* HealthCheckResponse.status: 1 is SERVING */
};

enum err_code grpc_call_new(struct grpc_call **ret, const char *authority, const char *service,
                            const char *user_agent, uint64_t timeout_ms, struct err *e) MUST_CHECK;
void grpc_call_free(struct grpc_call *c); /* NULL is fine */

/* Server bytes; n 0: the connection has ended, `why` says how ("EOF"). */
enum grpc_call_state grpc_call_feed(struct grpc_call *c, const char *data, size_t n, const char *why);
/* Appends the bytes to send now. */
void grpc_call_output(struct grpc_call *c, struct buf *out);
const struct grpc_answer *grpc_call_answer(const struct grpc_call *c);
enum grpc_call_state grpc_call_state(const struct grpc_call *c);

const char *grpc_code_name(int code); /* base/grpc/status.c: "NotFound" */
/* The two messages of the health protocol (one field each). */
enum err_code grpc_health_request(const char *service, struct buf *out, struct err *e) MUST_CHECK;
bool grpc_health_response(const unsigned char *data, size_t n, uint64_t *ret_status);
#endif
