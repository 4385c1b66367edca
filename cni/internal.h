/* SPDX-License-Identifier: Apache-2.0 */
/* internal - what the files of cni/ share about struct cni. */
#ifndef CNI_INTERNAL_H
#define CNI_INTERNAL_H
#include "base/fs.h"
#include "cni/cache.h"
#include "cni/cni.h"
#include "cni/networks.h"
#include "cni/versions.h"
#include "cni/watch.h"

TAILQ_HEAD(cni_run_list, cni_run);

struct cni {
    uv_loop_t *loop;
    char *conf_dir, *cache_dir, *data_dir; /* data_dir may be NULL */
    struct strs bin_dirs;
    int cache_fd;
    int cgroup_fd;
    char *cgroup_procs;
    char boot_id[ID_BOOT_SIZE]; /* read once: it does not change while we live */

    struct cni_networks networks;
    struct cni_watch *watch;
    struct err load_problem, watch_problem; /* ERR_OK: none */
    uint64_t again_ms;                      /* until it is loaded again for them; 0: there are none */
    void (*changed)(void *arg);
    void *changed_arg;
    char *programs; /* of the lists, when it was last looked whether they changed */

    /* What operations used: cni_remove_bridges() must know it after lists and entries are gone. */
    struct strs used_bridges, used_networks;
    struct strs checked; /* run_check.c: kinds of attachments of which CHECK finds all; since the last load */

    struct cni_run_list waiting; /* operations for which there is no place yet */
    size_t n_running, max_running;
    size_t n_live;               /* operations that have begun, those that gave their place away, too */
    void (*idle)(struct cni *c); /* gc.c: called when n_live comes to 0; NULL: nobody waits for that */
    bool alone;                  /* gc.c: a GC runs, nothing else may begin */
    TAILQ_HEAD(, cni_gc) gcs;    /* those that wait, the first may run */

    struct cni_versions versions; /* what plugins say they speak */
    TAILQ_HEAD(, ask) asks;       /* ask.c */
    size_t n_held;                /* reasons for which no operation begins: the first STATUS of a list */
    struct cni_status *status;    /* status.c */
    bool starting;                /* cni_run_next() is at work */
    bool bridges_made;            /* as seen when the last one began alone */
};

/* cni.c: the usable list of this name; NULL: none. */
const struct cni_list *cni_network(const struct cni *c, const char *name);

/* run_add.c: remembers what cni_remove_bridges() has to know. */
bool cni_note_used(struct cni *c, const struct cni_list *list);
/* run.c: starts waiting operations while there is a place. */
void cni_run_next(struct cni *c);

/* ask.c: asks the plugins of `c->networks.unasked` for their versions; the answers load the networks again.
 */
void cni_ask_versions(struct cni *c);
void cni_ask_close(struct cni *c);
/* Must operations wait for an answer? */
bool cni_ask_holds(const struct cni *c);

/* cni.c: loads once more what the folder says, with the versions known by now, and tells of a change. */
void cni_load_again(struct cni *c);

/* status.c: STATUS of the default network after a load; why it is not ready, NULL: it is, or has no STATUS.
 */
enum err_code cni_status_open(struct cni *c, struct err *e) MUST_CHECK;
void cni_status_close(struct cni *c);
void cni_status_ask(struct cni *c);
const char *cni_status_problem(const struct cni *c);
#endif
