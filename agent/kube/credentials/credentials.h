/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials - the daemon's side of how a node reaches its apiserver: the message `credentials` of
 * agent/kube/README.md, made from a kubeconfig file and the files that it names, and made again when those
 * change.
 *
 * Files are read on the pool, with the bounds of agent/kube/config, and followed by inotify; token files are
 * read again after a minute as well, as the real client does (a file system may have no inotify). An exec
 * plugin runs as a child in the cgroup leaf `ops`, as root, with KUBE_EXEC_MS; its answer is kept until it
 * expires. A failure is tried again with back-off (1 s to 1 min) and when a file changes; the credentials of
 * before stay in force.
 *
 * With a bootstrap file (TLS bootstrap, kubelet's --bootstrap-kubeconfig): while the kubeconfig file, or the
 * certificate that it names, is missing or cannot be read, and after kube_credentials_anew("expired") on its
 * certificate, the message has the credentials of the bootstrap file and `bootstrap`: true. They serve only
 * to request a certificate; kube_credentials_issued() then writes it, and the next message has it.
 *
 * Loop thread only.
 */
#ifndef AGENT_KUBE_CREDENTIALS_CREDENTIALS_H
#define AGENT_KUBE_CREDENTIALS_CREDENTIALS_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

/* kubelet sets no deadline for an exec plugin; a plugin that talks to a cloud may take its time. */
#define KUBE_EXEC_MS 60000

struct kube_credentials;

struct kube_credentials_options { /* texts are copied, but for cgroup_procs */
    uv_loop_t *loop;
    const char *kubeconfig; /* absolute */
    const char *bootstrap;  /* absolute; NULL or "": no TLS bootstrap */
    const char *cert_dir;   /* absolute */
    /* rotateCertificates: as kubelet, the kubeconfig file is written as soon as TLS bootstrap begins, and not
     * only when a certificate was issued. */
    bool rotate;
    /* The daemon's environment ("K=V", NULL-terminated): for HTTPS_PROXY and NO_PROXY, and for exec plugins
     * (agent/kube/config/exec.h lists the variables that they do not get). */
    const char *const *environment;
    int cgroup_fd;            /* of exec plugins, as in base/process/process.h; -1: none */
    const char *cgroup_procs; /* likewise; borrowed until the end */
    /* A message, without its member "type": never the same twice in a row; borrowed. */
    void (*on_credentials)(const json_t *message, void *arg);
    /* It cannot be made, or not made anew; NULL: it can again. Logged once for the same text. */
    void (*on_trouble)(const struct err *why, void *arg);
    void *arg;
};

/* Begins; the callbacks come from the loop. Fails only when out of memory. */
enum err_code kube_credentials_open(struct kube_credentials **ret, const struct kube_credentials_options *o,
                                    struct err *e) MUST_CHECK;
/* NULL is fine. Nothing is called any more; the rest closes during the loop's next turns, a plugin that runs
 * is ended. */
void kube_credentials_close(struct kube_credentials *c);

/* The latest message, for a coracle-kube that was just started; borrowed; NULL: there is none yet. */
const json_t *kube_credentials_message(const struct kube_credentials *c);

/* The message `anew` of coracle-kube: its credentials have expired or are not accepted. Files are read again,
 * an exec plugin runs again (not more often than once a second). */
void kube_credentials_anew(struct kube_credentials *c, const char *why);

/* The message `certificate` of coracle-kube (agent/kube/credentials/pki.h): written to cert_dir on the pool;
 * then, for the client certificate, the kubeconfig file is written where TLS bootstrap is under way, and new
 * credentials follow. `done` is called from the loop, unless NULL. */
void kube_credentials_issued(struct kube_credentials *c, const json_t *certificate,
                             void (*done)(const struct err *result, void *arg), void *arg);
#endif
