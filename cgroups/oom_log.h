/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom_log - reads from the kernel log (/dev/kmsg) which process the OOM killer killed, as kubelet does.
 * cgroupfs only has counters; the log has the name and pid. Since Linux 5.0, two records belong together:
 *
 *     oom-kill:constraint=...,oom_memcg=/kubepods/pod1/c1,task_memcg=/kubepods/pod1/c1,task=tail,pid=412,uid=0
 *     Memory cgroup out of memory: Killed process 412 (tail) total-vm:900kB, anon-rss:800kB, file-rss:4kB,
 * ...
 *
 * and with memory.oom.group, the second one repeats for each other process of the cgroup.
 *
 * The input is hostile: a container chooses the names of its processes and nested cgroups. Records written to
 * /dev/kmsg by user space (facility other than kern) are ignored, fields are bounded, and parsing relies on
 * the text before a name. So a forged name can only misrepresent itself; the cgroup's counter shows whether
 * there was a kill. Loop thread.
 */
#ifndef CGROUPS_OOM_LOG_H
#define CGROUPS_OOM_LOG_H
#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CG_OOM_PATH_SIZE 512   /* a container's path has about 200; only the beginning matters */
#define CG_OOM_NAME_SIZE 64    /* 15 bytes, each up to \xNN: the kernel escapes non-ASCII */
#define CG_OOM_RECORD_MAX 8192 /* the kernel's maximum */

struct cg_oom_kill {
    pid_t pid;
    char name[CG_OOM_NAME_SIZE];
    bool system;                            /* the machine ran out of memory, rather than a cgroup */
    char cgroup[CG_OOM_PATH_SIZE];          /* the victim's, from the record before; "" if unknown */
    char limited[CG_OOM_PATH_SIZE];         /* the cgroup at its limit; "" if system or unknown */
    uint64_t anon_kib, file_kib, shmem_kib; /* resident; 0 if the line does not have it */
};

/* ---- text: pure ---- */
struct cg_oom_text { /* initialize to { 0 } */
    char cgroup[CG_OOM_PATH_SIZE], limited[CG_OOM_PATH_SIZE];
};
/* One record as read from /dev/kmsg. True if it reports a killed process. */
bool cg_oom_text_feed(struct cg_oom_text *t, const char *record, size_t n, struct cg_oom_kill *ret);

/* ---- the log ---- */
struct cg_oom_log;

/* Starts at the end of the log. ERR_PERMISSION, ERR_NOT_FOUND: unreadable here (a container,
 * dmesg_restrict). */
enum err_code cg_oom_log_open(struct cg_oom_log **ret, const char *path /* "/dev/kmsg" */,
                              struct err *e) MUST_CHECK;
void cg_oom_log_close(struct cg_oom_log *l);   /* NULL is fine */
int cg_oom_log_fd(const struct cg_oom_log *l); /* readable when there are new records; never blocks */
/* The next kill among at most `max` records; false if none (*ret_more: that many were read and there may be
 * more). */
bool cg_oom_log_next(struct cg_oom_log *l, unsigned max, struct cg_oom_kill *ret, bool *ret_more);
#endif
