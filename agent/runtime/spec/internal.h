/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by the files of agent/runtime/spec. */
#ifndef AGENT_RUNTIME_SPEC_INTERNAL_H
#define AGENT_RUNTIME_SPEC_INTERNAL_H
#include "agent/runtime/spec/spec.h"

struct rt_user {
    uint32_t uid, gid;
    uint32_t *gids; /* sorted, unique, with gid; free() */
    size_t n_gids;
    char *home; /* from the image's /etc/passwd, otherwise "/"; free() */
};
void rt_user_done(struct rt_user *u);
/* Uses the texts of the image's /etc/passwd and /etc/group, and modifies them (fuzzed). */
enum err_code rt_user_choose(const struct rt_config *c, char *passwd, char *group, struct rt_user *ret,
                             struct err *e) MUST_CHECK;
enum err_code rt_user_resolve(const struct rt_config *c, int rootfs_fd, struct rt_user *ret,
                              struct err *e) MUST_CHECK;

enum err_code rt_caps_resolve(const struct rt_host *host, const struct api_security *s, uint64_t *ret,
                              struct err *e) MUST_CHECK;
json_t *rt_caps_names(uint64_t caps); /* ["CAP_CHOWN", ...]; NULL: no memory */
int rt_cap_number(const char *name);  /* with or without CAP_, any case; -1: unknown */

/* OCI linux.seccomp for the container; *ret NULL: unconfined. */
enum err_code rt_seccomp_resolve(const struct rt_host *host, const struct rt_config *c, uint64_t caps,
                                 json_t **ret, struct err *e) MUST_CHECK;
struct rt_seccomp_host { /* the host, for conditions in profiles */
    const char *machine; /* uname -m */
    unsigned kernel_major, kernel_minor;
    uint64_t caps;
};
/* Converts a profile in the format of the containers package, Docker or OCI to OCI's. */
enum err_code rt_seccomp_convert(const json_t *profile, const struct rt_seccomp_host *host, json_t **ret,
                                 struct err *e) MUST_CHECK;
/* The architecture and those of its 32-bit programs, as OCI names them; *ret NULL: the machine is unknown. */
enum err_code rt_seccomp_architectures(const char *machine, json_t **ret, struct err *e) MUST_CHECK;

/*
 * Changes a profile in OCI's form so that it refuses the calls by which the owner of a file changes its
 * project (volumes/quota/README.md). All other rules are unchanged. *profile NULL (unconfined) becomes a
 * profile that allows all other calls.
 */
enum err_code rt_seccomp_keep_projects(json_t **profile, const struct rt_seccomp_host *host,
                                       struct err *e) MUST_CHECK;

/* ---- spec_seccomp_split.c ---- */
struct rt_values { /* of an argument: those x with (x & mask) == value */
    uint64_t mask, value;
};
enum {
    RT_WITHOUT_MAX = 4,
    RT_SPLIT_MAX = 32 * RT_WITHOUT_MAX, /* each excluded value is separated by at most 32 bits */
};
/* The values of `in` whose lower 32 bits equal none of `without`, as disjoint sets. Returns the number of
 * sets. */
size_t rt_values_without(struct rt_values in, const uint32_t *without, size_t n,
                         struct rt_values ret[RT_SPLIT_MAX]);

enum err_code rt_mounts_build(const struct rt_host *host, const struct rt_config *c, json_t *ret_mounts,
                              const char **ret_root_propagation, struct err *e) MUST_CHECK;
/* linux.devices and linux.resources.devices. */
enum err_code rt_devices_build(const struct rt_config *c, int rootfs_fd, json_t *ret_devices,
                               json_t *ret_rules, struct err *e) MUST_CHECK;
/* The edits of a specification that do not concern its mounts, devices and environment: hooks, network
 * devices, RDT. */
enum err_code rt_edits_put(const struct rt_host *host, const struct rt_config *c, json_t *spec,
                           struct err *e) MUST_CHECK;
bool rt_same_path(const char *a, const char *b); /* "/a//b/" equals "/a/b" */
/* The options of a mount by CDI; `mapped`: its source is already mapped to the pod's users. NULL: an option
 * is not UTF-8, or no memory. */
json_t *rt_edit_mount_options(const struct rt_mount *m, bool mapped);
json_t *rt_limits_build(void); /* process.rlimits; NULL: no memory */
enum err_code rt_env_build(const struct rt_config *c, const char *home, json_t *ret_list,
                           struct err *e) MUST_CHECK;
enum err_code rt_args_build(const struct rt_config *c, json_t *ret_list, struct err *e) MUST_CHECK;
static inline bool rt_privileged(const struct rt_config *c)
{
    return c->security != NULL && c->security->has_privileged && c->security->privileged;
}
static inline bool rt_read_only_root(const struct rt_config *c)
{
    return c->security != NULL && c->security->has_read_only_root_filesystem &&
           c->security->read_only_root_filesystem;
}
#endif
