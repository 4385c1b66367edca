/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/storage/internal.h"

#include <string.h>

static bool is_element(const char *name)
{
    return name != NULL && name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

enum err_code storage_mount(const struct storage_spec *s, struct err *e)
{
    if (!is_element(s->name) || strlen(s->name) > 253 || strlen(s->root) > 500)
        return err_set(e, ERR_INVALID, "not a volume name");
    if (storage_check_options(s->options, s->n_options, e) != ERR_OK)
        return e->code;
    switch (s->kind) {
    case STORAGE_NFS:
        return storage_nfs_mount(s, e);
    case STORAGE_ISCSI:
        return storage_iscsi_mount(s, e);
    case STORAGE_FC:
        return storage_fc_mount(s, e);
    case STORAGE_LOCAL:
        return storage_local_mount(s, e);
    }
    return err_set(e, ERR_INTERNAL, "not a kind of volume");
}
