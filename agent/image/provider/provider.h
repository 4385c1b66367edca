/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider - image credential providers: programs that provide credentials for registries, by kubelet's exec
 * plugin API (kubelet.config.k8s.io CredentialProviderConfig, credentialprovider.kubelet.k8s.io
 * CredentialProviderRequest and Response; pkg/credentialprovider/plugin).
 *
 * A provider is called if one of its matchImages matches the image (image_glob.h) and no answer is cached. It
 * runs with our user and environment and its own `env`, gets the request on standard input and must answer
 * within a minute. Providers are called one after another in the order of their names, as kubelet does. A
 * failure is logged, and the pull continues with the answers of the other providers.
 *
 * Answers are cached in memory only, for the duration and the images that they specify: at most
 * PROVIDER_CACHE_MAX answers and PROVIDER_CACHE_BYTES in total; the oldest are dropped first. Freed answers
 * are overwritten. Loop thread only.
 */
#ifndef AGENT_IMAGE_PROVIDER_PROVIDER_H
#define AGENT_IMAGE_PROVIDER_PROVIDER_H
#include "base/process/process.h"
#include "base/scope.h"

#include <jansson.h>
#include <stdbool.h>

#define PROVIDER_CONFIG_MAX (1024u * 1024)
#define PROVIDER_MAX 100 /* of a configuration */
#define PROVIDER_ANSWER_MAX (256u * 1024)
#define PROVIDER_AUTHS_MAX 100  /* entries of an answer; a cloud's has one to ten */
#define PROVIDER_CACHE_MAX 1000 /* answers */
#define PROVIDER_CACHE_BYTES (16u * 1024 * 1024)
#define PROVIDER_DEADLINE_MS 60000 /* kubelet's pluginExecTimeout */

struct provider_set;

/* Reads the configuration and searches its programs in `bin_dir`. Blocks: at the start only. `environment`:
 * NULL-terminated, copied. ERR_INVALID names the file, the field and the allowed values. */
enum err_code provider_set_open(struct provider_set **ret, const char *file, const char *bin_dir,
                                const char *const *environment, struct err *e) MUST_CHECK;
void provider_set_free(struct provider_set *s); /* NULL is fine; no ask may be in progress */
SCOPE_DEFINE(struct provider_set, provider_set_free)

struct provider_ask { /* initialize to { 0 } */
    struct proc proc;
    json_t *configs; /* in done: [{"auths":{...}}], Docker configurations for registry_auth.h; may be NULL */
    struct err problem; /* in done: the error of the last provider that failed; ERR_OK: none failed */
    /* private */
    struct provider_set *set;
    const struct provider_ask_options *options;
    size_t next;
    bool running, cancelled;
};

struct provider_ask_options { /* borrowed until done */
    uv_loop_t *loop;
    const char *repository; /* normalised, without tag and digest */
    int cgroup_fd;          /* as in struct proc_spec */
    const char *cgroup_procs;
    void (*done)(struct provider_ask *a);
};

/* done() is called once; immediately if no program has to run. The programs' errors are logged here. */
void provider_ask_start(struct provider_ask *a, struct provider_set *set,
                        const struct provider_ask_options *o);
void provider_ask_cancel(
    struct provider_ask *a);                    /* done() follows soon; no effect if nothing is in progress */
void provider_ask_done(struct provider_ask *a); /* overwrites the answers */
#endif
