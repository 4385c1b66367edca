/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the podresources server.  What comes out is two whole strings. */
#include "deviceplugin/podresources.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dp_podres_request *asked = NULL;
    struct err e = { 0 };

    if (dp_podres_request(data, size, &asked, &e) == ERR_OK)
        assert(strlen(asked->name) + strlen(asked->namespace_) <= size);
    else
        assert(asked == NULL && e.text[0] != '\0');
    free(asked);
    return 0;
}
