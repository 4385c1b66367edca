/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/provider/internal.h"

#include "agent/api/manifest/decode.h"
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

void provider_wipe(json_t *auths)
{
    if (auths != NULL && auths->refcount == 1)
        api_json_wipe(auths);
    json_decref(auths);
}

static void cache_drop(struct provider_cache *c, struct provider_kept *kept)
{
    HASH_DEL(c->kept, kept);
    c->bytes -= kept->bytes;
    provider_wipe(kept->auths);
    free(kept->key);
    free(kept);
}

/* The three scopes have keys that differ: a repository has a path, a registry none. */
static char *cache_key(const char *provider, const char *repository, enum provider_scope scope)
{
    const size_t n = scope == PROVIDER_IMAGE      ? strlen(repository)
                     : scope == PROVIDER_REGISTRY ? strcspn(repository, "/")
                                                  : 0;

    return str_printf("%s %d %.*s", provider, (int)scope, (int)n, repository);
}

static void cache_drop_old(struct provider_cache *c)
{
    struct provider_kept *kept, *next;

    HASH_ITER (hh, c->kept, kept, next)
        if (clock_boot_is_due(kept->until))
            cache_drop(c, kept);
}

json_t *provider_cache_find(struct provider_cache *c, const char *provider, const char *repository)
{
    cache_drop_old(c);
    for (int scope = PROVIDER_IMAGE; scope <= PROVIDER_GLOBAL; scope++) {
        str_auto key = cache_key(provider, repository, (enum provider_scope)scope);
        struct provider_kept *kept = NULL;

        if (key != NULL)
            HASH_FIND_STR(c->kept, key, kept);
        if (kept != NULL)
            return json_incref(kept->auths);
    }
    return NULL;
}

void provider_cache_put(struct provider_cache *c, const char *provider, const char *repository,
                        enum provider_scope scope, json_t *auths, size_t bytes, int64_t for_ns)
{
    struct provider_kept *kept = calloc(1, sizeof(*kept)), *before = NULL;

    if (kept == NULL || (kept->key = cache_key(provider, repository, scope)) == NULL) {
        free(kept);
        return;
    }
    cache_drop_old(c);
    HASH_FIND_STR(c->kept, kept->key, before);
    if (before != NULL)
        cache_drop(c, before);
    while (c->kept != NULL &&
           (HASH_COUNT(c->kept) >= PROVIDER_CACHE_MAX || c->bytes + bytes > PROVIDER_CACHE_BYTES))
        cache_drop(c, c->kept);
    kept->auths = json_incref(auths);
    kept->bytes = bytes;
    kept->until = clock_boot_in_ns(for_ns);
    c->bytes += bytes;
    HASH_ADD_KEYPTR(hh, c->kept, kept->key, strlen(kept->key), kept);
}

void provider_cache_done(struct provider_cache *c)
{
    while (c->kept != NULL)
        cache_drop(c, c->kept);
}
