/* SPDX-License-Identifier: Apache-2.0 */
/*
 * networks - reads the configuration folder: its networks, and the problems of unusable files.
 *
 * Rules (libcni's, and CRI-O's where libcni has none): files named .conf, .conflist and .json in plain order
 * of their names, no folders; an invalid file is a problem but does not affect others; of two lists with the
 * same name the first is used; a list is unusable if not all its plugins are installed (executable regular
 * files), or not all support one of its versions. The first usable list is the default network. Blocking (a
 * few small files of the administrator); loop thread.
 */
#ifndef CNI_PLUGIN_NETWORKS_H
#define CNI_PLUGIN_NETWORKS_H
#include "base/strs.h"
#include "cni/plugin/conf.h"
#include "cni/plugin/versions.h"

#define CNI_FILES_MAX 256 /* maximum number of files; real folders hold one or two */

struct cni_networks {
    struct cni_list *lists; /* usable ones, default first */
    size_t n;
    struct strs problems; /* "10-net.conflist: ..." */
    struct strs unasked; /* plugin types whose versions are not known yet; their lists are usable meanwhile */
    struct strs missing; /* plugin types not found in any bin_dir, including IPAM plugins */
    struct strs folders; /* existing subfolders in which plugins were looked up */
    struct strs bridges; /* links created by plugins of type bridge, in usable and unusable lists */
    char *why;           /* why there is no default network; NULL if there is one */
};

/* versions: the answers of plugins; NULL: plugins are not asked. An error means that a folder, file or plugin
 * could not be read; every other failure is a problem of a file. */
enum err_code cni_networks_load(struct cni_networks *ret, const char *conf_dir, const char *const *bin_dirs,
                                const char *data_dir, struct cni_versions *versions,
                                struct err *e) MUST_CHECK;
void cni_networks_done(struct cni_networks *n);
#endif
