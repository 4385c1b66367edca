/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/env/env.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/env/env_file.h"
#include "agent/pod/env/service_env.h"
#include "base/codec/base64.h"
#include "base/files/fs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The number of base64 digits that do not occur in a text by chance; a value of four bytes has at least five
 * digits. */
enum { BASE64_MIN = 4 };

const char *env_get(const struct env *env, const char *name)
{
    for (size_t i = env->n; i-- > 0;)
        if (strcmp(env->v[i].name, name) == 0)
            return env->v[i].value;
    return env->services != NULL ? service_env_get(env->services, name) : NULL;
}

enum err_code env_too_large(struct err *e)
{
    return err_set(e, ERR_INVALID, "the environment is too large, allowed are %d variables and %d bytes",
                   ENV_MAX, ENV_BYTES_MAX);
}

static enum err_code append(struct env *env, struct arena *a, char *name, char *value, struct err *e)
{
    if (env->n >= ENV_MAX || a->used > ENV_BYTES_MAX)
        return env_too_large(e);
    if (env->n == env->cap) {
        size_t cap = env->cap == 0 ? 16 : env->cap * 2;
        struct env_var *v = arena_alloc(a, cap * sizeof(*v));
        if (v == NULL)
            return err_nomem(e);
        if (env->n > 0)
            memcpy(v, env->v, env->n * sizeof(*v));
        env->v = v;
        env->cap = cap;
    }
    env->v[env->n++] = (struct env_var){ name, value };
    return ERR_OK;
}

static enum err_code set(struct env *env, struct arena *a, char *name, char *value, struct err *e)
{
    if (name == NULL || value == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < env->n; i++) {
        if (strcmp(env->v[i].name, name) == 0) {
            env->v[i].value = value;
            return ERR_OK;
        }
    }
    return append(env, a, name, value, e);
}

/* Notes a Secret's value; NULL is fine, set() reports the error. */
static enum err_code note_secret(struct env *env, struct arena *a, char *value, struct err *e)
{
    if (value == NULL)
        return ERR_OK;
    if (env->n_secrets == env->cap_secrets) {
        size_t cap = env->cap_secrets == 0 ? 16 : env->cap_secrets * 2;
        char **v = arena_alloc(a, cap * sizeof(*v));
        if (v == NULL)
            return err_nomem(e);
        if (env->n_secrets > 0)
            memcpy(v, env->secrets, env->n_secrets * sizeof(*v));
        env->secrets = v;
        env->cap_secrets = cap;
    }
    env->secrets[env->n_secrets++] = value;
    return ERR_OK;
}

void env_wipe(struct env *env)
{
    for (size_t i = 0; i < env->n; i++)
        explicit_bzero(env->v[i].value, strlen(env->v[i].value));
    for (size_t i = 0; i < env->n_secrets; i++) /* including those replaced by another variable */
        explicit_bzero(env->secrets[i], strlen(env->secrets[i]));
}

static int env_longest_first(const void *a, const void *b)
{
    size_t m = strlen(*(char *const *)a), n = strlen(*(char *const *)b);

    return (m < n) - (m > n);
}

/* Redacts all occurrences of `form` in the text, and a truncated one at its end. */
static void redact_form(char *text, const char *form, size_t len)
{
    static const char stars[] = "***";
    const size_t n_stars = strlen(stars);
    size_t n;

    if (len < ENV_SECRET_MIN)
        return;
    for (char *p = text; (p = strstr(p, form)) != NULL; p += n_stars) {
        memmove(p + n_stars, p + len, strlen(p + len) + 1);
        memcpy(p, stars, n_stars);
    }
    n = strlen(text);
    for (size_t k = len - 1 < n ? len - 1 : n; k >= ENV_SECRET_MIN; k--) {
        if (memcmp(text + n - k, form, k) != 0)
            continue;
        memcpy(text + n - k, stars, n_stars + 1);
        break;
    }
}

/* The base64 of the secret at each of the three possible offsets in an encoded text ("user:secret", a whole
 * file): the digits that depend only on it. If its last bytes share a digit with the following ones, that
 * digit is kept: it has too few of their bits. Both alphabets; padding is kept, it has no bits at all. */
