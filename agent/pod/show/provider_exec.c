/* SPDX-License-Identifier: Apache-2.0 */
/* Processes in containers, their streams and ports of pods, for clients of the status socket. */
#include "agent/pod/container/container.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/show/internal.h"
#include "agent/pod/show/provider.h"
#include "agent/runtime/exec.h"
#include "agent/runtime/stream.h"
#include "base/log.h"

#include <string.h>

struct status_exec {
    struct node *node;
    struct op *op; /* one of these */
    union {
        struct rt_exec x;
        struct proc helper; /* for a port or an archive */
    };
    void *owner;
    void (*on_terminal)(int master_fd, void *owner);
    void (*on_started)(void *owner);
    void (*on_done)(const struct err *result, int exit_code, void *owner);
    TAILQ_ENTRY(status_exec) link;
};

/* A container being stopped still accepts processes, as under kubelet. */
static struct ctr *find_running(struct node *n, const char *namespace_, const char *name,
                                const char *container, bool attach, struct err *e)
{
    struct pod *p = pods_find(n, namespace_, name);
    struct ctr *c;

    if (p == NULL) {
        err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", name);
        return NULL;
    }
    c = provider_find_container(p, container, e);
    if (c == NULL)
        return NULL;
    if (p->state == POD_TERMINATED) {
        err_set(e, ERR_PRECONDITION, "cannot %s a container in a completed pod; current phase is %s",
                attach ? "attach to" : "exec into", pod_phase(p));
        return NULL;
    }
    if (c->state != CTR_RUNNING && c->state != CTR_STOPPING) {
        const char *why = c->waiting_reason[0] != '\0'               ? c->waiting_reason
                          : c->cur.ended && c->cur.reason[0] != '\0' ? c->cur.reason
                                                                     : "ContainerCreating";

        err_set(e, ERR_PRECONDITION, "container \"%s\" in pod \"%s\" is not running: %s", c->spec->name, name,
                why);
        return NULL;
    }
    return c;
}

enum err_code provider_exec_check(void *arg, const char *namespace_, const char *name, const char *container,
                                  bool attach, struct err *e)
{
    (void)(find_running(arg, namespace_, name, container, attach, e) != NULL);
    return e->code;
}

static void on_terminal(int master_fd, void *owner)
{
    struct status_exec *x = owner;

    x->on_terminal(master_fd, x->owner);
}

static void provider_exec_on_started(void *owner)
{
    struct status_exec *x = owner;

    x->on_started(x->owner);
}

static void provider_exec_on_done(struct op *op, const struct err *result)
{
    struct status_exec *x = op->owner;

    TAILQ_REMOVE(&show_node(x->node)->execs, x, link);
    x->on_done(result, x->x.exit_code, x->owner);
    free(x);
}

struct status_exec *provider_exec(void *arg, const struct status_exec_spec *spec, struct err *e)
{
    struct node *n = arg;
    struct ctr *c = find_running(n, spec->namespace_, spec->name, spec->container, false, e);
    struct status_exec *x;

    if (c == NULL)
        return NULL;
    if (n->closing) {
        err_set(e, ERR_UNAVAILABLE, "the agent is shutting down");
        return NULL;
    }
    x = calloc(1, sizeof(*x));
    if (x == NULL) {
        err_nomem(e);
        return NULL;
    }
    *x = (struct status_exec){ .node = n,
                               .owner = spec->owner,
                               .on_terminal = spec->on_terminal,
                               .on_started = spec->on_started,
                               .on_done = spec->on_done };
    log_info("running a process in a container", F_STR("pod", spec->name),
             F_STR("namespace", spec->namespace_),
             /* Access to a container is worth logging; the command is private. */
             F_STR("containerName", c->spec->name));
    TAILQ_INSERT_TAIL(&show_node(n)->execs, x, link);
    x->op = &x->x.op;
    const struct rt_exec_spec rt = { .id = c->cur.id,
                                     .argv = spec->command,
                                     .stdin_fd = spec->stdin_fd,
                                     .stdout_fd = spec->stdout_fd,
                                     .stderr_fd = spec->stderr_fd,
                                     .tty = spec->tty,
                                     .on_terminal = on_terminal,
                                     .on_started = provider_exec_on_started };
    rt_exec_start(&x->x, n->rt, &rt, provider_exec_on_done, x);
    return x;
}

