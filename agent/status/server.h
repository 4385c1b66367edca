/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - the status socket: HTTP/1.1 + JSON on a unix socket, objects and paths shaped like the Kubernetes
 * API.
 *
 *     GET     /healthz  /readyz  /version
 *     GET     /metrics  /metrics/cadvisor  /metrics/resource  /metrics/probes
 *             Prometheus text, generated in pieces while other requests are answered; /metrics has all names
 *             except those of /metrics/probes
 *     GET     /stats/summary           kubelet's; ?only_cpu_and_memory=; may take half a second
 *     GET     /api/v1/pods  /api/v1/namespaces/{ns}/pods[/{name}]
 *             ?labelSelector= &fieldSelector=metadata.name= &watch=1
 *             ?labelSelector=, and ?fieldSelector= of metadata.name and metadata.namespace, also apply to
 *             all lists below except images and devices
 *     below a pod's path, /api/v1/namespaces/{ns}/pods/{name}:
 *     GET     /log                     ?container= &follow= &previous= &tailLines= &sinceSeconds=
 *             &sinceTime= &timestamps= &limitBytes= &stream=All|Stdout|Stderr
 *     GET     /exec                    ?container= &command= &command= ... &stdin= &stdout= &stderr= &tty=
 *             upgraded to WebSocket, subprotocol v5.channel.k8s.io or v4.channel.k8s.io
 *     GET     /attach                  ?container= &stdin= &stdout= &stderr= &tty=    as for /exec
 *     GET     /portforward             ?port=    as for /exec; one connection, channels 0 and 1;
 *             channel 255 reports that the pod closed its side
 *     GET     /archive                 ?container= &path= &into=    as for /exec; a file or folder as a tar
 *             stream on channel 1; into=true: a tar stream on channel 0 is unpacked there
 *     POST    /restart                 ?container=    restarts all containers, or one, in place;
 *             details.containers of the answer: the runs that end
 *     POST    /ephemeralcontainers     the body is one EphemeralContainer, which is added to the pod for
 *             the rest of its life; the answer is the pod
 *     GET     /api/v1/nodes[/{name}]   this node
 *     GET     /api/v1/configmaps       /api/v1/namespaces/{ns}/configmaps[/{name}]: a list has no values
 *     GET     /api/v1/secrets          /api/v1/namespaces/{ns}/secrets[/{name}]: never values, only "sizes"
 *     GET     /apis/scheduling.k8s.io/v1/priorityclasses[/{name}]
 *     GET     /api/v1/events           /api/v1/namespaces/{ns}/events
 *             ?fieldSelector=involvedObject.name= &watch=1
 *     GET     /apis/apps/v1/deployments  /apis/apps/v1/namespaces/{ns}/deployments[/{name}]
 *             and every other kind of agent/api/schema/kinds.h that a manifest may have, at its path
 *     GET     /explain/{ns}/{name}     the pod's current step, its start, its cause of waiting, the next try
 *     GET     /explain                 the problems of the node
 *     GET     /manifests               the files of the manifest folder and their problems
 *     GET     /placements              processors and memory of containers, by NUMA node: placements.h
 *     GET     /evictions               the decisions made when the node was short of a resource: record.h
 *     GET     /devices[?held=]         of extended resources, and the containers that hold them; held=true:
 *             only held devices
 *     GET     /images[?name=]   POST /images?source=&name=&progress=    DELETE /images?name=
 *             progress=1: lines of JSON, five a second at most, {"step","bytes","layers","ofLayers"};
 *             the last one is the answer, a Status object when it failed
 *     POST    /images/verify?name=     checks every digest; without a name of all images
 *     POST    /images/pin?name=        /images/unpin?name=
 *     POST    /images/tag?name=&as=    adds a name
 *     POST    /images/history?name=    the steps that built the image: image.h
 *     POST    /images/export?name=&file=    writes an OCI archive into the file, which must exist
 *     POST    /images/prune?all=       removes images without a container: those without a name, or all
 *     GET     /configz                 the configuration in use, the source of each value, warnings
 *     GET     /debug/operations
 *     GET     /kubeconfig              of the local API; for root only
 *     GET     /store/object?apiVersion=&kind=&namespace=&name=    for root only: {"object", "mark"}
 *     PUT     /store/object            for root only: an object becomes a file of the manifest folder;
 *     DELETE  /store/object            or its file is removed: write.h of agent/pod/show
 *     GET     /store                   for root only: every object, with the values of Secrets, in the form
 *             of a watch: all as ADDED, a BOOKMARK, then the changes
 *
 * Lists are Kubernetes lists (PodList, EventList); manifests, images, placements and evictions have the form
 * {"items": [...]}.  ?pretty=1 indents any JSON.  A list is sorted by namespace and name.  A watch begins
 * with all matching objects as ADDED; an object that ends before its turn is still sent as DELETED, so that
 * a client that lists after the watch has begun misses no end.  resourceVersions are the server's own and
 * only grow, also across restarts.  The log of a container follows rotation and ends with the container.
 *
 * Permissions, by peer credentials: requests that change something or reach into pods are for uid 0 only;
 * root and members of the socket's group (or the uid of the daemon) may read.  Errors are Kubernetes Status
 * objects.  Bounded: connections, request head and body, the time of a request, a slow reader's backlog (a
 * watch or log follower that is more than 4 MiB behind is closed).  All data comes from a provider: the
 * server knows the socket, not the pods.  Loop thread only.
 */
