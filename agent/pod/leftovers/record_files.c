/* SPDX-License-Identifier: Apache-2.0 */
/* record_files - removes the files of a pod's record, if necessary by a later retry. */
#include "agent/pod/leftovers/record_files.h"

#include "base/scope.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum err_code record_remove_files(const struct node *n, const char *uid, struct err *e)
{
    const struct {
        const char *dir, *below, *end;
    } names[] = { { n->o.run_dir, "records/", "" },
                  { n->o.state_dir, "pods/.", ".synced" },
                  { n->o.state_dir, "pods/", ".synced" },
                  { n->o.state_dir, "pods/", "" } };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[512];

        snprintf(path, sizeof(path), "%s/%s%s.json%s", names[i].dir, names[i].below, uid, names[i].end);
        if (unlink(path) != 0 && errno != ENOENT && e->code == ERR_OK)
            err_sys(e, errno, "remove %s", path);
    }
    return e->code;
}
