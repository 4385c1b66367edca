/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_names - the meaning of names without a registry, by the rules of containers-registries.conf.
 *
 * "web" or "team/web" is a short name. If there is an alias for it ([aliases], also in registries.conf.d),
 * only the alias is used; otherwise the unqualified-search-registries are tried in order; without either, the
 * name refers to Docker Hub, as usual in Kubernetes. skopeo handles the rest of registries.conf (mirrors,
 * TLS), but only accepts complete names.
 */
#ifndef AGENT_IMAGE_REGISTRY_NAMES_H
#define AGENT_IMAGE_REGISTRY_NAMES_H
#include "agent/image/image.h"

#define REG_SEARCH_MAX 32    /* registries to search; further ones are ignored */
#define REG_ALIASES_MAX 4096 /* a distribution's list has about a hundred */
#define REG_CONF_MAX (1u << 20)

struct reg_alias {
    char *name, *target;
};

struct reg_names { /* initialize to { 0 } */
    char *search[REG_SEARCH_MAX];
    size_t n_search;
    struct reg_alias *aliases;
    size_t n_aliases;
    bool redirects; /* some names are redirected: to a mirror, or another prefix */
};

/* Applies one file: a list of registries replaces the previous one, aliases are added or replaced, and an
 * empty alias removes one. The rest of the TOML is ignored. ERR_INVALID: a syntax error. */
enum err_code reg_names_parse(struct reg_names *r, const char *text, struct err *e) MUST_CHECK;
/* Reads `conf` (NULL: the system's) and then registries.conf.d. Files with syntax errors are logged. An
 * error: a file could not be read (EIO, EMFILE, ...), so names may be missing. Blocking. */
enum err_code reg_names_load(struct reg_names *r, const char *conf, struct err *e) MUST_CHECK;
/* Whether the configuration determines the registry. */
bool reg_names_is_short(const char *reference);
void reg_names_done(struct reg_names *r);

/* The k-th normalised name that `reference` may mean; false: no more, or a syntax error. */
bool reg_names_candidate(const struct reg_names *r, const char *reference, size_t k, char ret[IMG_NAME_MAX]);
#endif
