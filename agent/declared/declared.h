/* SPDX-License-Identifier: Apache-2.0 */
/*
 * declared - devices that need no device plugin: a folder of small files (decl.h) says which nodes of this
 * machine are which extended resource.
 *
 *     files ──read──► resources, groups, members ──look──► matches ──list──► devices ──► inventory
 *
 * The folder is followed (inotify), and so are the nodes: by the kernel's device events and by inotify of the
 * folders in which a name may match. After an event the nodes are looked at again: DECLARED_SETTLE_MS after
 * the last event, and DECLARED_SETTLE_MAX_MS after the first one at the latest. Nothing is polled.
 *
 * A file with a problem changes nothing: its earlier content stays in force, as with manifests. The same
 * applies to a file or a folder that cannot be read, and to a folder that is gone. A look that failed is
 * repeated with growing pauses; until then the devices stay as they are. Running pods are never touched.
 *
 * Loop thread only.
 */
#ifndef AGENT_DECLARED_DECLARED_H
#define AGENT_DECLARED_DECLARED_H
#include "deviceplugin/inventory.h"

#define DECLARED_SETTLE_MS 200      /* udev makes a device's links some ms after its node */
#define DECLARED_SETTLE_MAX_MS 2000 /* the limit if events never end */
#define DECLARED_FILES_MAX 256      /* in the folder */
#define DECLARED_RETRY_MS 2000      /* after a failed look, doubled up to */
#define DECLARED_RETRY_MAX_MS 60000

struct declared;
struct declared_options { /* texts are borrowed while it exists */
    uv_loop_t *loop;
    const char *dir;               /* the files: *.yaml, *.yml, *.json */
    const char *sys_dir, *dev_dir; /* NULL: /sys, /dev */
    struct dp_inventory *inventory;
    /* Cgroup of the child that looks; as in proc_call_spec (base/process/process.h). */
    int cgroup_fd;
    const char *cgroup_procs;
    void (*ready)(void *arg); /* once: declared_ready(); may be NULL */
    /* A new problem, for the log and events. `what` is a file or a resource. */
    void (*problem)(const char *what, const char *text, void *arg);
    void *arg;
};

/* Begins to read at once. Fails only when out of memory. */
enum err_code declared_open(struct declared **ret, const struct declared_options *o,
                            struct err *e) MUST_CHECK;
bool declared_busy(const struct declared *d);
void declared_cancel(struct declared *d); /* reads and looks end, and no new ones begin */
/* Withdraws the resources at once; reads and looks end, and handles close, on later turns. NULL is fine. */
void declared_close(struct declared *d);

/* Whether the files were read and the nodes looked at once since the start, with or without success. */
bool declared_ready(const struct declared *d);
/* Present problems; `what` is a file ("usb.yaml") or a resource. */
void declared_problems(const struct declared *d, void (*fn)(const char *what, const char *text, void *arg),
                       void *arg);
#endif
