/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - records decisions about pressure for later diagnosis: the signal, the threshold, the values, the
 * ranking of all pods with their numbers, the victims, the amount that was freed and the time it took. The
 * last EV_RECORDS_MAX are kept, also across restarts: the caller writes the output of ev_records_save() to a
 * file. Functions that add to a dropped decision, or are out of memory, have no effect: a record must not
 * cause a failure. Pure. Any thread, one at a time.
 */
#ifndef AGENT_EVICTION_RECORD_H
#define AGENT_EVICTION_RECORD_H
#include "agent/eviction/manager.h"

#define EV_RECORDS_MAX 100
#define EV_RECORD_RANKED_MAX 1000 /* pods of one ranking */
#define EV_RECORD_VICTIMS_MAX 32  /* of one decision, over all its checks */
#define EV_RECORD_RECLAIMED_MAX 8
#define EV_RECORD_TEXT_MAX 512 /* bytes of a name or message; longer ones are truncated */

struct ev_records;
struct ev_records *ev_records_new(void); /* NULL: no memory */
void ev_records_free(struct ev_records *r);

/* Begins a decision; returns its number, which grows across restarts. 0: no memory. */
uint64_t ev_records_add(struct ev_records *r, const struct ev_crossing *c, int64_t wall_ns);
/* Records that a limit of local storage was exceeded: in the same list, without a ranking. */
uint64_t ev_records_add_local(struct ev_records *r, const char *pod_key, const char *pod_uid,
                              const char *message, int64_t wall_ns);
/* `what`: "images", "containers". */
void ev_records_reclaimed(struct ev_records *r, uint64_t number, const char *what, uint64_t bytes,
                          uint64_t objects);
/* The ranking replaces an earlier one; victims are added to those of earlier checks. */
void ev_records_ranked(struct ev_records *r, uint64_t number, enum ev_signal s, enum ev_layout layout,
                       const struct ev_choice *c);
/* Records the death of a victim; after_us: since the decision. */
void ev_records_killed(struct ev_records *r, uint64_t number, const char *pod_uid, uint64_t after_us);
/* outcome: "relieved", "nobody can be evicted"; now may be NULL. */
void ev_records_ended(struct ev_records *r, uint64_t number, const char *outcome, const struct ev_value *now,
                      uint64_t after_us);

/* A decision without an outcome, as it was saved. Borrowed. */
struct ev_unfinished {
    uint64_t number;
    int64_t wall_ns;
    enum ev_signal signal;
    const char *uids[EV_RECORD_VICTIMS_MAX]; /* of victims that are not known to be dead; NULL: unknown */
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
/* Appends all records as a file's content, {"next", "records"}. Only records that have changed since the last
 * call are formatted, because formatting all hundred takes 70 ms on a node with as many pods, and in that
 * time no pod that takes memory can be killed. ERR_EXHAUSTED: no memory, or too long for the buffer. */
enum err_code ev_records_save(struct ev_records *r, struct buf *ret, struct err *e) MUST_CHECK;
/* Reads such content; the records in memory are replaced. A damaged record is ignored and counted in
 * *ret_bad; content of another form counts as one. */
void ev_records_load(struct ev_records *r, const json_t *saved, size_t *ret_bad);
#endif
