/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_weight - the cpu weight of coracle-pods.service, the unit in which all pods are: what they may ask for
 * together, as kubelet has it for kubepods.slice, against 100 that systemd gives every other unit.
 *
 * It is systemd's to write (the file in the unit's cgroup would be overwritten by its next turn), so
 * systemctl is asked: first what stands in the unit's files, then, where it is something else, for a property
 * at run time.  That is a drop-in below /run, kept over restarts of the agent and of the unit, gone after a
 * reboot.  A CPUWeight= or CPUShares= of an administrator, in a drop-in or by `systemctl set-property`,
 * stays: where ours would hide it (drop-ins are read in the order of their names) ours becomes the same.
 * Looked at when the agent starts and at each reload.
 *
 * On cgroup v2 alone: on v1 systemd takes away what is empty of the unit in other hierarchies when a property
 * is set, and pods could not start there.  An agent with another --cgroup-root has nothing to do with all
 * this.  Loop thread only.
 */
#ifndef AGENT_UNIT_WEIGHT_H
#define AGENT_UNIT_WEIGHT_H
#include "base/process.h"

#define UNIT_WEIGHT_SIZE 16

struct unit_weight_options {
    uv_loop_t *loop;
    const char *cgroup_root; /* only looked at */
    uint64_t weight;         /* CPUWeight= */
    int cgroup_fd;           /* as in base/process.h */
    const char *cgroup_procs;
};

struct unit_weight {
    struct unit_weight_options o;
    struct proc proc;
    char due[UNIT_WEIGHT_SIZE];
    bool open, again;
};

/* The caller's memory is in use until the loop has run after unit_weight_close(). */
void unit_weight_open(struct unit_weight *u, const struct unit_weight_options *o);
void unit_weight_look(struct unit_weight *u);  /* again; one that was never opened is fine, here and below */
void unit_weight_close(struct unit_weight *u); /* what is set stays */

/*
 * Of what `systemctl cat` says of the unit: what has to be set ("": nothing), and whether the weight is an
 * administrator's.
 */
bool unit_weight_due(const char *cat, const char *wanted, char ret_due[UNIT_WEIGHT_SIZE]);
#endif
