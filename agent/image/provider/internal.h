/* SPDX-License-Identifier: Apache-2.0 */
/* internal - private declarations of image credential providers; provider.h has the overview. */
#ifndef AGENT_IMAGE_PROVIDER_INTERNAL_H
#define AGENT_IMAGE_PROVIDER_INTERNAL_H
#include "agent/image/provider/provider.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/strs.h"

#define PROVIDER_GROUP "credentialprovider.kubelet.k8s.io/"

struct provider {
    char *name, *version;         /* of request and answer: PROVIDER_GROUP "v1" */
    struct strs match, argv, env; /* argv[0] is the program's absolute path */
    int64_t default_ns;           /* how long an answer without cacheDuration is kept; 0: not at all */
};

struct provider_kept { /* a cached answer */
    char *key;
    json_t *auths;
    size_t bytes;
    struct boot_time until;
    UT_hash_handle hh; /* by key; in the order of arrival */
};

struct provider_cache { /* { 0 } is empty */
    struct provider_kept *kept;
    size_t bytes;
};

struct provider_set {
    struct provider *v; /* sorted by name */
    size_t n;
    struct provider_cache cache;
};

/* ---- config.c ---- */
/* The text of a CredentialProviderConfig in YAML or JSON; programs are not searched. */
enum err_code provider_config_read(struct provider_set *ret, const char *text, size_t n, const char *bin_dir,
                                   const char *const *environment, struct err *e) MUST_CHECK;
void provider_config_done(struct provider_set *s);
bool provider_is_for(const struct provider *p, const char *repository);

/* ---- answer.c ---- */
enum provider_scope { PROVIDER_IMAGE, PROVIDER_REGISTRY, PROVIDER_GLOBAL };
struct provider_answer { /* { 0 } is empty */
    enum provider_scope scope;
    bool has_duration;
    int64_t duration_ns;
    json_t *auths; /* {"<glob>": {"username","password"}}; never NULL after a success */
};
/* ERR_INVALID, without parts of the answer that may be secret. */
enum err_code provider_answer_read(struct provider_answer *ret, const char *text, size_t n,
                                   const char *version, struct err *e) MUST_CHECK;
void provider_answer_done(struct provider_answer *a); /* overwrites it */

/* ---- cache.c ---- */
/* A new reference to the entries kept for the image, or NULL. */
json_t *provider_cache_find(struct provider_cache *c, const char *provider, const char *repository);
/* Caches entries of `bytes` for `for_ns`; without memory they are not cached. */
void provider_cache_put(struct provider_cache *c, const char *provider, const char *repository,
                        enum provider_scope scope, json_t *auths, size_t bytes, int64_t for_ns);
void provider_cache_done(struct provider_cache *c);
void provider_wipe(json_t *auths); /* drops a reference; the last one overwrites the values; NULL is fine */
#endif
