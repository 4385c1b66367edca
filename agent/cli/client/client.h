/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client - requests to the daemon: a single request or upgrade at the socket, a watch, the kinds of objects
 * and their paths, and the pod that a command is about.
 *
 * A request opens a new connection and blocks. Functions that return an exit code print failures, with the
 * Status of the answer; those with a `struct err` print nothing.
 */
#ifndef AGENT_CLI_CLIENT_CLIENT_H
#define AGENT_CLI_CLIENT_CLIENT_H
#include "agent/api/schema/kinds.h"
#include "agent/cli/command/command.h"
#include "agent/cli/print/print.h"
#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

/* ---- client.c ---- */
struct cli_response {
    int code;        /* HTTP */
    struct buf body; /* of every answer except a successful stream */
};
#define CLI_BODY_MAX (256u << 20)
#define CLI_RESPONSE_INIT                                                                                    \
    {                                                                                                        \
        .body = BUF_INIT(CLI_BODY_MAX)                                                                       \
    }

/* False: stop reading. */
typedef bool (*cli_data_fn)(const char *data, size_t n, void *arg);

/* One request. `patient`: no time limit for the answer. `on_data` gets the body of a code 200 as it arrives;
 * NULL: it is kept. ERR_UNAVAILABLE: no daemon, or the connection was lost. */
enum err_code cli_request(struct cli *cli, const char *method, const char *url, bool patient,
                          cli_data_fn on_data, void *arg, struct cli_response *ret, struct err *e) MUST_CHECK;
/* The same with a JSON body, which may have secrets: the sent text is wiped. The answer is kept. */
enum err_code cli_send(struct cli *cli, const char *method, const char *url, const json_t *body,
                       struct cli_response *ret, struct err *e) MUST_CHECK;
/* Requests a WebSocket with one of these subprotocols. Returns a descriptor, and bytes received after the
 * handshake in *ret_rest; -1 with *e unset: refused, see *ret; -1 with *e: failed. */
int cli_upgrade(struct cli *cli, const char *url, const char *subprotocols, struct cli_response *ret,
                struct buf *ret_rest, struct err *e) MUST_CHECK;
/* GET of a JSON document; on failure prints the error and returns NULL. *ret_code: the exit code; may be
 * NULL. */
json_t *cli_get(struct cli *cli, const char *url, int *ret_code);
/* the same for any method */
json_t *cli_call(struct cli *cli, const char *method, const char *url, int *ret_code);
json_t *cli_post(struct cli *cli, const char *url, const json_t *body, int *ret_code); /* of this JSON */
/* Prints "Error from server (NotFound): pods "x" not found"; returns the exit code. */
int cli_server_error(struct cli *cli, const struct cli_response *r);
int cli_status_error(struct cli *cli, const json_t *status); /* the same of a Status; NULL: out of memory */
void cli_add_pod_path(struct buf *b, const char *namespace_, const char *name);

/* ---- watch.c ---- */
/* Follows a watch until fn returns false. ERR_UNAVAILABLE: the connection was lost first. A code other than
 * 200 in *ret: it was refused. */
typedef bool (*cli_change_fn)(const char *type, json_t *object, void *arg);
enum err_code cli_follow(struct cli *cli, const char *url, cli_change_fn fn, void *arg,
                         struct cli_response *ret, struct err *e) MUST_CHECK;
/* the same; returns the exit code */
int cli_watch(struct cli *cli, const char *url, cli_change_fn fn, void *arg);
/* A watch of a pod that has just ended reports nothing: end it after this time (until_ms) and check. */
enum { CLI_LOOK_AGAIN_MS = 5000 };
bool cli_pod_is_there(struct cli *cli, const char *namespace_, const char *name); /* or if unknown */

/* ---- kinds.c ---- */
/* What `get all` means: of kubectl's category what there is. */
#define CLI_KINDS_OF_ALL "pods,services,daemonsets,deployments,replicasets,statefulsets"
extern const char *const cli_pod_kinds[], *const cli_node_kinds[];
/* "cm", "configmaps/web", "deployments.apps", "deployment.v1.apps"; what the socket has; API_KINDS: images;
 * may be NULL */
