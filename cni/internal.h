/* SPDX-License-Identifier: Apache-2.0 */
/* internal - struct cni, shared by the files of cni/. */
#ifndef CNI_INTERNAL_H
#define CNI_INTERNAL_H
#include "base/files/fs.h"
#include "cni/cache.h"
#include "cni/cni.h"
#include "cni/plugin/networks.h"
#include "cni/plugin/versions.h"
#include "cni/plugin/watch.h"
#include "cni/width.h"

TAILQ_HEAD(cni_run_list, cni_run);

struct cni {
    uv_loop_t *loop;
    char *conf_dir, *cache_dir, *data_dir; /* data_dir may be NULL */
    struct strs bin_dirs;
    int cache_fd;
    int cgroup_fd;
    char *cgroup_procs;
    char boot_id[ID_BOOT_SIZE]; /* read once: it does not change during our life */

    struct cni_networks networks;
    struct cni_watch *watch;
    struct err load_problem, watch_problem; /* ERR_OK: no problem */
    uint64_t again_ms; /* delay before the next load that these problems cause; 0: no problem */
    void (*changed)(void *arg);
    void *changed_arg;
    char *programs; /* the lists' programs, as of the last check for changes */

    /* The bridges and networks that operations used, for cni_remove_bridges() after lists and entries are
     * removed. */
    struct strs used_bridges, used_networks;
    struct strs checked; /* run_check.c: kinds of attachments that passed CHECK since the last load */

    struct cni_run_list waiting; /* operations waiting for a slot */
    size_t n_running;
    struct cni_width width;      /* so many may run at once */
    size_t n_live;               /* operations in progress, including those that released their slot */
    void (*idle)(struct cni *c); /* gc.c: called when n_live reaches 0; may be NULL */
    bool alone;                  /* gc.c: a GC runs, nothing else may begin */
    TAILQ_HEAD(, cni_gc) gcs;    /* waiting; the first may run */

    struct cni_times times;
    struct cni_versions versions; /* versions supported by plugins */
    TAILQ_HEAD(, ask) asks;       /* ask.c */
    size_t n_held;                /* reasons to start no operation: the first STATUS of a list */
    struct cni_status *status;    /* status.c */
    bool starting;                /* cni_run_next() is running */
    bool bridges_made;            /* as of the last operation that began alone */
};

/* cni.c: the usable list of this name, or NULL. */
const struct cni_list *cni_network(const struct cni *c, const char *name);

/* cni.c: cni_cache_find(), which first looks in the networks of the folder: the cache has a file for each
 * pod, and a list of them for each pod would take long on a full node. */
enum err_code cni_find(const struct cni *c, const char *container_id, const char *ifname,
                       struct cni_entry *ret, struct err *e) MUST_CHECK;

/* run_add.c: notes the bridges for cni_remove_bridges(). */
bool cni_note_used(struct cni *c, const struct cni_list *list);
/* run.c: starts waiting operations while there are free slots. */
void cni_run_next(struct cni *c);

/* ask.c: queries the plugins in `c->networks.unasked` for their versions; the answers reload the networks. */
void cni_ask_versions(struct cni *c);
void cni_ask_close(struct cni *c);
/* Whether operations must wait for an answer. */
bool cni_ask_holds(const struct cni *c);

/* cni.c: reloads the folder with the versions known by now, and reports changes. */
void cni_load_again(struct cni *c);

/* status.c: STATUS of the default network after a load: the reason why it is not ready; NULL if it is ready
 * or has no STATUS. */
enum err_code cni_status_open(struct cni *c, struct err *e) MUST_CHECK;
void cni_status_close(struct cni *c);
void cni_status_ask(struct cni *c);
const char *cni_status_problem(const struct cni *c);
#endif
