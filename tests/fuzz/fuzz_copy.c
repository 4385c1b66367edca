/* SPDX-License-Identifier: Apache-2.0 */
/* A tar archive that somebody else made, unpacked into a folder: nothing appears or changes beside it. */
#include "agent/unpack/copy.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct copy_options o = { 0 };
    char path[] = "/tmp/fuzz-copy.XXXXXX";
    struct err e = { 0 };
    struct stat before, after;

    assert(mkdtemp(path) != NULL);
    {
        fd_auto outer = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fd_auto archive = memfd_create("archive", MFD_CLOEXEC);
        fd_auto to = -1;

        assert(outer >= 0 && archive >= 0 && mkdirat(outer, "to", 0755) == 0);
        to = openat(outer, "to", O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert(fstat(outer, &before) == 0);
        if (size <= 1 << 20 && write(archive, data, size) == (ssize_t)size &&
            lseek(archive, 0, SEEK_SET) == 0)
            (void)!copy_unpack(to, archive, &o, &e);
        assert(fstat(outer, &after) == 0);
        assert(before.st_nlink == after.st_nlink && before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
               before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    }
    e = (struct err){ 0 };
    assert(fs_remove_tree(AT_FDCWD, path, &e) == ERR_OK);
    return 0;
}
