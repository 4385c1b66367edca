/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of ClusterTrustBundles: certificates that were written are the same when they are read again. */
#include "agent/cluster/anchors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *anchors_of(const char *text)
{
    struct buf out = BUF_INIT(2 * ANCHORS_BYTES_MAX);
    struct anchors a;
    struct err e = { 0 };

    anchors_init(&a, "7a4f0b9e-0000-4000-8000-000000000001");
    anchors_add(&a, text);
    assert(anchors_write(&a, &out, &e) == ERR_OK || e.text[0] != '\0');
    anchors_done(&a);
    return buf_detach(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *once, *twice;

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    once = anchors_of(text);
    twice = anchors_of(once);
    assert(strcmp(once, twice) == 0);
    free(once);
    free(twice);
    free(text);
    return 0;
}
