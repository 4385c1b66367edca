/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process - starts coracle-kube, and restarts it.
 *
 * It parses data from the network, so it has its own user, no capabilities and no way to gain any. It stays
 * in the cgroup of the agent's own unit, not in the leaf `ops`, whose processes are killed when an agent
 * starts. It ends when its link closes, so it never outlives the agent that started it.
 */
#include "agent/cluster/internal.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define KUBE_USER "coracle-kube" /* created by the package */
#define NOBODY 65534             /* otherwise: every system has this id, and it owns no files */
#define LINK_FD 3

/* Reads /etc/passwd only: system users are in it, and a name service may hang. */
static void process_find_user(struct cluster *c)
{
    FILE *f = fopen("/etc/passwd", "re");
    struct passwd entry, *found = NULL;
    char text[4096];

    c->uid = c->gid = NOBODY;
    while (f != NULL && fgetpwent_r(f, &entry, text, sizeof(text), &found) == 0)
        if (strcmp(entry.pw_name, KUBE_USER) == 0 && entry.pw_uid != 0 && entry.pw_gid != 0) {
            c->uid = entry.pw_uid;
            c->gid = entry.pw_gid;
            c->own_user = true;
            break;
        }
    if (f != NULL)
        fclose(f);
}

static void process_start(struct cluster *c);

static void process_on_again(uv_timer_t *timer)
{
    process_start(timer->data);
}

static void process_again(struct cluster *c, const char *why)
{
    bool steady = clock_mono_ms() - c->started_ms >= CLUSTER_STEADY_MS;

    if (c->closing)
        return;
    c->pause_ms = backoff_next_ms(steady ? 0 : c->pause_ms, CLUSTER_AGAIN_MS, CLUSTER_AGAIN_MAX_MS);
    log_warn("coracle-kube exited; restarting it", F_STR("why", why), F_U64("waitMs", c->pause_ms));
    free(c->lost);
    c->lost = strdup(why);
    uv_timer_start(&c->again, process_on_again, c->pause_ms, 0);
}

static void process_cut(struct cluster *c)
{
    kube_link_close(c->link);
    c->link = NULL;
}

static void process_on_ended(struct op *op, const struct err *result)
{
    struct cluster *c = op->owner;

    process_cut(c);
    process_again(c, result->code == ERR_OK ? "it exited" : result->text);
}

static void process_on_message(json_t *message, int fd, void *arg)
{
    cluster_message(arg, message, fd);
}

static void process_on_lost(const struct err *why, void *arg)
{
    struct cluster *c = arg;

    log_debug("the link to coracle-kube is lost", F_ERR(why));
    process_cut(c);
    proc_cancel(&c->proc); /* process_on_ended() follows */
}

/* The parent's end of the link; -1: *e. */
static enum err_code process_link(struct cluster *c, int *ret_childs, struct err *e)
{
    struct kube_link_options o = {
        .loop = c->o.loop, .on_message = process_on_message, .on_lost = process_on_lost, .arg = c
    };
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return err_sys(e, errno, "create the connection to coracle-kube");
    o.fd = pair[0];
    if (kube_link_open(&c->link, &o, e) != ERR_OK) {
        c->link = NULL;
        close(pair[1]);
        return e->code;
    }
    *ret_childs = pair[1];
    return ERR_OK;
}

static void process_start(struct cluster *c)
{
    const char *argv[] = { c->o.program, NULL };
    struct proc_fd fd = { .child_fd = LINK_FD };
    struct proc_spec spec = { .name = "coracle-kube",
                              .argv = argv,
                              .fds = &fd,
                              .n_fds = 1,
                              .cgroup_fd = -1,
                              .uid = c->uid,
                              .gid = c->gid,
                              .no_rights = true };
    struct err e = { 0 };

    c->started_ms = clock_mono_ms();
    if (process_link(c, &fd.parent_fd, &e) != ERR_OK) {
        process_again(c, e.text);
        return;
    }
    c->starts++;
    proc_start(&c->proc, &spec, c->o.loop, process_on_ended, c);
    close(fd.parent_fd);
    cluster_connected(c);
}

void process_open(struct cluster *c)
{
    process_find_user(c);
    if (!c->own_user)
        log_warn("there is no user " KUBE_USER "; coracle-kube runs as nobody", F_U64("uid", c->uid));
    uv_timer_init(c->o.loop, &c->again);
    c->again.data = c;
    c->open_handles++;
    process_start(c);
}

static void process_on_closed(uv_handle_t *handle)
{
    struct cluster *c = handle->data;

    c->open_handles--;
}

void process_close(struct cluster *c)
{
    uv_close((uv_handle_t *)&c->again, process_on_closed);
    if (process_live(c))
        proc_cancel(&c->proc);
}

bool process_live(const struct cluster *c)
{
    return op_live(&c->proc.op);
}
