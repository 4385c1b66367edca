/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a CSI driver.  The first byte chooses which. */
#include "volumes/csi/messages.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct csi_node_info i = { 0 };
    struct err e = { 0 };
    csi_caps caps = 0;

    if (size == 0)
        return 0;
    if (data[0] % 4 == 2) {
        struct csi_usage u;

        if (csi_usage_unpack(&u, data + 1, size - 1, &e) == ERR_OK)
            assert(u.has_bytes || u.has_inodes);
        else
            assert(e.text[0] != '\0');
        return 0;
    }
    if (data[0] % 4 == 3) {
        uint64_t bytes = 0;

        if (csi_expand_unpack(&bytes, data + 1, size - 1, &e) == ERR_OK)
            assert(bytes <= INT64_MAX);
        else
            assert(e.text[0] != '\0');
        return 0;
    }
    if (data[0] % 4 == 0) {
        if (csi_caps_unpack(&caps, data + 1, size - 1, &e) == ERR_OK)
            assert((caps & 1) == 0);
        else
            assert(e.text[0] != '\0');
        return 0;
    }
    if (csi_node_info_unpack(&i, data + 1, size - 1, &e) == ERR_OK) {
        assert(strlen(i.node_id) <= CSI_NODE_ID_MAX && i.max_volumes >= 0);
        assert(i.topology.n <= CSI_TOPOLOGY_MAX);
        for (size_t k = 0; k < i.topology.n; k++)
            assert(strlen(i.topology.v[k].key) + strlen(i.topology.v[k].value) <= size);
    } else {
        assert(e.text[0] != '\0');
    }
    csi_node_info_done(&i);
    return 0;
}
