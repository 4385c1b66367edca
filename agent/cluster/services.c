/* SPDX-License-Identifier: Apache-2.0 */
/*
 * services - the Services of the cluster that have an IP, for the variables of containers (agent/pod/env).
 * All Services are kept, as in kubelet, because the needed namespaces are only known when a pod arrives.
 */
#include "agent/cluster/internal.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_SIZE 254 /* with its NUL: the longest name of an object */

static bool is_ip(const char *text)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

/* Letters, digits, '-' and '.', because the name becomes a part of a variable's name. */
static bool is_name(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");

    return text[n] == '\0' && n > 0 && n < NAME_MAX_SIZE;
}

/* The API's default is TCP; NULL: there is no such protocol. */
static const char *protocol_of(const json_t *port)
{
    static const char *const all[] = { "TCP", "UDP", "SCTP" };
    const char *text = json_str(port, "protocol");

    if (text == NULL || text[0] == '\0')
        return all[0];
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strcmp(all[i], text) == 0)
            return all[i];
    return NULL;
}

/* Reads a port of the message; `texts` counts the bytes of names. */
static bool port_read(const json_t *o, struct node_service_port *ret, size_t *texts)
{
    json_int_t number = json_int(o, "port", 0);
    const char *name = json_str(o, "name");

    ret->name = name != NULL ? name : "";
    ret->protocol = protocol_of(o);
    ret->number = (uint16_t)number;
    *texts += strlen(ret->name) + 1;
    return number > 0 && number <= UINT16_MAX && ret->protocol != NULL &&
           (ret->name[0] == '\0' || is_name(ret->name));
}

static char *text_move(char **at, const char *text)
{
    char *ret = *at;

    strcpy(ret, text);
    *at += strlen(text) + 1;
    return ret;
}

/* One block: the struct and its key, the ports, the texts. NULL: *why. */
static struct cluster_service *service_new(const char *namespace_, const char *name, const char *ip,
                                           const json_t *list, const char **why)
{
    const size_t n = json_array_size(list), key = strlen(namespace_) + strlen(name) + 2,
                 align = _Alignof(struct node_service_port);
    size_t head = (sizeof(struct cluster_service) + key + align - 1) / align * align,
           texts = key + strlen(ip) + 1;
    struct node_service_port *ports = calloc(n + 1, sizeof(*ports));
    struct cluster_service *v = NULL;
    bool ok = ports != NULL;
    char *at;

    *why = ok ? "a port cannot be used" : "out of memory";
    for (size_t i = 0; i < n && ok; i++)
        ok = port_read(json_array_get(list, i), &ports[i], &texts);
    if (ok)
        v = calloc(1, head + n * sizeof(*ports) + texts);
    if (ok && v == NULL)
        *why = "out of memory";
    if (v != NULL) {
        struct node_service_port *own = (struct node_service_port *)(void *)((char *)v + head);

        at = (char *)(own + n);
        sprintf(v->key, "%s/%s", namespace_, name);
        v->size = head + n * sizeof(*ports) + texts;
        v->s = (struct node_service){ .namespace_ = text_move(&at, namespace_),
                                      .name = text_move(&at, name),
                                      .ip = text_move(&at, ip),
                                      .ports = own,
                                      .n_ports = n };
        for (size_t i = 0; i < n; i++) {
            own[i] = ports[i];
            own[i].name = text_move(&at, ports[i].name);
        }
    }
    free(ports);
    return v;
}

static struct cluster_service *services_find(struct cluster *c, const char *namespace_, const char *name)
{
    str_auto key = str_printf("%s/%s", namespace_, name);
    struct cluster_service *v = NULL;

    if (key != NULL)
        HASH_FIND_STR(c->services, key, v);
    return v;
}

static void services_drop(struct cluster *c, struct cluster_service *v)
{
    c->service_bytes -= v->size;
    HASH_DEL(c->services, v);
    free(v);
}

static const char *services_add(struct cluster *c, const json_t *object, const char *namespace_,
                                const char *name, const char *ip)
{
    const json_t *ports = json_object_get(json_object_get(object, "spec"), "ports");
    struct cluster_service *v;
    const char *why;

    if (!is_name(namespace_) || !is_name(name) || !is_ip(ip))
        return "its name or its IP cannot be used";
    if (HASH_COUNT(c->services) >= CLUSTER_SERVICES_MAX || json_array_size(ports) > CLUSTER_SERVICE_PORTS_MAX)
        return "there are too many Services or ports";
    v = service_new(namespace_, name, ip, ports, &why);
    if (v == NULL)
        return why;
    v->link = c->service_link;
    if (c->service_bytes + v->size > CLUSTER_SERVICE_BYTES_MAX) {
        free(v);
        return "there are too many Services or ports";
    }
    HASH_ADD_STR(c->services, key, v);
    if (v->hh.tbl == NULL) {
        free(v);
        return "out of memory";
    }
    c->service_bytes += v->size;
    return NULL;
}

