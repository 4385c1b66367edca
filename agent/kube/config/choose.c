/* SPDX-License-Identifier: Apache-2.0 */
/* choose - the context, cluster and user in force, and flags above them (clientcmd/client_config.go). */
#include "agent/kube/config/internal.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>

const char *kube_get(const struct kube_choice *c, enum kube_kind kind, const char *field)
{
    const char *text = json_str(c->of[kind].value, field);

    return text != NULL ? text : "";
}

bool kube_has(const struct kube_choice *c, enum kube_kind kind, const char *field)
{
    return json_object_get(c->of[kind].value, field) != NULL;
}

void kube_choice_done(struct kube_choice *c)
{
    for (size_t k = 0; k < KUBE_KINDS; k++) {
        free(c->of[k].name);
        kube_json_wipe(c->of[k].value);
        json_decref(c->of[k].origin);
    }
    free(c->server);
    free(c->url_user);
    if (c->url_password != NULL)
        explicit_bzero(c->url_password, strlen(c->url_password));
    free(c->url_password);
    free(c->proxy);
    *c = (struct kube_choice){ 0 };
}

static const struct kube_entry *choose_find(const struct kube_entries *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->v[i].name, name) == 0)
            return &all->v[i];
    return NULL;
}

/* A part by its name, which may be NULL or name nothing. */
static enum err_code take_part(struct kube_part *p, const struct kube_entries *all, const char *name,
                               const char *named, struct err *e)
{
    const struct kube_entry *entry = name != NULL ? choose_find(all, name) : NULL;
    const char *key;
    json_t *v;

    *p = (struct kube_part){ .named = named, .from = entry != NULL ? entry->from : NULL };
    p->value = entry != NULL ? json_copy(entry->value) : json_object();
    p->origin = json_object();
    if (p->value == NULL || p->origin == NULL || (name != NULL && (p->name = strdup(name)) == NULL))
        return err_nomem(e);
    json_object_foreach (p->value, key, v)
        if (json_object_set_new(p->origin, key, json_string(p->from)) != 0)
            return err_nomem(e);
    return ERR_OK;
}

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static enum err_code by_flags(struct kube_choice *c, const struct kube_config *all,
                              const struct kube_flags *f, struct err *e)
{
    const struct kube_part *context = &c->of[KUBE_CONTEXT];
    const char *cluster, *user;

    if (is_given(f->context)
            ? take_part(&c->of[KUBE_CONTEXT], &all->of[KUBE_CONTEXT], f->context, "--context", e)
            : take_part(&c->of[KUBE_CONTEXT], &all->of[KUBE_CONTEXT], all->current, all->current_from, e))
        return e->code;
    cluster = json_str(context->value, "cluster");
    user = json_str(context->value, "user");
    if (is_given(f->user) ? take_part(&c->of[KUBE_USER], &all->of[KUBE_USER], f->user, "--user", e)
                          : take_part(&c->of[KUBE_USER], &all->of[KUBE_USER], user, context->from, e))
        return e->code;
    if (is_given(f->cluster)
            ? take_part(&c->of[KUBE_CLUSTER], &all->of[KUBE_CLUSTER], f->cluster, "--cluster", e)
            : take_part(&c->of[KUBE_CLUSTER], &all->of[KUBE_CLUSTER], cluster, context->from, e))
        return e->code;
    if (is_given(f->user) && c->of[KUBE_USER].from == NULL)
        return err_set(e, ERR_NOT_FOUND, "auth info \"%.100s\" does not exist", f->user);
    if (is_given(f->context) && context->from == NULL)
        return err_set(e, ERR_NOT_FOUND, "context \"%.100s\" does not exist", f->context);
    if (is_given(f->cluster) && c->of[KUBE_CLUSTER].from == NULL)
        return err_set(e, ERR_NOT_FOUND, "cluster \"%.100s\" does not exist", f->cluster);
    return ERR_OK;
}

/* ---- flags for single values ---- */

static void choose_drop(struct kube_part *p, const char *field)
{
    json_object_del(p->value, field);
    json_object_del(p->origin, field);
}

/* Takes the reference. */
static bool choose_put(struct kube_part *p, const char *field, json_t *v, const char *flag)
{
    return json_object_set_new(p->value, field, v) == 0 &&
           json_object_set_new(p->origin, field, json_string(flag)) == 0;
}

