/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/server/review_cache.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdlib.h>

struct review {
    UT_hash_handle hh;
    TAILQ_ENTRY(review) link;
    unsigned char key[SHA256_DIGEST_LENGTH];
    json_t *answer;
    uint64_t until_ms;
};

static bool review_digest(const void *question, size_t n, unsigned char key[SHA256_DIGEST_LENGTH])
{
    return EVP_Digest(question, n, key, NULL, EVP_sha256(), NULL) == 1;
}

static void review_forget(struct review_cache *c, struct review *r)
{
    HASH_DEL(c->table, r);
    TAILQ_REMOVE(&c->order, r, link);
    c->n--;
    json_decref(r->answer);
    free(r);
}

void review_cache_init(struct review_cache *c)
{
    *c = (struct review_cache){ 0 };
    TAILQ_INIT(&c->order);
}

void review_cache_done(struct review_cache *c)
{
    while (!TAILQ_EMPTY(&c->order))
        review_forget(c, TAILQ_FIRST(&c->order));
}

static struct review *review_find(const struct review_cache *c, const unsigned char key[SHA256_DIGEST_LENGTH])
{
    struct review *r;

    HASH_FIND(hh, c->table, key, SHA256_DIGEST_LENGTH, r);
    return r;
}

json_t *review_cache_get(struct review_cache *c, const void *question, size_t n, uint64_t now_ms)
{
    unsigned char key[SHA256_DIGEST_LENGTH];
    struct review *r = review_digest(question, n, key) ? review_find(c, key) : NULL;

    if (r != NULL && r->until_ms <= now_ms) {
        review_forget(c, r);
        r = NULL;
    }
    return r != NULL ? r->answer : NULL;
}

void review_cache_put(struct review_cache *c, const void *question, size_t n, json_t *answer, uint64_t now_ms,
                      uint64_t ttl_ms)
{
    struct review *r = calloc(1, sizeof(*r)), *old;

    if (r == NULL || ttl_ms == 0 || !review_digest(question, n, r->key)) {
        json_decref(answer);
        free(r);
        return;
    }
    old = review_find(c, r->key);
    if (old != NULL)
        review_forget(c, old);
    while (c->n >= REVIEW_CACHE_MAX)
        review_forget(c, TAILQ_FIRST(&c->order));
    r->answer = answer;
    r->until_ms = now_ms + ttl_ms;
    HASH_ADD(hh, c->table, key, SHA256_DIGEST_LENGTH, r);
    if (r->hh.tbl == NULL) {
        json_decref(answer);
        free(r);
        return;
    }
    TAILQ_INSERT_TAIL(&c->order, r, link);
    c->n++;
}
