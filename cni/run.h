/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run - one ADD, DEL or CHECK under way, as the files share it that know one verb each: run_add.c, run_del.c,
 * run_check.c.  run.c has what is common: the queue, the plugins one after the other, the end.
 *
 *     ADD   entry (incomplete) -> plugin 0 -> entry with its result -> plugin 1 -> ... -> entry (complete)
 *     DEL   entry found -> plugin n-1 -> ... -> plugin 0 -> entry removed -> is there another entry? -> ...
 *     CHECK entry found -> plugin 0 -> ... -> plugin n-1, each with the final result
 *
 * Private to cni/.  Loop thread only.
 */
#ifndef CNI_RUN_H
#define CNI_RUN_H
#include "cni/internal.h"
#include "cni/masq.h"
#include "cni/plugin.h"

enum run_state { RUN_WAITING, RUN_PLUGIN, RUN_MASQ, RUN_OVER };

struct cni_run {
    struct cni_op *o;
    struct cni *c;
    enum cni_verb verb;
    TAILQ_ENTRY(cni_run) link; /* in c->waiting while RUN_WAITING */

    char *container_id, *netns, *ifname, *args;
    json_t *capability_args;
    char *found; /* CHECK: by the caller; NULL: nothing */
    bool fresh;

    struct cni_entry entry; /* what is being added or deleted; entry.list holds a reference */
    bool cached;            /* DEL: entry was read from disk */
    bool no_interface;      /* DEL: nothing of that name is in the namespace, or that is gone */
    struct err inside;      /* CHECK: what the first plugin found */
    bool cut_off;           /* DEL: an ADD or DEL before it did not end well, or the namespace is gone */
    bool counted;           /* in c->n_running */
    bool live;              /* in c->n_live */
    size_t done;            /* plugins that succeeded */
    size_t deleted;         /* DEL: entries dealt with */
    uint64_t deadline_at_ms;
    struct cni_plugin plugin;
    struct cni_masq masq;
};

/* ---- run.c ---- */

/* The operation had a place and gives it back; *r is gone. */
void cni_run_finish(struct cni_run *r, const struct err *e);
/* The next plugin of r->entry; `done` of them are over.  A DEL of which none has run is over at once. */
void cni_run_plugin(struct cni_run *r);
void cni_run_drop_entry(struct cni_run *r);

/* ---- the verbs: begin() finds the entry; *ret_more false: nothing is to be run.  *e is the result. ---- */

enum err_code cni_add_begin(struct cni_run *r, struct err *e);
/* The next plugin could not be executed: a DEL has nothing to undo of it and those behind it. */
void cni_add_not_run(struct cni_run *r);
/* The plugin's result becomes the next one's prevResult and is kept for a DEL. */
enum err_code cni_add_proceed(struct cni_run *r, json_t *result, struct err *e);

enum err_code cni_del_begin(struct cni_run *r, bool *ret_more, struct err *e);
/* All plugins of the entry succeeded: what they cannot find any more, the next entry, or the end. */
void cni_del_over(struct cni_run *r);
/* A plugin failed: true when today's list is to be tried in place of the entry's. */
bool cni_del_by_todays_list(struct cni_run *r);

enum err_code cni_check_begin(struct cni_run *r, bool *ret_more, struct err *e);
/* What was found, an error or none, against what the first CHECK found: *e becomes the result. */
void cni_check_judge(struct cni_run *r, struct err *e);
/* Did CHECK find nothing wrong with an attachment of the same kind, since the lists were loaded? */
bool cni_check_known(const struct cni_run *r);
#endif
