/* SPDX-License-Identifier: Apache-2.0 */
/* What container keeps of the node for itself. */
#ifndef AGENT_POD_CONTAINER_INTERNAL_H
#define AGENT_POD_CONTAINER_INTERNAL_H
#include "agent/pod/core/pod.h"
#include "base/siphash.h"

struct container_node {
    /* create_limit.c: at most create_max containers are being created at a time */
    unsigned create_max, create_used;
    TAILQ_HEAD(, ctr) create_queue;
    uv_timer_t create_timer; /* runs while somebody waits: a place is not held for long */
    /* probes.c: likewise probes that need a process, each in its first second */
    unsigned probes_used;
    TAILQ_HEAD(, prober) probes_queue;
    unsigned char env_key[SIPHASH_KEY_SIZE]; /* env_age.c */
    bool env_key_known;
    struct log_keep *logs; /* log_keep.h; NULL: rotated logs are lost */
};

static inline struct container_node *container_node(const struct node *n)
{
    return n->parts[ROOM_CONTAINER];
}

void ctr_waits_no_more(struct ctr *c);               /* containers.c */
bool reaps_has(const struct pod *p, const char *id); /* reaps.c: it is being removed */

/* ---- ctr_record.c ---- */
void ctr_record_save(const struct pod *p, json_t *record);
void ctr_record_load(struct pod *p, const json_t *record);
#endif
