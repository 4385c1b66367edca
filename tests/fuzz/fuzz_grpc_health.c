/* SPDX-License-Identifier: Apache-2.0 */
/* The message of the health protocol that a probed server answers with. */
#include "agent/probe/grpc_health.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t status = 0;

    if (!grpc_health_response(data, size, &status) && status != 0)
        abort(); /* outputs change only on success */
    return 0;
}
