/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"

#include "base/files/fs.h"

#include <fcntl.h>

bool unpack_lower_find(const struct unpack_lower *lower, const char *path, struct stat *ret)
{
    for (size_t i = 0; i < lower->n; i++) {
        struct err why = { 0 };
        fd_auto fd = fs_open_in_root(lower->fds[i], path, O_PATH | O_DIRECTORY, 0, &why);

        if (fd >= 0)
            return fstat(fd, ret) == 0;
        if (why.code != ERR_NOT_FOUND)
            return false; /* a whiteout or a file hides the layers below */
    }
    return false;
}

void unpack_lower_close(struct unpack_lower *lower)
{
    for (size_t i = 0; i < lower->n; i++)
        close(lower->fds[i]);
    lower->n = 0;
}