static void redact_base64(char *text, const char *secret)
{
    const size_t len = strlen(secret);

    for (size_t before = 0; before < 3; before++) {
        /* Encoding may need twice the value plus the three bytes before it. */
        buf_auto whole = BUF_INIT(2 * ENV_BYTES_MAX), digits = BUF_INIT(2 * ENV_BYTES_MAX);
        const size_t first = (before * 8 + 5) / 6, end = (before + len) * 8 / 6;

        buf_add(&whole, "\0\0", before);
        buf_add(&whole, secret, len);
        base64_add(&digits, whole.p, whole.n);
        if (!whole.failed && !digits.failed && end >= first + BASE64_MIN) {
            digits.p[end] = '\0';
            redact_form(text, digits.p + first, end - first);
            for (char *c = digits.p; *c != '\0'; c++)
                *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
            redact_form(text, digits.p + first, end - first);
        }
        if (whole.cap > 0)
            explicit_bzero(whole.p, whole.n);
        if (digits.cap > 0)
            explicit_bzero(digits.p, digits.cap);
    }
}

/* In the format of JSON (jansson, Go with and without HTML escapes) and Go's %q within quotes. */
static void redact_escaped(char *text, const char *secret, bool html, bool slash, bool short_control)
{
    static const char from[] = "\n\t\r\b\f", to[] = "ntrbf";
    buf_auto out = BUF_INIT(6 * ENV_BYTES_MAX);
    bool differs = false;

    for (const unsigned char *c = (const unsigned char *)secret; *c != '\0'; c++) {
        const size_t before = out.n;
        const char *known = strchr(from, *c);

        if (*c == '"' || *c == '\\' || (slash && *c == '/'))
            buf_addf(&out, "\\%c", *c);
        else if (known != NULL && (short_control || known < from + 3))
            buf_addf(&out, "\\%c", to[known - from]);
        else if (*c < ' ' || (html && strchr("<>&", *c) != NULL))
            buf_addf(&out, "\\u%04x", *c);
        else
            buf_addc(&out, (char)*c);
        differs = differs || out.n - before != 1;
    }
    if (differs && !out.failed)
        redact_form(text, out.p, out.n);
    if (out.cap > 0)
        explicit_bzero(out.p, out.n);
}

void env_redact(struct env *env, char *text)
{
    if (env->n_secrets > 1) /* one may be a part of another */
        qsort(env->secrets, env->n_secrets, sizeof(*env->secrets), env_longest_first);
    for (size_t i = 0; i < env->n_secrets; i++) {
        const char *secret = env->secrets[i];

        if (strlen(secret) < ENV_SECRET_MIN)
            continue;
        for (unsigned how = 0; how < 8; how++) /* before the plain form, which may be a part of these */
            redact_escaped(text, secret, (how & 1) != 0, (how & 2) != 0, (how & 4) != 0);
        redact_form(text, secret, strlen(secret));
        redact_base64(text, secret);
    }
}

/* ---- expansion ---- */

char *env_expand(const char *text, const struct env *env, struct arena *a, const char **ret_missing)
{
    buf_auto out = BUF_INIT(ENV_BYTES_MAX);
    bool big = false;
    char *ret;

    if (ret_missing != NULL)
        *ret_missing = NULL;
    for (const char *p = text; *p != '\0'; p++) {
        const char *end, *value;
        char *name;

        if (p[0] != '$' || (p[1] != '$' && p[1] != '(')) {
            buf_addc(&out, *p);
            continue;
        }
        if (p[1] == '$') { /* $$ is one $; the text after it is plain */
            buf_addc(&out, '$');
            p++;
            continue;
        }
        end = strchr(p + 2, ')');
        if (end == NULL) { /* unterminated: unchanged */
            buf_adds(&out, "$(");
            p++;
            continue;
        }
        name = arena_strndup(a, p + 2, (size_t)(end - p - 2));
        if (name == NULL)
            return NULL;
        value = env_get(env, name);
        if (ret_missing != NULL && *ret_missing == NULL && (value == NULL || value[0] == '\0'))
            *ret_missing = name;
        big = big || (value != NULL && out.n + strlen(value) > ENV_BYTES_MAX);
        if (value != NULL)
            buf_adds(&out, value);
        else
            buf_add(&out, p, (size_t)(end - p + 1));
        p = end;
    }
    ret = out.failed ? NULL : arena_strndup(a, out.p, out.n);
    if (out.cap > 0)
        explicit_bzero(out.p, out.n);
    if (ret == NULL)
        errno = big || out.n + 1 >= ENV_BYTES_MAX ? E2BIG : ENOMEM;
    return ret;
}

