/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/storage.h"

#include "base/buf.h"

bool api_pv_is_block(const struct api_pv *pv)
{
    return str_eq(pv->volume_mode, "Block");
}

bool api_pv_fits_node(const struct api_pv *pv, const char *node_name, const struct api_kvs *labels)
{
    return !pv->has_node_terms || api_node_terms_match(pv->node_terms, pv->n_node_terms, node_name, labels);
}

const char *api_storage_name(enum api_storage_kind kind)
{
    switch (kind) {
    case API_STORAGE_NONE:
        break;
    case API_STORAGE_HOST_PATH:
        return "hostPath";
    case API_STORAGE_LOCAL:
        return "local";
    case API_STORAGE_NFS:
        return "nfs";
    case API_STORAGE_ISCSI:
        return "iscsi";
    case API_STORAGE_FC:
        return "fc";
    case API_STORAGE_FLEX:
        return "flexVolume";
    case API_STORAGE_CSI:
        return "csi";
    }
    return "none";
}

bool api_storage_has_devices(enum api_storage_kind kind)
{
    return kind == API_STORAGE_ISCSI || kind == API_STORAGE_FC;
}
