/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reflector - a collection of the apiserver, followed: listed and watched, as client-go's reflector does
 * (pkg/kubelet/config/apiserver.go and staging/src/k8s.io/client-go/tools/cache/reflector.go).
 *
 * WatchList first (one watch with sendInitialEvents; what came before the bookmark with the annotation
 * k8s.io/initial-events-end is one set). Where it fails, list and watch in this round; a server that sends
 * nothing for KUBE_WATCH_LIST_MS does not support it, and it is not requested again. 410 lists anew; a watch
 * that is refused (429, connection refused) is tried again without a list; back-off 800 ms, doubled up to 30
 * s, with jitter, begun again after two minutes without failure; Retry-After is kept, up to
 * KUBE_RETRY_AFTER_MS. A watch ends after a random 300 to 600 s and goes on at its last resourceVersion.
 *
 * It keeps no objects: the uid of each name only, so that after a list `gone` names the missing ones. A set
 * that is suddenly empty while objects were known, or `expected`, is asked for once more with a consistent
 * read (resourceVersion "") before anything is reported as gone. At most `objects_max` objects are accepted;
 * others are left out, with a warning.
 */
#ifndef AGENT_KUBE_CLIENT_REFLECTOR_H
#define AGENT_KUBE_CLIENT_REFLECTOR_H
#include "agent/kube/client/client.h"

/* An object has at most 1.5 MiB (etcd's default for a request), in JSON, where a byte may become "\u0001",
 * six times that: a large pod must not be able to hide the others of a node. */
#define KUBE_EVENT_MAX ((size_t)12 << 20)
#define KUBE_LIST_MAX ((size_t)48 << 20)
#define KUBE_WATCH_LIST_MS 30000
#define KUBE_RETRY_AFTER_MS 60000

struct kube_reflector;

struct kube_reflector_options {
    uv_loop_t *loop;
    struct kube_client *client;
    const char *path;           /* "/api/v1/pods"; copied */
    const char *field_selector; /* not escaped; NULL: none; copied */
    const char *subject;        /* for people: "pods of this node"; copied */
    size_t objects_max;
    bool expected;           /* there were objects before: an empty first set is requested once more as
                              * well */
    uint64_t first_delay_ms; /* before the second try; 0: 800 ms, as client-go */
    /* An object that is new or changed, with apiVersion and kind; borrowed. */
    void (*on_put)(json_t *object, void *arg);
    /* namespace_: "" for objects without. */
    void (*on_gone)(const char *namespace_, const char *name, const char *uid, void *arg);
    /* After the first set, and after each set that followed a list: all that exists was put. */
    void (*on_synced)(void *arg);
    /* Lists or watches fail, or (NULL) they work again. 403 and 404 come here too, and are tried again. May
     * be NULL. */
    void (*on_trouble)(const struct err *why, int http, void *arg);
    void *arg;
};

enum err_code kube_reflector_open(struct kube_reflector **ret, const struct kube_reflector_options *o,
                                  struct err *e) MUST_CHECK;
/* NULL is fine; nothing is called any more; the loop must run until its request has ended. Callable from each
 * of the functions above. */
void kube_reflector_close(struct kube_reflector *r);
bool kube_reflector_is_synced(const struct kube_reflector *r);
#endif
