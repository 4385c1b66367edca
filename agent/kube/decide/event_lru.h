/* SPDX-License-Identifier: Apache-2.0 */
/* event_lru - a map from hashes to small records that forgets the records unused for longest: client-go keeps
 * 4096 of each kind (maxLruCacheEntries). Keys are keyed hashes of this process (base/siphash.h). */
#ifndef AGENT_KUBE_DECIDE_EVENT_LRU_H
#define AGENT_KUBE_DECIDE_EVENT_LRU_H
#include "base/list.h"

#include <stdint.h>

#define EVENT_LRU_MAX 4096

struct event_lru_entry { /* the first member of a record */
    uint64_t key;
    TAILQ_ENTRY(event_lru_entry) used;
    UT_hash_handle hh;
};

struct event_lru {
    struct event_lru_entry *entries;
    TAILQ_HEAD(, event_lru_entry) order; /* the newest last */
    size_t record_size;
    void (*drop)(struct event_lru_entry *e); /* frees the record's own; NULL: it has nothing */
};

void event_lru_init(struct event_lru *l, size_t record_size, void (*drop)(struct event_lru_entry *e));
void *event_lru_get(struct event_lru *l, uint64_t key);  /* and makes it the newest; NULL: none */
void *event_lru_make(struct event_lru *l, uint64_t key); /* zeroed if it is new; NULL: no memory */
void event_lru_done(struct event_lru *l);
#endif
