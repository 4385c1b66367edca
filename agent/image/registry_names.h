/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_names - what a name without a registry means: containers-registries.conf's rules.
 *
 * "web" or "team/web" is a short name.  An alias for it ([aliases], also of registries.conf.d) decides alone;
 * else the unqualified-search-registries are asked in their order; without both it is Docker Hub, as
 * everywhere in Kubernetes.  skopeo knows all else in registries.conf (mirrors, TLS), but takes whole names
 * only.
 */
#ifndef AGENT_IMAGE_REGISTRY_NAMES_H
#define AGENT_IMAGE_REGISTRY_NAMES_H
#include "agent/image/image.h"

#define REG_SEARCH_MAX 32    /* registries to search; more are passed over */
#define REG_ALIASES_MAX 4096 /* a distribution's list has a hundred */
#define REG_CONF_MAX (1u << 20)

struct reg_alias {
    char *name, *target;
};

struct reg_names { /* { 0 } before */
    char *search[REG_SEARCH_MAX];
    size_t n_search;
    struct reg_alias *aliases;
    size_t n_aliases;
    bool redirects; /* some name is asked for elsewhere: a mirror, or another prefix */
};

/*
 * Takes over what one file says: a list of registries replaces the one before, aliases are added or replaced,
 * an empty one is taken away.  The rest of the TOML is passed over.  ERR_INVALID: it cannot be read on from
 * there.
 */
enum err_code reg_names_parse(struct reg_names *r, const char *text, struct err *e) MUST_CHECK;
/* `conf` (NULL: the system's) and then registries.conf.d.  A file that does not parse is logged.  An error:
 * one may say more than could be read (EIO, EMFILE, ...).  Blocking. */
enum err_code reg_names_load(struct reg_names *r, const char *conf, struct err *e) MUST_CHECK;
/* Whether the configuration decides which registry is meant. */
bool reg_names_is_short(const char *reference);
void reg_names_done(struct reg_names *r);

/* The k-th name, normalised, that `reference` may stand for; false: there are no more, or it does not parse.
 */
bool reg_names_candidate(const struct reg_names *r, const char *reference, size_t k, char ret[IMG_NAME_MAX]);
#endif
