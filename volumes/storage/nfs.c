/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/storage/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum err_code check_server(const char *server, struct err *e)
{
    if (server == NULL || server[0] == '\0' || server[0] == '-' || strpbrk(server, " \t\n,/") != NULL)
        return err_set(e, ERR_INVALID, "\"%.100s\" is not a valid NFS server name",
                       server != NULL ? server : "");
    return ERR_OK;
}

enum err_code storage_nfs_mount(const struct storage_spec *s, struct err *e)
{
    str_auto options = storage_join_options(s, s->read_only ? "ro" : NULL);
    const bool v6 = s->server != NULL && strchr(s->server, ':') != NULL && s->server[0] != '[';
    str_auto source = NULL;
    bool mounted = false;

    if (check_server(s->server, e) != ERR_OK || storage_make_folder(s->target, e) != ERR_OK ||
        storage_is_mounted(s->target, &mounted, e) != ERR_OK)
        return e->code;
    if (mounted)
        return ERR_OK;
    source = str_printf(v6 ? "[%s]:%s" : "%s:%s", s->server, s->path);
    if (options == NULL || source == NULL)
        return err_nomem(e);
    {
        const char *const args[] = { source, s->target, options[0] != '\0' ? "-o" : NULL, options, NULL };

        if (storage_run(
                &(struct storage_run){ .program = "mount.nfs", .package = "nfs-common", .args = args }, e) !=
            ERR_OK) {
            rmdir(s->target);
            return e->code;
        }
    }
    return ERR_OK;
}
