/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec - exec credential plugins (k8s.io/client-go/plugin/pkg/client/auth/exec): the input of a plugin, and
 * its answer. Pure; agent/kube/credentials starts it.
 *
 * Environment: the caller's, as with the real client, because that is how administrators configure plugins
 * (AWS_PROFILE, HTTPS_PROXY in the unit's file); then `env` of the kubeconfig, where the last value of a name
 * wins; then KUBERNETES_EXEC_INFO. Variables for the communication between systemd and the daemon
 * (NOTIFY_SOCKET, WATCHDOG_*, LISTEN_*, JOURNAL_STREAM...) are omitted. The plugin is as trusted as the
 * kubeconfig that names it.
 */
#ifndef AGENT_KUBE_CONFIG_EXEC_H
#define AGENT_KUBE_CONFIG_EXEC_H
#include "agent/kube/config/config.h"

#include <stdint.h>

#define KUBE_EXEC_V1 "client.authentication.k8s.io/v1"
#define KUBE_EXEC_V1BETA1 "client.authentication.k8s.io/v1beta1"
/* The extension of a cluster that provideClusterInfo passes on as `config`. */
#define KUBE_EXEC_EXTENSION "client.authentication.k8s.io/exec"
#define KUBE_EXEC_ANSWER_MAX (1024 * 1024)

struct kube_exec {         /* { 0 } is empty */
    struct strs argv, env; /* argv[0] is absolute */
    char *version;         /* apiVersion, which the answer must have */
    char *hint;            /* installHint, without control characters; NULL: none */
};

/* `exec`: the user's field, checked; `cluster`: with certificate-authority-data in place, for
 * provideClusterInfo. ERR_NOT_FOUND: the command is not in PATH; the text has the hint. */
enum err_code kube_exec_make(struct kube_exec *ret, const json_t *exec, const json_t *cluster,
                             const char *const *environment, struct err *e) MUST_CHECK;
void kube_exec_done(struct kube_exec *x);

struct kube_exec_answer { /* { 0 } is empty; texts may be NULL */
    char *token, *certificate, *key;
    int64_t expires_ns; /* wall clock; 0: never */
};
/* JSON or YAML. ERR_INVALID, in the real client's words; never with parts of the answer that may be secret.
 */
enum err_code kube_exec_read(struct kube_exec_answer *ret, const char *text, size_t n, const char *version,
                             struct err *e) MUST_CHECK;
void kube_exec_answer_done(struct kube_exec_answer *a); /* wipes */
#endif
