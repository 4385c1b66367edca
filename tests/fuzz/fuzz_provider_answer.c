/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of an image credential provider: bounded, its entries only texts, or it is refused. */
#include "agent/image/provider/internal.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct provider_answer a = { 0 };
    struct err e = { 0 };

    if (provider_answer_read(&a, (const char *)data, size, PROVIDER_GROUP "v1", &e) == ERR_OK) {
        const char *glob, *field;
        json_t *entry, *value;

        assert(json_is_object(a.auths) && json_object_size(a.auths) <= PROVIDER_AUTHS_MAX);
        json_object_foreach (a.auths, glob, entry)
            json_object_foreach (entry, field, value)
                assert(json_is_string(value));
    } else {
        assert(e.code != ERR_OK && e.text[0] != '\0');
        assert(a.auths == NULL);
    }
    provider_answer_done(&a);
    return 0;
}