const struct api_kind_row *cli_kind_find(const char *word);
bool cli_is_kind(const char *word,
                 const char *const *kinds); /* "pods" or "pods/web" among { "pods", NULL } */
/* The name in "pod/web" or "web" for a kind with these names; NULL for another kind. */
const char *cli_resource_name(const char *word, const char *const *kinds);
int cli_unknown_kind(
    struct cli *cli, const char *word,
    const char *more /* ", events": other kinds that the command knows */); /* prints the error; EXIT_USAGE */
/* namespace_ NULL: all; name NULL: the list. */
void cli_add_kind_path(struct buf *url, const struct api_kind_row *kind, const char *namespace_,
                       const char *name);
/* One object, or an array of all; NULL with *ret_code after printing the error. */
json_t *cli_get_one(struct cli *cli, const struct api_kind_row *kind, const char *namespace_,
                    const char *name, int *ret_code);
struct cli_selectors {
    const char *labels, *fields; /* NULL: none */
};
json_t *cli_get_all(struct cli *cli, const struct api_kind_row *kind, const char *namespace_,
                    const struct cli_selectors *selectors /* may be NULL */, int *ret_code);

/* ---- targets.c: the objects that a command names or selects ---- */
struct cli_target {
    const struct api_kind_row *kind;
    char *name;       /* owned */
    char *namespace_; /* owned; NULL: the kind has none */
};
struct cli_targets {
    struct cli_target *v;
    size_t n;
};
struct cli_choice {
    const char *namespace_;
    const char *selector; /* NULL: none */
    const char *fields;   /* field selector; NULL: none */
    bool all;             /* of a kind */
    bool everywhere;      /* all namespaces; only with a selector, fields or `all` */
    bool only_pods;       /* "web" is a pod, other kinds are refused */
    bool kinds;           /* a name without a kind is an error, not a pod */
};
/* "pods web db", "pod/web cm/settings", "web" for a pod; with a selector or `all` "pods", "pods,cm": those
 * that exist. EXIT_OK, or an error was printed. Nothing selected: n is 0. */
int cli_targets(struct cli *cli, const struct cli_command *command, const struct cli_choice *choice, int argc,
                char **argv, struct cli_targets *ret);
int cli_targets_add(struct cli *cli, struct cli_targets *t, const struct api_kind_row *kind,
                    const char *namespace_ /* NULL for a kind that has none */, const char *name);
void cli_targets_done(struct cli_targets *t);
/* "deployment.apps/web": as kubectl names an object; "" if it is too long. */
#define CLI_FULL_NAME_SIZE 400
void cli_full_kind(const struct api_kind_row *kind, char ret[CLI_FULL_NAME_SIZE]); /* "deployment.apps" */
void cli_full_name(const struct api_kind_row *kind, const char *name, char ret[CLI_FULL_NAME_SIZE]);

/* ---- one_pod.c ---- */
/* For commands for one pod: "pod web", "pod/web", "web". False: return *ret. */
bool cli_parse_one_pod(struct cli *cli, const struct cli_command *command, void *options, int argc,
                       char **argv, const char **ret_name, int *ret);
int cli_no_pod(struct cli *cli, const char *word); /* for "svc/web": prints the error; EXIT_USAGE */
/* NULL after printing the error and a suggestion. */
json_t *cli_get_pod(struct cli *cli, const char *namespace_, const char *name, int *ret_code);
const json_t *cli_find_container(const json_t *pod, const char *name); /* may be NULL */
/* prints the error; EXIT_NOT_FOUND */
int cli_no_container(struct cli *cli, const char *name, const char *pod);
/* The pod's default container, or its first; prints its name if there are several. Borrowed. */
const char *cli_choose_container(struct cli *cli, const json_t *pod);

/* ---- pod_of.c ---- */
/* The pod of "web", "pod/web", or a pod of "deployment/web", "statefulset/db" ...: then *ret_made is set,
 * which the caller frees, and if there are several pods, a note names the chosen one. NULL: an error was
 * printed. */
const char *cli_pod_of(struct cli *cli, const char *word, const char *namespace_, char **ret_made,
                       int *ret_code);

/* ---- hints.c ---- */
/* After a pod was not found: suggests a similar name, or the same name in another namespace. */
void cli_hint_pod(struct cli *cli, const char *namespace_, const char *name);
#endif
