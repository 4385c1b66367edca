/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the podresources server.  What comes out is two whole strings. */
#include "deviceplugin/message/podresources.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dp_podres_request asked;
    struct err e = { 0 };

    if (dp_podres_request_unpack(&asked, data, size, &e) == ERR_OK)
        assert(strlen(asked.name) + strlen(asked.namespace_) <= size);
    else
        assert(e.text[0] != '\0');
    dp_podres_request_done(&asked);
    return 0;
}
