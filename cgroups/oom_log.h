/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom_log - which process the kernel killed for want of memory, from its own log (/dev/kmsg), as kubelet
 * learns it.  cgroupfs only counts; the log has the name and the number.  Since Linux 5.0, two records belong
 * together:
 *
 *     oom-kill:constraint=...,oom_memcg=/kubepods/pod1/c1,task_memcg=/kubepods/pod1/c1,task=tail,pid=412,uid=0
 *     Memory cgroup out of memory: Killed process 412 (tail) total-vm:900kB, anon-rss:800kB, file-rss:4kB,
 * ...
 *
 * and with memory.oom.group the second one for each other process of the cgroup.
 *
 * Hostile input: names of processes and of cgroups below a container's are chosen by the container.  Records
 * that somebody wrote into /dev/kmsg (facility other than kern) are passed over, fields are bounded, what
 * precedes a name decides.  A name can at most lie about itself; the count in its cgroup says whether there
 * was a kill. Loop thread.
 */
#ifndef CGROUPS_OOM_LOG_H
#define CGROUPS_OOM_LOG_H
#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CG_OOM_PATH_SIZE 512   /* a container's path has some 200; the beginning is what matters */
#define CG_OOM_NAME_SIZE 64    /* 15 bytes, each at most \xNN: the kernel escapes what is not ASCII */
#define CG_OOM_RECORD_MAX 8192 /* the longest that the kernel gives out */

struct cg_oom_kill {
    pid_t pid;
    char name[CG_OOM_NAME_SIZE];
    bool system;                            /* the machine was out of memory, not a cgroup at its limit */
    char cgroup[CG_OOM_PATH_SIZE];          /* the victim's, from the record before; "" not known */
    char limited[CG_OOM_PATH_SIZE];         /* the cgroup whose limit it was; "" system, or not known */
    uint64_t anon_kib, file_kib, shmem_kib; /* what it had resident; 0 where the line does not say it */
};

/* ---- text: pure ------------------------------------------------------------------------------ */
struct cg_oom_text { /* begins as { 0 } */
    char cgroup[CG_OOM_PATH_SIZE], limited[CG_OOM_PATH_SIZE];
};
/* One record as /dev/kmsg gives it.  True: it says that a process was killed. */
bool cg_oom_text_feed(struct cg_oom_text *t, const char *record, size_t n, struct cg_oom_kill *ret);

/* ---- the log --------------------------------------------------------------------------------- */
struct cg_oom_log;

/* From now on.  ERR_PERMISSION, ERR_NOT_FOUND: it cannot be read here (a container, dmesg_restrict). */
enum err_code cg_oom_log_open(struct cg_oom_log **ret, const char *path /* "/dev/kmsg" */,
                              struct err *e) MUST_CHECK;
void cg_oom_log_close(struct cg_oom_log *l);   /* NULL is fine */
int cg_oom_log_fd(const struct cg_oom_log *l); /* readable when there is something new; never blocks */
/* The next kill among at most `max` records; false: none (*ret_more: that many were read and there may be
 * more). */
bool cg_oom_log_next(struct cg_oom_log *l, unsigned max, struct cg_oom_kill *ret, bool *ret_more);
#endif
