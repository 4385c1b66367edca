/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flex - FlexVolume drivers: programs at <dir>/VENDOR~DRIVER/DRIVER that are called with a command and answer
 * with JSON. Rules: pkg/volume/flexvolume, and recorded calls of a kubelet.
 *
 * drivers.c knows which drivers there are and what they can; it runs on the loop. The calls for a volume
 * block and are made inside a proc_call that has a cgroup from the start: mount.c, expand.c, unmount.c. A
 * cluster's controller calls attach and detach on a node of its own. A node that joins no cluster has nobody
 * who attaches, so the agent calls them itself, as a kubelet without enableControllerAttachDetach.
 */
#ifndef VOLUMES_FLEX_FLEX_H
#define VOLUMES_FLEX_FLEX_H
#include "base/error.h"
#include "volumes/storage/storage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/* ---- answers ---- */
struct flex_caps {
    bool attach, fs_group, requires_resize;
    bool metrics; /* supportsMetrics: the mounted file system may be asked how full it is */
};

enum flex_status { FLEX_SUCCESS, FLEX_NOT_SUPPORTED, FLEX_FAILED };

#define FLEX_DEVICE_SIZE 256
struct flex_answer {
    enum flex_status status;
    char message[400]; /* of a failure: "mount command failed, status: Failure, reason: no such share" */
    char device[FLEX_DEVICE_SIZE]; /* attach, waitforattach; "": none */
    struct flex_caps caps;
};

#define FLEX_ANSWER_MAX (64 * 1024)
/* ERR_INVALID: the text is no answer; *e has its beginning. */
enum err_code flex_answer_parse(const char *command, const char *text, size_t n, struct flex_answer *ret,
                                struct err *e) MUST_CHECK;

/* ---- volumes ---- */
struct flex_pair {
    const char *key, *value;
};
struct flex_secret {
    const char *key;
    const void *data;
    size_t size;
};

struct flex_volume {                /* all borrowed */
    const char *program, *dir_name; /* of its driver: its path, and "VENDOR~DRIVER" */
    struct flex_caps caps;
    const char *root, *node; /* rootDir, the node's name */
    const char *name;        /* of the PersistentVolume, or the pod's name for the volume */
    const char *target;
    const char *fs_type; /* NULL: "" */
    bool read_only;
    const struct flex_pair *opts;
    size_t n_opts;
    const struct flex_secret *secrets;
    size_t n_secrets;
    const char *pod_name, *pod_namespace, *pod_uid, *service_account;
    int64_t fs_group; /* -1: none */
    bool group_if_wrong;
    enum storage_step *step; /* where a mount is, or was when it failed; may be NULL */
    const char *device; /* where the cluster attached it, as the Node says; NULL: the agent attaches it */
};

/* The JSON input of a driver: keys sorted, as Go writes them. `of_pod`: with the members that only mount
 * gets. NULL: no memory. The caller wipes and frees it, since it has the secrets. */
char *flex_options(const struct flex_volume *v, bool of_pod);
enum err_code flex_mount(const struct flex_volume *v, struct err *e) MUST_CHECK;
/* The PersistentVolume has become larger: expandfs. What the driver does not support, the tools of the file
 * system do. */
struct flex_sizes {
    uint64_t now, before; /* bytes */
};
enum err_code flex_expand(const struct flex_volume *v, struct flex_sizes sizes, struct err *e) MUST_CHECK;
/* Of `v`: program, dir_name, root, node, name, target, pod_uid. */
struct flex_end {
    unsigned patience_ms;
    bool detaches; /* the agent attached it */
};
enum err_code flex_unmount(const struct flex_volume *v, struct flex_end how, struct err *e) MUST_CHECK;

struct flex_pod {
    const char *root, *uid, *node, *plugin_dir;
    struct flex_end how;
};
/* All volumes of a pod; continues after a failure. ERR_UNAVAILABLE: a driver is missing. */
enum err_code flex_unmount_all(const struct flex_pod *p, struct err *e) MUST_CHECK;
/* Whether the pod has folders of FlexVolumes, and of which drivers ("VENDOR/DRIVER"; fn may be NULL). Any
 * thread. */
bool flex_has_any(const char *root, const char *uid, void (*fn)(const char *driver, void *arg), void *arg);
/* "VENDOR/DRIVER/NAME": a volume as controllers call it that attach it. False: it does not fit. */
bool flex_attach_name(const char *driver, const char *name, char *ret, size_t size);
/* Those whose device is mounted on this node, or was. Any thread. */
void flex_each_device(const char *root, void (*fn)(const char *attach_name, void *arg), void *arg);

/* ---- drivers ---- */
struct flex_drivers;
struct flex_drivers_options {
    uv_loop_t *loop;
    const char *dir; /* volumePluginDir */
    int cgroup_fd;   /* of the programs; -1: none */
    const char *cgroup_procs;
    void (*changed)(void *arg); /* one can be used now that could not, or the other way round */
    void *arg;
};

struct flex_driver {
    const char *program, *dir_name; /* borrowed until the loop turns */
    struct flex_caps caps;
};

/* Nothing is read or watched until somebody asks for a driver. */
enum err_code flex_drivers_open(struct flex_drivers **ret, const struct flex_drivers_options *o,
                                struct err *e) MUST_CHECK;
/* "VENDOR/DRIVER". ERR_UNAVAILABLE: it is being asked what it can, changed() follows. ERR_NOT_FOUND: there is
 * none, or its init failed: *e says why, and it is called again with back-off, at a later look-up. */
enum err_code flex_drivers_find(struct flex_drivers *all, const char *name, struct flex_driver *ret,
                                struct err *e) MUST_CHECK;
bool flex_drivers_busy(const struct flex_drivers *d);
void flex_drivers_stop(struct flex_drivers *all);
void flex_drivers_close(struct flex_drivers *all); /* not while it is busy; NULL is fine */
#endif
