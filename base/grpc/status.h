/* SPDX-License-Identifier: Apache-2.0 */
/* status - how a status is sent: grpc-status, grpc-message (percent-encoded), grpc-timeout; and the meaning
 * of HTTP's and HTTP/2's codes. The rules are gRPC's ("gRPC over HTTP2"), codes and texts grpc-go's. Pure. */
#ifndef BASE_GRPC_STATUS_H
#define BASE_GRPC_STATUS_H
#include "base/buf.h"
#include "base/grpc/grpc.h"

#define GRPC_TIMEOUT_SIZE 12

void grpc_status_set(struct grpc_status *s, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The number, at most GRPC_NUMBER_MAX; -1: none. */
#define GRPC_NUMBER_MAX 99999
int grpc_status_number(const char *value, size_t n);
/* Bytes outside of printable ASCII, and '%', become %XX. */
void grpc_message_encode(struct buf *out, const char *text);
/* At most GRPC_TEXT_MAX - 1 bytes, cut at a whole character; invalid escapes are kept unchanged; control
 * characters and invalid UTF-8 are made printable. */
void grpc_message_decode(const char *value, size_t n, char ret[GRPC_TEXT_MAX]);

/* "10S": at most eight digits and a unit (H M S m u n). False: malformed. ret_ms is rounded up. */
bool grpc_timeout_parse(const char *value, size_t n, uint64_t *ret_ms);
void grpc_timeout_format(uint64_t ms, char ret[GRPC_TIMEOUT_SIZE]);

int grpc_code_of_http(int http_status);
const char *grpc_http_text(int http_status); /* "Not Found"; "": unknown */
int grpc_code_of_reset(uint32_t http2_error);
bool grpc_is_content_type(const char *type);
#endif
