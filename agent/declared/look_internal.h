/* SPDX-License-Identifier: Apache-2.0 */
/* look_internal - declarations shared by look*.c; used in the forked call. */
#ifndef AGENT_DECLARED_LOOK_INTERNAL_H
#define AGENT_DECLARED_LOOK_INTERNAL_H
#include "agent/declared/look.h"
#include "base/strs.h"

#include <jansson.h>
#include <sys/stat.h>

#define LOOK_PROBLEMS_MAX 8 /* per member */

struct looker {
    const struct look_job *job;
    json_t *watch;              /* folder: list of patterns */
    json_t *matches, *problems; /* of the current member */
    const struct decl_member *member;
    bool no_memory; /* the answer would be incomplete */
};

/* Watches the folder for names that match the pattern. */
void look_watch(struct looker *l, const char *dir, const char *name);
void look_problem(struct looker *l, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- look_glob.c ---- */
/* Calls hit for each existing path that matches, in order; the folders on the way are watched. */
enum err_code look_glob(struct looker *l, const char *pattern,
                        enum err_code (*hit)(struct looker *l, const char *path, struct err *e),
                        struct err *e) MUST_CHECK;
/* The device nodes below a folder, relative to it: up to LOOK_INSIDE_MAX, two folders deep. */
enum err_code look_inside(struct looker *l, const char *dir, struct strs *ret, struct err *e) MUST_CHECK;

/* ---- look_sysfs.c ---- */
/* Whether the node matches `m`. *ret_numa is -1 if unknown. */
enum err_code look_node(const char *sys_dir, const struct stat *st, const struct decl_match *m, bool *ret,
                        int64_t *ret_numa, struct err *e) MUST_CHECK;

struct look_usb {  /* a device on a USB bus */
    char port[64]; /* "1-1.2": from sysfs, stable while the device stays in this port */
    char vendor[5], product[5], serial[256];
    unsigned bus, number;
    int64_t numa;
};
enum err_code look_usb(const char *sys_dir, void (*fn)(const struct look_usb *u, void *arg), void *arg,
                       struct err *e) MUST_CHECK;
bool look_usb_matches(const struct look_usb *u, const struct decl_match *m);
#endif
