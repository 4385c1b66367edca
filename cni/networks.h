/* SPDX-License-Identifier: Apache-2.0 */
/*
 * networks - the configuration folder, read: which networks there are and what is wrong with the other files.
 *
 * Rules (libcni, and CRI-O where libcni leaves it open): files named .conf, .conflist and .json in plain
 * order of their names, folders skipped; a bad file is a problem and the others count all the same; of two
 * lists with one name the first counts; a list whose plugins are not all installed (regular files that can be
 * executed), or do not all speak one of its versions, is not usable.  The first usable list is the default
 * network. Blocking (a few small files of the administrator's); loop thread.
 */
#ifndef CNI_NETWORKS_H
#define CNI_NETWORKS_H
#include "cni/conf.h"
#include "cni/strs.h"
#include "cni/versions.h"

#define CNI_FILES_MAX 256 /* files of the folder that are looked at; real ones hold one or two */

struct cni_networks {
    struct cni_list *lists; /* usable ones, default first */
    size_t n;
    struct strs problems; /* "10-net.conflist: ..." */
    struct strs unasked;  /* plugin types that have to be asked for their versions; lists count meanwhile */
    struct strs missing;  /* plugin types that no bin_dir has, IPAM plugins among them */
    struct strs folders;  /* existing sub-folders that plugins were looked for in */
    struct strs bridges;  /* links that plugins of type bridge would make, in usable and unusable lists */
    char *why;            /* why there is no default network; NULL when there is one */
};

/* versions: what plugins said; NULL: they are not asked.  An error says that a folder, file or plugin could
 * not be looked at; all else is a problem of a file. */
enum err_code cni_networks_load(struct cni_networks *ret, const char *conf_dir, const char *const *bin_dirs,
                                const char *data_dir, struct cni_versions *versions,
                                struct err *e) MUST_CHECK;
void cni_networks_done(struct cni_networks *n);
#endif
