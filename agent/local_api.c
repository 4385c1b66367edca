/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_api - kubectl on a node that joins no cluster: coracle-kube listens on loopback, with certificates in
 * <state>/api/, which only root can read. coracle-kube creates and renews them (the daemon maps no OpenSSL);
 * the daemon writes the files that it sends, and creates the administrator's kubeconfig.
 */
#include "agent/cluster/cluster.h"
#include "agent/internal.h"
#include "agent/pod/core/node_written.h"

#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PEM_MAX (64 * 1024)

/* Names of files, and members of the messages `config` (localPKI) and `certificate` (files). */
static const char *const names[] = {
    "ca.crt", "ca.key", "server.crt", "server.key", "admin.crt", "admin.key"
};

bool local_api_wanted(const struct agent *a)
{
    return a->config.local_api[0] != '\0' && !join_wanted(a);
}

static char *local_api_dir(const struct agent *a)
{
    return str_printf("%s/api", a->config.state_dir);
}

/* ---- the files ---- */

/* coracle-kube creates a file again if it is missing or unusable. */
static enum err_code local_api_read(struct agent *a, struct err *e)
{
    str_auto dir = local_api_dir(a);

    a->local_pki = json_object();
    if (dir == NULL || a->local_pki == NULL)
        return err_nomem(e);
    if (fs_mkdirs(dir, 0700, e) != ERR_OK)
        return err_wrap(e, "localAPI");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        str_auto path = str_printf("%s/%s", dir, names[i]);
        char *text = NULL;
        size_t n = 0;
        struct presence look;

        if (path == NULL)
            return err_nomem(e);
        look = fs_read_if_there(AT_FDCWD, path, PEM_MAX, &text, &n, e);
        if (presence_is_unknown(look))
            return err_wrap(e, "localAPI");
        if (text != NULL && strlen(text) == n)
            json_put_str(a->local_pki, names[i], text);
        if (text != NULL)
            explicit_bzero(text, n);
        free(text);
    }
    return ERR_OK;
}

/* Keys are written first: a certificate without its key is useless and is created again. */
static enum err_code local_api_write(struct agent *a, const json_t *files, struct err *e)
{
    str_auto dir = local_api_dir(a);

    if (dir == NULL)
        return err_nomem(e);
    for (size_t i = ARRAY_LEN(names); i-- > 0;) {
        const char *text = json_str(files, names[i]);
        str_auto path = str_printf("%s/%s", dir, names[i]);

        if (text == NULL || strlen(text) > PEM_MAX)
            return err_set(e, ERR_INVALID, "coracle-kube did not create the %s", names[i]);
        if (path == NULL)
            return err_nomem(e);
        if (fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, true, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static void local_api_on_certificate(const json_t *message, void *arg)
{
    const json_t *files = json_object_get(message, "files");
    struct agent *a = arg;
    struct err e = { 0 };

    if (!str_eq(json_str(message, "usage"), "local"))
        return;
    if (local_api_write(a, files, &e) != ERR_OK)
        log_error("cannot write the certificates of the local API", F_ERR(&e));
    else
        log_info("the local API has new certificates");
    /* In place: the message `config` refers to the same object, for the next start of coracle-kube. */
    if (e.code == ERR_OK && json_object_update(a->local_pki, (json_t *)(uintptr_t)files) != 0)
        log_error("the certificates of the local API: out of memory");
}

/* ---- the kubeconfig ---- */

static bool local_api_put_data(json_t *o, const char *key, const char *pem)
{
    buf_auto text = BUF_INIT(2 * PEM_MAX);
    bool ok;

    if (pem == NULL)
        return false;
    base64_add(&text, pem, strlen(pem));
    ok = !text.failed && json_object_set_new(o, key, json_string(text.p)) == 0;
    explicit_bzero(text.p, text.n);
    return ok;
}

json_t *local_api_kubeconfig(void *agent, struct err *e)
{
    struct agent *a = agent;
    json_t *cluster = json_object(), *user = json_object(), *o;
    str_auto url = str_printf("https://%s", a->config.local_api);

    if (a->local_pki == NULL) {
        json_decref(cluster);
        json_decref(user);
        err_set(e, ERR_NOT_FOUND,
                "the local API is disabled; enable it with the setting localAPI (--local-api)");
        return NULL;
    }
    json_put_str(cluster, "server", url);
    if (!local_api_put_data(cluster, "certificate-authority-data", json_str(a->local_pki, "ca.crt")) ||
        !local_api_put_data(user, "client-certificate-data", json_str(a->local_pki, "admin.crt")) ||
        !local_api_put_data(user, "client-key-data", json_str(a->local_pki, "admin.key"))) {
        json_decref(cluster);
        json_decref(user);
        err_set(e, ERR_UNAVAILABLE, "the certificates of the local API do not exist yet");
        return NULL;
    }
    o = json_pack("{s:s, s:s, s:[{s:s, s:o}], s:[{s:s, s:o}], s:[{s:s, s:{s:s, s:s}}], s:s}", "apiVersion",
                  "v1", "kind", "Config", "clusters", "name", a->node_name, "cluster", cluster, "users",
                  "name", "coracle-admin", "user", user, "contexts", "name", a->node_name, "context",
                  "cluster", a->node_name, "user", "coracle-admin", "current-context", a->node_name);
    if (o == NULL)
        err_nomem(e);
    return o;
}

/* ---- opening ---- */

static enum err_code local_api_lend(int *ret, void *arg, struct err *e)
{
    struct agent *a = arg;

    if (a->server == NULL)
        return err_set(e, ERR_UNAVAILABLE, "the status socket is not open");
    return status_server_lend(a->server, ret, e);
}

/* The address without brackets, and the port behind it. */
static json_t *local_api_message(const struct agent *a)
{
    const char *text = a->config.local_api, *port = strrchr(text, ':');
    bool v6 = text[0] == '[';
    str_auto host = str_printf("%.*s", (int)(port - text) - 2 * v6, text + v6);

    if (host == NULL)
        return NULL;
    return json_pack("{s:s, s:s, s:I, s:{s:b, s:b, s:s, s:i, s:s}, s:O}", "nodeName", a->node_name, "version",
                     CORACLE_VERSION, "since", (json_int_t)node_since_ns(a->node), "server", "enabled", 1,
                     "local", 1, "address", host, "port", atoi(port + 1), "minVersion", "VersionTLS12",
                     "localPKI", a->local_pki);
}

enum err_code local_api_open(struct agent *a, struct err *e)
{
    struct cluster_options o = { .loop = &a->loop,
                                 .program = a->pre.kube,
                                 .lone = true,
                                 .store = a->store,
                                 .node = a->node,
                                 .lend = local_api_lend,
                                 .on_certificate = local_api_on_certificate,
                                 .arg = a };

    if (a->config.local_api[0] != '\0' && join_wanted(a))
        log_warn("localAPI is ignored: on a node of a cluster, use the apiserver");
    if (!local_api_wanted(a))
        return ERR_OK;
    if (local_api_read(a, e) != ERR_OK)
        return e->code;
    o.config = local_api_message(a);
    if (o.config == NULL)
        return err_nomem(e);
    return cluster_open(&a->cluster, &o, e) == ERR_OK ? ERR_OK : err_wrap(e, "localAPI");
}

void local_api_done(struct agent *a)
{
    const char *name;
    json_t *text;

    json_object_foreach (a->local_pki, name, text)
        explicit_bzero((char *)(uintptr_t)json_string_value(text), json_string_length(text));
    json_decref(a->local_pki);
    a->local_pki = NULL;
}
