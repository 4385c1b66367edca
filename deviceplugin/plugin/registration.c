/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration - the server <dir>/kubelet.sock, where plugins register.
 *
 * Sockets in the folder from an earlier run are removed: plugins that watch their own socket register again.
 * Then kubelet.sock is created: plugins that watch for it register again, too. If the socket or its folder is
 * removed while the agent runs, both are created again, since no plugin could register without them.
 */
#include "deviceplugin/plugin/registration.h"

#include "base/backoff.h"
#include "base/files/fs.h"
#include "base/files/watches.h"
#include "base/log.h"
#include "base/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#define SOCKET_NAME REGISTRATION_SOCKET

enum {
    CONNECTIONS_MAX = 128,
    /* When the agent starts, all plugins of the node register at once, and one process may have several. */
    CALLS_PER_S = 1000,
    CALLS_BURST = 4 * DP_PLUGINS_MAX,
    REMAKE_FIRST_MS = 1000, /* if the socket is removed repeatedly */
    REMAKE_MAX_MS = 60 * 1000,
};

/* ---- the folder ---- */

static bool add_name(const char *name, void *arg)
{
    return strs_add(arg, name);
}

/* Other files stay; the checkpoint is one of them. */
static enum err_code remove_sockets(const struct registration *r, struct err *e)
{
    struct strs names = { 0 };
    struct presence found;
    fd_auto dir = -1;

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

/* ---- the socket ---- */

static const struct grpc_method methods[] = { { "/v1beta1.Registration/Register", register_begin } };

/* Watches the folder that the path resolves to at present. */
static enum err_code watch_folder(struct registration *r, struct err *e)
{
    int old = r->wd;

    r->wd = watch_set_add(r->watches, r->all->o.dir,
                          IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF |
                              IN_MOVE_SELF | IN_ONLYDIR);
    if (r->wd < 0)
        return err_sys(e, errno, "watch %s", r->all->o.dir);
    if (old >= 0 && old != r->wd)
        watch_set_remove(r->watches, old);
    return ERR_OK;
}

/* The new socket replaces the old one before the old server closes. */
static enum err_code serve(struct registration *r, struct err *e)
{
    const struct grpc_server_options o = {
        .loop = r->all->o.loop,
        .path = r->path,
        .mode = 0755, /* kubelet's mode: only root may write to the socket, so only root can connect */
        .methods = methods,
        .n_methods = 1,
        .arg = r,
        .max_connections = CONNECTIONS_MAX,
        .calls_per_s = CALLS_PER_S,
        .burst = CALLS_BURST,
    };
    struct grpc_server *server;
    struct stat st;

    if (fs_mkdirs(r->all->o.dir, 0750, e) != ERR_OK || (!r->cleaned && remove_sockets(r, e) != ERR_OK))
        return e->code;
    r->cleaned = true;
    if (watch_folder(r, e) != ERR_OK)
        return e->code;
    if (grpc_server_open(&server, &o, e) != ERR_OK)
        return e->code;
    if (lstat(r->path, &st) != 0) {
        err_sys(e, errno, "stat %s", r->path);
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
        log_info("the socket for device plugins was made again", F_STR("socket", r->path));
        dp_problem_clear(r->all, SOCKET_NAME);
        return;
    }
    dp_problem_set(r->all, SOCKET_NAME, NULL, &e);
    try_later(r);
}

/* Whether the socket at the path is ours. */
static struct presence check_socket_inode(const struct registration *r, struct err *e)
{
    struct presence found;
    struct stat st;

    found = fs_look_at(AT_FDCWD, r->path, &st, e);
    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    return st.st_dev == r->dev && st.st_ino == r->ino ? presence_present() : presence_absent();
}

/* Recreates the socket: at once, unless another program keeps removing it. */
static void check_socket(struct registration *r, bool rested)
{
    struct err e = { 0 };

    switch (presence_of(check_socket_inode(r, &e))) {
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

/* ---- life ---- */

enum err_code registration_open(struct registration **ret, struct dp_plugins *all, struct err *e)
{
    struct registration *r = calloc(1, sizeof(*r));
    struct err first = { 0 };

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
    else
        ERR_IGNORE(watch_set_open(&r->watches, all->o.loop, on_change, r, e));
    if (e->code != ERR_OK) {
        registration_close(r);
        return e->code;
    }
    /* A folder that cannot be used now may be usable later, so this is not an error. */
    if (serve(r, &first) != ERR_OK) {
        dp_problem_set(all, SOCKET_NAME, NULL, &first);
        try_later(r);
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
    register_cancel(r);
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
