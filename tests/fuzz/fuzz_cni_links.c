/* SPDX-License-Identifier: Apache-2.0 */
/* Netlink messages about interfaces and addresses, whatever their lengths say. */
#include "cni/links.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct cni_result expected = { { "10.77.0.2", "fd00::2" }, 2 };
    /* As large as the datagram, so that a read behind its end is seen; aligned like a receive buffer. */
    void *copy = malloc(size > 0 ? size : 1);
    struct cni_links *l = calloc(1, sizeof(*l));
    struct err e = { 0 };

    if (copy == NULL || l == NULL)
        abort();
    memcpy(copy, data, size);
    cni_links_parse(l, copy, size);
    assert(l->n <= CNI_LINKS_MAX);
    for (size_t i = 0; i < l->n; i++) {
        const struct cni_link *link = &l->v[i];

        assert(link->name[0] != '\0' && strnlen(link->name, sizeof(link->name)) < sizeof(link->name));
        assert(strnlen(link->mac, sizeof(link->mac)) < sizeof(link->mac));
        assert(link->n_addresses <= CNI_LINK_ADDRESSES_MAX);
        for (size_t k = 0; k < link->n_addresses; k++)
            assert(strnlen(link->addresses[k], sizeof(link->addresses[k])) < sizeof(link->addresses[k]));
    }
    if (cni_links_check(l, "eth0", &expected, &e) != ERR_OK)
        assert(e.text[0] != '\0');
    free(l);
    free(copy);
    return 0;
}
