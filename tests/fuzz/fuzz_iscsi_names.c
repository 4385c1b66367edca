/* SPDX-License-Identifier: Apache-2.0 */
/* Portals of iSCSI volumes, names of their disks' folders, and mount options: two texts, with a line between.
 */
#include "tests/fuzz/text.h"
#include "volumes/storage/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void whole(const char *portal, const char *iqn)
{
    const struct storage_spec s = { .kind = STORAGE_ISCSI,
                                    .root = "/var/lib/kubelet",
                                    .name = "pv",
                                    .portal = portal,
                                    .iqn = iqn,
                                    .initiator = iqn };
    struct err e = { 0 };
    struct storage_disk d;
    char target[256];

    if (storage_iscsi_disk(&s, &d, &e) != ERR_OK) {
        assert(e.code == ERR_INVALID);
        return;
    }
    assert(strncmp(d.path, "/var/lib/kubelet/plugins/kubernetes.io/iscsi/iface-", 51) == 0);
    assert(strstr(d.path, "/../") == NULL && strchr(d.name, '/') == NULL && strchr(d.iface, '/') == NULL);
    assert(storage_iscsi_target(d.name, target, sizeof(target)) && strcmp(target, iqn) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size), *second = text != NULL ? strchr(text, '\n') : NULL;
    const char *option = text;
    char portal[208], target[64];
    struct err e = { 0 };

    if (text == NULL)
        return 0;
    if (second != NULL)
        *second++ = '\0';
    if (storage_iscsi_portal(text, portal, sizeof(portal), &e) == ERR_OK)
        assert(strchr(portal, ':') != NULL && portal[0] != '-');
    if (storage_iscsi_target(text, target, sizeof(target)))
        assert(strstr(text, target) != NULL);
    if (storage_check_options(&option, 1, ERR_IGNORED) == ERR_OK)
        assert(text[0] != '-' && strchr(text, ' ') == NULL && strstr(text, ",bind,") == NULL);
    whole(text, second != NULL ? second : "iqn.2026-11.test:disk");
    free(text);
    return 0;
}
