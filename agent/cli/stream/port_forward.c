/* SPDX-License-Identifier: Apache-2.0 */
/* port-forward - forwards local ports to ports of a pod. This process listens; each connection is a child
 * with its own stream, so that they are independent. */
#include "agent/cli/stream/internal.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/scope.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LISTENERS_MAX = 64, PAUSE_MS = 1000 };

struct listener {
    int fd;
    uint16_t local, remote;
};

struct forward {
    struct cli *cli;
    const char *namespace_, *addresses;
    const char *pod;
    struct listener v[LISTENERS_MAX];
    size_t n;
    int over[2]; /* a pipe: writing an exit code to it ends everything */
};

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct forward, namespace_, "the pod's namespace (default)"),
    { "address", 0, FLAG_TEXT, offsetof(struct forward, addresses), "ADDRESS[,...]",
      "addresses to listen on; localhost: 127.0.0.1 and ::1 (default)" },
    CLI_FLAGS_END,
};

/* ---- listening ---- */

/* *port 0: any; set to the actual one. */
static int listen_at(const char *address, uint16_t *port, struct err *e)
{
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(*port) };
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(*port) };
    bool is_v6 = inet_pton(AF_INET6, address, &v6.sin6_addr) == 1;
    struct sockaddr *to = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t size = is_v6 ? sizeof(v6) : sizeof(v4);
    fd_auto fd = -1;
    int on = 1;

    if (!is_v6 && inet_pton(AF_INET, address, &v4.sin_addr) != 1) {
        err_set(e, ERR_INVALID, "--address: \"%s\" is neither an IP address nor localhost", address);
        return -1;
    }
    fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && is_v6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, to, size) != 0 || listen(fd, 128) != 0 || getsockname(fd, to, &size) != 0) {
        err_sys(e, errno, "listen on %s port %u", address, *port);
        return -1;
    }
    *port = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
    return take_fd(&fd);
}

static bool add_listener(struct forward *f, const char *address, uint16_t *local, uint16_t remote,
                         struct err *e)
{
    bool v6 = strchr(address, ':') != NULL;
    int fd;

    if (f->n == LISTENERS_MAX) {
        err_set(e, ERR_INVALID, "too many ports and addresses: at most %d", LISTENERS_MAX);
        return false;
    }
    fd = listen_at(address, local, e);
    if (fd < 0)
        return false;
    f->v[f->n++] = (struct listener){ fd, *local, remote };
    cli_print(f->cli, "Forwarding from %s%s%s:%u -> %u\n", v6 ? "[" : "", address, v6 ? "]" : "", *local,
              remote);
    return true;
}

/* As in kubectl, one of localhost's two addresses is enough. */
static bool listen_localhost(struct forward *f, uint16_t *local, uint16_t remote, struct err *e)
{
    bool v4 = add_listener(f, "127.0.0.1", local, remote, e);

    return add_listener(f, "::1", local, remote, v4 ? ERR_IGNORED : e) || v4;
}

static bool listen_all(struct forward *f, uint16_t local, uint16_t remote, struct err *e)
{
    str_auto addresses = strdup(f->addresses);
    char *save = NULL;

    for (char *a = strtok_r(addresses, ",", &save); a != NULL; a = strtok_r(NULL, ",", &save))
        if (strcmp(a, "localhost") == 0 ? !listen_localhost(f, &local, remote, e)
                                        : !add_listener(f, a, &local, remote, e))
            return false;
    return true;
}

/* "8080:80", "80" (the same locally), ":80" (any local port) */
/* The container's port of this name; init containers count, too, since sidecars are among them. 0: none. */
static uint16_t named_port(const json_t *pod, const char *name)
{
    static const char *const lists[] = { "spec.containers", "spec.initContainers" };
    const json_t *container, *port;
    size_t i, k;

    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        json_array_foreach (cli_at(pod, lists[l]), i, container) {
            json_array_foreach (cli_at(container, "ports"), k, port)
                if (name[0] != '\0' && strcmp(cli_text(port, "name"), name) == 0)
                    return (uint16_t)cli_number(port, "containerPort");
        }
    }
    return 0;
}

