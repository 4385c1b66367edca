/* SPDX-License-Identifier: Apache-2.0 */
/* A volume whose PersistentVolume has become larger than its claim: NodeExpandVolume while the pod runs. */
#include "agent/pod/core/driver_link.h"
#include "agent/pod/core/events.h"
#include "agent/pod/volume/csi_vol.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#include <string.h>

void csi_grown(struct csi_vol *v, const struct api_volume *api, uint64_t bytes)
{
    v->grow_error[0] = '\0';
    v->grow_backoff_ms = 0;
    v->grow_at = CLOCK_BOOT_NONE;
    log_info("a CSI volume was expanded", F_STR("pod", v->pod->key), F_STR("volume", v->spec_name),
             F_I64("bytes", (int64_t)bytes));
    pod_event(v->pod, NULL, false, "FileSystemResizeSuccessful",
              "MountVolume.NodeExpandVolume succeeded for volume \"%.200s\" %s", v->spec_name,
              v->pod->node->o.node_name);
    driver_expanded(v->pod, api, bytes, &(struct err){ 0 });
}

static void grow_failed(struct csi_vol *v, const struct api_volume *api, const struct err *why)
{
    char text[sizeof(v->grow_error)];

    snprintf(text, sizeof(text),
             "NodeExpandVolume.NodeExpandVolume failed for volume \"%.100s\" : Expander.NodeExpand failed to "
             "expand the volume : %.300s",
             v->spec_name, why->text);
    text_printable(text);
    if (strcmp(text, v->grow_error) != 0)
        log_warn("cannot expand a CSI volume", F_STR("pod", v->pod->key), F_STR("volume", v->spec_name),
                 F_ERR(why));
    strcpy(v->grow_error, text);
    v->grow_backoff_ms = backoff_next_ms(v->grow_backoff_ms, CSI_RETRY_FIRST_MS, CSI_RETRY_MAX_MS);
    v->grow_at = clock_boot_in_ms(v->grow_backoff_ms);
    pod_event(v->pod, NULL, true, "VolumeResizeFailed", "%s", text);
    if (api != NULL)
        driver_expanded(v->pod, api, v->growing, why);
}

static void on_expanded(struct op *op, const struct err *result)
{
    struct csi_vol *v = op->owner;
    const struct api_volume *api = api_volume_find(&v->pod->api->spec, v->name);
    bool cancelled = v->expand.op.why.code == ERR_CANCELLED;

    csi_described_done(&v->grown);
    if (result->code == ERR_OK && api != NULL)
        csi_grown(v, api, v->growing);
    else if (result->code != ERR_OK && !cancelled)
        grow_failed(v, api, result);
    v->growing = 0;
    pod_wake(v->pod, "a CSI volume was expanded");
}

void csi_grow_step(struct csi_vol *v, const struct api_volume *api)
{
    uint64_t bytes = v->ephemeral ? 0 : csi_wanted_bytes(v->pod, api);
    const char *what = NULL;
    struct err e = { 0 };

    if (bytes == 0 || op_live(&v->expand.op) || op_live(&v->mount.op))
        return;
    if (!clock_boot_is_due(v->grow_at)) {
        pod_wake_at(v->pod, v->grow_at, "a CSI volume is expanded");
        return;
    }
    if (csi_describe(v, api, &v->grown, &what, &e) != ERR_OK) {
        csi_described_done(&v->grown);
        grow_failed(v, api, &e);
        return;
    }
    v->growing = bytes;
    v->give_up_at = CLOCK_BOOT_NONE;
    csi_expand_start(&v->expand, v->pod->node->csi, &v->grown.volume, v->caps, bytes, on_expanded, v);
}
