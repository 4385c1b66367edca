/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run - an ADD, DEL or CHECK in progress, shared by run_add.c, run_del.c and run_check.c. run.c has the
 * common part: it queues operations, runs the plugins one after another, and ends the operation.
 *
 *     ADD   entry (incomplete) -> plugin 0 -> entry with its result -> plugin 1 -> ... -> entry (complete)
 *     DEL   entry found -> plugin n-1 -> ... -> plugin 0 -> entry removed -> is there another entry? -> ...
 *     CHECK entry found -> plugin 0 -> ... -> plugin n-1, each with the final result
 *
 * Private to cni/. Loop thread only.
 */
#ifndef CNI_RUN_H
#define CNI_RUN_H
#include "cni/internal.h"
#include "cni/masq.h"
#include "cni/plugin/plugin.h"

enum run_state { RUN_WAITING, RUN_PLUGIN, RUN_MASQ, RUN_OVER };

struct cni_run {
    struct cni_op *o;
    struct cni *c;
    enum cni_verb verb;
    TAILQ_ENTRY(cni_run) link; /* in c->waiting while RUN_WAITING */

    char *container_id, *netns, *ifname, *args;
    json_t *capability_args;
    char *found; /* CHECK: found by the caller; may be NULL */
    bool fresh;

    struct cni_entry entry; /* entry.list holds a reference */
    bool cached;            /* DEL: entry was read from disk */
    bool no_interface;      /* DEL: the namespace has no such interface, or no longer exists */
    struct err inside;      /* CHECK: found by the first plugin */
    bool cut_off;   /* DEL: an earlier ADD or DEL was interrupted, or the namespace no longer exists */
    bool counted;   /* in c->n_running */
    bool live;      /* in c->n_live */
    size_t done;    /* plugins that succeeded */
    size_t deleted; /* DEL: entries done */
    bool slow;      /* it has reduced the width */
    uint64_t began_ms, deadline_at_ms;
    uint64_t began_ns; /* uv_hrtime(): start of the running plugin */
    struct cni_plugin plugin;
    struct cni_masq masq;
};

/* ---- run.c ---- */

/* Ends an operation that had a slot, and releases it; *r is freed. */
void cni_run_finish(struct cni_run *r, const struct err *e);
/* Runs the next plugin of r->entry after the first `done`. A DEL of an entry whose plugins never ran ends at
 * once. */
void cni_run_plugin(struct cni_run *r);
void cni_run_drop_entry(struct cni_run *r);

/* ---- the verbs: begin() finds the entry; *ret_more false: nothing to run, *e is the result ---- */

enum err_code cni_add_begin(struct cni_run *r, struct err *e);
/* The next plugin could not be executed: a DEL need not undo it and those after it. */
void cni_add_not_run(struct cni_run *r);
/* The plugin's result becomes the next one's prevResult and is kept for a DEL. */
enum err_code cni_add_proceed(struct cni_run *r, json_t *result, struct err *e);

enum err_code cni_del_begin(struct cni_run *r, bool *ret_more, struct err *e);
/* All plugins of the entry succeeded: continues with the rules that they no longer find, with the next entry,
 * or with the end. */
void cni_del_over(struct cni_run *r);
/* After a plugin failed: true if the current list should be tried instead of the entry's. */
bool cni_del_by_todays_list(struct cni_run *r);

enum err_code cni_check_begin(struct cni_run *r, bool *ret_more, struct err *e);
/* Compares the findings (or none) with those of the first CHECK: *e becomes the result. */
void cni_check_judge(struct cni_run *r, struct err *e);
/* Whether CHECK found nothing wrong with an attachment of the same kind since the lists were loaded. */
bool cni_check_known(const struct cni_run *r);
#endif
