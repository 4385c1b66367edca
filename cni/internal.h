/* internal - what the files of cni/ share about struct cni. */
#ifndef CNI_INTERNAL_H
#define CNI_INTERNAL_H
#include "cni/cache.h"
#include "cni/cni.h"
#include "cni/networks.h"
#include "cni/watch.h"

TAILQ_HEAD(cni_run_list, cni_run);

struct cni {
    uv_loop_t *loop;
    char *conf_dir, *cache_dir, *data_dir; /* data_dir may be NULL */
    struct strs bin_dirs;
    int cache_fd;
    int cgroup_fd;
    char *cgroup_procs;

    struct cni_networks networks;
    struct cni_watch *watch;
    struct err load_problem, watch_problem; /* ERR_OK: none */
    void (*changed)(void *arg);
    void *changed_arg;

    /* What operations used: cni_remove_bridges() must know it after lists and entries are gone. */
    struct strs used_bridges, used_networks;

    struct cni_run_list waiting; /* operations for which there is no place yet */
    size_t n_running, max_running;
    bool starting;     /* cni_run_next() is at work */
    bool bridges_made; /* as seen when the last one began alone */
};

/* run.c: remembers what cni_remove_bridges() has to know. */
bool cni_note_used(struct cni *c, const struct cni_list *list);
/* run.c: starts waiting operations while there is a place. */
void cni_run_next(struct cni *c);
#endif
