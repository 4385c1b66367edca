/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration - the server <dir>/kubelet.sock, where plugins register.
 *
 * Sockets that an earlier run left in the folder are removed, so that plugins that watch theirs register
 * again, too. Then the socket is made; its appearance tells all others. If it is removed while the agent
 * runs, or its folder is, both are made again: without it no plugin could come back.
 */
#include "deviceplugin/plugin.h"

#include "base/backoff.h"
#include "base/files/fs.h"
#include "base/files/watches.h"
#include "base/grpc/server.h"
#include "base/log.h"
#include "base/strs.h"
#include "deviceplugin/resource_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#define SOCKET_NAME "kubelet.sock"

enum {
    CONNECTIONS_MAX = 128,
    /* All plugins of a node register at once when the agent starts; one process may have several. */
    CALLS_PER_S = 1000,
    CALLS_BURST = 4 * DP_PLUGINS_MAX,
    PEERS_MAX = 64, /* processes whose rate is known; the one that was silent for longest makes room */
    PEER_PER_S = 10,
    PEER_BURST = DP_PLUGINS_MAX,
    PEER_PENDING_MAX = DP_PLUGINS_MAX / 2, /* not answered yet */
    REMAKE_FIRST_MS = 1000,                /* of a socket that is removed again and again */
    REMAKE_MAX_MS = 60 * 1000,
};

struct registering { /* a call of Register, until it is answered */
    LIST_ENTRY(registering) link;
    struct grpc_request *request;
    struct plugin *plugin;
    pid_t pid;
};

struct peer { /* a process that registers */
    pid_t pid;
    uint64_t at_ms;
    uint64_t tokens; /* thousandths of a call */
};

struct registration {
    struct dp_plugins *all;
    char *path;
    struct grpc_server *server;
    dev_t dev; /* of the socket that was made */
    ino_t ino;
    struct watch_set *watches;
    int wd;
    uint64_t made_ms, pause_ms;
    uv_timer_t again;
    LIST_HEAD(, registering) calls;
    struct peer peers[PEERS_MAX];
};

/* ---- Register ---- */

static void answered(struct registering *c)
{
    LIST_REMOVE(c, link);
    free(c);
}

static void on_ready(struct plugin *p, const struct err *result, void *arg)
{
    struct registering *c = arg;
    struct err e = *result;

    (void)p;
    if (e.code == ERR_OK) {
        grpc_reply(c->request, (struct grpc_bytes){ 0 });
    } else {
        e.code = ERR_UNKNOWN; /* as Go's plain errors come */
        grpc_fail(c->request, &e);
    }
    answered(c);
}

static void on_ended(struct plugin *p, bool replaced, void *arg) /* it registers again by itself */
{
    (void)p;
    (void)replaced;
    (void)arg;
}

static const struct plugin_owner owner = { on_ready, on_ended };

/* The plugin does not wait any more: it will register again. */
static void on_given_up(struct grpc_request *r, void *arg)
{
    struct registering *c = arg;
    struct err e = { 0 };

    (void)r;
    err_set(&e, ERR_CANCELLED, "its plugin gave up Register before it could be reached on %s",
            c->plugin->path);
    plugin_end(c->plugin, c->plugin->all->cancelled ? NULL : &e);
    answered(c);
}

enum err_code registration_check_name(const char *name, struct err *e)
{
    char quoted[400];

    if (dp_resource_name_ok(name))
        return ERR_OK;
    dp_quote(quoted, sizeof(quoted), name);
    return err_set(e, ERR_INVALID, "the ResourceName %s is invalid", quoted);
}

static struct peer *peer_of(struct registration *r, pid_t pid, uint64_t now)
{
    struct peer *oldest = &r->peers[0];

    for (size_t i = 0; i < PEERS_MAX; i++) {
        if (r->peers[i].pid == pid)
            return &r->peers[i];
        if (r->peers[i].at_ms < oldest->at_ms)
            oldest = &r->peers[i];
    }
    *oldest = (struct peer){ pid, now, PEER_BURST * 1000 };
    return oldest;
}

/* One process that registers in a loop must not keep others from it. */
static enum err_code check_peer(struct registration *r, const struct grpc_request *request, pid_t *ret_pid,
                                struct err *e)
{
    uint64_t now = uv_now(r->all->o.loop);
    const struct registering *c;
    unsigned pending = 0;
    pid_t pid = 0;
    uid_t uid;
    struct peer *p;

    if (!grpc_request_peer(request, &pid, &uid))
        pid = 0; /* all such share one rate */
    *ret_pid = pid;
    p = peer_of(r, pid, now);
    p->tokens += (now - p->at_ms) * PEER_PER_S;
    p->at_ms = now;
    if (p->tokens > PEER_BURST * 1000)
        p->tokens = PEER_BURST * 1000;
    if (p->tokens < 1000)
        return err_set(e, ERR_EXHAUSTED, "process %ld registers more often than %d times a second", (long)pid,
                       PEER_PER_S);
    p->tokens -= 1000;
    LIST_FOREACH (c, &r->calls, link)
        pending += c->pid == pid;
    if (pending >= PEER_PENDING_MAX)
        return err_set(e, ERR_EXHAUSTED,
                       "%u plugins of process %ld cannot be reached (yet), no more are allowed", pending,
                       (long)pid);
    return ERR_OK;
}

