/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy - packs a file or a folder into a tar stream, and unpacks a tar stream into a folder, for `coracle
 * cp`.  The stream holds regular files, folders and symbolic links with their permissions and times, and
 * nothing else.  Both sides may be hostile: files may change while they are packed, and the archive to unpack
 * comes from another party.  A file whose size is reported as 0, as in procfs, is read first: at most 1 MiB
 * of it is packed.
 *
 * Unpacking never leaves the folder: names that hold ".." or begin with "/" are refused, and symbolic links
 * are not followed.  An existing file is replaced as a whole and never written through, so an archive that
 * ends early leaves no partial file.  Packing opens only regular files and folders.
 */
#ifndef AGENT_UNPACK_COPY_H
#define AGENT_UNPACK_COPY_H
#include "base/error.h"

#include <stdbool.h>

struct copy_options {
    /*
     * Unpack: replaces the first element of every name, which must be the same in all of them.  When the
     * archive holds ".", this becomes the folder's name.
     */
    const char *rename;
    bool no_links;                             /* unpack: skip symbolic links, with a warning */
    void (*warn)(const char *text, void *arg); /* a printable text about a skipped entry; may be NULL */
    void *arg;
};

/*
 * `node` is an O_PATH descriptor; `as` is its name in the archive, which may be "." for a folder.
 * ERR_INVALID: `node` itself is a device, pipe or socket; inside a folder these are skipped with a warning.
 */
enum err_code copy_pack(int node, const char *as, int out, const struct copy_options *o,
                        struct err *e) MUST_CHECK;
/* Unpacks below the folder `dir`; reads `in` to its end. */
enum err_code copy_unpack(int dir, int in, const struct copy_options *o, struct err *e) MUST_CHECK;
/* `argv`: the arguments after COPY_OPTION; returns the exit status. */
int copy_main(int argc, char **argv);
#endif
