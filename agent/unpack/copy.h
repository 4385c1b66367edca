/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy - a file or a folder as a tar stream, and a tar stream into a folder, for `coracle cp`: regular files,
 * folders and symbolic links, their permissions and times, nothing else.  Both sides may be hostile: what is
 * packed may change meanwhile, and what is unpacked is somebody else's bytes.  Of a file that says it is
 * empty, as those of procfs do, its content is packed, a MiB at most.
 *
 * Unpacking never leaves the folder: names with ".." or from "/" are refused, no symbolic link is followed,
 * and a file that is there is replaced as a whole and never written through: no half file of an archive that
 * ends early stays.  Packing opens nothing but files and folders.
 */
#ifndef AGENT_UNPACK_COPY_H
#define AGENT_UNPACK_COPY_H
#include "base/error.h"

#include <stdbool.h>

struct copy_options {
    /* Unpack: the first element of every name, the same in all, becomes this; of an archive of "." the folder
     */
    const char *rename;
    bool no_links;                             /* unpack: symbolic links are left out, with a warning */
    void (*warn)(const char *text, void *arg); /* what was left out, printable; may be NULL */
    void *arg;
};

/* `node`: O_PATH; its name in the archive is `as`, for a folder also ".".  ERR_INVALID: a device, say, which
 * is left out of a folder only. */
enum err_code copy_pack(int node, const char *as, int out, const struct copy_options *o,
                        struct err *e) MUST_CHECK;
/* Below the folder `dir`.  Reads `in` to its end. */
enum err_code copy_unpack(int dir, int in, const struct copy_options *o, struct err *e) MUST_CHECK;
/* The words after COPY_OPTION; the exit status. */
int copy_main(int argc, char **argv);
#endif
