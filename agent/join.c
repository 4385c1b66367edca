/* SPDX-License-Identifier: Apache-2.0 */
/* join - the daemon as the node of a cluster: passes its settings to agent/cluster. */
#include "agent/cluster/cluster.h"
#include "agent/internal.h"
#include "agent/kube/credentials/credentials.h"
#include "agent/kube/credentials/serving.h"
#include "agent/pod/show/provider.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/process/process.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool join_wanted(const struct agent *a)
{
    return a->config.kube.kubeconfig[0] != '\0';
}

static json_t *list_json(const struct config_list *l)
{
    json_t *list = json_array();

    for (size_t i = 0; i < l->n; i++)
        json_array_append_new(list, json_string_of(l->v[i]));
    return list;
}

static json_t *labels_json(const struct agent_config *c)
{
    json_t *o = json_object();

    for (size_t i = 0; i < c->node_labels.n; i++)
        json_put_str(o, c->node_labels.v[i].key, c->node_labels.v[i].value);
    return o;
}

static json_t *taints_json(const struct agent_config *c)
{
    json_t *list = json_array();

    for (size_t i = 0; i < c->n_node_taints; i++) {
        json_t *t = json_object();

        json_put_str(t, "key", c->node_taints[i].key);
        if (c->node_taints[i].value != NULL && c->node_taints[i].value[0] != '\0')
            json_put_str(t, "value", c->node_taints[i].value);
        json_put_str(t, "effect", c->node_taints[i].effect);
        json_array_append_new(list, t);
    }
    return list;
}

static json_t *server_json(const struct config_server *s, const json_t *curves)
{
    json_t *o = json_pack("{s:b, s:I, s:I, s:b, s:b, s:b, s:I, s:I, s:I, s:o}", "enabled", s->enabled, "port",
                          (json_int_t)s->port, "readOnlyPort", (json_int_t)s->read_only_port, "tokenWebhook",
                          s->token_webhook, "anonymous", s->anonymous, "debugging", s->debugging, "tokenMs",
                          (json_int_t)s->token_ttl_ms, "allowedMs", (json_int_t)s->allowed_ttl_ms, "deniedMs",
                          (json_int_t)s->denied_ttl_ms, "ciphers", list_json(&s->ciphers));

    json_put_str(o, "address", s->address);
    json_put_str(o, "minVersion", s->min_version);
    json_object_set_new(o, "idleMs", json_integer((json_int_t)s->stream_idle_ms));
    if (curves != NULL)
        json_object_set_new(o, "curves", json_deep_copy(curves));
    json_put_str(o, "authorization", s->authorization);
    return o;
}

/* The message `config`. */
static json_t *config_message(const struct agent *a)
{
    const struct agent_config *c = &a->config;
    const struct config_kube *k = &c->kube;
    json_t *o = json_pack(
        "{s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:{s:b, s:b, s:b}}",
        "nodeName", a->node_name, "version", CORACLE_VERSION, "registerNode", k->register_node,
        "unschedulable", !k->register_schedulable, "leaseSeconds", (json_int_t)k->lease_seconds, "updateMs",
        (json_int_t)k->update_ms, "reportMs", (json_int_t)k->report_ms, "eventRate", (json_int_t)k->event_qps,
        "eventBurst", (json_int_t)k->event_burst, "apiRate", (json_int_t)k->api_qps, "apiBurst",
        (json_int_t)k->api_burst, "maxImages", (json_int_t)k->max_images, "labels", labels_json(c), "taints",
        taints_json(c), "server", server_json(&k->server, config_value(c, "tlsCurvePreferences")),
        "certificates", "bootstrap", k->bootstrap_kubeconfig[0] != '\0', "rotateClient", k->rotate_client,
        "rotateServer", k->rotate_server);

    if (o != NULL && k->provider_id[0] != '\0')
        json_put_str(o, "providerID", k->provider_id);
    return o;
}

static json_t *join_node_object(void *arg)
{
    struct agent *a = arg;

    const struct config_kube *k = &a->config.kube;

    return provider_node_complete(a->node, k->max_images, k->server.enabled ? k->server.port : 0);
}

/* ---- credentials ---- */

static void join_on_credentials(const json_t *message, void *arg)
{
    struct agent *a = arg;
    json_t *copy = json_copy((json_t *)(uintptr_t)message);

    if (copy != NULL)
        cluster_set_credentials(a->cluster, copy);
}

static void join_on_trouble(const struct err *why, void *arg)
{
    struct agent *a = arg;

    if (why != NULL)
        log_error("cannot read the credentials for the apiserver; will retry", F_ERR(why));
    else
        log_info("the credentials for the apiserver can be read again");
    cluster_set_trouble(a->cluster, why != NULL ? why->text : NULL);
}

static void join_on_anew(const char *why, void *arg)
{
    struct agent *a = arg;

    kube_credentials_anew(a->credentials, why);
}

static void join_on_written(const struct err *result, void *arg)
{
    (void)arg;
    if (result->code != ERR_OK)
        log_error("cannot write a certificate that was issued to this node", F_ERR(result));
}

