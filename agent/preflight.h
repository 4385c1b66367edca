/* SPDX-License-Identifier: Apache-2.0 */
/* preflight - requirements before the first pod: programs (with their Debian packages), folders, the run
 * folder's tmpfs, and locks that keep two agents from sharing a state or run folder. Blocking: before the
 * loop runs, and after it. */
#ifndef AGENT_PREFLIGHT_H
#define AGENT_PREFLIGHT_H
#include "agent/config/config.h"
#include "agent/made.h"

#define PREFLIGHT_PATH_SIZE 256

struct preflight {
    char runtime[PREFLIGHT_PATH_SIZE], conmon[PREFLIGHT_PATH_SIZE], skopeo[PREFLIGHT_PATH_SIZE],
        unpack[PREFLIGHT_PATH_SIZE], probe[PREFLIGHT_PATH_SIZE], kube[PREFLIGHT_PATH_SIZE],
        exec[PREFLIGHT_PATH_SIZE], pause[PREFLIGHT_PATH_SIZE], shutdown[PREFLIGHT_PATH_SIZE],
        seal[PREFLIGHT_PATH_SIZE];
    char seccomp_profile[PREFLIGHT_PATH_SIZE];
    char sample_network[PREFLIGHT_PATH_SIZE]; /* "": not installed */
    int state_lock, run_lock;                 /* held until preflight_done(); -1: not taken */
    bool run_mounted;                         /* the run folder's tmpfs is ours */
    bool run_mounted_now;                     /* by this start */
    struct made made;
    unsigned long cpu_milli;
    unsigned long long memory_bytes, swap_bytes;
};

/* Searches an executable file in PATH. */
bool preflight_find(const char *name, char ret[PREFLIGHT_PATH_SIZE]);
/* Logs every missing program with its package; ERR_PRECONDITION if a required one is missing. */
enum err_code preflight_programs(struct preflight *p, const struct agent_config *c, struct err *e) MUST_CHECK;
/* Creates folders, mounts the tmpfs, takes the locks. ERR_EXISTS: another agent uses one of them. */
enum err_code preflight_folders(struct preflight *p, const struct agent_config *c, struct err *e) MUST_CHECK;
/* --ephemeral: unmounts and removes the run folder. */
void preflight_undo(struct preflight *p, const struct agent_config *c);
/* After a refused start: releases the locks, and removes the folders that preflight_folders() created. */
void preflight_take_back(struct preflight *p, const struct agent_config *c);
void preflight_done(struct preflight *p); /* releases the locks */
#endif
