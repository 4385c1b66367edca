/* SPDX-License-Identifier: Apache-2.0 */
/*
 * declared - devices that need no device plugin: a folder of small files (decl.h) says which nodes of this
 * machine are which extended resource.
 *
 *     files ──read──► resources, groups, members ──look──► matches ──list──► devices ──► inventory
 *
 * The folder is followed (inotify), and so are the nodes: by the kernel's device events and by inotify of the
 * folders in which a name may match. An event makes it look again after DECLARED_SETTLE_MS without another
 * one, at the latest after DECLARED_SETTLE_MAX_MS. Nothing is polled.
 *
 * A file with a problem changes nothing: what it had before stays in force, as with manifests; so does a file
 * or a folder that cannot be read. A folder that is gone removes nothing until it is back. A look that failed
 * is repeated, later and later; until then the devices stay as they are. Pods that run are never touched.
 *
 * Loop thread only.
 */
#ifndef AGENT_DECLARED_DECLARED_H
#define AGENT_DECLARED_DECLARED_H
#include "deviceplugin/inventory.h"

#define DECLARED_SETTLE_MS 200      /* udev makes a device's links some ms after its node */
#define DECLARED_SETTLE_MAX_MS 2000 /* also while events never end */
#define DECLARED_FILES_MAX 256      /* in the folder */
#define DECLARED_RETRY_MS 2000      /* after a failed look, doubled up to */
#define DECLARED_RETRY_MAX_MS 60000

struct declared;
struct declared_options { /* texts are borrowed while it exists */
    uv_loop_t *loop;
    const char *dir;               /* the files: *.yaml, *.yml, *.json */
    const char *sys_dir, *dev_dir; /* NULL: /sys, /dev */
    struct dp_inventory *inventory;
    /* Where a look goes that takes long: proc_call_spec (base/process/process.h). */
    int cgroup_fd;
    const char *cgroup_procs;
    void (*ready)(void *arg); /* once: declared_ready(); may be NULL */
    /* Something is wrong that was not before: for the log and events. `what` is a file or a resource. */
    void (*problem)(const char *what, const char *text, void *arg);
    void *arg;
};

/* Begins to read at once. Fails only when out of memory. */
enum err_code declared_open(struct declared **ret, const struct declared_options *o,
                            struct err *e) MUST_CHECK;
bool declared_busy(const struct declared *d);
void declared_cancel(struct declared *d); /* reads and looks end, nothing new begins */
/* The resources are withdrawn at once; what runs ends, and handles close, on later turns. NULL is fine. */
void declared_close(struct declared *d);

/* Whether the files were read and the nodes looked at since the start, or this was tried. */
bool declared_ready(const struct declared *d);
/* What is wrong now: a file ("usb.yaml") or a resource, and the text. */
void declared_problems(const struct declared *d, void (*fn)(const char *what, const char *text, void *arg),
                       void *arg);
#endif
