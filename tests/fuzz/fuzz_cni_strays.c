/* SPDX-License-Identifier: Apache-2.0 */
/* The text of iptables-save, looked through for attachments. */
#include "cni/plugin/names.h"
#include "cni/strays.h"
#include "text.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    struct cni_stray_list l = { 0 };
    struct err e = { 0 };

    if (cni_strays_parse(&l, text, &e) == ERR_OK)
        assert(l.n <= CNI_STRAYS_MAX);
    for (size_t i = 0; i < l.n; i++) {
        assert(cni_name_ok(l.v[i].network) && cni_name_ok(l.v[i].id));
        assert(l.v[i].addresses.n <= CNI_IPS_MAX);
    }
    cni_strays_done(&l);
    free(text);
    return 0;
}
