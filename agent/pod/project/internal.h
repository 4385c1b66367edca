/* SPDX-License-Identifier: Apache-2.0 */
/* The room's own data of the node, of a pod and of each container, and declarations shared by its files. */
#ifndef AGENT_POD_PROJECT_INTERNAL_H
#define AGENT_POD_PROJECT_INTERNAL_H
#include "agent/pod/core/pod.h"
#include "agent/pod/project/project.h"
#include "base/work.h"
#include "volumes/quota/projects.h"

enum project_kind { PROJECT_VOLUME, PROJECT_LAYER, PROJECT_LOG, PROJECT_CLAIM, PROJECT_KINDS };

struct place {           /* where one kind of tree is */
    struct quota_fs *fs; /* NULL: no quotas; borrowed from project_node.open */
    char why[400];       /* then why */
};

struct entry { /* of the index */
    char *path;
    char owner[140];
    struct quota_fs *fs;
    struct entry_key {
        uint64_t device;
        uint64_t id;
    } key;
    UT_hash_handle hh, hh_id;
};

struct wish { /* a tree of a request */
    enum project_kind kind;
    char *path;
    char *volume; /* PROJECT_VOLUME: its name */
    struct quota_fs *fs;
    uint64_t limit_bytes; /* PROJECT_CLAIM: its hard limit */
    /* the result */
    uint32_t id;
    bool over; /* taken: it has its project; gone: the tree does not exist, and the id was released */
};

enum request_kind {
    REQUEST_TAKE,
    REQUEST_NAME,  /* trees have ids of the stock: writes that down */
    REQUEST_STOCK, /* ids for future trees */
    REQUEST_GONE,  /* looks which trees are gone */
    REQUEST_DROP,  /* folders of layers that no run will use */
    REQUEST_SWEEP
};

struct request {
    enum request_kind kind;
    char owner[140];
    struct wish *v;
    size_t n;
    struct vol_node *volumes;
    bool last;    /* all pods end: the stock is given up */
    struct err e; /* of the pool: the first error */
    TAILQ_ENTRY(request) link;
};
TAILQ_HEAD(requests, request);
TAILQ_HEAD(project_tasks, project_task);

/* Ids that are on the disk already, so that a start does not wait for it: of a file system. More than the
 * pods of one moment need; the rest of a crowd waits together. */
#define STOCK_MAX 64
#define STOCK_LOW 32
struct stock {
    uint32_t ids[STOCK_MAX];
    size_t n;
};

struct project_node {
    struct projects *table; /* NULL: no file system has quotas, or no table. While busy: the pool's */
    struct quota_fs *open[PROJECT_KINDS];
    size_t n_open;
    struct place places[PROJECT_KINDS];
    struct stock stock[PROJECT_KINDS], stocked[PROJECT_KINDS]; /* as open; stocked: the pool's while busy */
    bool stocking; /* a request for more waits or is being carried out */
    struct entry *by_path, *by_id;
    struct quota_warn *warn;
    char warn_why[300];
    char problem[400]; /* of the last work on ids; "": none */
    void (*warned)(struct node *n, const char *owner, const char *path, bool hard);

    struct work work;
    bool busy;
    size_t waiting;    /* ids that are released, but still in use; the pool's while busy */
    uv_timer_t again;  /* runs while some are, but not for long: project_pool.c */
    uint64_t again_ms; /* the pause; 0: none began */
    struct requests queue, job;
    struct project_tasks tasks, job_tasks;
};

static inline struct project_node *project_node(const struct node *n)
{
    return n->parts[ROOM_PROJECT];
}

struct project_ctr {
    char next[65]; /* id of the next run; "": none was asked for */
    bool plain;    /* the next run goes without */
};

struct project_pod {
    bool asked;   /* for its volumes and logs */
    bool pending; /* a request of it is waiting or being carried out */
};

static inline struct project_pod *project_pod(const struct pod *p)
{
    return p->parts[ROOM_PROJECT];
}

static inline struct project_ctr *project_ctr(const struct ctr *c)
{
    return c->parts[ROOM_PROJECT];
}

/* ---- project_places.c ---- */
void places_open(struct node *n);
void places_close(struct project_node *part);
/* Quotas of this file system were switched off: it counts as one without. */
void places_lost(struct node *n, const struct quota_fs *fs, const struct err *why);

/* ---- project.c: the index ---- */
void index_add(struct project_node *part, const char *owner, const char *path, struct quota_fs *fs,
               uint32_t id);
void index_remove(struct project_node *part, const char *path);
void index_remove_fs(struct project_node *part, const struct quota_fs *fs);
void index_clear(struct project_node *part);
void index_on_warning(const struct quota_warning *w, void *node);

/* ---- project_ask.c ---- */
void ask_step(struct pod *p);
void ask_end(struct pod *p);   /* prepared layers are dropped */
void ask_reset(struct pod *p); /* it starts again: its trees are made anew */
bool ask_knows(const struct pod *p, const char *id);
void ask_done(struct node *n, const struct request *r); /* of REQUEST_TAKE */

/* ---- project_job.c ---- */
/* Makes the folder and gives it its project, which is on the disk. Quick; loop or pool. */
enum err_code tree_give(const struct request *r, const struct wish *w, struct err *e) MUST_CHECK;
bool tree_is_new(const char *path);              /* missing or empty; one that has content is scanned */
enum err_code job_run(void *arg, struct err *e); /* for work_start(); arg: the project_node */

/* ---- project_pool.c ---- */
struct request *request_new(enum request_kind kind, const char *owner, size_t max); /* NULL: no memory */
void request_free(struct request *r);
void request_add(struct node *n, struct request *r); /* taken */
void pool_stock(struct node *n);                     /* fetches ids if there are few */
void pool_open(struct node *n);
void pool_close(struct node *n); /* waiting requests are dropped; not busy */
void pool_cancel(struct node *n);
#endif
