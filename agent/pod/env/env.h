/* SPDX-License-Identifier: Apache-2.0 */
/* env - a container's environment and $(VAR) expansion, by kubelet's rules (pkg/kubelet/kubelet_pods.go,
 * third_party/forked/golang/expansion); the downward API's values. Pure, except for reading the store and the
 * pod's state. */
#ifndef AGENT_POD_ENV_ENV_H
#define AGENT_POD_ENV_ENV_H
#include "agent/pod/core/pod.h"
#include "base/arena.h"

struct env_var {
    char *name, *value;
};

struct env { /* in order of first definition; allocated in the caller's arena */
    struct env_var *v;
    size_t n, cap;
    const struct service_env *services; /* while it is built: $(X) may name them, too; otherwise NULL */
    char **secrets; /* all values from Secrets, including those replaced by a later variable */
    size_t n_secrets, cap_secrets;
};

#define ENV_MAX 20000                   /* variables per container */
#define ENV_BYTES_MAX (4 * 1024 * 1024) /* per container: the kernel does not allow more at exec anyway */

/* envFrom, env, and the variables of Services (service_env.h) whose names those leave free. ERR_PRECONDITION
 * with kubelet's text if a referenced object is missing ("configmap \"c\" not found"), or if the Services are
 * not known yet, which only pods of the manifest folder do not wait for. */
enum err_code env_build(const struct pod *p, const struct api_container *c, struct arena *a, struct env *ret,
                        struct err *e) MUST_CHECK;
const char *env_get(const struct env *env, const char *name); /* NULL if absent */
/* Expands $(X), $$; unknown ones are unchanged. *ret_missing (may be NULL): the first unknown or empty name,
 * or NULL. NULL: too large, or out of memory; call env_expand_error() right afterwards. */
char *env_expand(const char *text, const struct env *env, struct arena *a, const char **ret_missing);
enum err_code env_expand_error(struct err *e);
enum err_code env_too_large(struct err *e); /* sets ERR_INVALID, with both limits in the text */
/* subPath or the expanded subPathExpr of a mount, cleaned: "./logs/" is "logs", as joined by kubelet; "":
 * the whole volume. An absolute one is unchanged, to be rejected. *ret_missing as above; NULL when out of
 * memory. */
const char *env_sub_path(const struct api_volume_mount *m, const struct env *env, struct arena *a,
                         const char **ret_missing);
void env_wipe(struct env *env); /* overwrites the values */

/*
 * Replaces every Secret's value in a text with "***", in place; also a truncated one at the text's end, its
 * base64 (even as a part of a longer encoded text) and its form with JSON's or Go's escapes. For messages of
 * the OCI runtime, which quote command and paths that may contain expanded Secrets. Values shorter than
 * ENV_SECRET_MIN are kept: they occur in any text.
 */
#define ENV_SECRET_MIN 4
void env_redact(struct env *env, char *text); /* sorts its list of Secrets, hence not const */

/* ---- downward.c ---- metadata.*, spec.*, status.* of the downward API; ERR_PRECONDITION when it is not
 * known yet, ERR_INVALID when there is no such field. */
enum err_code env_field(const struct pod *p, const char *path, struct arena *a, char **ret,
                        struct err *e) MUST_CHECK;
/* limits.cpu, requests.memory ... of the named container (NULL: `c`), divided and rounded up. */
enum err_code env_resource(const struct pod *p, const struct api_container *c,
                           const struct api_resource_field_ref *ref, struct arena *a, char **ret,
                           struct err *e) MUST_CHECK;
#endif
