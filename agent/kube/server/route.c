/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/server/route.h"

#include "base/scope.h"

#include <string.h>

#define ANY                                                                                                  \
    (METHOD_GET | METHOD_HEAD | METHOD_POST | METHOD_DELETE | METHOD_PUT | METHOD_PATCH | METHOD_OTHER)
#define READ (METHOD_GET | METHOD_HEAD)
#define STREAM (METHOD_GET | METHOD_POST)

/* "{ns}" and the like take any segment, "*" all that follow. */
static const struct {
    enum path_kind kind;
    unsigned methods;
    bool debugging;
    const char *segments[6];
    const char *target;
} paths[] = {
    { PATH_HEALTHZ, READ, false, { "healthz" }, "/healthz" },
    { PATH_HEALTHZ, READ, false, { "healthz", "ping" }, "/healthz" },
    { PATH_HEALTHZ, READ, false, { "healthz", "log" }, "/healthz" },
    { PATH_HEALTHZ, READ, false, { "healthz", "syncloop" }, "/healthz" },
    { PATH_PODS, METHOD_GET, false, { "pods" }, "/api/v1/pods" },
    { PATH_STATS, METHOD_GET, false, { "stats", "summary" }, "/stats/summary" },
    { PATH_METRICS, READ, false, { "metrics" }, "/metrics" },
    { PATH_METRICS, READ, false, { "metrics", "cadvisor" }, "/metrics/cadvisor" },
    { PATH_METRICS, READ, false, { "metrics", "resource" }, "/metrics/resource" },
    { PATH_METRICS, READ, false, { "metrics", "probes" }, "/metrics/probes" },
    { PATH_SLIS, READ, false, { "metrics", "slis" }, NULL },
    { PATH_RUNNING_PODS, METHOD_GET, true, { "runningpods" }, "/api/v1/pods" },
    { PATH_CONFIGZ, METHOD_GET, true, { "configz" }, "/configz" },
    { PATH_LOGS, METHOD_GET, true, { "containerLogs", "{ns}", "{pod}", "{ctr}" }, NULL },
    { PATH_EXEC, STREAM, true, { "exec", "{ns}", "{pod}", "{ctr}" }, NULL },
    { PATH_EXEC, STREAM, true, { "exec", "{ns}", "{pod}", "{uid}", "{ctr}" }, NULL },
    { PATH_ATTACH, STREAM, true, { "attach", "{ns}", "{pod}", "{ctr}" }, NULL },
    { PATH_ATTACH, STREAM, true, { "attach", "{ns}", "{pod}", "{uid}", "{ctr}" }, NULL },
    { PATH_FORWARD, STREAM, true, { "portForward", "{ns}", "{pod}" }, NULL },
    { PATH_FORWARD, STREAM, true, { "portForward", "{ns}", "{pod}", "{uid}" }, NULL },
    { PATH_RUN, METHOD_POST, true, { "run", "{ns}", "{pod}", "{ctr}" }, NULL },
    { PATH_RUN, METHOD_POST, true, { "run", "{ns}", "{pod}", "{uid}", "{ctr}" }, NULL },
    { PATH_CHECKPOINT, METHOD_POST, true, { "checkpoint", "{ns}", "{pod}", "{ctr}" }, NULL },
    { PATH_SYSTEM_LOGS, ANY, true, { "logs", "*" }, NULL },
    { PATH_DEBUG, ANY, true, { "debug", "*" }, NULL },
    { PATH_STATUSZ, METHOD_GET, true, { "statusz" }, "/version" },
    { PATH_FLAGZ, METHOD_GET, true, { "flagz" }, "/configz" },
};

/* Whether the segment fits; one with a name is kept. */
static bool route_take(struct route *m, const char *want, const char *got)
{
    const struct {
        const char *name;
        const char **to;
    } named[] = {
        { "{ns}", &m->namespace_ }, { "{pod}", &m->pod }, { "{uid}", &m->uid }, { "{ctr}", &m->container }
    };

    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        if (strcmp(want, named[i].name) == 0) {
            *named[i].to = got;
            return got[0] != '\0';
        }
    }
    return strcmp(want, got) == 0;
}

struct route route_find(const struct http_request *r)
{
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct route m = { .kind = paths[i].kind,
                           .methods = paths[i].methods,
                           .target = paths[i].target,
                           .debugging = paths[i].debugging };
        const char *const *want = paths[i].segments;
        size_t n = 0;

        while (n < r->n_segments && n < ARRAY_LEN(paths[i].segments) && want[n] != NULL &&
               strcmp(want[n], "*") != 0 && route_take(&m, want[n], r->segments[n]))
            n++;
        if (n > 0 && ((n == r->n_segments && (n == ARRAY_LEN(paths[i].segments) || want[n] == NULL)) ||
                      (want[n] != NULL && strcmp(want[n], "*") == 0)))
            return m;
    }
    return (struct route){ .kind = PATH_NONE };
}

/* ---- rights ---- */

size_t route_rights(const struct http_request *r, const char *ret[ROUTE_RIGHTS_MAX])
{
    static const struct {
        const char *path, *subresource;
        bool or_proxy; /* fine-grained: clients with the older right keep it */
    } rights[] = { { "pods", "pods", true },        { "runningpods", "pods", true },
                   { "healthz", "healthz", true },  { "configz", "configz", true },
                   { "stats", "stats", false },     { "metrics", "metrics", false },
                   { "logs", "log", false },        { "checkpoint", "checkpoint", false },
                   { "statusz", "statusz", false }, { "flagz", "flagz", false } };
    const char *first = r->n_segments > 0 ? r->segments[0] : "";
    size_t n = 0;
    bool proxy = true;

    for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
        if (strcmp(rights[i].path, first) == 0) {
            ret[n++] = rights[i].subresource;
            proxy = rights[i].or_proxy;
            break;
        }
    }
    if (proxy)
        ret[n++] = "proxy";
    return n;
}

const char *route_verb(const char *method)
{
    static const char *const verbs[][2] = { { "POST", "create" },
                                            { "GET", "get" },
                                            { "PUT", "update" },
                                            { "PATCH", "patch" },
                                            { "DELETE", "delete" } };

    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i][0], method) == 0)
            return verbs[i][1];
    return "";
}