#ifndef AGENT_STATUS_SERVER_H
#define AGENT_STATUS_SERVER_H
#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

struct status_server;
struct status_reply; /* an answer that is sent later */

/* A process in a container, for a client. */
struct status_exec;       /* the provider's */
struct status_exec_spec { /* borrowed during the call */
    const char *namespace_, *name;
    const char *container;              /* NULL: the annotated default, or the only one */
    const char *const *command;         /* NULL-terminated */
    int stdin_fd, stdout_fd, stderr_fd; /* borrowed; -1: none */
    bool tty;                           /* instead of the three */
    uint16_t port;                      /* forward: to this one, and no command */
    const char *path;                   /* archive: this path; to be written if there is a stdin_fd */
    void *owner;
    void (*on_terminal)(int master_fd, void *owner); /* the server owns it from then on */
    void (*on_started)(void *owner);
    /* Exactly once and never from inside the call. ERR_OK: it ran; ERR_NOT_FOUND and ERR_PERMISSION with
     * exit_code 127 or 126: it could not be started, with the runtime's message. */
    void (*on_done)(const struct err *result, int exit_code, void *owner);
};

enum status_image_verb {
    IMAGE_VERIFY,
    IMAGE_PIN,
    IMAGE_UNPIN,
    IMAGE_PRUNE,
    IMAGE_EXPORT,
    IMAGE_TAG,
    IMAGE_HISTORY
};
struct status_image_task { /* borrowed during the call */
    enum status_image_verb verb;
    const char *name; /* NULL: none was given */
    const char *file; /* of an export; NULL: none was given */
    const char *as;   /* of a tag: the new name; NULL: none was given */
    bool all;
};

/* The connected streams of a container's main process. */
struct status_attached {
    int stream;  /* packets; the first byte of received ones is 2 (standard output) or 3 (standard error) */
    int control; /* for attach_resize() */
    size_t packet_max;
};

enum status_metrics { METRICS_ALL, METRICS_CADVISOR, METRICS_RESOURCE, METRICS_PROBES };

enum status_kind {
    KIND_NODE,
    KIND_CONFIG_MAP,
    KIND_SECRET,
    KIND_PRIORITY_CLASS,
    KIND_IMAGE,
    KIND_DEVICE,
    KIND_DEVICE_HELD, /* only those that pods hold */
    KIND_POD,
    KIND_EVENT,
    KIND_RUNTIME_CLASS,
    KIND_GENERIC /* plus an enum api_kind: kinds for which api_kind_is_generic() is true */
};

