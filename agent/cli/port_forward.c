/*
 * port-forward - ports of a pod, as ports of this machine.  This process listens; each connection is a child
 * with one stream of its own, so that none waits for another.
 */
#include "agent/cli/internal.h"

#include "base/parse.h"
#include "base/scope.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTENERS_MAX = 64 };

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
};

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct forward, namespace_, "the pod's namespace (default)"),
    { "address", 0, FLAG_TEXT, offsetof(struct forward, addresses), "ADDRESS[,...]",
      "addresses to listen at; localhost: 127.0.0.1 and ::1 (default)" },
    CLI_FLAGS_END,
};

/* ---- listening ------------------------------------------------------------------------------- */

/* *port 0: any, and which it became. */
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
        err_set(e, ERR_INVALID, "--address: \"%s\" is no IP address, nor localhost", address);
        return -1;
    }
    fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && is_v6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, to, size) != 0 || listen(fd, 128) != 0 || getsockname(fd, to, &size) != 0) {
        err_sys(e, errno, "listen at %s port %u", address, *port);
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
    cli_say(f->cli, "Forwarding from %s%s%s:%u -> %u\n", v6 ? "[" : "", address, v6 ? "]" : "", *local,
            remote);
    return true;
}

/* As kubectl: of localhost's two addresses one is enough. */
static bool listen_localhost(struct forward *f, uint16_t *local, uint16_t remote, struct err *e)
{
    struct err ignored = { 0 };
    bool v4 = add_listener(f, "127.0.0.1", local, remote, e);

    return add_listener(f, "::1", local, remote, v4 ? &ignored : e) || v4;
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

/* "8080:80", "80" (the same here), ":80" (any here) */
static enum err_code parse_ports(const char *text, uint16_t *ret_local, uint16_t *ret_remote, struct err *e)
{
    const char *colon = strchr(text, ':'), *remote_text = colon != NULL ? colon + 1 : text;
    str_auto local_text = strndup(text, colon != NULL ? (size_t)(colon - text) : strlen(text));
    uint64_t local = 0, remote;

    if (parse_u64(remote_text, 1, UINT16_MAX, &remote, "remote port", e) != ERR_OK ||
        (local_text[0] != '\0' && parse_u64(local_text, 0, UINT16_MAX, &local, "local port", e) != ERR_OK))
        return err_wrap(e, "%s", text);
    *ret_local = (uint16_t)local;
    *ret_remote = (uint16_t)remote;
    return ERR_OK;
}

/* ---- connections ----------------------------------------------------------------------------- */

static int serve(const struct forward *f, int fd, uint16_t remote)
{
    buf_auto url = BUF_INIT(64 * 1024);

    cli_add_pod_path(&url, f->namespace_, f->pod);
    buf_addf(&url, "/portforward?port=%u", remote);
    return exec_stream(&(struct exec_session){ .cli = f->cli, .input = fd, .output = fd, .terminal = -1 },
                       url.p);
}

static void take_connection(const struct forward *f, const struct listener *l)
{
    pid_t parent = getpid();
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
    pid_t pid;

    if (fd < 0)
        return;
    cli_say(f->cli, "Handling connection for %u\n", l->local);
    cli_flush(f->cli);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(EXIT_ERROR);
        for (size_t i = 0; i < f->n; i++)
            close(f->v[i].fd);
        _exit(serve(f, fd, l->remote));
    }
    if (pid < 0)
        cli_error(f->cli, "connection for %u: fork: %s", l->local, strerror(errno));
    close(fd);
}

static int serve_all(const struct forward *f)
{
    struct pollfd p[LISTENERS_MAX];

    signal(SIGCHLD, SIG_IGN); /* nobody waits for them */
    for (size_t i = 0; i < f->n; i++)
        p[i] = (struct pollfd){ .fd = f->v[i].fd, .events = POLLIN };
    for (;;) {
        if (poll(p, f->n, -1) < 0 && errno != EINTR)
            return cli_error(f->cli, "wait for connections: %s", strerror(errno));
        for (size_t i = 0; i < f->n; i++)
            if (p[i].revents != 0)
                take_connection(f, &f->v[i]);
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static int forward(struct forward *f, int argc, char **argv)
{
    json_auto_t *pod = cli_get_pod(f->cli, f->namespace_, f->pod);
    struct err e = { 0 };

    if (pod == NULL)
        return EXIT_ERROR;
    if (strcmp(cli_text(pod, "status.phase"), "Running") != 0)
        return cli_error(f->cli, "unable to forward port because pod is not running. Current status=%s",
                         cli_text(pod, "status.phase"));
    for (int i = 0; i < argc; i++) {
        uint16_t local, remote;

        if (parse_ports(argv[i], &local, &remote, &e) != ERR_OK || !listen_all(f, local, remote, &e))
            return cli_error(f->cli, "%s", e.text);
    }
    cli_flush(f->cli);
    return serve_all(f);
}

static int run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct forward f = { .cli = cli, .namespace_ = "default", .addresses = "localhost" };
    int code;

    if (!cli_parse(cli, command, &f, &argc, argv, &code))
        return code;
    f.pod = argc > 1 ? cli_resource_name(argv[0], cli_pod_kinds) : NULL;
    if (f.pod == NULL)
        return cli_usage_error(cli, command, "you must specify one pod and at least one port");
    code = forward(&f, argc - 1, argv + 1);
    for (size_t i = 0; i < f.n; i++)
        close(f.v[i].fd);
    return code;
}

static const struct cli_example examples[] = {
    { "port 80 of a pod at http://localhost:8080/", "coracle port-forward web 8080:80" },
    { "two ports, the same numbers here", "coracle port-forward web 80 443" },
    { "any free port here, for other machines, too", "coracle port-forward --address 0.0.0.0 web :5432" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 1, "it cannot begin; one line on standard error says why" },
    { 2, "wrong usage" },
    { 130, "Ctrl-C: it does not end by itself" },
    { 0, NULL },
};

const struct cli_command command_port_forward = {
    .name = "port-forward",
    .run = run,
    .summary = "ports of a pod, on this machine",
    .usage = "port-forward POD [LOCAL:]REMOTE... [flags]",
    .about =
        "Listens here and passes each connection on to a port of the pod's own localhost, also to what "
        "listens "
        "there only.  LOCAL empty: any free port.  A connection that cannot be made is told and closed; the "
        "others go on.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "exec",
    .words = "@pod @nothing",
};
