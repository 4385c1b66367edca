/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_weight - the CPU weight of coracle-pods.service, the unit with all pods: their maximum total requests,
 * like kubelet's for kubepods.slice, relative to 100, systemd's default for other units.
 *
 * systemd manages the weight (the file in the cgroup would be overwritten), so systemctl is used: first to
 * read the unit's files, then, if necessary, to set a property at runtime. That is a drop-in below /run,
 * which survives restarts of the agent and the unit, but not a reboot. A CPUWeight= or CPUShares= set by an
 * administrator, in a drop-in or by `systemctl set-property`, is kept: if our drop-in would override it
 * (drop-ins are read in order of their names), ours is set to the same value. Checked at the agent's start
 * and at each reload.
 *
 * Only on cgroup v2: on v1, systemd removes the unit's empty cgroups in other hierarchies when a property is
 * set, and pods could not start there. Not done with another --cgroup-root. Loop thread only.
 */
#ifndef AGENT_UNIT_WEIGHT_H
#define AGENT_UNIT_WEIGHT_H
#include "base/process/process.h"

#define UNIT_WEIGHT_SIZE 16

struct unit_weight_options {
    uv_loop_t *loop;
    const char *cgroup_root; /* only checked */
    uint64_t weight;         /* CPUWeight= */
    int cgroup_fd;           /* as in base/process/process.h */
    const char *cgroup_procs;
};

struct unit_weight {
    struct unit_weight_options o;
    struct proc proc;
    char due[UNIT_WEIGHT_SIZE];
    bool open, again;
};

/* The caller's memory must stay valid until the loop has run after unit_weight_close(). */
void unit_weight_open(struct unit_weight *u, const struct unit_weight_options *o);
void unit_weight_look(struct unit_weight *u);  /* checks again; no effect if never opened, here and below */
void unit_weight_close(struct unit_weight *u); /* keeps the weight */

/* From the output of `systemctl cat` for the unit: the value to set ("": none), and whether the weight is an
 * administrator's. */
bool unit_weight_due(const char *cat, const char *wanted, char ret_due[UNIT_WEIGHT_SIZE]);
#endif
