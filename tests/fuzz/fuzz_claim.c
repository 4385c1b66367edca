/* SPDX-License-Identifier: Apache-2.0 */
/* A claim's record: what was read is whole, and can be freed. */
#include "agent/claim/internal.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct claim one = { 0 };
    struct err e = { 0 };

    if (claim_record_parse((const char *)data, size, &one, &e) == ERR_OK) {
        assert(one.uid[0] != '\0' && one.uid[0] != '.' && strchr(one.uid, '/') == NULL);
        assert(one.pv == NULL || (one.volume != NULL && strcmp(one.volume, one.pv->meta.name) == 0));
    } else {
        assert(e.text[0] != '\0');
    }
    claim_done(&one);
    return 0;
}
