/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec - one container, fully resolved, and the OCI runtime specification for it (config.json), as containerd
 * and CRI-O create it under kubelet. Pure, except for reading files below the container's root.
 */
#ifndef AGENT_RUNTIME_SPEC_SPEC_H
#define AGENT_RUNTIME_SPEC_SPEC_H
#include "agent/api/types.h"
#include "agent/image/image.h"
#include "agent/runtime/spec/edits.h"
#include "base/arena.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Capabilities of a runtime and of the kernel, probed once by rt_open(). */
struct rt_features {
    char runtime_name[16]; /* "crun", "runc" */
    char runtime_version[32];
    bool recursive_read_only; /* mount option rro */
    bool user_namespaces;     /* the runtime can join one by path; the kernel's part: idmap_probe.h */
    bool net_devices;         /* linux.netDevices, OCI 1.3 */
    bool rdt_schemata;        /* linux.intelRdt.schemata and enableMonitoring, OCI 1.3 */
    /* CAP_SYS_RESOURCE: oom_score_adj can be negative; otherwise it is raised to our own. */
    bool lower_oom_score;
    int own_oom_score_adj;
};

#define RT_CAP_BIT(n) (UINT64_C(1) << (n))

/* The properties of the node that a specification depends on. */
struct rt_host {
    struct rt_features features; /* of the container's runtime */
    char *seccomp_profile;
    char *localhost_seccomp_dir; /* may be NULL */
    char seccomp_problem[256];   /* why RuntimeDefault is unavailable, if the profile is missing */
    uint64_t own_caps;           /* our effective set: the maximum for ALL and privileged */
    bool cgroup_v2;
    bool swap_accounting; /* memory.swap can be set */
};
/* Why RuntimeDefault is unavailable (missing profile), with the package's name; NULL if it is available. */
const char *rt_host_seccomp_problem(const struct rt_host *host);

struct rt_mount {       /* bind mounts of volumes and files, in order */
    const char *volume; /* the volume's name, for messages; NULL: a file of the pod */
    const char *source, *destination;
    bool read_only, recursive_read_only;
    bool image;              /* an image as a volume: already mapped to the pod's users; its flags are kept */
    const char *propagation; /* "rprivate", "rslave", "rshared" */
    /*
     * The mount belongs to a device, not to the pod. With a user namespace it keeps the host's ids if its
     * file system (sysfs, devtmpfs) cannot be mapped to the pod's users.
     */
    bool device;
    bool make_source; /* a source that is missing becomes a folder, as in containerd's CRI plugin */
    const struct rt_edit_mount *edit; /* its type and options replace those above; may be NULL */
};

/*
 * Nodes of the host for the container, as in kubelet's DeviceSpec. The host's path may be a link; if it is a
 * folder, all nodes below it are added. With a user namespace, separate nodes are created, owned by the pod's
 * users. Of two devices with the same path in the container, the later one is used.
 */
struct rt_device {
    const char *host_path;
    const char *container_path; /* absolute; "": like the host's */
    const char *permissions;    /* one or more of "rwm" */
};

struct rt_annotation { /* of the OCI specification, for hooks and the runtime */
    const char *name, *value;
};

struct rt_hugepages { /* a page size of the kernel; 0: none may be used */
    char size[16];    /* "2MB", "1GB" */
    int64_t limit;
    bool reserved; /* limit reservations, too: mapping fails rather than access; cgroup v2 */
};

