/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by declared.c, files.c, nodes.c, provider.c. */
#ifndef AGENT_DECLARED_INTERNAL_H
#define AGENT_DECLARED_INTERNAL_H
#include "agent/declared/declared.h"
#include "agent/declared/list.h"
#include "agent/declared/uevent.h"
#include "base/files/watches.h"
#include "base/process/process.h"
#include "base/work.h"

struct declared_file {
    char *name;
    struct decl_file decl; /* the declarations that apply */
    struct strs problems;  /* problems of its latest version */
};

struct declared_resource {
    struct dp_provider provider;
    struct declared *declared;
    char *name, *file;
    struct decl_list list;
    struct strs problems; /* of the latest scan */
    bool provided, wanted;
};

struct declared_watched {
    int wd;
    char *dir;
    struct strs names; /* patterns */
};

struct declared_read { /* of the whole folder, on the pool */
    char *dir;
    struct declared_file *v;
    size_t n, n_left_out;
    bool missing; /* there is no folder */
    bool again;   /* a file could not be read at present */
};

struct declared {
    struct declared_options o;
    struct declared_file *files; /* sorted by name */
    size_t n_files;
    struct declared_resource **resources;
    size_t n_resources;
    struct strs dir_problems, event_problems, look_problems, clashes;

    struct watch_set *dir_watches, *node_watches;
    int dir_wd, parent_wd; /* -1: none */
    struct declared_watched *watched;
    size_t n_watched;
    struct uevents *uevents; /* NULL: nothing is declared, or the kernel refused */

    bool want_read, want_look, ready, cancelled, closing;
    uint64_t asked_ms; /* time of the oldest pending event; 0: none */
    uint64_t retry_ms; /* the latest pause after a failure; 0: the last try succeeded */
    uv_timer_t timer;  /* for the next step */

    struct work read;
    struct declared_read job;
    struct proc_call look;
    struct look_job look_job; /* borrows from files, which change only between scans */
    const char **look_files;  /* of each resource of the job */
};

/* ---- declared.c ---- */
/* After an event: reads or scans once no more events arrive. */
void declared_ask(struct declared *d, bool read);
/* After a failure: reads or scans again after a pause. */
void declared_ask_later(struct declared *d, bool read);
/* Starts the next due read or scan, if none is running and no further events are awaited. */
void declared_step(struct declared *d);
/* Replaces a list of problems by `now`, and empties `now`; new problems are reported. */
void declared_set_problems(struct declared *d, struct strs *at, struct strs *now, const char *what);

void declared_now_ready(struct declared *d);
void declared_end(struct declared *d); /* closed, and nothing runs any more: frees it */

/* ---- files.c ---- */
enum err_code declared_files_open(struct declared *d, struct err *e) MUST_CHECK;
void declared_files_watch(struct declared *d);
void declared_files_read_start(struct declared *d); /* a scan follows */
void declared_files_close(struct declared *d);

/* ---- nodes.c ---- */
enum err_code declared_nodes_open(struct declared *d, struct err *e) MUST_CHECK;
void declared_nodes_look_start(struct declared *d);
void declared_nodes_close(struct declared *d); /* withdraws all resources */

/* ---- provider.c ---- */
void declared_provider_init(struct declared_resource *r);
#endif
