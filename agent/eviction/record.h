/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - decisions about pressure, as kept for people: the signal, the threshold, the values, the ranking
 * of all pods with their numbers, the victims, what was freed and how long it took. The last EV_RECORDS_MAX
 * are kept, over restarts as well. Pure, except for the file.
 */
#ifndef AGENT_EVICTION_RECORD_H
#define AGENT_EVICTION_RECORD_H
#include "agent/eviction/manager.h"

#define EV_RECORDS_MAX 100
#define EV_RECORD_RANKED_MAX 1000 /* pods of one ranking */

struct ev_records;
struct ev_records *ev_records_new(void); /* NULL: no memory */
void ev_records_free(struct ev_records *r);

/* A decision begins; returns its number, which grows over restarts. 0: no memory. */
uint64_t ev_records_add(struct ev_records *r, const struct ev_crossing *c, int64_t wall_ns);
/* A limit of local storage was exceeded: the same list, no ranking. */
uint64_t ev_records_add_local(struct ev_records *r, const char *pod_key, const char *pod_uid,
                              const char *message, int64_t wall_ns);
void ev_records_reclaimed(struct ev_records *r, uint64_t number, const char *what, uint64_t bytes,
                          uint64_t objects);
void ev_records_ranked(struct ev_records *r, uint64_t number, enum ev_signal s, enum ev_layout layout,
                       const struct ev_choice *c);
void ev_records_killed(struct ev_records *r, uint64_t number, const char *pod_uid, uint64_t after_us);
void ev_records_ended(struct ev_records *r, uint64_t number, const char *outcome, const struct ev_value *now,
                      uint64_t after_us);

/* The list for the socket, newest last: new reference. */
json_t *ev_records_json(const struct ev_records *r);
/* The whole as a file's content, and back; a damaged record is ignored and counted in *ret_bad. */
json_t *ev_records_save(const struct ev_records *r);
void ev_records_load(struct ev_records *r, const json_t *saved, size_t *ret_bad);
#endif
