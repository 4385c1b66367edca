/* SPDX-License-Identifier: Apache-2.0 */
/* record_internal - a decision as it is kept; shared by record*.c. */
#ifndef AGENT_EVICTION_RECORD_INTERNAL_H
#define AGENT_EVICTION_RECORD_INTERNAL_H
#include "agent/eviction/record.h"

struct ev_ranked {
    char *pod, *uid;
    int32_t priority;
    bool critical, known;
    uint64_t usage, request;
};

struct ev_victim {
    char *pod, *uid;
    uint64_t killed_us; /* UINT64_MAX: not yet */
};

struct ev_reclaimed {
    char *what;
    uint64_t bytes, objects;
};

struct ev_record {
    uint64_t number;
    int64_t wall_ns;
    bool local;
    char *pod, *uid, *message; /* local */
    struct ev_crossing crossing;
    struct ev_reclaimed reclaimed[EV_RECORD_RECLAIMED_MAX];
    size_t n_reclaimed;
    struct ev_ranked *ranked;
    size_t n_ranked;
    struct ev_victim victims[EV_RECORD_VICTIMS_MAX];
    size_t n_victims;
    char *outcome; /* NULL: not ended yet */
    struct ev_value after;
    uint64_t took_us;
    char *saved; /* its text in the file; NULL: the record has changed since the last save */
};

struct ev_records {
    uint64_t next;
    struct ev_record *v[EV_RECORDS_MAX]; /* oldest first */
    size_t n;
};

char *ev_record_text(
    const char *text); /* a copy, truncated to EV_RECORD_TEXT_MAX; NULL: no memory, or `text` is NULL */
void ev_record_free(struct ev_record *r);
/* Takes ownership, also on failure. The oldest record is dropped if there is no room. */
void ev_records_append(struct ev_records *r, struct ev_record *one);

json_t *ev_record_json(const struct ev_record *r,
                       bool file); /* record_json.c; file: with the members that are read back */
struct ev_record *ev_record_read(const json_t *v); /* record_read.c; NULL: damaged, or no memory */
#endif
