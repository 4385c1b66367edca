/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What eviction keeps of the node for itself, and how its files meet:
 *
 *     watch.c    something may have been used up, or time has come ──► eviction_look()
 *     room.c     eviction_look() ─► observe_start() ─► the manager decides ─► reclaim.c, act.c ─►
 * eviction_watch_seen() observe.c  the values of the signals
 */
#ifndef AGENT_POD_EVICTION_INTERNAL_H
#define AGENT_POD_EVICTION_INTERNAL_H
#include "agent/eviction/manager.h"
#include "agent/eviction/record.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/eviction/memory_level.h"

struct eviction;       /* room.c */
struct eviction_watch; /* watch.c */
struct observe;        /* observe.c */

struct eviction_node {
    struct eviction *room; /* NULL: there are no thresholds, or no memory */
    struct observe *observe;
    struct eviction_watch *watch;
};

static inline struct eviction_node *eviction_node(const struct node *n)
{
    return n->parts[ROOM_EVICTION];
}

/* Bits of signals: memory is read on the loop, at once; disks on the pool, where a read may hang. */
#define SIGNAL_BIT(s) (1u << (s))
#define SIGNALS_MEMORY (SIGNAL_BIT(EV_MEMORY) | SIGNAL_BIT(EV_ALLOCATABLE_MEMORY))
#define SIGNALS_PID SIGNAL_BIT(EV_PID)
#define SIGNALS_DISK                                                                                         \
    (SIGNAL_BIT(EV_NODEFS) | SIGNAL_BIT(EV_NODEFS_INODES) | SIGNAL_BIT(EV_IMAGEFS) |                         \
     SIGNAL_BIT(EV_IMAGEFS_INODES) | SIGNAL_BIT(EV_CONTAINERFS) | SIGNAL_BIT(EV_CONTAINERFS_INODES))
#define SIGNALS_ALL (SIGNALS_MEMORY | SIGNALS_PID | SIGNALS_DISK)

/* ---- observe.c ---- */
struct observe *observe_open(struct node *n); /* NULL: no memory, logged */
/* Reads memory and process ids, now. Signals that are not asked for, or cannot be read, are not known. */
void observe_quick(struct observe *o, unsigned signals, struct ev_observation *ret);
/* Reads the disks (on the pool) and then, freshly, memory and process ids. fn is called on a later turn of
 * the loop, once, unless it was closed. One at a time. */
void observe_start(struct observe *o, unsigned signals,
                   void (*fn)(const struct ev_observation *seen, void *arg), void *arg);
bool observe_busy(const struct observe *o);
/* Where images and writable layers are, as far as is known; EV_LAYOUT_ONE before the first observation. */
enum ev_layout observe_layout(const struct observe *o);
enum ev_layout observe_layout_of(uint64_t root, uint64_t images, uint64_t layers); /* devices; pure */
const struct memory_seen *observe_memory(const struct observe *o); /* what the last look at memory found */
void observe_explain(const struct observe *o, json_t *steps);      /* what cannot be read, and why */
void observe_close(struct observe *o);                             /* also while it is busy; NULL is fine */

/* ---- watch.c ---- */
/* Begins to watch; looks are asked for with eviction_look(). NULL: no memory, logged. */
struct eviction_watch *eviction_watch_open(struct node *n);
/* A look is over: sets the memory alarm to the threshold, and plans when disks and process ids are looked at
 * next. `seen` has what that look observed. */
void eviction_watch_seen(struct eviction_watch *w, const struct ev_manager *m,
                         const struct ev_observation *seen, uint64_t now_ms);
/* Before eviction_watch_seen(): memory must be released, and no pod can be evicted. Pods that stay are not
 * slowed down: there is no alarm until enough is available, or eviction_watch_woken(). */
void eviction_watch_helpless(struct eviction_watch *w);
/* Something may use that up, or released some: eviction_wake(). */
void eviction_watch_woken(struct eviction_watch *w, enum ev_condition what, uint64_t now_ms);
void eviction_watch_explain(const struct eviction_watch *w,
                            json_t *steps); /* what wakes it, what cannot be watched */
/* At the end of the agent, before containers are left alone: takes the level away. NULL is fine. */
void eviction_watch_close(struct eviction_watch *w);

/* ---- room.c ---- */
/* Look at these signals now (memory, process ids) or as soon as the disks answer. `why`, a constant, is
 * logged at debug level. */
void eviction_look(struct node *n, unsigned signals, const char *why);
#endif