struct status_provider { /* results are new references; NULL with *e set is an error */
    void *arg;
    /* The names of all objects of a kind, "namespace/name", where objects without a namespace have ""; events
     * oldest first, devices in the order of the list, others in any order. `listed` returns each of them in
     * the form of lists: ConfigMaps without values. Not for nodes and images. */
    json_t *(*keys)(void *arg, enum status_kind kind, struct err *e);
    json_t *(*listed)(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                      struct err *e);
    /* In Kubernetes' form, with its status. */
    json_t *(*pod)(void *arg, const char *namespace_, const char *name, struct err *e);
    /* Restarts all containers in place, or this one. Returns the runs that are ended: [{"name",
     * "containerID"}]; containers without a run are being created anyway. ERR_PRECONDITION: the pod is not
     * running. ERR_INVALID: there is no such container, or it is an init container or an ephemeral one. */
    json_t *(*pod_restart)(void *arg, const char *namespace_, const char *name,
                           const char *container /* may be NULL */, struct err *e);
    /* Adds an ephemeral container, given as in a Pod, for the life of the pod; returns the pod.
     * ERR_PRECONDITION: the pod accepts none. */
    json_t *(*pod_debug)(void *arg, const char *namespace_, const char *name, json_t *container,
                         struct err *e);
    /* name "": the node itself. */
    json_t *(*explain)(void *arg, const char *namespace_, const char *name, struct err *e);
    json_t *(*manifests)(void *arg, struct err *e);
    json_t *(*evictions)(void *arg, struct err *e);
    json_t *(*placements)(void *arg, struct err *e); /* of NUMA nodes; empty if no policy applies */
    /* The complete object, including values of Secrets, for GET /store. NULL with ERR_NOT_FOUND: it was
     * removed. */
    json_t *(*whole)(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                     struct err *e);
    /* {"object", "mark"}; the object has its resourceVersion. */
    json_t *(*stored)(void *arg, const char *api_version, const char *kind, const char *namespace_,
                      const char *name, struct err *e);
    /* Writes or removes an object; answers later with status_reply_*(). */
    void (*write)(void *arg, json_t *request /* stolen */, bool remove, struct status_reply *r);
    json_t *(*kubeconfig)(void *arg, struct err *e); /* may be NULL */
    json_t *(*config)(void *arg, struct err *e);     /* {"kubeletconfig": {...}, ...} */
    /* An object other than a pod or an event. Values of Secrets are never included: "sizes" has their
     * lengths. With name NULL, only nodes and images: an array of all. */
    json_t *(*objects)(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                       struct err *e);
    json_t *(*ready)(void *arg, bool *ret_ready); /* {"checks":[{"name","ok","message"}]} */
    /* Path of a container's log; previous: of the previous instance. ERR_PRECONDITION (400): `container "c"
     * in pod "p" is waiting to start: ...` */
    enum err_code (*log_path)(void *arg, const char *namespace_, const char *name,
                              const char *container /* NULL: the only one */, bool previous, char *ret,
                              size_t size, bool *ret_running, struct err *e);
    /* Answers later with status_reply_*(). */
    void (*image_add)(void *arg, const char *source, const char *name /* may be NULL */,
                      struct status_reply *r);
    /* The progress of an image_add(): {"step", ...}, new; NULL if unknown. */
    json_t *(*image_progress)(void *arg, const struct status_reply *r);
    void (*image_task)(void *arg, const struct status_image_task *task,
                       struct status_reply *r); /* answers later, too */
    enum err_code (*image_remove)(void *arg, const char *name, struct err *e);
    /* Whether a process can be run in or attached to a container: ERR_NOT_FOUND: no such pod; ERR_INVALID: no
     * such container, or ambiguous; ERR_PRECONDITION: it is not running. */
    enum err_code (*exec_check)(void *arg, const char *namespace_, const char *name, const char *container,
                                bool attach, struct err *e);
    struct status_exec *(*exec)(void *arg, const struct status_exec_spec *spec, struct err *e); /* as above */
    void (*exec_cancel)(struct status_exec *x); /* on_done still follows */
    /* Connects to spec->port of the pod; otherwise like exec. ERR_PRECONDITION: the pod has no network, or
     * has ended. */
    struct status_exec *(*forward)(void *arg, const struct status_exec_spec *spec, struct err *e);
    /* Copies spec->path of a container to or from a tar stream; stderr_fd gets a line for each skipped entry.
     */
    struct status_exec *(*archive)(void *arg, const struct status_exec_spec *spec, struct err *e);
    /* After exec_check(). The server owns the descriptors. `input`: ERR_INVALID if the container has no
     * standard input. */
    enum err_code (*attach)(void *arg, const char *namespace_, const char *name, const char *container,
                            bool input, struct status_attached *ret, struct err *e);
    void (*attach_resize)(int control, unsigned short rows, unsigned short columns);
    /* Prometheus text, appended to `own` (the server's counters; ownership passes to the provider). Answers
     * later with status_reply_text(). */
    void (*metrics)(void *arg, enum status_metrics which, struct buf *own, struct status_reply *r);
    /* kubelet's summary; `basic`: without the slow parts. Answers later with status_reply_*(). */
    void (*stats)(void *arg, bool basic, struct status_reply *r);
};

