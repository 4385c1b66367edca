/* SPDX-License-Identifier: Apache-2.0 */
/* A message of the kernel about a device: whatever its bytes, it is read within its bounds. */
#include "agent/declared/uevent.h"
#include "base/scope.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mem_auto char *message = malloc(size + 1); /* exactly its size, so that a byte too many is found */

    assert(message != NULL);
    memcpy(message, data, size);
    if (uevent_matters(message, size))
        assert(memmem(message, size, "DEVNAME=", 8) != NULL);
    return 0;
}
