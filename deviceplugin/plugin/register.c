/* SPDX-License-Identifier: Apache-2.0 */
/* register - the calls of Register: rate limits, checks, and the answer once the plugin was reached. Texts
 * are kubelet's (pkg/kubelet/cm/devicemanager/plugin/v1beta1). */
#include "deviceplugin/plugin/registration.h"

#include "base/files/fs.h"
#include "deviceplugin/resource_name.h"

#include <stdlib.h>
#include <string.h>

enum {
    PEER_PER_S = 10,
    PEER_BURST = DP_PLUGINS_MAX,           /* one process may have several plugins */
    PEER_PENDING_MAX = DP_PLUGINS_MAX / 2, /* not answered yet */
};

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
    if (c->request != NULL && e.code == ERR_OK) {
        grpc_reply(c->request, (struct grpc_bytes){ 0 });
    } else if (c->request != NULL) {
        e.code = ERR_UNKNOWN; /* the code of Go's plain errors */
        grpc_fail(c->request, &e);
    }
    answered(c);
}

static void on_ended(struct plugin *p, bool replaced, void *arg) /* the plugin registers again by itself */
{
    (void)p;
    (void)replaced;
    (void)arg;
}

static const struct plugin_owner owner = { on_ready, on_ended };

static void give_up(struct registering *c)
{
    plugin_end(c->plugin, NULL);
    answered(c);
}

/*
 * As in kubelet, a plugin that does not wait for the answer is still registered, because it may be about to
 * serve. If the plugin has died, calls to it will fail.
 */
static void on_given_up(struct grpc_request *r, void *arg)
{
    struct registering *c = arg;

    (void)r;
    c->request = NULL;
    if (c->plugin->all->cancelled)
        give_up(c);
}

void register_cancel(struct registration *r)
{
    struct registering *c;

    while ((c = LIST_FIRST(&r->calls)) != NULL)
        give_up(c);
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

    for (size_t i = 0; i < REGISTRATION_PEERS; i++) {
        if (r->peers[i].pid == pid)
            return &r->peers[i];
        if (r->peers[i].at_ms < oldest->at_ms)
            oldest = &r->peers[i];
    }
    *oldest = (struct peer){ pid, now, PEER_BURST * 1000 };
    return oldest;
}

/* A process that registers in a loop must not keep other processes from registering. */
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
        pid = 0; /* all processes without a pid share one rate */
    *ret_pid = pid;
    p = peer_of(r, pid, now);
    p->tokens += (now - p->at_ms) * PEER_PER_S;
    p->at_ms = now;
    if (p->tokens > PEER_BURST * 1000)
        p->tokens = PEER_BURST * 1000;
    if (p->tokens < 1000)
        return err_set(e, ERR_EXHAUSTED, "process %ld registers more than %d times a second", (long)pid,
                       PEER_PER_S);
    p->tokens -= 1000;
    LIST_FOREACH (c, &r->calls, link)
        pending += c->pid == pid;
    if (pending >= PEER_PENDING_MAX)
        return err_set(e, ERR_EXHAUSTED,
                       "%u plugins of process %ld have not been reached yet, no more are allowed", pending,
                       (long)pid);
    return ERR_OK;
}

/* The endpoint must be a plain file name. Its socket may not exist yet, as the plugin may be about to create
 * it. */
static enum err_code check_endpoint(const struct registration *r, const char *endpoint, char **ret_path,
                                    struct err *e)
{
    char quoted[300];
    struct stat st;
    bool plain = fs_path_is_safe(endpoint) && strchr(endpoint, '/') == NULL;

    dp_quote(quoted, sizeof(quoted), endpoint);
    if (!plain || strcmp(endpoint, REGISTRATION_SOCKET) == 0)
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

void register_begin(struct grpc_request *request, struct grpc_bytes message, void *arg)
{
    struct registration *r = arg;
    struct dp_registration m = { 0 };
    const char *what = REGISTRATION_SOCKET;
    struct err e = { 0 };

    if (dp_registration_unpack(&m, message.p, message.n, &e) != ERR_OK) {
        err_wrap(&e, "grpc: error unmarshalling request");
        e.code = ERR_INTERNAL;
    } else if (take_registration(r, request, &m, &e) != ERR_OK) {
        what = m.resource[0] != '\0' ? m.resource : REGISTRATION_SOCKET;
        e.code = e.code == ERR_INVALID ? ERR_UNKNOWN : e.code; /* the code of Go's plain errors */
    }
    if (e.code != ERR_OK) {
        dp_problem_set(r->all, what, NULL, &e);
        grpc_fail(request, &e);
    }
    dp_registration_done(&m);
}
