/* SPDX-License-Identifier: Apache-2.0 */
/*
 * declared - devices without a device plugin: a folder of small files (decl.h) declares which nodes of this
 * machine form which extended resource.
 *
 *     files ──read──► resources, groups, members ──look──► matches ──list──► devices ──► inventory
 *
 * The folder is watched (inotify), and so are the nodes: by the kernel's device events and by inotify on the
 * folders in which a name may match. After an event the nodes are scanned again: DECLARED_SETTLE_MS after the
 * last event, and at the latest DECLARED_SETTLE_MAX_MS after the first one. Nothing is polled.
 *
 * A file with a problem changes nothing: its earlier content still applies, as with manifests. So does the
 * content of a file or folder that cannot be read, and of a folder that was removed. A failed scan is retried
 * with growing pauses; until then the devices do not change. Running pods are never affected.
 *
 * Loop thread only.
 */
#ifndef AGENT_DECLARED_DECLARED_H
#define AGENT_DECLARED_DECLARED_H
#include "deviceplugin/inventory.h"

#define DECLARED_SETTLE_MS 200      /* udev creates a device's links some ms after its node */
#define DECLARED_SETTLE_MAX_MS 2000 /* the limit if events never end */
#define DECLARED_FILES_MAX 256      /* in the folder */
#define DECLARED_RETRY_MS 2000      /* after a failed scan, doubled up to */
#define DECLARED_RETRY_MAX_MS 60000

struct declared;
struct declared_options { /* texts are borrowed while it exists */
    uv_loop_t *loop;
    const char *dir;               /* the files: *.yaml, *.yml, *.json */
    const char *sys_dir, *dev_dir; /* NULL: /sys, /dev */
    struct dp_inventory *inventory;
    /* Cgroup of the scanning child, as in proc_call_spec (base/process/process.h). */
    int cgroup_fd;
    const char *cgroup_procs;
    void (*ready)(void *arg); /* once: declared_ready(); may be NULL */
    /* A new problem, for the log and events. `what` is a file or a resource. */
    void (*problem)(const char *what, const char *text, void *arg);
    void *arg;
};

/* Starts reading at once. Fails only when out of memory. */
enum err_code declared_open(struct declared **ret, const struct declared_options *o,
                            struct err *e) MUST_CHECK;
bool declared_busy(const struct declared *d);
void declared_cancel(struct declared *d); /* ends reads and scans; no new ones begin */
/* Withdraws the resources at once; reads, scans and handles end on later turns. NULL is fine. */
void declared_close(struct declared *d);

/* Whether the files were read and the nodes scanned at least once since the start, with or without success.
 */
bool declared_ready(const struct declared *d);
/* Present problems; `what` is a file ("usb.yaml") or a resource. */
void declared_problems(const struct declared *d, void (*fn)(const char *what, const char *text, void *arg),
                       void *arg);
#endif
