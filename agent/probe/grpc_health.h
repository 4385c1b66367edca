/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_health - the two messages of grpc.health.v1.Health/Check (one field each), in protobuf's wire format.
 * A container sends the answer, so it is hostile. */
#ifndef AGENT_PROBE_GRPC_HEALTH_H
#define AGENT_PROBE_GRPC_HEALTH_H
#include "base/buf.h"

#include <stdint.h>

enum err_code grpc_health_request(const char *service, struct buf *out, struct err *e) MUST_CHECK;
/* HealthCheckResponse.status: 1 is SERVING. */
bool grpc_health_response(const unsigned char *data, size_t n, uint64_t *ret_status);
#endif
