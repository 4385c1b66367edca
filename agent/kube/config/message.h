/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message - from a choice to the message `credentials` (agent/kube/README.md): certificates, keys and tokens
 * read and in place. Blocking (reads files). Any thread.
 *
 *   server            "https://host:port/prefix", without a slash at the end
 *   tlsServerName     the name to check and to send as SNI; absent: that of the server
 *   insecure          true: the server's certificate is not checked
 *   ca                PEM; absent: the system's roots. It also checks an https proxy
 *   certificate, key  PEM; sent only to https servers, as all credentials but those of the server's URL
 *   token             Authorization: Bearer
 *   username, password  Authorization: Basic; never together with token
 *   impersonate       {"user", "uid", "groups": [], "extra": {"key": []}}: Impersonate-* headers
 *   proxyURL          http, https or socks5h (the name goes to the proxy): by the cluster, else by the
 *                     environment; libcurl must not read the environment itself
 *   noCompression     true: no Accept-Encoding
 *   expires           RFC 3339, of an exec plugin's answer
 *   anew              true: a token file or an exec plugin can give others
 */
#ifndef AGENT_KUBE_CONFIG_MESSAGE_H
#define AGENT_KUBE_CONFIG_MESSAGE_H
#include "agent/kube/config/config.h"
#include "agent/kube/config/exec.h"

struct kube_message {      /* { 0 } is empty */
    json_t *json;          /* without "type" */
    struct kube_exec exec; /* argv.n > 0: the plugin has to be asked, then kube_message_answer() */
    struct strs paths;     /* absolute: files that were read, or would have been, to be followed */
    bool token_file;       /* a token came from a file: it is read again after a minute */
};

/* `c` is checked. */
enum err_code kube_message_make(struct kube_message *ret, const struct kube_choice *c,
                                const char *const *environment, struct err *e) MUST_CHECK;
void kube_message_done(struct kube_message *m); /* wipes */
/* Loads, selects, validates and builds the message, as the agent does with the file of --kubeconfig. m->paths
 * contains the files to watch, even after a failure. */
enum err_code kube_message_load(struct kube_message *ret, const char *kubeconfig,
                                const char *const *environment, struct err *e) MUST_CHECK;
/* A copy of m->json with the plugin's answer; a new reference, NULL: out of memory. */
json_t *kube_message_answer(const struct kube_message *m, const struct kube_exec_answer *a);
#endif
