/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/storage_place.h"

#include "agent/pod/core/pod.h"
#include "volumes/csi/place.h"

#include <stdio.h>
#include <string.h>

static bool is_element(const char *name)
{
    return name != NULL && name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strchr(name, '/') == NULL;
}

/* "vendor/driver" is "vendor~driver" on the disk; a name without a vendor stays as it is. */
static enum err_code flex_name(const char *driver, char *ret, size_t size, struct err *e)
{
    int n = snprintf(ret, size, "%s", driver != NULL ? driver : "");
    char *slash;

    if (n < 0 || (size_t)n >= size)
        return err_set(e, ERR_INVALID, "the name of the FlexVolume driver is too long");
    slash = strchr(ret, '/');
    if (slash != NULL)
        *slash = '~';
    return is_element(ret)
               ? ERR_OK
               : err_set(e, ERR_INVALID, "\"%.100s\" is not a valid FlexVolume driver name", driver);
}

enum err_code storage_plugin_name(const struct api_storage *s, char *ret, size_t size, struct err *e)
{
    static const char *const names[] = {
        [API_STORAGE_NONE] = "none",
        [API_STORAGE_HOST_PATH] = "host-path",
        [API_STORAGE_LOCAL] = "local-volume",
        [API_STORAGE_NFS] = "nfs",
        [API_STORAGE_ISCSI] = "iscsi",
        [API_STORAGE_FC] = "fc",
        [API_STORAGE_FLEX] = "",
        [API_STORAGE_CSI] = "csi",
    };

    if (s->kind == API_STORAGE_FLEX)
        return flex_name(s->driver, ret, size, e);
    snprintf(ret, size, "kubernetes.io~%s", names[s->kind]);
    return ERR_OK;
}

static enum err_code below_pod(const struct pod *p, const struct api_storage *s, const char *folder,
                               const char *volume, char *ret, size_t size, struct err *e)
{
    char plugin[256];
    int n;

    if (storage_plugin_name(s, plugin, sizeof(plugin), e) != ERR_OK)
        return e->code;
    if (!is_element(volume))
        return err_set(e, ERR_INVALID, "\"%.100s\" is not a valid volume name", volume);
    n = snprintf(ret, size, "%s/pods/%s/%s/%s/%s", p->node->o.root_dir, p->uid, folder, plugin, volume);
    return n > 0 && (size_t)n < size ? ERR_OK
                                     : err_set(e, ERR_INVALID, "volume \"%s\": its path is too long", volume);
}

enum err_code storage_place(const struct pod *p, const struct api_storage *s, const char *volume, char *ret,
                            size_t size, struct err *e)
{
    if (s->kind == API_STORAGE_CSI)
        return csi_place_target(p->node->o.root_dir, p->uid, volume, ret, size, e);
    return below_pod(p, s, "volumes", volume, ret, size, e);
}

enum err_code storage_device_place(const struct pod *p, const struct api_storage *s, const char *volume,
                                   char *ret, size_t size, struct err *e)
{
    return below_pod(p, s, "volumeDevices", volume, ret, size, e);
}