static bool put_text(struct kube_part *p, const char *field, const char *text, const char *flag)
{
    return !is_given(text) || choose_put(p, field, json_string(text), flag);
}

/* A CA by flag takes the place of the file's CA and of its insecure-skip-tls-verify, and the other way round;
 * a server by flag drops the tls-server-name of the file. */
static bool cluster_flags(struct kube_part *p, const struct kube_flags *f)
{
    if (is_given(f->ca) || f->insecure) {
        choose_drop(p, "insecure-skip-tls-verify");
        choose_drop(p, "certificate-authority");
        choose_drop(p, "certificate-authority-data");
    }
    if (is_given(f->server) || is_given(f->tls_server_name))
        choose_drop(p, "tls-server-name");
    if (f->insecure && !choose_put(p, "insecure-skip-tls-verify", json_true(), "--insecure-skip-tls-verify"))
        return false;
    if (f->no_compression && !choose_put(p, "disable-compression", json_true(), "--disable-compression"))
        return false;
    return put_text(p, "server", f->server, "--server") &&
           put_text(p, "tls-server-name", f->tls_server_name, "--tls-server-name") &&
           put_text(p, "certificate-authority", f->ca, "--certificate-authority");
}

static bool user_flags(struct kube_part *p, const struct kube_flags *f)
{
    if (is_given(f->certificate))
        choose_drop(p, "client-certificate-data");
    if (is_given(f->key))
        choose_drop(p, "client-key-data");
    if (f->as_groups != NULL && f->as_groups[0] != NULL) {
        json_t *groups = json_array();
        for (size_t i = 0; f->as_groups[i] != NULL; i++)
            if (json_array_append_new(groups, json_string(f->as_groups[i])) != 0)
                return false;
        if (!choose_put(p, "as-groups", groups, "--as-group"))
            return false;
    }
    return put_text(p, "client-certificate", f->certificate, "--client-certificate") &&
           put_text(p, "client-key", f->key, "--client-key") && put_text(p, "token", f->token, "--token") &&
           put_text(p, "username", f->username, "--username") &&
           put_text(p, "password", f->password, "--password") && put_text(p, "as", f->as, "--as") &&
           put_text(p, "as-uid", f->as_uid, "--as-uid");
}

/* ---- the server ---- */

static enum err_code choose_server(struct kube_choice *c, struct err *e)
{
    const char *text = kube_get(c, KUBE_CLUSTER, "server");
    struct kube_url u = { 0 };
    struct err ignored = { 0 };
    size_t n;

    if (text[0] == '\0' || kube_url_server(text, &u, &ignored) != ERR_OK)
        return ERR_OK; /* kube_config_check() reports it */
    for (n = strlen(u.path); n > 0 && u.path[n - 1] == '/'; n--)
        u.path[n - 1] = '\0';
    c->server = str_printf("%s://%s%s", u.scheme, u.host, u.path);
    c->tls = strcmp(u.scheme, "https") == 0;
    c->url_user = take_ptr(&u.user);
    c->url_password = take_ptr(&u.password);
    kube_url_done(&u);
    return c->server != NULL ? ERR_OK : err_nomem(e);
}

enum err_code kube_config_choose(struct kube_choice *ret, const struct kube_config *all,
                                 const struct kube_flags *flags, struct err *e)
{
    struct kube_choice c = { 0 };

    if (by_flags(&c, all, flags, e) == ERR_OK) {
        if (!cluster_flags(&c.of[KUBE_CLUSTER], flags) || !user_flags(&c.of[KUBE_USER], flags) ||
            !put_text(&c.of[KUBE_CONTEXT], "namespace", flags->namespace_, "--namespace"))
            err_nomem(e);
        else
            ERR_IGNORE(choose_server(&c, e));
    }
    if (e->code == ERR_OK && kube_has(&c, KUBE_CLUSTER, "proxy-url") &&
        (c.proxy = strdup(kube_get(&c, KUBE_CLUSTER, "proxy-url"))) == NULL)
        err_nomem(e);
    if (e->code != ERR_OK) {
        kube_choice_done(&c);
        return e->code;
    }
    kube_choice_done(ret);
    *ret = c;
    return ERR_OK;
}
