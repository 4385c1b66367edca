/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - decisions about pressure, as kept for people: the signal, the threshold, the values, the ranking
 * of all pods with their numbers, the victims, what was freed and how long it took. The last EV_RECORDS_MAX
 * are kept, over restarts as well: ev_records_save() has what the caller writes to a file. Functions that
 * add to a decision which is not kept any more, or without memory, do nothing: a record is no reason to fail.
 * Pure. Any thread, one at a time.
 */
#ifndef AGENT_EVICTION_RECORD_H
#define AGENT_EVICTION_RECORD_H
#include "agent/eviction/manager.h"

#define EV_RECORDS_MAX 100
#define EV_RECORD_RANKED_MAX 1000 /* pods of one ranking */
#define EV_RECORD_VICTIMS_MAX 32  /* of one decision, over its looks */
#define EV_RECORD_RECLAIMED_MAX 8
#define EV_RECORD_TEXT_MAX 512 /* bytes of a name or message; longer ones are cut */

struct ev_records;
struct ev_records *ev_records_new(void); /* NULL: no memory */
void ev_records_free(struct ev_records *r);

/* A decision begins; returns its number, which grows over restarts. 0: no memory. */
uint64_t ev_records_add(struct ev_records *r, const struct ev_crossing *c, int64_t wall_ns);
/* A limit of local storage was exceeded: the same list, no ranking. */
uint64_t ev_records_add_local(struct ev_records *r, const char *pod_key, const char *pod_uid,
                              const char *message, int64_t wall_ns);
/* what: "images", "containers". */
void ev_records_reclaimed(struct ev_records *r, uint64_t number, const char *what, uint64_t bytes,
                          uint64_t objects);
/* The ranking replaces an earlier one; victims are added to those of earlier looks. */
void ev_records_ranked(struct ev_records *r, uint64_t number, enum ev_signal s, enum ev_layout layout,
                       const struct ev_choice *c);
/* A victim is dead; after_us: since the decision. */
void ev_records_killed(struct ev_records *r, uint64_t number, const char *pod_uid, uint64_t after_us);
/* outcome: "relieved", "nobody can be evicted"; now may be NULL. */
void ev_records_ended(struct ev_records *r, uint64_t number, const char *outcome, const struct ev_value *now,
                      uint64_t after_us);

/* Each decision without an outcome; the same as when it was saved. Borrowed. */
struct ev_unfinished {
    uint64_t number;
    int64_t wall_ns;
    enum ev_signal signal;
    const char *uids[EV_RECORD_VICTIMS_MAX]; /* of victims that are not known to be dead; NULL: not known */
    size_t n_victims;
};
void ev_records_unfinished(struct ev_records *r, void (*fn)(const struct ev_unfinished *u, void *arg),
                           void *arg);

/* The list for the socket, oldest first: new reference; NULL: no memory. An item:
 * {"number", "time", "signal", "resource", "soft", "urgent", "threshold", "available", "capacity": texts,
 *  "reclaimed": [{"what", "bytes", "objects"}],
 *  "ranked": [{"pod", "uid", "priority", "critical", "known", "usage", "request"}],
 *  "victims": [{"pod", "uid", "killedAfterUs"}], "outcome", "availableAfter", "tookUs"}
 * or, of a local limit, {"number", "time", "pod", "uid", "message"}. */
json_t *ev_records_json(const struct ev_records *r);
/* Appends the whole as a file's content, {"next", "records"}. Only records that have changed since the last
 * call are formatted: all hundred of a node with as many pods take 70 ms, during which a pod
 * that takes memory is not killed. ERR_EXHAUSTED: no memory, or it is too long for the buffer. */
enum err_code ev_records_save(struct ev_records *r, struct buf *ret, struct err *e) MUST_CHECK;
/* Reads such content; the records in memory are replaced. A damaged record is ignored and counted in
 * *ret_bad; content that is no such object counts as one. */
void ev_records_load(struct ev_records *r, const json_t *saved, size_t *ret_bad);
#endif