enum err_code env_expand_error(struct err *e)
{
    return errno == E2BIG ? env_too_large(e) : err_nomem(e);
}

const char *env_sub_path(const struct api_volume_mount *m, const struct env *env, struct arena *a,
                         const char **ret_missing)
{
    char *ret;

    *ret_missing = NULL;
    if (m->sub_path_expr != NULL)
        ret = env_expand(m->sub_path_expr, env, a, ret_missing);
    else
        ret = arena_strdup(a, m->sub_path != NULL ? m->sub_path : "");
    return ret == NULL || ret[0] == '/' ? ret : fs_path_clean(ret);
}

/* ---- sources ---- */

static const struct api_config *env_config(const struct pod *p, enum api_config_kind kind, const char *name)
{
    return src_store_config(p->node->o.store, p->api->origin, kind, p->api->meta.namespace, name);
}

/* kubelet passes it on, and its engine rejects it. */
static enum err_code check_no_nul(enum api_config_kind kind, const char *name, const struct api_datum *d,
                                  struct err *e)
{
    if (memchr(d->data, '\0', d->size) == NULL)
        return ERR_OK;
    return err_set(e, ERR_PRECONDITION,
                   "key %s of %s \"%s\" contains a NUL byte and cannot be an environment variable", d->key,
                   kind == API_SECRET ? "secret" : "configmap", name);
}

static enum err_code add_from(const struct pod *p, const struct api_env_from *f, struct arena *a,
                              struct env *env, struct err *e)
{
    enum api_config_kind kind = f->secret_ref != NULL ? API_SECRET : API_CONFIG_MAP;
    const char *name = f->secret_ref != NULL ? f->secret_ref : f->config_map_ref;
    const struct api_config *c = env_config(p, kind, name);

