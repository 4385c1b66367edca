/* SPDX-License-Identifier: Apache-2.0 */
/*
 * followed - one object of the apiserver, or all of a kind, that pods of this node need: reads or watches it,
 * and sends it to the daemon. Loop thread only.
 */
#ifndef AGENT_KUBE_SYNC_FOLLOWED_H
#define AGENT_KUBE_SYNC_FOLLOWED_H
#include "agent/kube/sync/internal.h"
#include "agent/kube/sync/objects.h"

struct followed {
    char *key; /* "Kind/namespace/name" */
    const struct object_kind *kind;
    char *namespace_, *name; /* NULL: none */
    char *signer;            /* all objects of this signer; NULL: those of the name */
    const char *prefix;      /* instead of the kind's; NULL */
    bool prefixes_tried;
    struct objects_part *part;
    size_t needs;
    bool there;
    char *denied; /* as it was last sent */
    struct kube_reflector *reflector;
    struct sync_call call;
    struct sync_timer timer;
    uint64_t wait_ms;
    bool dropped; /* freed when its call has ended */
    UT_hash_handle hh;
};

struct objects_part {
    struct kube_sync *sync;
    struct followed *all;
    bool started, whole /* kinds that are watched whole are followed */;
};

/* Into p->all; NULL: out of memory. The texts are copied. */
struct followed *followed_new(struct objects_part *p, const char *key, const struct object_kind *kind,
                              const char *namespace_, const char *name, const char *signer);
void followed_begin(struct followed *f); /* once the part has started */
void followed_read(void *owner);         /* now, if it is one that is read */
/* Out of p->all, and freed when its call has ended. */
void followed_end(struct objects_part *p, struct followed *f);
void objects_deny(struct kube_sync *s, const char *kind, const char *namespace_, const char *name, int code,
                  const char *why);
#endif