struct rt_config {  /* fully resolved; borrowed until done */
    const char *id; /* 64 hex digits */
    const char *pod_uid, *pod_namespace, *pod_name, *container_name;
    const char *runtime_handler; /* NULL or "": the default */
    unsigned attempt;            /* restart count */
    struct img_image *image;
    const struct api_strs *command, *args; /* expanded; n 0: not given */
    const char *const *env;                /* "K=V"; overrides the image's; NULL-terminated */
    /* Variables of devices, in the form of `env`, which overrides them. kubelet also expands $(NAME) in
     * command and args with them; the caller does that. May be NULL. */
    const char *const *device_env;
    const char *working_dir; /* NULL: the image's */
    const struct api_security *security;
    const struct api_pod_security *pod_security;
    bool seccomp_default; /* RuntimeDefault if no profile is set */
    /* Projects count the containers' disk usage, so the container must not change the project of a file. No
     * effect for a privileged container, or with userns, where the kernel refuses the change. */
    bool keep_projects;
    const char *hostname;              /* HOSTNAME in the environment */
    const char *netns, *ipcns, *utsns; /* paths; NULL: the host's */
    const char *userns;                /* path; NULL: the host's */
    uint32_t first_id, n_ids;          /* with userns: its ids 0..n_ids-1 are first_id and up on the host */
    const char *pidns;                 /* the PID namespace shared by the pod's containers; NULL: its own */
    bool host_pid;
    bool tty, stdin_open, stdin_once;
    const struct rt_device *devices;
    size_t n_devices;
    const struct rt_annotation *annotations; /* of two with the same name the first one is used */
    size_t n_annotations;
    const struct rt_edits *edits; /* by CDI, applied last; may be NULL */
    bool nodes_mounted; /* the nodes of devices and edits are among the mounts; only their cgroup rules are
                           added */
    const struct rt_hugepages *hugepages;
    size_t n_hugepages;
    const char *shm_path;          /* bind-mounted at /dev/shm; NULL: the host's own /dev/shm (hostIPC) */
    const struct rt_mount *mounts; /* those of devices first: at the same place, the later one is on top */
    size_t n_mounts;
    const char *cgroup_path; /* of the container, below the cgroup mounts: "/kubepods/.../<id>" */
    int64_t cpu_shares, cpu_quota_us, memory_limit; /* -1: not set */
    int64_t cpu_period_us;                          /* the quota's period; 0: CG_CPU_PERIOD_US */
    int64_t memory_min, memory_low, memory_high;    /* 0: not set; cgroup v2 */
    int64_t swap_max;        /* in addition to the memory limit; cgroup v2; on v1 always 0 */
    bool oom_group;          /* an OOM kill ends the whole container; cgroup v2 */
    const char *cpus, *mems; /* CPUs and memory nodes, "0-3,7"; NULL: all */
    int oom_score_adj;
    const char *log_path;  /* its folder exists */
    int64_t log_max_bytes; /* per file: then conmon starts the next one; 0: unlimited */
};

/* The OCI runtime specification for a config, as written to config.json (pure, except for reading /etc/passwd
 * and /etc/group below rootfs_fd, never leaving it); unit-testable. */
enum err_code rt_spec_build(const struct rt_host *host, const struct rt_config *c, int rootfs_fd,
                            json_t **ret, struct err *e) MUST_CHECK;

/* Refuses runAsNonRoot with a root user, with kubelet's text. */
enum err_code rt_user_check_non_root(const struct rt_config *c, struct err *e) MUST_CHECK;
/* Creates the folders of the image's volumes in the mounted root rootfs_fd; mounts of the pod or runtime at
 * or above one take precedence. *ret is the config; if the root is to be read-only, it has an additional
 * writable mount for each, with its list in the arena. */
enum err_code rt_volumes_add(const struct rt_config *c, int rootfs_fd, struct arena *arena,
                             struct rt_config *ret, struct err *e) MUST_CHECK;

/* The mounts of c->edits, in place of those with the same destination. *ret is the config with the list in
 * the arena. */
enum err_code rt_edits_add_mounts(const struct rt_config *c, struct arena *arena, struct rt_config *ret,
                                  struct err *e) MUST_CHECK;

bool rt_mount_is_bind(const struct rt_mount *m); /* otherwise its source is not a path of the host */

/* The device nodes that a container gets: of the host if it is privileged, of devices, of edits. */
struct rt_node {
    const char *path; /* in the container */
    char type;        /* 'b', 'c', 'p' */
    bool of_host;     /* added because the container is privileged */
    bool has_mode, has_uid, has_gid;
    uint32_t mode, uid, gid;
    int64_t major, minor;
    const char *access; /* of its rule for the cgroup, from "rwm"; NULL or "": none */
};
struct rt_nodes {
    struct rt_node *v;
    size_t n;
    struct arena arena; /* of paths; the rest is borrowed from the config */
};
/* Accesses the host's paths, which may hang unless they are below /dev. */
enum err_code rt_nodes_collect(const struct rt_config *c, int rootfs_fd, struct rt_nodes *ret,
                               struct err *e) MUST_CHECK;
void rt_nodes_done(struct rt_nodes *nodes);

/* Sets this process' resource limits to those that containers get or inherit; call it before
 * proc_defaults_capture(). */
void rt_limits_own(void);
#endif
