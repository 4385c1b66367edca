/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf - one network configuration list, decoded and checked.
 *
 * Whatever form a file has (a list, or one plugin alone in .conf and .json), here it is a list in its normal
 * form:
 *     {"name": N, "cniVersion": V, "plugins": [{"type": T, ...}, ...], and every other key as it was written}
 * `conf` is never changed after loading; operations share it by reference count and the result cache stores
 * it whole. Unknown keys are kept: plugins have their own.  Loop thread only (reference counts).
 */
#ifndef CNI_CONF_H
#define CNI_CONF_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define CNI_CONF_MAX (1024 * 1024) /* bytes of one file; real ones have a few kilobytes */
#define CNI_PLUGINS_MAX 32         /* plugins in one list; real ones have three or four */

#define CNI_VERSIONS_MAX 8 /* versions of the specification that we speak: seven */

struct cni_list {
    const char *name; /* in conf */
    int version;      /* cni_version_number(): the highest of `versions` until cni_list_choose() */
    json_t *conf;     /* owned; NULL in { 0 } */
    int versions[CNI_VERSIONS_MAX]; /* from its file: those of cniVersion and cniVersions that we speak, */
    size_t n_versions;              /* highest first */
    bool disable_check, disable_gc;
};

/* A .conflist.  *ret_more: more plugins stand in <folder>/<name>/ (loadOnlyInlinedPlugins is not set). */
enum err_code cni_list_parse(struct cni_list *ret, const char *file, const char *text, size_t n,
                             bool *ret_more, struct err *e) MUST_CHECK;
/* A .conf or .json: one plugin, wrapped into a list. */
enum err_code cni_list_parse_single(struct cni_list *ret, const char *file, const char *text, size_t n,
                                    struct err *e) MUST_CHECK;
/* One more plugin behind the others. */
enum err_code cni_list_append(struct cni_list *l, const char *text, size_t n, struct err *e) MUST_CHECK;
/* Last step of loading: one plugin at least, every `type` usable; fills ipam.dataDir (NULL: as written). */
enum err_code cni_list_check(struct cni_list *l, const char *data_dir, struct err *e) MUST_CHECK;

/* Uses the list in that version, one of `versions`; before anything else refers to `conf`. */
enum err_code cni_list_choose(struct cni_list *l, int version, struct err *e) MUST_CHECK;

/* From a normal form (the result cache), checked again; takes a reference of its own. */
enum err_code cni_list_from_json(struct cni_list *ret, json_t *conf, struct err *e) MUST_CHECK;
void cni_list_done(struct cni_list *l); /* empty again; { 0 } is fine */

size_t cni_list_size(const struct cni_list *l);
json_t *cni_list_plugin(const struct cni_list *l, size_t i); /* borrowed */
const char *cni_plugin_type(const json_t *plugin);
const char *cni_plugin_ipam_type(const json_t *plugin); /* NULL: it has none */
/* Name of the link that a plugin of type bridge makes; NULL: another plugin, or not a link name. */
const char *cni_plugin_bridge(const json_t *plugin);

/* Those members of `supplied` that a plugin of the list declares; new reference, NULL: no memory. */
json_t *cni_list_declared(const struct cni_list *l, json_t *supplied) MUST_CHECK;

/*
 * What a plugin reads on standard input: its own object plus name, cniVersion, prevResult (NULL: none) and
 * runtimeConfig with those members of `supplied` (an object or NULL) that it declares in `capabilities`;
 * NULL: no memory.
 */
json_t *cni_plugin_stdin(const struct cni_list *l, size_t i, const json_t *supplied,
                         json_t *prev_result) MUST_CHECK;
#endif
