/* SPDX-License-Identifier: Apache-2.0 */
/* What a gRPC server sends: HTTP/2 frames, headers, the health protocol's message. */
#include "agent/probe/grpc_call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct grpc_call *c = NULL;
    struct err e = { 0 };
    uint64_t status = 0;
    size_t at = 0;

    (void)grpc_health_response(data, size, &status);
    if (grpc_call_new(&c, "10.0.0.1:50051", "web", "kube-probe/1.36", 1000, &e) != ERR_OK)
        abort();
    /* The first byte says in which pieces. */
    for (size_t piece = size > 0 ? 1 + data[0] : 1; at < size && grpc_call_state(c) < GRPC_ANSWERED;
         at += piece) {
        buf_auto out = BUF_INIT(1 << 20);
        grpc_call_feed(c, (const char *)data + at, piece < size - at ? piece : size - at, "");
        grpc_call_output(c, &out);
    }
    if (grpc_call_state(c) < GRPC_ANSWERED)
        grpc_call_feed(c, NULL, 0, "EOF");
    assert(grpc_call_state(c) == GRPC_ANSWERED || grpc_call_state(c) == GRPC_BROKEN);
    if (grpc_call_state(c) == GRPC_ANSWERED)
        assert(strlen(grpc_call_answer(c)->message) < sizeof(grpc_call_answer(c)->message));
    grpc_call_free(c);
    return 0;
}
