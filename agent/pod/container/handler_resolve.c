/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/container/handler_resolve.h"

#include "agent/pod/core/node_options.h"
#include "agent/pod/env/env.h"
#include "agent/pod/sandbox/sandbox.h"
#include "base/codec/go_quote.h"
#include "base/parse.h"

#include <string.h>

struct probe_world handler_resolve_world(const struct pod *p)
{
    const struct node_options *o = &p->node->o;

    return (struct probe_world){
        .loop = o->loop,
        .helper = o->probe_helper,
        .cgroup_fd = o->cgroups != NULL ? cg_leaf_fd(o->cgroups, CG_LEAF_OPS) : -1,
        .cgroup_procs = o->cgroups != NULL ? cg_leaf_procs(o->cgroups, CG_LEAF_OPS) : NULL,
    };
}

enum err_code handler_resolve_port(const struct api_container *c, const char *port, unsigned *ret,
                                   struct err *e)
{
    uint64_t number = 0;
    buf_auto quoted = BUF_INIT(400);

    if (port[0] < '0' || port[0] > '9' ||
        parse_u64(port, 0, INT32_MAX, &number, "port", ERR_IGNORED) != ERR_OK) {
        bool found = false;
        for (size_t i = 0; i < c->n_ports && !found; i++) {
            found = str_eq(c->ports[i].name, port);
            if (found)
                number = (uint64_t)c->ports[i].container_port;
        }
        if (!found) {
            go_quote(&quoted, port, strlen(port));
            return err_set(e, ERR_NOT_FOUND, "strconv.Atoi: parsing %s: invalid syntax", quoted.p);
        }
    }
    if (number < 1 || number > 65535)
        return err_set(e, ERR_NOT_FOUND, "invalid port number: %llu", (unsigned long long)number);
    *ret = (unsigned)number;
    return ERR_OK;
}

const char *handler_resolve_pod_ip(const struct pod *p)
{
    if (p->api->spec.host_network)
        return p->node->o.node_ip;
    return sandbox_addresses(p)->n_ips > 0 ? sandbox_addresses(p)->ips[0] : "";
}

enum err_code handler_resolve_http(const struct ctr *c, const struct api_handler *h, const char *user_agent,
                                   struct arena *a, struct probe_http *ret, struct err *e)
{
    struct probe_header *headers = arena_alloc(a, (h->n_headers + 1) * sizeof(*headers));

    *ret = (struct probe_http){
        .https = str_eq(h->scheme, "HTTPS"),
        .host = h->host != NULL && h->host[0] != '\0' ? h->host : handler_resolve_pod_ip(c->pod),
        .path = h->path != NULL ? h->path : "",
        .headers = headers,
        .n_headers = h->n_headers,
        .user_agent = user_agent,
    };
    if (headers == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < h->n_headers; i++)
        headers[i] = (struct probe_header){ h->headers[i].key, h->headers[i].value };
    if (ret->host[0] == '\0')
        return err_set(e, ERR_UNAVAILABLE, "the pod has no address");
    return handler_resolve_port(c->spec, h->port, &ret->port, e);
}

/* The environment for expanding a probe's command: each entry's literal value, "" for those from other
 * sources. */
static enum err_code literal_env(const struct api_container *c, struct arena *a, struct env *ret,
                                 struct err *e)
{
    *ret = (struct env){ .v = arena_alloc(a, (c->n_env + 1) * sizeof(*ret->v)), .n = c->n_env };
    if (ret->v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < c->n_env; i++)
        ret->v[i] = (struct env_var){ c->env[i].name, c->env[i].value };
    return ERR_OK;
}

enum err_code handler_resolve_command(const struct ctr *c, const struct api_handler *h, bool expand,
                                      struct arena *a, const char *const **ret, struct err *e)
{
    const char **argv = arena_alloc(a, (h->command.n + 1) * sizeof(*argv));
    struct env env;

    if (argv == NULL)
        return err_nomem(e);
    if (literal_env(c->spec, a, &env, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < h->command.n; i++) {
        argv[i] = expand ? env_expand(h->command.v[i], &env, a, NULL) : h->command.v[i];
        if (argv[i] == NULL)
            return env_expand_error(e);
    }
    argv[h->command.n] = NULL;
    *ret = (const char *const *)argv;
    return ERR_OK;
}

void handler_resolve_add_command(const char *const *argv, struct buf *out)
{
    for (size_t i = 0; argv[i] != NULL; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", argv[i]);
}