/* "8080:80", "80", ":80", "8080:http", "http": as for kubectl, a name alone has the same local number. */
static enum err_code parse_ports(const json_t *pod, const char *text, uint16_t *ret_local,
                                 uint16_t *ret_remote, struct err *e)
{
    const char *colon = strchr(text, ':'), *remote_text = colon != NULL ? colon + 1 : text;
    str_auto local_text = strndup(text, colon != NULL ? (size_t)(colon - text) : strlen(text));
    uint64_t local = 0, remote = named_port(pod, remote_text);

    if (local_text == NULL)
        return err_nomem(e);
    if (remote == 0 && remote_text[0] != '\0' && (remote_text[0] < '0' || remote_text[0] > '9'))
        return err_set(e, ERR_INVALID, "%s: no container of the pod has a port with the name \"%s\"", text,
                       remote_text);
    if (remote == 0 && parse_u64(remote_text, 1, UINT16_MAX, &remote, "remote port", e) != ERR_OK)
        return err_wrap(e, "%s", text);
    if (colon == NULL)
        local = remote;
    else if (local_text[0] != '\0' && parse_u64(local_text, 0, UINT16_MAX, &local, "local port", e) != ERR_OK)
        return err_wrap(e, "%s", text);
    *ret_local = (uint16_t)local;
    *ret_remote = (uint16_t)remote;
    return ERR_OK;
}

/* ---- children ---- */

/* Starts a child that ends with this process and has none of its listeners. */
static pid_t start_child(const struct forward *f)
{
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_ERROR);
    for (size_t i = 0; i < f->n; i++)
        close(f->v[i].fd);
    return 0;
}

static void end_all(const struct forward *f, int code)
{
    const unsigned char byte = (unsigned char)code;

    ERR_IGNORE(write(f->over[1], &byte, 1)); /* it is read, or the reader is gone */
}

static int serve(const struct forward *f, int fd, uint16_t remote)
{
    buf_auto url = BUF_INIT(64 * 1024);

    cli_add_pod_path(&url, f->namespace_, f->pod);
    buf_addf(&url, "/portforward?port=%u", remote);
    return exec_stream(&(struct exec_session){ .cli = f->cli, .input = fd, .output = fd, .terminal = -1 },
                       url.p);
}

/* False: no descriptor or memory available now. */
static bool take_connection(const struct forward *f, const struct listener *l)
{
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC), code;
    pid_t pid;

    if (fd < 0)
        return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
    cli_print(f->cli, "Handling connection for %u\n", l->local);
    cli_flush(f->cli);
    pid = start_child(f);
    if (pid == 0) {
        code = serve(f, fd, l->remote);
        if (code == EXIT_NOT_FOUND)
            end_all(f, code);
        _exit(code);
    }
    if (pid < 0)
        cli_error(f->cli, "connection for %u: fork: %s", l->local, strerror(errno));
    close(fd);
    return true;
}

/* ---- the pod ---- */

struct look {
    const char *uid;
    int code; /* EXIT_OK: the pod is running */
    char phase[32];
};

static bool port_forward_on_change(const char *type, json_t *pod, void *arg)
{
    const char *phase = cli_text(pod, "status.phase");
    struct look *l = arg;

    if (strcmp(type, "DELETED") == 0 || strcmp(cli_text(pod, "metadata.uid"), l->uid) != 0) {
        l->code = EXIT_NOT_FOUND;
    } else if (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0) {
        l->code = EXIT_ERROR;
        snprintf(l->phase, sizeof(l->phase), "%s", phase);
    }
    return l->code == EXIT_OK;
}

/* The pod outlives the daemon: while the daemon is away, nothing is known and forwarding continues. */
static void look_after(const struct forward *f, const char *uid)
{
    const struct timespec pause = { .tv_sec = 1 };
    buf_auto one = BUF_INIT(64 * 1024), watch = BUF_INIT(64 * 1024);
    struct look l = { .uid = uid };

    cli_add_pod_path(&one, f->namespace_, f->pod);
    buf_addf(&watch, "%s?watch=true", one.p);
    while (l.code == EXIT_OK) {
        struct cli_response r = CLI_RESPONSE_INIT;
        struct err e = { 0 };

        /* in case the watch missed the pod's end */
        f->cli->until_ms = clock_mono_ms() + CLI_LOOK_AGAIN_MS;
        if (cli_request(f->cli, "GET", one.p, false, NULL, NULL, &r, &e) == ERR_OK && r.code == 404)
            l.code = EXIT_NOT_FOUND;
        else if (e.code == ERR_OK && r.code == 200)
            ERR_IGNORE(cli_follow(f->cli, watch.p, port_forward_on_change, &l, &r, &e));
        if (l.code == EXIT_OK)
            nanosleep(&pause, NULL);
        buf_done(&r.body);
    }
    cli_error(f->cli, "lost connection to pod %s/%s: it %s%s", f->namespace_, f->pod,
              l.code == EXIT_NOT_FOUND ? "is gone" : "has ended: ", l.phase);
    end_all(f, l.code);
}

