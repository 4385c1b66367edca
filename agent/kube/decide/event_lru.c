/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/event_lru.h"

#include <stdlib.h>

void event_lru_init(struct event_lru *l, size_t record_size, void (*drop)(struct event_lru_entry *e))
{
    *l = (struct event_lru){ .record_size = record_size, .drop = drop };
    TAILQ_INIT(&l->order);
}

static void event_lru_remove(struct event_lru *l, struct event_lru_entry *e)
{
    TAILQ_REMOVE(&l->order, e, used);
    HASH_DEL(l->entries, e);
    if (l->drop != NULL)
        l->drop(e);
    free(e);
}

void *event_lru_get(struct event_lru *l, uint64_t key)
{
    struct event_lru_entry *e = NULL;

    HASH_FIND(hh, l->entries, &key, sizeof(key), e);
    if (e != NULL) {
        TAILQ_REMOVE(&l->order, e, used);
        TAILQ_INSERT_TAIL(&l->order, e, used);
    }
    return e;
}

void *event_lru_make(struct event_lru *l, uint64_t key)
{
    struct event_lru_entry *e = event_lru_get(l, key);

    if (e != NULL)
        return e;
    e = calloc(1, l->record_size);
    if (e == NULL)
        return NULL;
    e->key = key;
    HASH_ADD(hh, l->entries, key, sizeof(e->key), e);
    if (e->hh.tbl == NULL) {
        free(e);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&l->order, e, used);
    if (HASH_COUNT(l->entries) > EVENT_LRU_MAX)
        event_lru_remove(l, TAILQ_FIRST(&l->order));
    return e;
}

void event_lru_done(struct event_lru *l)
{
    struct event_lru_entry *e;

    while ((e = TAILQ_FIRST(&l->order)) != NULL)
        event_lru_remove(l, e);
}
