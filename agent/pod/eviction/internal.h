/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What eviction keeps of the node for itself, and how its files meet:
 *
 *     watch.c           something may have been used up, or time has come ──► eviction_check()
 *     room.c, disks.c   eviction_check() ─► observe.c ─► the manager decides ─► reclaim.c, act.c ─►
 *                       eviction_watch_seen()
 */
#ifndef AGENT_POD_EVICTION_INTERNAL_H
#define AGENT_POD_EVICTION_INTERNAL_H
#include "agent/eviction/manager.h"
#include "agent/eviction/record.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/eviction/memory_level.h"
#include "base/list.h"
#include "base/work.h"

struct eviction;       /* below */
struct eviction_watch; /* watch.c */
struct observe;        /* observe.c */

struct eviction_node {
    struct eviction *room; /* NULL: there are no thresholds, or no memory */
    struct observe *observe;
    struct eviction_watch *watch;
    struct forks *forks; /* forks.c; NULL: no memory, or closed */
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
 * the loop, once, unless it was closed. One at a time. settled: files were removed, and their space must be
 * visible as free. XFS frees it in the background; this waits for that. */
void observe_start(struct observe *o, unsigned signals, bool settled,
                   void (*fn)(const struct ev_observation *seen, void *arg), void *arg);
bool observe_busy(const struct observe *o);
/* Where images and writable layers are, as far as is known; EV_LAYOUT_ONE before the first observation. */
enum ev_layout observe_layout(const struct observe *o);
enum ev_layout observe_layout_of(uint64_t root, uint64_t images, uint64_t layers); /* devices; pure */
const struct memory_seen *observe_memory(const struct observe *o); /* the last measurement of memory */
void observe_explain(const struct observe *o, json_t *steps);      /* what cannot be read, and why */
void observe_close(struct observe *o);                             /* also while it is busy; NULL is fine */

/* ---- watch.c ---- */
/* Begins to watch, and requests checks with eviction_check(). NULL: no memory, logged. */
struct eviction_watch *eviction_watch_open(struct node *n);
/* Called at the end of a round: sets the memory alarm to the threshold, and schedules the next measurement of
 * disks and process ids. `seen` has the observed values. */
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

/* ---- forks.c: forks that the kernel refuses ---- */
struct forks *forks_open(struct node *n);
/* Of the table of rooms: watches containers that run, and forgets others. */
void forks_step(struct pod *p);
void forks_rest(struct pod *p); /* forgets all of them */
void forks_explain(const struct forks *f, json_t *steps);
void forks_close(struct forks *f); /* NULL is fine */

/* ---- room.c: the order of things ---- */
/* Look at these signals now (memory, process ids) or as soon as the disks answer. `why`, a constant, is
 * logged at debug level. */
void eviction_check(struct node *n, unsigned signals, const char *why);

/* The decision has been carried out: performs postponed checks. */
void eviction_checks_go_on(struct eviction *r);

/* It records the observed values before it acts on them; afterwards it schedules the next checks. */
enum eviction_looks { LOOKS_QUICK, LOOKS_DISKS }; /* memory and process ids; disks */
void eviction_noted(struct eviction *r, const struct ev_observation *seen, const struct ev_check *look,
                    enum eviction_looks which);
void eviction_watched(struct eviction *r, const struct ev_observation *seen);
/* The node's settings with what they imply in that layout. */
struct ev_settings eviction_completed(const struct node *n, enum ev_layout layout);

/* ---- disks.c ---- */
/* Looks at the disks and does what follows; once more afterwards if it is busy. */
void disks_begin(struct eviction *r);

enum disks { /* the measure in progress: one at a time */
             DISKS_REST,
             DISKS_LOOK,    /* observe_start() */
             DISKS_RECLAIM, /* reclaim.c */
             DISKS_MEASURE, /* storage_usage_measure() */
};

/*
 * patience.c - a pod whose files are not counted yet is evicted first (kubelet's order). So that no pod is
 * evicted for lack of a figure, counting continues in rounds of 5 s while the disk lasts: another round like
 * the last one would leave some space, half of the threshold is left, and a minute has not passed. All zeros:
 * nothing was counted yet. Times are clock_boot_ms(). Pure.
 */
struct patience {
    enum ev_signal signal;
    uint64_t since_ms, available; /* of the signal, when the last round began */
};
/* False: the figures of now are used. */
bool patience_lasts(const struct patience *p, const struct ev_crossing *c, uint64_t now_ms);
/* A round begins; returns how many milliseconds ago the first one did. */
uint64_t patience_go_on(struct patience *p, const struct ev_crossing *c, uint64_t now_ms);

struct victim {
    char uid[132]; /* "": it has ended */
};

/* A decision whose end is awaited: it is recorded with what became of it. */
struct decision {
    TAILQ_ENTRY(decision) link;
    uint64_t number;
    enum ev_signal signal;
    uint64_t began_us; /* uv_hrtime() / 1000 */
    size_t n_left;     /* victims that have not ended */
    struct victim *victims;
    size_t n_victims;
};

struct eviction {
    struct node *node;
    struct ev_manager *manager;
    struct ev_records *records;
    struct ev_value last[EV_SIGNALS];
    int64_t last_ns[EV_SIGNALS]; /* wall clock */
    uv_timer_t timer;            /* the manager requests another check */
    uint64_t again_ms[2];        /* by enum eviction_looks; clock_boot_ms(); 0: not */

