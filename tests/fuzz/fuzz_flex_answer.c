/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of FlexVolume drivers. */
#include "volumes/flex/flex.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct flex_answer a;
    struct err e = { 0 };

    if (flex_answer_parse("mount", (const char *)data, size, &a, &e) != ERR_OK) {
        assert(e.code == ERR_INVALID && e.text[0] != '\0');
        return 0;
    }
    assert(strnlen(a.device, sizeof(a.device)) < sizeof(a.device));
    assert(strnlen(a.message, sizeof(a.message)) < sizeof(a.message));
    return 0;
}
