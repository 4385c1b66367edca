/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edits - changes of a container's OCI specification, in the terms of the Container Device Interface
 * (containerEdits, CDI 1.1.0). They are applied last: a variable, a device node or a mount replaces an
 * earlier one of the same name or path. All texts are borrowed.
 */
#ifndef AGENT_RUNTIME_SPEC_EDITS_H
#define AGENT_RUNTIME_SPEC_EDITS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rt_edit_node {
    const char *path;      /* in the container, absolute */
    const char *host_path; /* NULL: the same */
    char type;             /* 'b', 'c', 'u' (like 'c'), 'p' (FIFO); 0: as on the host */
    int64_t major, minor;  /* major 0: both as on the host */
    bool has_file_mode;    /* otherwise as on the host */
    uint32_t file_mode;
    const char *permissions; /* one or more of "rwm", "": no rule for the cgroup; NULL: "rwm" */
    bool has_uid, has_gid;   /* otherwise those of the container's process, if not 0 */
    uint32_t uid, gid;
};

struct rt_edit_mount {
    const char *source, *destination;
    const char *type; /* NULL: none given */
    const char *const *options;
    size_t n_options;
};

enum rt_hook_kind {
    RT_HOOK_PRESTART,
    RT_HOOK_CREATE_RUNTIME,
    RT_HOOK_CREATE_CONTAINER,
    RT_HOOK_START_CONTAINER,
    RT_HOOK_POSTSTART,
    RT_HOOK_POSTSTOP,
    RT_HOOK_KINDS,
};
extern const char *const rt_hook_names[RT_HOOK_KINDS]; /* "prestart", "createRuntime", ... */

struct rt_edit_hook { /* runs on the host as root, except startContainer, which runs in the container */
    enum rt_hook_kind kind;
    const char *path; /* absolute */
    const char *const *args, *const *env;
    size_t n_args, n_env;
    int timeout_s; /* 0: none */
};

struct rt_edit_net_device { /* moved from the host into the container's network namespace */
    const char *host_name, *name;
};

struct rt_edit_rdt { /* Intel's Resource Director Technology; NULL: not given */
    const char *clos_id, *l3_cache_schema, *mem_bw_schema;
    const char *const *schemata;
    size_t n_schemata;
    bool enable_monitoring;
};

struct rt_edits {
    const char *const *env; /* "K=V" */
    const struct rt_edit_node *nodes;
    const struct rt_edit_mount *mounts;
    const struct rt_edit_hook *hooks;
    const struct rt_edit_net_device *net_devices;
    const uint32_t *gids; /* added to the process's supplementary groups; 0 is ignored */
    size_t n_env, n_nodes, n_mounts, n_hooks, n_net_devices, n_gids;
    const struct rt_edit_rdt *rdt; /* may be NULL */
};
#endif
