/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal - the values that are watched on a node, so that pods are evicted before the node fails: kubelet's
 * eviction signals (pkg/kubelet/eviction/api/types.go). Plain values; pure.
 */
#ifndef AGENT_EVICTION_SIGNAL_H
#define AGENT_EVICTION_SIGNAL_H
#include <stdbool.h>
#include <stdint.h>

enum ev_signal {
    EV_MEMORY,             /* memory.available: of the machine, total less working set */
    EV_ALLOCATABLE_MEMORY, /* allocatableMemory.available: limit of all pods less their working set */
    EV_NODEFS,             /* nodefs.available: bytes of the file system of <root> */
    EV_NODEFS_INODES,      /* nodefs.inodesFree */
    EV_IMAGEFS,            /* imagefs.available: of the image store */
    EV_IMAGEFS_INODES,
    EV_CONTAINERFS, /* containerfs.available: of containers' writable layers */
    EV_CONTAINERFS_INODES,
    EV_PID, /* pid.available: process ids */
    EV_SIGNALS
};
const char *ev_signal_name(enum ev_signal s); /* "memory.available" */
/* EV_SIGNALS: unknown. */
enum ev_signal ev_signal_parse(const char *name);
#define EV_SIGNALS_TEXT /* for messages about an unknown signal */                                           \
    "memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, "         \
    "containerfs.available, containerfs.inodesFree, pid.available"
/* The resource in kubelet's texts: "memory", "ephemeral-storage", "inodes", "pids". */
const char *ev_signal_resource(enum ev_signal s);

enum ev_unit { EV_BYTES, EV_INODES, EV_PROCESSES };
enum ev_unit ev_signal_unit(enum ev_signal s);

enum ev_condition { EV_MEMORY_PRESSURE, EV_DISK_PRESSURE, EV_PID_PRESSURE, EV_CONDITIONS };
enum ev_condition ev_signal_condition(enum ev_signal s);
const char *ev_condition_name(enum ev_condition c); /* "MemoryPressure" */
/* Reason and message of the node's condition, and the node's event ("NodeHasDiskPressure"). */
const char *ev_condition_reason(enum ev_condition c, bool on);
const char *ev_condition_message(enum ev_condition c, bool on);
const char *ev_condition_event(enum ev_condition c, bool on);
const char *ev_condition_taint(enum ev_condition c); /* "node.kubernetes.io/disk-pressure" */

/* The file systems of images, writable layers and the rest (<root>, logs, volumes). */
enum ev_layout {
    EV_LAYOUT_ONE,     /* one file system */
    EV_LAYOUT_IMAGEFS, /* images and writable layers have their own file system */
    EV_LAYOUT_SPLIT,   /* images have their own file system, writable layers share that of the rest */
};

/* The node's own reserves, which are removed before pods are evicted; bits. */
enum ev_reclaim {
    EV_RECLAIM_CONTAINERS = 1 << 0, /* ended containers: layers, logs */
    EV_RECLAIM_IMAGES = 1 << 1,     /* unused images */
};
unsigned ev_signal_reclaim(enum ev_signal s, enum ev_layout layout); /* 0 for memory and process ids */

struct ev_value {
    bool known;
    uint64_t available, capacity; /* bytes, inodes or process ids */
};
struct ev_observation {
    struct ev_value v[EV_SIGNALS];
};
#endif