void services_changed(struct cluster *c)
{
    if (c->services_known)
        kept_changed(c->kept, KEEP_SERVICES, false);
}

void services_put(struct cluster *c, const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    const char *namespace_ = json_str(meta, "namespace"), *name = json_str(meta, "name"),
               *ip = json_str(json_object_get(object, "spec"), "clusterIP"), *why;

    if (namespace_ == NULL || name == NULL)
        return;
    services_gone(c, namespace_, name); /* the Service may have lost its IP */
    services_changed(c);
    if (ip == NULL || ip[0] == '\0' || strcmp(ip, "None") == 0)
        return;
    why = services_add(c, object, namespace_, name, ip);
    if (why != NULL)
        log_error("cannot use a Service: containers get no variables for it", F_STR("namespace", namespace_),
                  F_STR("name", name), F_STR("why", why));
}

void services_gone(struct cluster *c, const char *namespace_, const char *name)
{
    struct cluster_service *v = services_find(c, namespace_, name);

    if (v != NULL) {
        services_drop(c, v);
        services_changed(c);
    }
}

void services_synced(struct cluster *c)
{
    struct cluster_service *v, *next;

    HASH_ITER (hh, c->services, v, next)
        if (v->link != c->service_link) /* deleted while coracle-kube did not run */
            services_drop(c, v);
    if (c->services_known)
        return;
    c->services_known = true;
    strs_done(&c->services_kept);
    services_changed(c);
    node_services_known(c->o.node);
}

void services_again(struct cluster *c)
{
    c->service_link++;
}

/* ---- on the disk ---- */

/* The object in the apiserver's form, with the members that services_put() reads. */
static json_t *service_object(const struct node_service *s)
{
    json_t *ports = json_array();

    for (size_t i = 0; i < s->n_ports; i++)
        json_array_append_new(ports, json_pack("{s:s, s:i, s:s}", "name", s->ports[i].name, "port",
                                               (int)s->ports[i].number, "protocol", s->ports[i].protocol));
    return json_pack("{s:{s:s, s:s}, s:{s:s, s:o}}", "metadata", "namespace", s->namespace_, "name", s->name,
                     "spec", "clusterIP", s->ip, "ports", ports);
}

json_t *services_keep(struct cluster *c)
{
    struct strs namespaces = { 0 };
    json_t *o = json_object(), *list = json_array(), *names = json_array();
    const struct cluster_service *v;

    pods_each (c->o.node, p)
        strs_add_once(&namespaces, p->api->meta.namespace);
    strs_sort(&namespaces);
    for (size_t i = 0; i < namespaces.n; i++)
        json_array_append_new(names, json_string(namespaces.v[i]));
    for (v = c->services; v != NULL; v = v->hh.next)
        if (strs_has(&namespaces, v->s.namespace_) ||
            (strcmp(v->s.namespace_, "default") == 0 && strcmp(v->s.name, "kubernetes") == 0))
            json_array_append_new(list, service_object(&v->s));
    strs_done(&namespaces);
    json_object_set_new(o, "namespaces", names);
    json_object_set_new(o, "services", list);
    if (c->services_known)
        return o;
    json_decref(o);
    return NULL;
}

void services_use(struct cluster *c, const json_t *kept)
{
    json_t *v;
    size_t i;

    if (c->services_known || c->services_kept.n > 0)
        return;
    json_array_foreach (json_object_get(kept, "services"), i, v) {
        const json_t *meta = json_object_get(v, "metadata");
        const char *namespace_ = json_str(meta, "namespace"), *name = json_str(meta, "name");

        if (namespace_ == NULL || name == NULL || services_find(c, namespace_, name) != NULL)
            continue;      /* the apiserver has just sent it */
        c->service_link--; /* removed by the first set that does not have it */
        services_put(c, v);
        c->service_link++;
    }
    strs_done(&c->services_kept);
    json_array_foreach (json_object_get(kept, "namespaces"), i, v)
        if (json_is_string(v))
            strs_add_once(&c->services_kept, json_string_value(v));
    log_info("the apiserver does not answer: using the kept Services",
             F_U64("services", HASH_COUNT(c->services)));
    node_services_known(c->o.node);
}

bool services_each(const char *namespace_, node_service_fn each, void *to, void *cluster)
{
    const struct cluster *c = cluster;

    for (const struct cluster_service *v = c->services; v != NULL; v = v->hh.next)
        each(&v->s, to);
    return c->services_known || strs_has(&c->services_kept, namespace_);
}

void services_free(struct cluster *c)
{
    struct cluster_service *v, *next;

    strs_done(&c->services_kept);
    HASH_ITER (hh, c->services, v, next)
        services_drop(c, v);
}