    if (c == NULL)
        return pod_lacks_config(p, kind, name, f->optional, e);
    for (size_t i = 0; i < c->n_data; i++) {
        const struct api_datum *d = &c->data[i];
        char *value;
        if (d->binary) /* binaryData */
            continue;
        if (check_no_nul(kind, name, d, e) != ERR_OK)
            return e->code;
        value = arena_strndup(a, d->data, d->size);
        if ((kind == API_SECRET && note_secret(env, a, value, e) != ERR_OK) ||
            set(env, a, arena_printf(a, "%s%s", f->prefix != NULL ? f->prefix : "", d->key), value, e) !=
                ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

/* *ret stays NULL for an optional reference to a missing object. */
static enum err_code key_value(const struct pod *p, enum api_config_kind kind, const struct api_key_ref *ref,
                               struct arena *a, char **ret, struct err *e)
{
    const struct api_config *c = env_config(p, kind, ref->name);
    const struct api_datum *d = c != NULL ? api_config_get(c, ref->key) : NULL;

    if (c == NULL)
        return pod_lacks_config(p, kind, ref->name, ref->optional, e);
    if (d == NULL || d->binary) {
        if (ref->optional)
            return ERR_OK;
        return err_set(e, ERR_PRECONDITION, "couldn't find key %s in %s %s/%s", ref->key,
                       kind == API_SECRET ? "Secret" : "ConfigMap", p->api->meta.namespace, ref->name);
    }
    if (check_no_nul(kind, ref->name, d, e) != ERR_OK)
        return e->code;
    *ret = arena_strndup(a, d->data, d->size);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

/* *ret stays NULL for an optional reference to a missing object; an unreadable file is an error. */
static enum err_code file_value(const struct pod *p, const struct api_file_key_ref *ref, struct arena *a,
                                char **ret, struct err *e)
{
    const struct api_volume *v = api_volume_find(&p->api->spec, ref->volume_name);
    struct err why = { 0 };
    str_auto text = NULL;
    char folder[1024];
    size_t n = 0;

    if (v == NULL)
        return err_set(e, ERR_INVALID, "volume \"%s\" does not exist", ref->volume_name);
    if (volumes_host_path(p, v, folder, sizeof(folder), e) != ERR_OK)
        return e->code;
    if (env_file_read(folder, ref->path, &text, &n, &why) != ERR_OK) {
        if (why.code == ERR_NOT_FOUND && ref->optional)
            return ERR_OK;
        return err_set(e, ERR_PRECONDITION,
                       "couldn't read environment file \"%.200s\" of volume \"%s\": %.200s", ref->path,
                       ref->volume_name, why.code == ERR_NOT_FOUND ? "it does not exist" : why.text);
    }
    if (env_file_find(text, n, ref->key, a, ret, &why) != ERR_OK) {
        if (why.code != ERR_PRECONDITION)
            *e = why;
        else
            err_set(e, ERR_PRECONDITION, "couldn't parse environment file \"%.200s\" of volume \"%s\": %s",
                    ref->path, ref->volume_name, why.text);
    } else if (*ret == NULL && !ref->optional) {
        err_set(e, ERR_PRECONDITION, "couldn't find key %s in environment file \"%.200s\" of volume \"%s\"",
                ref->key, ref->path, ref->volume_name);
    }
    explicit_bzero(text, n); /* it may well be secret */
    return e->code;
}

static enum err_code pod_env_build(const struct pod *p, const struct api_container *c, struct arena *a,
                                   struct env *env, struct err *e)
{
    for (size_t i = 0; i < c->n_env_from; i++)
        if (add_from(p, &c->env_from[i], a, env, e) != ERR_OK)
            return e->code;
    for (size_t i = 0; i < c->n_env; i++) {
        const struct api_env *v = &c->env[i];
        char *value = NULL;
        enum err_code code = ERR_OK;

        if (v->config_map_key_ref != NULL)
            code = key_value(p, API_CONFIG_MAP, v->config_map_key_ref, a, &value, e);
        else if (v->secret_key_ref != NULL)
            code = key_value(p, API_SECRET, v->secret_key_ref, a, &value, e);
        else if (v->file_key_ref != NULL)
            code = file_value(p, v->file_key_ref, a, &value, e);
        else if (v->field_ref != NULL)
            code = env_field(p, v->field_ref->field_path, a, &value, e);
        else if (v->resource_field_ref != NULL)
            code = env_resource(p, c, v->resource_field_ref, a, &value, e);
        else if ((value = env_expand(v->value != NULL ? v->value : "", env, a, NULL)) == NULL)
            code = env_expand_error(e);
        if (code != ERR_OK)
            return code;
        if ((v->secret_key_ref != NULL || v->file_key_ref != NULL) && note_secret(env, a, value, e) != ERR_OK)
            return e->code;
        if (value != NULL && set(env, a, v->name, value, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

/* Those that the pod does not define itself. They were counted as they were made, and no name is twice. */
static enum err_code add_services(struct env *env, const struct service_env *s, struct arena *a,
                                  struct err *e)
{
    bool *defined = arena_alloc(a, s->n + 1);

    if (defined == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < env->n; i++) {
        const struct env_var *v = service_env_find(s, env->v[i].name);

        if (v != NULL)
            defined[v - s->v] = true;
    }
    for (size_t i = 0; i < s->n; i++)
        if (!defined[i] && append(env, a, s->v[i].name, s->v[i].value, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static enum err_code services_of(const struct pod *p, struct arena *a, struct service_env *ret, struct err *e)
{
    const struct api_pod *api = p->api;

    if (service_env_make(p->node->cluster, api->meta.namespace, api->spec.service_links, a, ret, e) != ERR_OK)
        return e->code;
    /* kubelet's rule: a static pod may be needed to run the apiserver. */
    if (ret->known || api->origin == API_FROM_FOLDER)
        return ERR_OK;
    return err_set(e, ERR_PRECONDITION,
                   "services have not yet been read at least once, cannot construct envvars");
}

enum err_code env_build(const struct pod *p, const struct api_container *c, struct arena *a, struct env *ret,
                        struct err *e)
{
    struct service_env services = { 0 };
    struct env env = { .services = &services };

    if (services_of(p, a, &services, e) != ERR_OK)
        return e->code;
    if (pod_env_build(p, c, a, &env, e) != ERR_OK || add_services(&env, &services, a, e) != ERR_OK) {
        env_wipe(&env); /* it may contain a Secret */
        return e->code;
    }
    env.services = NULL;
    *ret = env;
    return ERR_OK;
}