/* A plain name of a socket, or of one that is about to be made. */
static enum err_code check_endpoint(const struct registration *r, const char *endpoint, char **ret_path,
                                    struct err *e)
{
    char quoted[300];
    struct stat st;
    bool plain = fs_path_is_safe(endpoint) && strchr(endpoint, '/') == NULL;

    dp_quote(quoted, sizeof(quoted), endpoint);
    if (!plain || strcmp(endpoint, SOCKET_NAME) == 0)
        return err_set(e, ERR_INVALID, "the endpoint %s is not the name of a plugin's socket in %s", quoted,
                       r->all->o.dir);
    *ret_path = str_printf("%s/%s", r->all->o.dir, endpoint);
    if (*ret_path == NULL)
        return err_nomem(e);
    if (lstat(*ret_path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return err_set(e, ERR_INVALID, "the endpoint %s in %s is not a socket", quoted, r->all->o.dir);
    return ERR_OK;
}

static enum err_code check_request(const struct registration *r, const struct dp_registration *m,
                                   char **ret_path, struct err *e)
{
    char quoted[300];

    if (strcmp(m->version, DP_API_VERSION) != 0) {
        dp_quote(quoted, sizeof(quoted), m->version);
        return err_set(e, ERR_INVALID,
                       "requested API version %s is not supported by kubelet. Supported version is "
                       "[\"" DP_API_VERSION "\"]",
                       quoted);
    }
    if (registration_check_name(m->resource, e) != ERR_OK)
        return e->code;
    return check_endpoint(r, m->endpoint, ret_path, e);
}

static enum err_code begin(struct registration *r, struct grpc_request *request, pid_t pid,
                           const char *resource, const char *path, struct err *e)
{
    struct registering *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_nomem(e);
    if (plugin_start(&c->plugin, r->all, resource, path, &owner, c, e) != ERR_OK) {
        free(c);
        return e->code;
    }
    c->request = request;
    c->pid = pid;
    LIST_INSERT_HEAD(&r->calls, c, link);
    grpc_request_on_cancel(request, on_given_up, c);
    return ERR_OK;
}

static enum err_code take_registration(struct registration *r, struct grpc_request *request,
                                       const struct dp_registration *m, struct err *e)
{
    str_auto path = NULL;
    pid_t pid;

    dp_counts_registered(&r->all->counts, m->resource);
    if (check_peer(r, request, &pid, e) != ERR_OK || check_request(r, m, &path, e) != ERR_OK ||
        begin(r, request, pid, m->resource, path, e) != ERR_OK)
        return e->code;
    return ERR_OK;
}

static void on_register(struct grpc_request *request, struct grpc_bytes message, void *arg)
{
    struct registration *r = arg;
    struct dp_registration m = { 0 };
    const char *what = SOCKET_NAME;
    struct err e = { 0 };

    if (dp_registration_unpack(&m, message.p, message.n, &e) != ERR_OK) {
        err_wrap(&e, "grpc: error unmarshalling request");
        e.code = ERR_INTERNAL;
    } else if (take_registration(r, request, &m, &e) != ERR_OK) {
        what = m.resource[0] != '\0' ? m.resource : SOCKET_NAME;
        e.code = e.code == ERR_INVALID ? ERR_UNKNOWN : e.code; /* as Go's plain errors come */
    }
    if (e.code != ERR_OK) {
        dp_problem_set(r->all, what, NULL, &e);
        grpc_fail(request, &e);
    }
    dp_registration_done(&m);
}

/* ---- the socket ---- */

static const struct grpc_method methods[] = { { "/v1beta1.Registration/Register", on_register } };

/* The new socket takes the place of what is there, before the old server closes. */
static enum err_code serve(struct registration *r, struct err *e)
{
    const struct grpc_server_options o = {
        .loop = r->all->o.loop,
        .path = r->path,
        .mode = 0755, /* as kubelet's; only root may write, that is, connect */
        .methods = methods,
        .n_methods = 1,
        .arg = r,
        .max_connections = CONNECTIONS_MAX,
        .calls_per_s = CALLS_PER_S,
        .burst = CALLS_BURST,
    };
    struct grpc_server *server;
    struct stat st;

    if (fs_mkdirs(r->all->o.dir, 0750, e) != ERR_OK)
        return e->code;
    if (r->watches != NULL) {
        int old = r->wd;

        r->wd = watch_set_add(r->watches, r->all->o.dir,
                              IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF |
                                  IN_MOVE_SELF | IN_ONLYDIR);
        if (r->wd < 0)
            return err_sys(e, errno, "watch %s", r->all->o.dir);
        if (old >= 0 && old != r->wd)
            watch_set_remove(r->watches, old);
    }
    if (grpc_server_open(&server, &o, e) != ERR_OK)
        return e->code;
    if (lstat(r->path, &st) != 0) {
        err_sys(e, errno, "look at %s", r->path);
        grpc_server_close(server);
        return e->code;
    }
    grpc_server_close(r->server);
    r->server = server;
    r->dev = st.st_dev;
    r->ino = st.st_ino;
    r->made_ms = uv_now(r->all->o.loop);
    return ERR_OK;
}

static void on_again(uv_timer_t *timer);

static void try_later(struct registration *r)
{
    r->pause_ms = backoff_next_ms(r->pause_ms, REMAKE_FIRST_MS, REMAKE_MAX_MS);
    uv_timer_start(&r->again, on_again, r->pause_ms, 0);
}

static void remake(struct registration *r)
{
    struct err e = { 0 };

    if (serve(r, &e) == ERR_OK) {
        log_info("the socket for device plugins was gone and is there again", F_STR("socket", r->path));
        dp_problem_clear(r->all, SOCKET_NAME);
        return;
    }
    dp_problem_set(r->all, SOCKET_NAME, NULL, &e);
    try_later(r);
}

/* Whether the socket at the path is the one that was made. */
static struct presence look_at_socket(const struct registration *r, struct err *e)
{
    struct presence found;
    struct stat st;

    found = fs_look_at(AT_FDCWD, r->path, &st, e);
    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    return st.st_dev == r->dev && st.st_ino == r->ino ? presence_present() : presence_absent();
}

/* At once, unless somebody removes it again and again. */
static void check_socket(struct registration *r, bool rested)
{
    struct err e = { 0 };

    switch (presence_of(look_at_socket(r, &e))) {
    case PRESENCE_UNKNOWN:
        dp_problem_set(r->all, SOCKET_NAME, NULL, &e);
        try_later(r);
        return;
    case PRESENCE_PRESENT:
        dp_problem_clear(r->all, SOCKET_NAME);
        return;
    case PRESENCE_ABSENT:
        break;
    }
    if (uv_now(r->all->o.loop) - r->made_ms > REMAKE_MAX_MS)
        r->pause_ms = 0;
    if (!rested && r->pause_ms > 0) {
        try_later(r);
        return;
    }
    if (r->pause_ms == 0)
        r->pause_ms = REMAKE_FIRST_MS / 2;
    remake(r);
}

static void on_again(uv_timer_t *timer)
{
    check_socket(timer->data, true);
}

static void on_change(int wd, uint32_t mask, const char *name, void *arg)
{
    struct registration *r = arg;

    (void)wd;
    if (name[0] != '\0' && strcmp(name, SOCKET_NAME) != 0 && (mask & IN_Q_OVERFLOW) == 0)
        return;
    if (!r->all->cancelled && !uv_is_active((uv_handle_t *)&r->again))
        check_socket(r, false);
}

/* ---- the folder ---- */

static bool add_name(const char *name, void *arg)
{
    return strs_add(arg, name);
}

/* Other files stay: the checkpoint is among them. */
static enum err_code remove_sockets(const struct registration *r, struct err *e)
{
    struct strs names = { 0 };
    struct presence found;
    fd_auto dir = -1;

    if (fs_mkdirs(r->all->o.dir, 0750, e) != ERR_OK)
        return e->code;
    dir = open(r->all->o.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, errno, "open %s", r->all->o.dir);
    found = fs_list(dir, ".", add_name, &names, e);
    for (size_t i = 0; i < names.n; i++) {
        struct stat st;

        if (fstatat(dir, names.v[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode))
            fs_remove_quietly(dir, names.v[i]);
    }
    strs_done(&names);
    return presence_is_unknown(found) ? e->code : ERR_OK;
}

/* ---- life ---- */

enum err_code registration_open(struct registration **ret, struct dp_plugins *all, struct err *e)
{
    struct registration *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return err_nomem(e);
    r->all = all;
    r->wd = -1;
    LIST_INIT(&r->calls);
    uv_timer_init(all->o.loop, &r->again);
    r->again.data = r;
    r->path = str_printf("%s/" SOCKET_NAME, all->o.dir);
    if (r->path == NULL)
        err_nomem(e);
    else if (remove_sockets(r, e) == ERR_OK &&
             watch_set_open(&r->watches, all->o.loop, on_change, r, e) == ERR_OK)
        ERR_IGNORE(serve(r, e));
    if (e->code != ERR_OK) {
        registration_close(r);
        return e->code;
    }
    *ret = r;
    return ERR_OK;
}

bool registration_busy(const struct registration *r)
{
    return !LIST_EMPTY(&r->calls);
}

/* Calls in progress end with the server; their plugins end with the others. */
void registration_cancel(struct registration *r)
{
    uv_timer_stop(&r->again);
    grpc_server_close(r->server);
    r->server = NULL;
}

static void again_on_closed(uv_handle_t *handle)
{
    struct registration *r = handle->data;

    free(r->path);
    free(r);
}

void registration_close(struct registration *r)
{
    if (r == NULL)
        return;
    watch_set_close(r->watches);
    r->watches = NULL;
    grpc_server_close(r->server);
    r->server = NULL;
    uv_close((uv_handle_t *)&r->again, again_on_closed);
}
