/* SPDX-License-Identifier: Apache-2.0 */
/*
 * project - the trees that pods write on the node's disks have projects of the kernel's quota, where the file
 * system has project quotas (volumes/quota/quota.h): each emptyDir on disk, each container's writable layer,
 * each container's folder of logs, each claim's folder. So usage is read within microseconds, and the kernel
 * warns about limits or enforces them.
 *
 * A tree gets its project before anything is written into it. Ids must be on the disk before they are used,
 * and that sync would delay a pod's start. So some ids are reserved beforehand (projects_reserve()), and a
 * pod gets its ids immediately when it begins to start; the folders of layers are made under the id that the
 * next run of the container will have. Which tree has which id is written afterwards. When many pods start
 * together and the reserved ids are used up, the others wait for the pool, beside their network and images,
 * and requests that come while one is being carried out share the next sync.
 *
 * A tree without a project is scanned (agent/pod/usage/local_storage.h): its file system has no quotas, ids
 * cannot be written (a full or read-only disk), or it had content before it could get one (from before an
 * upgrade). Each reason is logged once and shown by `coracle explain node`.
 *
 * Loop thread.
 */
#ifndef AGENT_POD_PROJECT_PROJECT_H
#define AGENT_POD_PROJECT_PROJECT_H
#include "agent/pod/core/pod.h"
#include "volumes/quota/quota.h"
#include "volumes/quota/quota_warn.h"

extern const struct room project_room;

/* Reads the table and examines the file systems, whose folders exist; before pods are taken over. Blocking.
 * Never fails: without quotas everything is scanned. */
void project_begin(struct node *n);
/* What belongs to no pod was removed: ids that an earlier agent left are freed. */
void project_swept(struct node *n);

/* ---- before something is written ---- */
/* False: they are being given their projects, and the pod will be woken. */
bool project_volumes_ready(struct pod *p);
/* Folders of the pod are being made: it is not torn down before that is over, and the pod will be woken. */
bool project_working(const struct pod *p);
/* The same for the next run of a container, and its logs. */
bool project_layer_ready(struct ctr *c);
/* The id that the next run must have; "": any. */
const char *project_layer_id(const struct ctr *c);
void project_layer_used(struct ctr *c); /* the run is being created; the one after it is another */

/* Trees have projects on some file system of the node: no container may change them. This includes containers
 * of pods without such trees, which could do that through a file on the same file system:
 * /dev/termination-log, a hostPath. Known from project_begin() on. */
bool project_counts(const struct node *n);

/* ---- afterwards ---- */
/* Trees of this owner (uid of the pod) were removed; NULL: of anyone. Those that are gone lose their project.
 */
void project_gone(struct node *n, const char *owner);

/* ---- for usage ---- */
struct project_tree { /* borrowed until the next turn of the loop */
    const char *path, *owner;
    uint32_t id;
    const struct quota_fs *fs;
};
/* False: the tree has no project. */
bool project_find(const struct node *n, const char *path, struct project_tree *ret);
/* False: likewise, or the quota was switched off since: the tree is scanned from now on. */
bool project_usage(struct node *n, const char *path, struct quota_usage *ret);
bool project_layer_path(const struct pod *p, const char *id, char *ret, size_t size); /* false: too long */
bool project_log_path(const struct ctr *c, char *ret, size_t size);

/* The kernel warns about soft limits of this tree; otherwise its usage must be read from time to time.
 */
bool project_warns(const struct node *n, const struct project_tree *t);
/* Called for each warning about a tree; owner NULL: some were lost, all must be read. One only. */
void project_on_warning(struct node *n,
                        void (*fn)(struct node *n, const char *owner, const char *path, bool hard));

/*
 * Work on limits, on the pool, in one row with the projects' own: an id that is being freed gets no limits.
 * `run` may only use quota_get() and quota_set(). `done` is called on a later turn of the loop, also when the
 * node is closing and `run` was not called. Owned by the caller until then.
 */
struct project_task {
    void (*run)(struct project_task *t);
    void (*done)(struct project_task *t, bool ran);
    /* private */
    TAILQ_ENTRY(project_task) link;
    bool ran;
};
void project_do(struct node *n, struct project_task *t);

/* ---- shown ---- */
void project_explain(const struct node *n, json_t *steps);
void project_metrics(const struct node *n, struct buf *out);
#endif