struct status_options {
    uv_loop_t *loop;
    const char *path; /* /run/coracle/coracle.sock: its folder exists; the leftover socket of a dead daemon is
                         replaced */
    const char *group; /* may read; NULL: root only */
    const struct status_provider *provider;
};

/* Ignores SIGPIPE unless its action was changed. ERR_EXISTS: "another coracle is running on <path>".
 * ERR_PRECONDITION: the path is not a socket. ERR_NOT_FOUND: no such group. */
enum err_code status_server_open(struct status_server **ret, const struct status_options *o,
                                 struct err *e) MUST_CHECK;
/* Closes the connections and removes the socket; the loop must run until its handles are closed. Pending
 * replies are still due. */
void status_server_close(struct status_server *s);

/* A connection with root's rights for a process that is not root: *ret is its end, non-blocking, owned by the
 * caller. It counts among the connections of users other than root. A refusal (503) is read from it. */
enum err_code status_server_lend(struct status_server *s, int *ret, struct err *e) MUST_CHECK;

/* Called by the provider when a pod changed (type "ADDED", "MODIFIED", "DELETED"); sent to watchers whose
 * selector matches. Borrowed. */
void status_server_pod_event(struct status_server *s, const char *type, json_t *pod);
/* Whether there are watchers; otherwise the provider need not build objects. */
bool status_server_has_watchers(const struct status_server *s);
/* The same for events. */
void status_server_event(struct status_server *s, const char *type, json_t *event);
bool status_server_has_event_watchers(const struct status_server *s);
/* The same for the other kinds of GET /store. */
int status_http_code(enum err_code code); /* of an answer with this error */
void status_server_object_event(struct status_server *s, enum status_kind kind, const char *type,
                                json_t *object);
/* A copy of the object with its resourceVersion; NULL: out of memory. */
json_t *status_server_versioned(const struct status_server *s, enum status_kind kind, json_t *object);
bool status_server_is_fed(const struct status_server *s);
/* A container's log has ended or moved to a new file (rotation, restart): followers check again. */
void status_server_log_event(struct status_server *s, const char *namespace_, const char *name);

void status_reply_json(struct status_reply *r, int http_code, json_t *body /* stolen */);
/* 200 with JSON text that was built in pieces; takes ownership. status_reply_is_pretty(): whether the client
 * requested indented JSON. */
void status_reply_json_text(struct status_reply *r, struct buf *text);
bool status_reply_is_pretty(const struct status_reply *r);
void status_reply_text(struct status_reply *r,
                       struct buf *text); /* takes ownership; text->failed: ERR_EXHAUSTED */
void status_reply_err(struct status_reply *r, const struct err *e);
/* Whether root sent the request, which is then answered before others. */
bool status_reply_is_roots(const struct status_reply *r);
/* False: the client has disconnected. The reply is still due. */
bool status_reply_wanted(const struct status_reply *r);
#endif
