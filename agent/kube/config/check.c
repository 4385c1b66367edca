/* SPDX-License-Identifier: Apache-2.0 */
/* check - whether a choice can be used (clientcmd/validation.go, rest/transport.go, plugin/pkg/client/auth),
 * in the real client's words where it has some. */
#include "agent/kube/config/exec.h"
#include "agent/kube/config/file.h"
#include "agent/kube/config/internal.h"
#include "base/codec/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct checking {
    const struct kube_choice *c;
    struct buf *problems;
};

static void problem(struct checking *k, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void problem(struct checking *k, const char *fmt, ...)
{
    va_list ap;

    if (k->problems->n > 0)
        buf_adds(k->problems, "; ");
    va_start(ap, fmt);
    buf_addv(k->problems, fmt, ap);
    va_end(ap);
}

/* "a", or the words for a missing name. */
static const char *check_name(const struct checking *k, enum kube_kind kind)
{
    const char *name = k->c->of[kind].name;

    return name != NULL ? name : "";
}

static void check_readable(struct checking *k, enum kube_kind kind, const char *field, const char *word)
{
    const char *path = kube_get(k->c, kind, field);
    int fd;

    if (path[0] == '\0')
        return;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        problem(k, "unable to read %s %s for %s due to open %s: %s", word, path, check_name(k, kind), path,
                strerror(errno));
    else
        close(fd);
}

static void check_cluster(struct checking *k)
{
    const struct kube_choice *c = k->c;
    const char *name = check_name(k, KUBE_CLUSTER), *proxy = kube_get(c, KUBE_CLUSTER, "proxy-url");
    bool data = kube_has(c, KUBE_CLUSTER, "certificate-authority-data"),
         file = kube_has(c, KUBE_CLUSTER, "certificate-authority");
    struct err e = { 0 };

    if (proxy[0] != '\0' && kube_url_proxy(proxy, &e) != ERR_OK)
        problem(k, "cluster \"%s\": %s", name, e.text);
    if (data && file)
        problem(k,
                "certificate-authority-data and certificate-authority are both specified for %s: only one is "
                "allowed",
                name);
    check_readable(k, KUBE_CLUSTER, "certificate-authority", "certificate-authority");
    if ((data || file) && kube_has(c, KUBE_CLUSTER, "insecure-skip-tls-verify"))
        problem(k,
                "cluster \"%s\": specifying a root certificates file with the insecure flag is not allowed "
                "(certificate-authority and insecure-skip-tls-verify)",
                name);
}

static void check_certificate(struct checking *k)
{
    const struct kube_choice *c = k->c;
    const char *name = check_name(k, KUBE_USER);
    bool data = kube_has(c, KUBE_USER, "client-certificate-data"),
         file = kube_has(c, KUBE_USER, "client-certificate"),
         key_data = kube_has(c, KUBE_USER, "client-key-data"),
         key_file = kube_has(c, KUBE_USER, "client-key");

    if (!data && !file)
        return;
    if (data && file)
        problem(
            k,
            "client-certificate-data and client-certificate are both specified for %s: only one is allowed",
            name);
    if (key_data && key_file)
        problem(k, "client-key-data and client-key are both specified for %s: only one is allowed", name);
    if (!key_data && !key_file)
        problem(k,
                "client-key-data or client-key must be specified for %s to use the clientCert "
                "authentication method",
                name);
    check_readable(k, KUBE_USER, "client-certificate", "client-cert");
    check_readable(k, KUBE_USER, "client-key", "client-key");
}

static void check_exec(struct checking *k, const json_t *exec)
{
    const char *name = check_name(k, KUBE_USER), *version = json_str(exec, "apiVersion"),
               *mode = json_str(exec, "interactiveMode");
    json_t *pair;
    size_t i;

    if (kube_has(k->c, KUBE_USER, "auth-provider"))
        problem(k, "authProvider cannot be provided in combination with an exec plugin for %s", name);
    if (json_str(exec, "command") == NULL)
        problem(k, "command must be specified for %s to use exec authentication plugin", name);
    if (version == NULL)
        problem(k, "apiVersion must be specified for %s to use exec authentication plugin", name);
    json_array_foreach (json_object_get(exec, "env"), i, pair)
        if (json_str(pair, "name") == NULL)
            problem(k, "env variable name must be specified for %s to use exec authentication plugin", name);
    if (version != NULL && strcmp(version, KUBE_EXEC_V1) != 0 && strcmp(version, KUBE_EXEC_V1BETA1) != 0)
        problem(k,
                "exec plugin of %s: invalid apiVersion \"%.100s\", supported are " KUBE_EXEC_V1
                " and " KUBE_EXEC_V1BETA1,
                name, version);
    else if (mode == NULL && version != NULL && strcmp(version, KUBE_EXEC_V1) == 0)
        problem(k, "interactiveMode must be specified for %s to use exec authentication plugin", name);
    if (mode != NULL && strcmp(mode, "Always") == 0)
        problem(
            k,
            "exec plugin of %s cannot support interactive mode: interactiveMode is Always, and an agent has "
            "no terminal",
            name);
    else if (mode != NULL && strcmp(mode, "Never") != 0 && strcmp(mode, "IfAvailable") != 0)
        problem(k, "invalid interactiveMode for %s: \"%.100s\"", name, mode);
}

static void check_provider(struct checking *k, const json_t *provider)
{
    const char *name = json_str(provider, "name");

    if (kube_has(k->c, KUBE_USER, "exec"))
        return; /* reported with it */
    if (str_eq(name, "gcp") || str_eq(name, "azure"))
        problem(k,
                "user \"%s\": the %s auth plugin has been removed; use the \"%s\" credential plugin (exec) "
                "instead",
                check_name(k, KUBE_USER), name, name[0] == 'g' ? "gke-gcloud-auth-plugin" : "kubelogin");
    else if (str_eq(name, "oidc"))
        problem(k, "user \"%s\": auth-provider oidc is not supported; use an exec credential plugin",
                check_name(k, KUBE_USER));
    else
        problem(k, "user \"%s\": no Auth Provider found for name \"%.100s\"", check_name(k, KUBE_USER),
                name != NULL ? name : "");
}

static void check_user(struct checking *k)
{
    const struct kube_choice *c = k->c;
    const char *name = check_name(k, KUBE_USER);
    const json_t *user = c->of[KUBE_USER].value, *exec = json_object_get(user, "exec"),
                 *provider = json_object_get(user, "auth-provider");
    bool basic = kube_has(c, KUBE_USER, "username") || kube_has(c, KUBE_USER, "password");

    check_certificate(k);
    if (exec != NULL)
        check_exec(k, exec);
    if (kube_has(c, KUBE_USER, "token") && basic)
        problem(
            k,
            "more than one authentication method found for %s; found [token basicAuth], only one is allowed",
            name);
    else if (kube_has(c, KUBE_USER, "tokenFile") && kube_has(c, KUBE_USER, "username"))
        problem(k, "user \"%s\": username/password or bearer token (tokenFile) may be set, but not both",
                name);
    if (!kube_has(c, KUBE_USER, "as") &&
        (kube_has(c, KUBE_USER, "as-uid") || kube_has(c, KUBE_USER, "as-groups") ||
         kube_has(c, KUBE_USER, "as-user-extra")))
        problem(k, "requesting uid, groups or user-extra for %s without impersonating a user", name);
    if (provider != NULL && c->tls)
        check_provider(k, provider);
}

/* ---- questions of the real client to the user, and its fall-backs ---- */

static bool can_identify(const struct kube_choice *c)
{
    return c->url_user != NULL || kube_has(c, KUBE_USER, "username") || kube_has(c, KUBE_USER, "token") ||
           kube_has(c, KUBE_USER, "tokenFile") || kube_has(c, KUBE_USER, "exec") ||
           kube_has(c, KUBE_USER, "auth-provider") || kube_has(c, KUBE_USER, "client-certificate") ||
           kube_has(c, KUBE_USER, "client-certificate-data");
}

static void check_there(struct checking *k, enum kube_kind kind)
{
    const struct kube_part *p = &k->c->of[kind], *context = &k->c->of[KUBE_CONTEXT];

    if (p->from != NULL)
        return;
    if (p->name != NULL)
        problem(k, "%s \"%s\", named by context \"%s\" in %s, does not exist", kube_kind_name[kind], p->name,
                check_name(k, KUBE_CONTEXT), context->from);
    else if (context->from != NULL)
        problem(k, "context \"%s\" in %s names no %s", context->name, context->from, kube_kind_name[kind]);
    else
        problem(k, "no %s is given", kube_kind_name[kind]);
}

static void add_paths(struct checking *k, const struct strs *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        buf_addf(k->problems, "%s%s", i > 0 ? ", " : "", paths->v[i]);
}

static void check_context(struct checking *k, const struct kube_config *all)
{
    const struct kube_part *context = &k->c->of[KUBE_CONTEXT];

    if (context->name != NULL && context->from == NULL)
        problem(k, "context was not found for specified context: %s (current-context of %s)", context->name,
                context->named);
    if (context->name != NULL || k->c->of[KUBE_CLUSTER].name != NULL ||
        kube_has(k->c, KUBE_CLUSTER, "server"))
        return;
    if (all->files.n == 0) {
        problem(k, "there is no kubeconfig: these files do not exist: ");
        add_paths(k, &all->missing);
    } else {
        problem(k, "current-context is not set in ");
        add_paths(k, &all->files);
    }
}

static void check_complete(struct checking *k)
{
    const struct kube_choice *c = k->c;
    const char *server = kube_get(c, KUBE_CLUSTER, "server");
    struct kube_url u = { 0 };
    struct err e = { 0 };

    if (server[0] == '\0' && c->of[KUBE_CLUSTER].from != NULL)
        problem(k, "cluster \"%s\" in %s has no server", check_name(k, KUBE_CLUSTER),
                c->of[KUBE_CLUSTER].from);
    else if (server[0] == '\0')
        check_there(k, KUBE_CLUSTER);
    else if (c->server == NULL && kube_url_server(server, &u, &e) != ERR_OK)
        problem(k, "cluster \"%s\": %s", check_name(k, KUBE_CLUSTER), e.text);
    if (!c->tls || can_identify(c))
        return;
    if (c->of[KUBE_USER].from == NULL)
        check_there(k, KUBE_USER);
    else if (kube_has(c, KUBE_USER, "client-key") || kube_has(c, KUBE_USER, "client-key-data"))
        problem(k, "user \"%s\" in %s has a client key, but no certificate", check_name(k, KUBE_USER),
                c->of[KUBE_USER].from);
    else if (kube_has(c, KUBE_USER, "password"))
        problem(k, "user \"%s\" in %s has a password, but no username", check_name(k, KUBE_USER),
                c->of[KUBE_USER].from);
    else
        problem(
            k,
            "user \"%s\" in %s has no credentials: token, tokenFile, client-certificate, username or exec is "
            "needed",
            check_name(k, KUBE_USER), c->of[KUBE_USER].from);
}

enum err_code kube_config_check(const struct kube_choice *c, const struct kube_config *all, struct err *e)
{
    buf_auto text = BUF_INIT(8192);
    struct checking k = { c, &text };

    check_context(&k, all);
    if (text.n == 0) {
        check_user(&k);
        check_cluster(&k);
        check_complete(&k);
    }
    return text.n == 0 ? ERR_OK : err_set(e, ERR_INVALID, "%s", text.p);
}
