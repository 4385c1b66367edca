/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/signal.h"

#include "base/scope.h"

#include <string.h>

static const struct {
    const char *name, *resource;
    enum ev_condition condition;
    enum ev_unit unit;
} signals[EV_SIGNALS] = {
    [EV_MEMORY] = { "memory.available", "memory", EV_MEMORY_PRESSURE, EV_BYTES },
    [EV_ALLOCATABLE_MEMORY] = { "allocatableMemory.available", "memory", EV_MEMORY_PRESSURE, EV_BYTES },
    [EV_NODEFS] = { "nodefs.available", "ephemeral-storage", EV_DISK_PRESSURE, EV_BYTES },
    [EV_NODEFS_INODES] = { "nodefs.inodesFree", "inodes", EV_DISK_PRESSURE, EV_INODES },
    [EV_IMAGEFS] = { "imagefs.available", "ephemeral-storage", EV_DISK_PRESSURE, EV_BYTES },
    [EV_IMAGEFS_INODES] = { "imagefs.inodesFree", "inodes", EV_DISK_PRESSURE, EV_INODES },
    [EV_CONTAINERFS] = { "containerfs.available", "ephemeral-storage", EV_DISK_PRESSURE, EV_BYTES },
    [EV_CONTAINERFS_INODES] = { "containerfs.inodesFree", "inodes", EV_DISK_PRESSURE, EV_INODES },
    [EV_PID] = { "pid.available", "pids", EV_PID_PRESSURE, EV_PROCESSES },
};

/* [0]: without pressure, [1]: with it. */
static const struct {
    const char *name, *taint, *reason[2], *message[2], *event[2];
} conditions[EV_CONDITIONS] = {
    [EV_MEMORY_PRESSURE] = { "MemoryPressure",
                             "node.kubernetes.io/memory-pressure",
                             { "KubeletHasSufficientMemory", "KubeletHasInsufficientMemory" },
                             { "kubelet has sufficient memory available",
                               "kubelet has insufficient memory available" },
                             { "NodeHasSufficientMemory", "NodeHasInsufficientMemory" } },
    [EV_DISK_PRESSURE] = { "DiskPressure",
                           "node.kubernetes.io/disk-pressure",
                           { "KubeletHasNoDiskPressure", "KubeletHasDiskPressure" },
                           { "kubelet has no disk pressure", "kubelet has disk pressure" },
                           { "NodeHasNoDiskPressure", "NodeHasDiskPressure" } },
    [EV_PID_PRESSURE] = { "PIDPressure",
                          "node.kubernetes.io/pid-pressure",
                          { "KubeletHasSufficientPID", "KubeletHasInsufficientPID" },
                          { "kubelet has sufficient PID available",
                            "kubelet has insufficient PID available" },
                          { "NodeHasSufficientPID", "NodeHasInsufficientPID" } },
};

const char *ev_signal_name(enum ev_signal s)
{
    return signals[s].name;
}

enum ev_signal ev_signal_parse(const char *name)
{
    size_t i = 0;

    while (i < EV_SIGNALS && strcmp(signals[i].name, name) != 0)
        i++;
    return (enum ev_signal)i;
}

const char *ev_signal_resource(enum ev_signal s)
{
    return signals[s].resource;
}

enum ev_unit ev_signal_unit(enum ev_signal s)
{
    return signals[s].unit;
}

enum ev_condition ev_signal_condition(enum ev_signal s)
{
    return signals[s].condition;
}

#define BOTH (EV_RECLAIM_CONTAINERS | EV_RECLAIM_IMAGES)

unsigned ev_signal_reclaim(enum ev_signal s, enum ev_layout layout)
{
    static const unsigned nodefs[] = { BOTH, EV_RECLAIM_CONTAINERS, EV_RECLAIM_CONTAINERS },
                          imagefs[] = { BOTH, BOTH, EV_RECLAIM_IMAGES },
                          containerfs[] = { BOTH, BOTH, EV_RECLAIM_CONTAINERS };

    switch (s) {
    case EV_NODEFS:
    case EV_NODEFS_INODES:
        return nodefs[layout];
    case EV_IMAGEFS:
    case EV_IMAGEFS_INODES:
        return imagefs[layout];
    case EV_CONTAINERFS:
    case EV_CONTAINERFS_INODES:
        return containerfs[layout];
    default:
        return 0;
    }
}

const char *ev_condition_name(enum ev_condition c)
{
    return conditions[c].name;
}

const char *ev_condition_reason(enum ev_condition c, bool on)
{
    return conditions[c].reason[on];
}

const char *ev_condition_message(enum ev_condition c, bool on)
{
    return conditions[c].message[on];
}

const char *ev_condition_event(enum ev_condition c, bool on)
{
    return conditions[c].event[on];
}

const char *ev_condition_taint(enum ev_condition c)
{
    return conditions[c].taint;
}
