/* SPDX-License-Identifier: Apache-2.0 */
/*
 * review_cache - caches the results of the apiserver's reviews, by request.
 *
 * Requests (a token, the attributes of a request) are stored as SHA-256 digests only. At most
 * REVIEW_CACHE_MAX results are cached; the oldest is removed first. Loop thread only.
 */
#ifndef AGENT_KUBE_SERVER_REVIEW_CACHE_H
#define AGENT_KUBE_SERVER_REVIEW_CACHE_H
#include "base/list.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define REVIEW_CACHE_MAX 4096

struct review;
struct review_cache { /* initialize with review_cache_init() */
    struct review *table;
    TAILQ_HEAD(review_queue, review) order; /* by age */
    size_t n;
};

void review_cache_init(struct review_cache *c);
void review_cache_done(struct review_cache *c);
/* Borrowed; NULL: not known, or too old. */
json_t *review_cache_get(struct review_cache *c, const void *question, size_t n, uint64_t now_ms);
/* The answer is taken; without memory it is not kept. */
void review_cache_put(struct review_cache *c, const void *question, size_t n, json_t *answer, uint64_t now_ms,
                      uint64_t ttl_ms);
#endif
