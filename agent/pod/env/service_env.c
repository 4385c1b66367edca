/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/env/service_env.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MASTER "kubernetes" /* kubelet's masterServices */
#define MASTER_NAMESPACE "default"

struct making {
    const char *namespace_;
    bool links;
    struct arena *a;
    struct service_env env;
    size_t cap;
    const struct node_service *master; /* NULL: not seen */
    bool own_master;                   /* the pod's namespace has a Service of that name */
    struct err *e;
};

/* "my-svc" is MY_SVC. */
static char *variable_name(struct arena *a, const char *text)
{
    char *ret = arena_strdup(a, text);

    for (char *c = ret; c != NULL && *c != '\0'; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    return ret;
}

/* Takes texts of the arena; NULL: no memory. */
static void variable_add(struct making *m, char *name, char *value)
{
    if (m->e->code != ERR_OK)
        return;
    if (name == NULL || value == NULL) {
        err_nomem(m->e);
        return;
    }
    if (m->env.n >= ENV_MAX || m->a->used > ENV_BYTES_MAX) {
        env_too_large(m->e);
        return;
    }
    if (m->env.n == m->cap) {
        size_t cap = m->cap == 0 ? 64 : m->cap * 2;
        struct env_var *v = arena_alloc(m->a, cap * sizeof(*v));

        if (v == NULL) {
            err_nomem(m->e);
            return;
        }
        if (m->env.n > 0)
            memcpy(v, m->env.v, m->env.n * sizeof(*v));
        m->env.v = v;
        m->cap = cap;
    }
    m->env.v[m->env.n++] = (struct env_var){ name, value };
}

/* docker's links: "tcp://10.0.0.1:80", an IPv6 address in brackets. */
static void port_links(struct making *m, const struct node_service *s, const char *prefix, size_t i)
{
    const struct node_service_port *port = &s->ports[i];
    char *proto = arena_strdup(m->a, port->protocol);
    const bool v6 = strchr(s->ip, ':') != NULL;
    char *url, *name;

    for (char *c = proto; c != NULL && *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    if (proto == NULL) {
        err_nomem(m->e);
        return;
    }
    url = arena_printf(m->a, "%s://%s%s%s:%u", proto, v6 ? "[" : "", s->ip, v6 ? "]" : "", port->number);
    name = arena_printf(m->a, "%s_PORT_%u_%s", prefix, port->number, port->protocol);
    if (i == 0)
        variable_add(m, arena_printf(m->a, "%s_PORT", prefix), url);
    variable_add(m, name, url);
    variable_add(m, arena_printf(m->a, "%s_PROTO", name != NULL ? name : ""), proto);
    variable_add(m, arena_printf(m->a, "%s_PORT", name != NULL ? name : ""),
                 arena_printf(m->a, "%u", port->number));
    variable_add(m, arena_printf(m->a, "%s_ADDR", name != NULL ? name : ""), arena_strdup(m->a, s->ip));
}

static void service_add(struct making *m, const struct node_service *s)
{
    const char *prefix = variable_name(m->a, s->name);

    if (m->e->code != ERR_OK)
        return;
    if (prefix == NULL) {
        err_nomem(m->e);
        return;
    }
    variable_add(m, arena_printf(m->a, "%s_SERVICE_HOST", prefix), arena_strdup(m->a, s->ip));
    for (size_t i = 0; i < s->n_ports && m->e->code == ERR_OK; i++) {
        const struct node_service_port *port = &s->ports[i];
        char *number = arena_printf(m->a, "%u", port->number);

        if (i == 0)
            variable_add(m, arena_printf(m->a, "%s_SERVICE_PORT", prefix), number);
        if (port->name[0] != '\0') {
            const char *name = variable_name(m->a, port->name);

            variable_add(m, name != NULL ? arena_printf(m->a, "%s_SERVICE_PORT_%s", prefix, name) : NULL,
                         number);
        }
        port_links(m, s, prefix, i);
    }
}

static void on_service(const struct node_service *s, void *making)
{
    struct making *m = making;
    const bool master = strcmp(s->name, MASTER) == 0;

    if (master && strcmp(s->namespace_, MASTER_NAMESPACE) == 0) {
        m->master = s;
        return;
    }
    if (!m->links || strcmp(s->namespace_, m->namespace_) != 0)
        return;
    m->own_master = m->own_master || master;
    service_add(m, s);
}

/* Two Services may make one name ("a" with a port named "b-c", ...): which one wins is open in kubelet; here
 * it is the same one each time. */
static int variables_by_name(const void *a, const void *b)
{
    const struct env_var *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : strcmp(x->value, y->value);
}

static void variables_sort(struct service_env *env)
{
    size_t n = 0;

    if (env->n == 0)
        return;
    qsort(env->v, env->n, sizeof(*env->v), variables_by_name);
    for (size_t i = 0; i < env->n; i++)
        if (n == 0 || strcmp(env->v[n - 1].name, env->v[i].name) != 0)
            env->v[n++] = env->v[i];
    env->n = n;
}

enum err_code service_env_make(const struct node_cluster *c, const char *namespace_, bool links,
                               struct arena *a, struct service_env *ret, struct err *e)
{
    struct err why = { 0 };
    struct making m = { .namespace_ = namespace_, .links = links, .a = a, .e = &why };

    if (c != NULL)
        m.env.known = c->services(namespace_, on_service, &m, c->arg);
    if (m.master != NULL && !m.own_master)
        service_add(&m, m.master);
    if (why.code != ERR_OK) {
        *e = why;
        return e->code;
    }
    variables_sort(&m.env);
    *ret = m.env;
    return ERR_OK;
}

static int variable_compare(const void *name, const void *variable)
{
    return strcmp(name, ((const struct env_var *)variable)->name);
}

const struct env_var *service_env_find(const struct service_env *s, const char *name)
{
    return s->n > 0 ? bsearch(name, s->v, s->n, sizeof(*s->v), variable_compare) : NULL;
}

const char *service_env_get(const struct service_env *s, const char *name)
{
    const struct env_var *v = service_env_find(s, name);

    return v != NULL ? v->value : NULL;
}