static void join_on_certificate(const json_t *message, void *arg)
{
    struct agent *a = arg;

    kube_credentials_issued(a->credentials, message, join_on_written, a);
}

static enum err_code join_lend(int *ret, void *arg, struct err *e)
{
    struct agent *a = arg;

    if (a->server == NULL)
        return err_set(e, ERR_UNAVAILABLE, "the status socket is not open");
    return status_server_lend(a->server, ret, e);
}

static void join_on_serving(const json_t *message, void *arg)
{
    struct agent *a = arg;
    json_t *copy = json_copy((json_t *)(uintptr_t)message);

    if (copy != NULL)
        cluster_set_serving(a->cluster, copy);
}

static void join_on_serving_trouble(const struct err *why, void *arg)
{
    (void)arg;
    if (why != NULL)
        log_error("cannot read the certificate of the node's port; will retry", F_ERR(why));
    else
        log_info("the certificate of the node's port can be read again");
}

static enum err_code open_serving(struct agent *a, struct err *e)
{
    const struct config_kube *k = &a->config.kube;
    const struct kube_serving_options o = { .loop = &a->loop,
                                            .cert_dir = k->cert_dir,
                                            .cert_file = k->server.cert_file,
                                            .key_file = k->server.key_file,
                                            .client_ca_file = k->server.client_ca_file,
                                            .rotate = k->rotate_server,
                                            .on_serving = join_on_serving,
                                            .on_trouble = join_on_serving_trouble,
                                            .arg = a };

    return k->server.enabled ? kube_serving_open(&a->serving, &o, e) : ERR_OK;
}

/* A path as given on the command line may be relative to the daemon's working directory. */
static char *absolute(const char *path)
{
    char cwd[PATH_MAX];

    if (path[0] == '/' || path[0] == '\0' || getcwd(cwd, sizeof(cwd)) == NULL)
        return strdup(path);
    return str_printf("%s/%s", cwd, path);
}

static enum err_code open_credentials(struct agent *a, struct err *e)
{
    const struct config_kube *k = &a->config.kube;
    str_auto kubeconfig = absolute(k->kubeconfig);
    str_auto bootstrap = absolute(k->bootstrap_kubeconfig);
    str_auto cert_dir = absolute(k->cert_dir);
    const struct kube_credentials_options o = { .loop = &a->loop,
                                                .kubeconfig = kubeconfig,
                                                .bootstrap = bootstrap,
                                                .cert_dir = cert_dir,
                                                .rotate = k->rotate_client,
                                                .environment = (const char *const *)environ,
                                                .cgroup_fd = cg_leaf_fd(a->cgroups, CG_LEAF_OPS),
                                                .cgroup_procs = cg_leaf_procs(a->cgroups, CG_LEAF_OPS),
                                                .on_credentials = join_on_credentials,
                                                .on_trouble = join_on_trouble,
                                                .arg = a };

    if (kubeconfig == NULL || bootstrap == NULL || cert_dir == NULL)
        return err_nomem(e);
    return kube_credentials_open(&a->credentials, &o, e);
}

/* ---- opening and closing ---- */

/* Removes the secrets of a cluster that the node has left. */
static void join_forget(const struct agent *a)
{
    str_auto kept = str_printf("%s/kept", a->config.state_dir);
    struct stat there;
    struct err e = { 0 };

    if (kept == NULL || lstat(kept, &there) != 0) /* best effort: the next start retries */
        return;
    if (fs_remove_tree(AT_FDCWD, kept, &e) == ERR_OK)
        log_info("objects of the cluster were removed from the disk: the node has left it",
                 F_STR("folder", kept));
    else
        log_warn("cannot remove objects of a cluster that the node has left", F_ERR(&e));
}

enum err_code join_open(struct agent *a, struct err *e)
{
    struct cluster_options o = { .loop = &a->loop,
                                 .store = a->store,
                                 .node = a->node,
                                 .program = a->pre.kube,
                                 .seal_program = a->pre.seal,
                                 .lend = join_lend,
                                 .node_object = join_node_object,
                                 .on_anew = join_on_anew,
                                 .on_certificate = join_on_certificate,
                                 .arg = a };

    if (!join_wanted(a)) {
        join_forget(a);
        return ERR_OK;
    }
    o.config = config_message(a);
    if (o.config == NULL)
        return err_nomem(e);
    if (cluster_open(&a->cluster, &o, e) != ERR_OK)
        return err_wrap(e, "cluster");
    node_set_tokens(a->node, cluster_tokens(a->cluster));
    log_info("joining a cluster", F_STR("kubeconfig", a->config.kube.kubeconfig),
             F_STR("node", a->node_name));
    return open_credentials(a, e) == ERR_OK ? open_serving(a, e) : e->code;
}

void join_close(struct agent *a)
{
    kube_credentials_close(a->credentials);
    a->credentials = NULL;
    kube_serving_close(a->serving);
    a->serving = NULL;
    cluster_close(a->cluster);
}
