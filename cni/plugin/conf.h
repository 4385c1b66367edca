/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf - a network configuration list, decoded and checked.
 *
 * A list and a single plugin (.conf, .json) are both converted to a list in its normal form:
 *    {"name": N, "cniVersion": V, "plugins": [{"type": T, ...}, ...], and all other keys as written}
 * `conf` never changes after loading; operations share it by reference count, and the result cache stores it
 * whole. Unknown keys are kept for the plugins. Loop thread only (reference counts).
 */
#ifndef CNI_PLUGIN_CONF_H
#define CNI_PLUGIN_CONF_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define CNI_CONF_MAX (1024 * 1024) /* bytes per file; real ones have a few kilobytes */
#define CNI_PLUGINS_MAX 32         /* per list; real ones have three or four */

#define CNI_VERSIONS_MAX 8 /* versions of the specification we support: seven */

struct cni_list {
    const char *name; /* in conf */
    int version;      /* cni_version_number(): the highest of `versions` until cni_list_choose() */
    json_t *conf;     /* owned; NULL in { 0 } */
    int versions[CNI_VERSIONS_MAX]; /* the supported ones of the file's cniVersion and cniVersions, */
    size_t n_versions;              /* highest first */
    bool disable_check, disable_gc;
};

/* A .conflist. *ret_more: more plugins are in <folder>/<name>/ (loadOnlyInlinedPlugins is not set). */
enum err_code cni_list_parse(struct cni_list *ret, const char *file, const char *text, size_t n,
                             bool *ret_more, struct err *e) MUST_CHECK;
/* A .conf or .json: one plugin, wrapped into a list. */
enum err_code cni_list_parse_single(struct cni_list *ret, const char *file, const char *text, size_t n,
                                    struct err *e) MUST_CHECK;
/* Appends a plugin. */
enum err_code cni_list_append(struct cni_list *l, const char *text, size_t n, struct err *e) MUST_CHECK;
/* Last step of loading: requires at least one plugin and valid types; fills in ipam.dataDir (NULL:
 * unchanged). */
enum err_code cni_list_check(struct cni_list *l, const char *data_dir, struct err *e) MUST_CHECK;

/* Selects one of `versions`; must be called before another reference to `conf` exists. */
enum err_code cni_list_choose(struct cni_list *l, int version, struct err *e) MUST_CHECK;

/* Reads the normal form (from the result cache) and checks it again; takes its own reference. */
enum err_code cni_list_from_json(struct cni_list *ret, json_t *conf, struct err *e) MUST_CHECK;
void cni_list_done(struct cni_list *l); /* empty again; { 0 } is fine */

size_t cni_list_size(const struct cni_list *l);
json_t *cni_list_plugin(const struct cni_list *l, size_t i); /* borrowed */
const char *cni_plugin_type(const json_t *plugin);
const char *cni_plugin_ipam_type(const json_t *plugin); /* NULL if it has none */
/* Name of the link created by a plugin of type bridge; NULL for other plugins or an invalid name. */
const char *cni_plugin_bridge(const json_t *plugin);

/* The members of `supplied` declared by a plugin of the list; new reference, NULL when out of memory. */
json_t *cni_list_declared(const struct cni_list *l, json_t *supplied) MUST_CHECK;

/* A plugin's standard input: its own object plus name, cniVersion, prevResult (NULL: none) and runtimeConfig
 * with the members of `supplied` (an object or NULL) that it declares in `capabilities`; NULL when out of
 * memory. */
json_t *cni_plugin_stdin(const struct cni_list *l, size_t i, const json_t *supplied,
                         json_t *prev_result) MUST_CHECK;
#endif
