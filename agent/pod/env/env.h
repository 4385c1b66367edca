/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env - a container's environment and the $(VAR) expansion, by kubelet's rules (pkg/kubelet/kubelet_pods.go,
 * third_party/forked/golang/expansion); the downward API's values.  Pure but for the store and the pod's own
 * state.
 */
#ifndef AGENT_POD_ENV_ENV_H
#define AGENT_POD_ENV_ENV_H
#include "agent/pod/core/pod.h"
#include "base/arena.h"

struct env_var {
    char *name, *value;
};

struct env { /* in order of first definition; lives in the caller's arena */
    struct env_var *v;
    size_t n, cap;
    char **secrets; /* the values that came from Secrets, also those that a later variable replaced */
    size_t n_secrets, cap_secrets;
};

#define ENV_MAX 20000                   /* variables of one container */
#define ENV_BYTES_MAX (4 * 1024 * 1024) /* of one container: the kernel refuses more at exec anyway */

/* ERR_PRECONDITION with kubelet's text when something it refers to is missing ("configmap \"c\" not found").
 */
enum err_code env_build(const struct pod *p, const struct api_container *c, struct arena *a, struct env *ret,
                        struct err *e) MUST_CHECK;
const char *env_get(const struct env *env, const char *name); /* NULL if absent */
/* Expands $(X), $$; unknown ones stay as they are.  *ret_missing (may be NULL): the first unknown or empty
 * name, else NULL.  NULL: too large, or no memory, as env_expand_error() right after it says. */
char *env_expand(const char *text, const struct env *env, struct arena *a, const char **ret_missing);
enum err_code env_expand_error(struct err *e);
/*
 * subPath or the expanded subPathExpr of a mount, cleaned: "./logs/" is "logs", as kubelet joins it; "": the
 * whole volume.  An absolute one stays as it is, to be refused.  *ret_missing as above; NULL: no memory.
 */
const char *env_sub_path(const struct api_volume_mount *m, const struct env *env, struct arena *a,
                         const char **ret_missing);
void env_wipe(struct env *env); /* overwrites the values */

/*
 * Replaces every Secret's value in a text by "***", in place; also a beginning of one at the text's end,
 * where it was cut off.  So are its base64 (also as a part of something longer that was encoded) and its form
 * with JSON's or Go's escapes.  For what the OCI runtime says: it quotes command and paths, into which
 * Secrets may have been expanded.  Values of less than ENV_SECRET_MIN characters stay: they are found in any
 * text.
 */
#define ENV_SECRET_MIN 4
void env_redact(struct env *env, char *text); /* sorts what it knows of Secrets, hence no const */

/* ---- downward.c ----
 * metadata.*, spec.*, status.* of the downward API; ERR_PRECONDITION when it is not known yet, ERR_INVALID
 * when there is no such field. */
enum err_code env_field(const struct pod *p, const char *path, struct arena *a, char **ret,
                        struct err *e) MUST_CHECK;
/* limits.cpu, requests.memory ... of the named container (NULL: `c`), divided and rounded up. */
enum err_code env_resource(const struct pod *p, const struct api_container *c,
                           const struct api_resource_field_ref *ref, struct arena *a, char **ret,
                           struct err *e) MUST_CHECK;
#endif