    enum disks disks;
    bool disks_wanted; /* once more, afterwards */
    bool disks_seen;   /* they were measured before */
    bool pod_ended;    /* since their last measurement began, which may have missed the amount it released */
    struct ev_check disks_look;
    unsigned reclaimed;
    bool images_stopped; /* in this round */
    struct patience patience;
    struct reclaim *reclaim;
    enum ev_signal reclaim_signal;
    uint64_t reclaim_began_us; /* uv_hrtime() / 1000 */
    uint64_t reclaim_number;   /* of the record; 0: nothing was reclaimed in this round */

    int64_t since_ns[EV_CONDITIONS]; /* wall clock, of the last transition; 0: none */
    uint64_t told_ms[EV_SIGNALS];    /* clock_boot_ms() of the last event about an attempt */
    bool helpless[EV_SIGNALS];       /* no pod could be evicted */
    uint64_t n_evicted[EV_SIGNALS];  /* since the start */
    uint64_t n_reclaims, bytes_reclaimed;

    TAILQ_HEAD(, decision) decisions;
    struct work save; /* evictions.json */
    bool saving, save_again;
    uv_prepare_t save_soon;
    unsigned put_off; /* signals to be measured after the decision is carried out */
    char *save_text;  /* the pool's while `saving` */
};

static inline struct eviction *eviction_of(const struct node *n)
{
    return eviction_node(n)->room;
}

/* ---- figures.c: what each pod uses, as of now ---- */
struct figures {
    struct ev_pod *pods;
    struct ev_container *containers;
    size_t n, n_containers;
};
/* Of these signals; others are not known. Memory of pods without that of their containers. */
enum err_code figures_read(struct node *n, unsigned signals, struct figures *ret, struct err *e) MUST_CHECK;
/* Memory of the containers of one of them. */
void figures_containers(struct node *n, struct figures *f, const struct ev_pod *pod);
void figures_done(struct figures *f);

/* ---- releasing.c: what a victim will release ---- */
struct eviction_ctr { /* of a container */
    char watched[65]; /* forks.c: its id; "": it is not watched */
};
struct memory_last { /* figures.c: the last reading of a pod's memory */
    uint64_t bytes;
    bool seen;
    unsigned unread; /* consecutive checks that could not read it */
};
struct eviction_pod {
    struct memory_last memory;
    bool chosen;
    enum ev_signal signal; /* for which */
    uint64_t available;    /* of it, then */
    bool disk_known;
    struct ev_disk volumes, layers, logs; /* when it was chosen: it is not measured while it ends */
};
/* It was chosen for that. Before pod_evict(), whose record has it, too. */
void releasing_note(struct pod *p, const struct ev_crossing *c);
const struct eviction_pod *releasing_of(const struct pod *p); /* NULL: it is no victim */
/* Of the table of rooms. */
void releasing_save(const struct pod *p, json_t *record);
void releasing_load(struct pod *p, const json_t *record);
void releasing_reset(struct pod *p);

/* ---- act.c ---- */
/* The round requires evictions: for the first crossing about which something can be done. */
void act_evict(struct eviction *r, struct ev_check *look);
/* The node's event, at most once in EV_ROUND_MS. */
void act_report(struct eviction *r, const struct ev_crossing *c);

/* ---- reclaim.c: what no pod needs ---- */
/* Bits of enum ev_reclaim. `done` on a later turn of the loop. */
void reclaim_start(struct eviction *r, unsigned what, const struct ev_crossing *c,
                   void (*done)(struct eviction *r));
/* Images that are being brought are stopped, before pods go; false: there are none, `done` is not called. */
bool reclaim_stop_images(struct eviction *r, const struct ev_crossing *c, void (*done)(struct eviction *r));
bool reclaim_busy(const struct eviction *r);
void reclaim_close(struct eviction *r);

/* ---- conditions.c ---- */
void conditions_changed(struct eviction *r, unsigned which);

/* ---- decisions.c: records of them ---- */
/* Reads them. Those that an earlier agent did not finish go on if their victims still end. */
void decisions_open(struct eviction *r);
/* Records a measure; returns the record's number, 0 if there is no memory. This record and its changes are
 * saved at the end of the turn of the loop, because the measure must not wait for that. */
uint64_t decision_begin(struct eviction *r, const struct ev_crossing *c);
void decision_reclaimed(struct eviction *r, uint64_t number, const char *what, uint64_t bytes,
                        uint64_t objects);
/* The measure only removed unneeded files, and whether that was enough. */
void decision_sufficed(struct eviction *r, uint64_t number, bool enough);
/* Its end is awaited: when the victims have ended (none: it has ended). */
void decision_ranked(struct eviction *r, uint64_t number, const struct ev_crossing *c, enum ev_layout layout,
                     const struct ev_choice *choice);
void decision_local(struct eviction *r, const struct pod *p); /* it exceeded its own limit */
void decision_pod_ended(struct eviction *r, const char *uid);
/* Values were observed: decisions without remaining victims end with the amount available now. */
void decisions_seen(struct eviction *r);
bool decisions_busy(const struct eviction *r);
/* What was decided in this turn of the loop is not done yet. */
bool decisions_wait(const struct eviction *r);
void decisions_close(struct eviction *r);
#endif
