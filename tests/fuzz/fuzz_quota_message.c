/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's messages about quotas: of the family 27, in memory of exactly their size. */
#include "volumes/quota/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_warning(const struct quota_warning *w, void *arg)
{
    assert(!w->lost);
    ++*(size_t *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *message = malloc(size + 1);
    size_t seen = 0;

    if (message == NULL)
        return 0;
    memcpy(message, data, size);
    message = realloc(message, size == 0 ? 1 : size);
    (void)quota_message_read(message, size, 27, on_warning, &seen);
    assert(seen <= size / 16);
    free(message);
    return 0;
}
