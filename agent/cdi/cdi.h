/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi - the devices of this node that files of the Container Device Interface describe, and the edits of a
 * container that requests them by name ("vendor.com/class=name").
 *
 * Spec files are *.json and *.yaml of the given folders, at the top level. They can name programs that run as
 * root on the host, so a file is used only if it and its folder are owned by root and writable by root only.
 * Links are followed, and the check applies to the file at their end. A file with a problem has no devices,
 * and a name that two files of one folder define has none either. A later folder takes precedence over an
 * earlier one. Folders may be missing. They are watched, and all are read again after each change, on the
 * pool.
 *
 * A folder or file that could not be read (no descriptors, an I/O error) changes nothing: its earlier content
 * applies until the next read, which is scheduled automatically.
 *
 * References: the CDI specification 1.1.0 and its library where the specification is silent. Loop thread
 * only.
 */
#ifndef AGENT_CDI_CDI_H
#define AGENT_CDI_CDI_H
#include "agent/api/problems.h"
#include "agent/runtime/spec/edits.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/strs.h"

#include <uv.h>

#define CDI_FILE_MAX (4 * 1024 * 1024)   /* the file of a machine with eight partitioned GPUs has 100 KiB */
#define CDI_TOTAL_MAX (32 * 1024 * 1024) /* of all files */
#define CDI_FILES_MAX 1000               /* of a folder */
#define CDI_DEVICES_MAX 65536            /* of all files */
#define CDI_NAMES_MAX 1024  /* names that a container requests: each is compared with all others */
#define CDI_EDITS_MAX 16384 /* of one kind, for one container */
#define CDI_FAILED "CDI device injection failed" /* containerd's text; errors begin with it */
#define CDI_BAD_ANNOTATION "failed to parse CDI device annotations" /* containerd's text, too */
#define CDI_ANNOTATION "cdi.k8s.io/"

struct cdi;

/* `dirs` is NULL-terminated and borrowed; NULL: none. changed(arg) is called after a read if the content has
 * changed, or after cdi_await() or cdi_refresh(). */
enum err_code cdi_open(struct cdi **ret, uv_loop_t *loop, const char *const *dirs, void (*changed)(void *arg),
                       void *arg, struct err *e) MUST_CHECK;
/* Stops; handles close on later turns. NULL is fine. */
void cdi_close(struct cdi *c);

/* Whether the folders were read at least once; before that, no name can be resolved. */
bool cdi_is_ready(const struct cdi *c);
/* Whether the folders are being read, or will be soon. */
bool cdi_is_busy(const struct cdi *c);
/* changed() will be called after the read in progress, whatever the result. */
void cdi_await(struct cdi *c);
/* Reads the folders again, because an event may still be on its way; changed() will be called, too. */
void cdi_refresh(struct cdi *c);

/* The edits for a list of names, borrowed from the files' content, which is kept while the edits exist. { 0 }
 * is empty. */
struct cdi_resolved {
    struct rt_edits edits;
    struct arena arena;
    struct cdi_content *content;
};
void cdi_resolved_done(struct cdi_resolved *r);
/*
 * A file's global edits are applied once, before those of its first device. A name that is given twice is
 * used once. ERR_UNAVAILABLE: not read yet. ERR_NOT_FOUND: "CDI device injection failed: unresolvable CDI
 * devices a, b". ERR_EXHAUSTED: too many edits.
 */
enum err_code cdi_resolve(const struct cdi *c, const char *const *names, size_t n, struct cdi_resolved *ret,
                          struct err *e) MUST_CHECK;

/* ---- annotations: cdi.k8s.io/<anything>: name,name ---- */
/*
 * Appends the names of one annotation, each once; other keys are ignored. ERR_INVALID, with containerd's
 * text, if a name is not vendor/class=name, or if there are more than CDI_NAMES_MAX.
 */
enum err_code cdi_annotation_names(const char *key, const char *value, struct strs *names,
                                   struct err *e) MUST_CHECK;
bool cdi_is_name(const char *name); /* vendor/class=name */

/* ---- for display ---- */
/* Files, folders and devices with problems, by path. Valid until the loop turns. */
void cdi_problems(const struct cdi *c, void (*fn)(const struct api_problem *p, void *arg), void *arg);
/* Every name that can be resolved, in order, and its file. */
void cdi_devices(const struct cdi *c, void (*fn)(const char *name, const char *path, void *arg), void *arg);
#endif