/* ---- a port ---- */

static void on_helper_done(struct op *op, const struct err *result)
{
    struct status_exec *x = op->owner;
    struct err shown = *result;

    if (result->code != ERR_OK && x->helper.err_out.n > 0) { /* its own message is sufficient */
        snprintf(shown.text, sizeof(shown.text), "%s", x->helper.err_out.p);
        shown.text[strcspn(shown.text, "\n")] = '\0';
    }
    TAILQ_REMOVE(&show_node(x->node)->execs, x, link);
    x->on_done(&shown, 0, x->owner);
    free(x);
}

struct status_exec *provider_forward(void *arg, const struct status_exec_spec *spec, struct err *e)
{
    struct node *n = arg;
    struct pod *p = pods_find(n, spec->namespace_, spec->name);
    struct rt_forward_spec forward = { .port = spec->port, .in = spec->stdin_fd, .out = spec->stdout_fd };
    struct status_exec *x;

    if (p == NULL) {
        err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", spec->name);
        return NULL;
    }
    if (n->closing || p->state == POD_TERMINATED || (!p->api->spec.host_network && !sandbox_ready(p))) {
        err_set(e, ERR_PRECONDITION, "pod %s has no network: it is %s", spec->name, pod_phase(p));
        return NULL;
    }
    x = calloc(1, sizeof(*x));
    if (x == NULL) {
        err_nomem(e);
        return NULL;
    }
    x->node = n;
    x->op = &x->helper.op;
    x->owner = spec->owner;
    x->on_done = spec->on_done;
    forward.netns = p->api->spec.host_network ? NULL : sandbox_netns_path(p);
    TAILQ_INSERT_TAIL(&show_node(n)->execs, x, link);
    rt_forward_start(&x->helper, n->rt, &forward, on_helper_done, x);
    return x;
}

/* ---- files ---- */

struct status_exec *provider_archive(void *arg, const struct status_exec_spec *spec, struct err *e)
{
    struct node *n = arg;
    struct ctr *c = find_running(n, spec->namespace_, spec->name, spec->container, false, e);
    struct rt_archive_spec archive = {
        .path = spec->path, .in = spec->stdin_fd, .out = spec->stdout_fd, .messages = spec->stderr_fd
    };
    struct status_exec *x = c != NULL && !n->closing ? calloc(1, sizeof(*x)) : NULL;

    if (x == NULL) {
        if (c != NULL)
            err_set(e, ERR_UNAVAILABLE, "the agent is shutting down, or out of memory");
        return NULL;
    }
    archive.id = c->cur.id;
    x->node = n;
    x->op = &x->helper.op;
    x->owner = spec->owner;
    x->on_done = spec->on_done;
    log_info("copying files of a container", F_STR("pod", spec->name), F_STR("namespace", spec->namespace_),
             F_STR("containerName", c->spec->name));
    if (rt_archive_start(&x->helper, n->rt, &archive, on_helper_done, x, e) != ERR_OK) {
        free(x);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&show_node(n)->execs, x, link);
    return x;
}

/* ---- the streams of the first process ---- */

enum err_code provider_attach(void *arg, const char *namespace_, const char *name, const char *container,
                              bool input, struct status_attached *ret, struct err *e)
{
    struct node *n = arg;
    struct ctr *c = find_running(n, namespace_, name, container, true, e);
    struct rt_attach a;

    if (c == NULL)
        return e->code;
    if (input && !c->spec->stdin_open)
        return err_set(e, ERR_INVALID,
                       "container %s accepts no input: its manifest does not have stdin: true",
                       c->spec->name);
    if (rt_attach(n->rt, c->cur.id, &a, e) != ERR_OK)
        return e->code;
    log_info("attaching a client to a container", F_STR("pod", name), F_STR("namespace", namespace_),
             F_STR("containerName", c->spec->name));
    *ret =
        (struct status_attached){ .stream = a.stream, .control = a.control, .packet_max = RT_ATTACH_PACKET };
    return ERR_OK;
}

/* ---- the end ---- */

void provider_exec_cancel(struct status_exec *x)
{
    op_cancel(x->op);
}

void provider_exec_cancel_all(struct node *n)
{
    struct status_exec *x;

    TAILQ_FOREACH (x, &show_node(n)->execs, link)
        op_cancel(x->op);
}
