/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar - a file or a folder as a tar stream, and a tar stream into a folder: regular files, folders and
 * symbolic links, their permissions and times, nothing else.  Both sides may be hostile: what is packed may
 * change meanwhile, and what is unpacked is somebody else's bytes.  Of a file that says it is empty, as those
 * of procfs do, what it holds is packed, a MiB at most.
 *
 * Unpacking never leaves the folder: names with ".." or from "/" are refused, no symbolic link is followed, a
 * file that is there is replaced as a whole and never written through: of an archive that ends early no half
 * file stays.  Packing opens nothing but files and folders.
 * Blocking, on blocking descriptors.
 */
#ifndef BASE_TAR_H
#define BASE_TAR_H
#include "base/error.h"

#include <stdbool.h>

struct tar_options {
    /* unpack: the first element of every name, the same in all, becomes this; of an archive of "." the folder
     */
    const char *rename;
    bool no_links;                             /* unpack: symbolic links are left out, with a warning */
    void (*warn)(const char *text, void *arg); /* what was left out, printable; may be NULL */
    void *arg;
    int proc_fds; /* pack: a descriptor of /proc/self/fd, of a /proc that knows us */
};

/* "b" of "a/b/"; "": it has none ("/", ".", ".."). */
void tar_base_name(const char *path, char ret[256]);

/* `node`: O_PATH; its name in the archive is `as`, for a folder also ".".  ERR_INVALID: a device, say, which
 * is left out of a folder only. */
enum err_code tar_pack(int node, const char *as, int out, const struct tar_options *o,
                       struct err *e) MUST_CHECK;
/* Below the folder `dir`.  Reads `in` to its end. */
enum err_code tar_unpack(int dir, int in, const struct tar_options *o, struct err *e) MUST_CHECK;

/*
 * `coracle __archive from|into PATH`: the agent's helper in a container's namespaces, which are those of the
 * process behind TAR_HELPER_PIDFD.  The stream, and what was left out, a line each, are its other
 * descriptors.
 */
#define TAR_HELPER "__archive"
enum { TAR_HELPER_PIDFD = 3, TAR_HELPER_STREAM = 4, TAR_HELPER_MESSAGES = 5 };
#endif