static bool start_looking(const struct forward *f, const char *uid)
{
    pid_t pid = start_child(f);

    if (pid == 0) {
        look_after(f, uid);
        _exit(EXIT_OK);
    }
    return pid > 0;
}

/* ---- all of it ---- */

/* Without free descriptors, clients wait in the listener's queue. */
static bool take_connections(const struct forward *f, const struct pollfd *p, bool paused)
{
    for (size_t i = 0; i < f->n; i++) {
        if (p[i].revents == 0 || take_connection(f, &f->v[i]))
            continue;
        if (!paused)
            cli_error(f->cli, "connections must wait: %s", strerror(errno));
        return false;
    }
    return true;
}

static int serve_all(const struct forward *f)
{
    struct pollfd p[1 + LISTENERS_MAX] = { { .fd = f->over[0], .events = POLLIN } };
    bool paused = false;
    unsigned char code;

    for (size_t i = 0; i < f->n; i++)
        p[1 + i] = (struct pollfd){ .fd = f->v[i].fd, .events = POLLIN };
    for (;;) {
        if (poll(p, 1 + f->n, -1) < 0 && errno != EINTR)
            return cli_error(f->cli, "wait for connections: %s", strerror(errno));
        if (p[0].revents != 0 && read(f->over[0], &code, 1) == 1)
            return code;
        paused = !take_connections(f, p + 1, paused);
        if (paused && poll(p, 1, PAUSE_MS) < 0 && errno != EINTR)
            return cli_error(f->cli, "wait for connections: %s", strerror(errno));
    }
}

/* ---- the command ---- */

static int forward(struct forward *f, int argc, char **argv)
{
    int code;
    json_auto_t *pod = cli_get_pod(f->cli, f->namespace_, f->pod, &code);
    struct err e = { 0 };

    if (pod == NULL)
        return code;
    if (strcmp(cli_text(pod, "status.phase"), "Running") != 0)
        return cli_error(f->cli, "unable to forward port because pod is not running. Current status=%s",
                         cli_text(pod, "status.phase"));
    for (int i = 0; i < argc; i++) {
        uint16_t local, remote;

        if (parse_ports(pod, argv[i], &local, &remote, &e) != ERR_OK)
            return cli_failed(f->cli, &e);
        if (!listen_all(f, local, remote, &e))
            return cli_error(f->cli, "%s", e.text);
    }
    cli_flush(f->cli);
    signal(SIGCHLD, SIG_IGN); /* not waited for */
    if (pipe2(f->over, O_CLOEXEC) != 0 || !start_looking(f, cli_text(pod, "metadata.uid")))
        return cli_error(f->cli, "look after pod %s: %s", f->pod, strerror(errno));
    return serve_all(f);
}

static int port_forward_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct forward f = { .cli = cli, .namespace_ = "default", .addresses = "localhost" };
    str_auto made = NULL;
    int code;

    if (!cli_parse(cli, command, &f, &argc, argv, &code))
        return code;
    if (argc < 2)
        return cli_usage_error(cli, command, "you must specify one pod and at least one port");
    f.pod = cli_pod_of(cli, argv[0], f.namespace_, &made, &code);
    if (f.pod == NULL)
        return code;
    code = forward(&f, argc - 1, argv + 1);
    for (size_t i = 0; i < f.n; i++)
        close(f.v[i].fd);
    return code;
}

static const struct cli_example examples[] = {
    { "port 80 of a pod at http://localhost:8080/", "coracle port-forward web 8080:80" },
    { "a container's port by its name", "coracle port-forward web 8080:http" },
    { "two ports, with the same local numbers", "coracle port-forward web 80 443" },
    { "any free local port, reachable from other machines",
      "coracle port-forward --address 0.0.0.0 web :5432" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 1, "it could not start, or the pod has ended; see standard error" },
    { 2, "a usage error: an invalid word, flag or value" },
    CLI_EXITS_DAEMON,
    { 130, "interrupted with Ctrl-C" },
    { 0, NULL },
};

const struct cli_command command_port_forward = {
    .name = "port-forward",
    .run = port_forward_run,
    .summary = "forward local ports to a pod",
    .usage = "port-forward POD [LOCAL:]REMOTE... [flags]",
    .about = "Listens locally and forwards each connection to a port on the pod's localhost, even if a "
             "process listens only there.  REMOTE is a number, or the name of a container's port.  If "
             "LOCAL is empty, any free port is used.  A connection that fails is reported and closed; "
             "the others continue.  The command ends with a message when the pod has ended.  It "
             "continues if the daemon restarts.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "exec",
    .words = "@pod @nothing",
};
