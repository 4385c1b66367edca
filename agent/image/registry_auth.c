/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/registry_auth.h"

#include "agent/api/manifest/decode.h"
#include "agent/image/provider/image_glob.h"
#include "base/buf.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX 1000 /* entries of all sources; a Docker config has a few */
#define DOCKER_HUB "index.docker.io"

struct entry {
    char *key;           /* "quay.io/team" */
    const json_t *value; /* {"auth"} or {"username","password"} */
    const json_t *whose; /* {"namespace","name","uid"}; may be NULL */
    size_t order;        /* order of input */
};

struct keyring {
    struct entry v[KEYS_MAX];
    size_t n;
};

/* ---- keys ---- */

static char *clean_key(const char *key)
{
    const char *slash;
    size_t n;

    if (str_starts(key, "https://"))
        key += strlen("https://");
    else if (str_starts(key, "http://"))
        key += strlen("http://");
    slash = strchr(key, '/');
    n = slash == NULL ? strlen(key) : (size_t)(slash - key);
    if (slash != NULL && (str_starts(slash, "/v1/") || str_starts(slash, "/v2/")))
        slash += 3;
    if (slash != NULL && slash[1] == '\0')
        slash = NULL;
    return str_printf("%.*s%s", (int)n, key, slash != NULL ? slash : "");
}

/* ---- entries ---- */

static enum err_code registry_auth_add_config(struct keyring *k, const json_t *given, struct err *e)
{
    const char *name = json_str(given, "name");
    const json_t *whose = name != NULL && *name != '\0' ? given : NULL;
    const json_t *config = name != NULL ? json_object_get(given, "config") : given;
    json_t *auths = json_object_get(config, "auths"), *value;
    const char *key;

    json_object_foreach (auths, key, value) {
        if (k->n == KEYS_MAX)
            return err_set(e, ERR_INVALID, "registry credentials: more than %d entries", KEYS_MAX);
        k->v[k->n] = (struct entry){ .key = clean_key(key), .value = value, .whose = whose, .order = k->n };
        if (k->v[k->n].key == NULL)
            return err_nomem(e);
        k->n++;
    }
    return ERR_OK;
}

static int registry_auth_longest_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const int order = strcmp(y->key, x->key); /* kubelet: reverse order, so that a path precedes its host */

    if (order != 0)
        return order;
    return x->order < y->order ? -1 : 1;
}

static void keyring_free(struct keyring *k)
{
    if (k == NULL)
        return;
    for (size_t i = 0; i < k->n; i++)
        free(k->v[i].key);
    free(k);
}
SCOPE_DEFINE(struct keyring, keyring_free)

static enum err_code keyring_new(const json_t *configs, struct keyring **ret, struct err *e)
{
    scoped(keyring_free) struct keyring *k = calloc(1, sizeof(*k));
    json_t *config;
    size_t i;

    if (k == NULL)
        return err_nomem(e);
    if (json_is_object(configs) && registry_auth_add_config(k, configs, e) != ERR_OK)
        return e->code;
    json_array_foreach (configs, i, config)
        if (registry_auth_add_config(k, config, e) != ERR_OK)
            return e->code;
    qsort(k->v, k->n, sizeof(k->v[0]), registry_auth_longest_first);
    *ret = take_ptr(&k);
    return ERR_OK;
}

/* ---- skopeo's input ---- */

static bool is_usable(const json_t *value)
{
    const char *auth = json_str(value, "auth"), *user = json_str(value, "username");

    return (auth != NULL && auth[0] != '\0') || (user != NULL && user[0] != '\0');
}

/* Docker writes "auth" or an identity token, users also write username and password; skopeo only supports the
 * first two. NULL: unusable, or out of memory. */
static json_t *credential(const json_t *value)
{
    const char *auth = json_str(value, "auth"), *token = json_str(value, "identitytoken");
    const char *user = json_str(value, "username"), *password = json_str(value, "password");
    struct buf pair = BUF_INIT(REG_AUTH_MAX), text = BUF_INIT(2 * REG_AUTH_MAX);
    json_t *ret = NULL;

    if (auth != NULL && auth[0] != '\0') {
        ret = token != NULL ? json_pack("{s:s, s:s}", "auth", auth, "identitytoken", token)
                            : json_pack("{s:s}", "auth", auth);
    } else if (user != NULL && user[0] != '\0') {
        buf_room(&pair, strlen(user) + strlen(password != NULL ? password : "") + 2);
        buf_addf(&pair, "%s:%s", user, password != NULL ? password : "");
        buf_room(&text, 2 * pair.n + 8);
        base64_add(&text, pair.p, pair.n);
        if (!pair.failed && !text.failed)
            ret = json_pack("{s:s}", "auth", text.p);
    }
    buf_wipe(&pair);
    buf_wipe(&text);
    return ret;
}

/* Every entry under its own key, the first entry of each key: for mirrors. NULL when out of memory. */
static json_t *all_entries(const struct keyring *secrets, const struct keyring *node,
                           const struct keyring *provided)
{
    const struct keyring *const rings[] = { secrets, node, provided };
    json_t *auths = json_object();

    for (size_t r = 0; r < ARRAY_LEN(rings) && auths != NULL; r++)
        for (size_t i = 0; i < rings[r]->n; i++) {
            json_t *value =
                json_object_get(auths, rings[r]->v[i].key) != NULL ? NULL : credential(rings[r]->v[i].value);

            if (value != NULL && json_object_set_new(auths, rings[r]->v[i].key, value) != 0) {
                json_decref(auths);
                return NULL;
            }
        }
    return auths;
}

/* Adds a file; identical files are one try. */
static enum err_code add_try(struct reg_tries *t, const json_t *file, struct err *e)
{
    char *text;

    if (t->n == REG_AUTH_MAX_TRIES)
        return ERR_OK;
    text = json_text(file);
    if (text == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->v[i], text)) {
            explicit_bzero(text, strlen(text));
            free(text);
            return ERR_OK;
        }
    t->v[t->n++] = text;
    t->bytes += strlen(text);
    if (t->bytes > REG_AUTH_PLAN_MAX)
        return err_set(e, ERR_INVALID,
                       "registry credentials: all that would be tried has more than %u MiB together",
                       REG_AUTH_PLAN_MAX >> 20);
    return ERR_OK;
}

/* NULL when out of memory. */
static json_t *proof(const json_t *whose, const json_t *credential, const unsigned char *key)
{
    char *text = json_text(credential);
    json_t *ret = NULL;
    char hash[17];

    if (text == NULL)
        return NULL;
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)siphash(key, text, strlen(text)));
    explicit_bzero(text, strlen(text));
    free(text);
    ret = json_object();
    if (json_put_str(ret, "namespace", json_str(whose, "namespace")) &&
        json_put_str(ret, "name", json_str(whose, "name")) &&
        json_put_str(ret, "uid", json_str(whose, "uid")) && json_put_str(ret, "hash", hash))
        return ret;
    json_decref(ret);
    return NULL;
}

/* The repository's own key is the longest that skopeo searches, so no other entry of the file takes
 * precedence. */
static enum err_code try_entry(struct reg_tries *t, json_t *auths, const char *repository,
                               const struct entry *entry, const unsigned char *key, struct err *e)
{
    json_t *had = json_incref(json_object_get(auths, repository)), *mine = credential(entry->value);
    const size_t before = t->n;
    json_t *file = mine == NULL || json_object_set(auths, repository, mine) != 0
                       ? NULL
                       : json_pack("{s:O}", "auths", auths);

    if (file != NULL)
        ERR_IGNORE(add_try(t, file, e));
    else if (is_usable(entry->value))
        err_nomem(e);
    if (t->n > before && entry->whose != NULL && (t->whose[before] = proof(entry->whose, mine, key)) == NULL)
        err_nomem(e); /* without the hash, all pods would have access */
    json_decref(file);
    if (had == NULL || json_object_set(auths, repository, had) != 0)
        json_object_del(auths, repository);
    json_decref(had);
    api_json_wipe(mine);
    json_decref(mine);
    return e->code;
}

static enum err_code try_ring(struct reg_tries *t, const struct keyring *k, json_t *auths,
                              const char *repository, const unsigned char *key, struct err *e)
{
    const size_t before = t->n;

    for (size_t i = 0; i < k->n; i++)
        if (image_glob_matches(k->v[i].key, repository) &&
            try_entry(t, auths, repository, &k->v[i], key, e) != ERR_OK)
            return e->code;
    if (t->n > before || !str_starts(repository, "docker.io/"))
        return ERR_OK;
    for (size_t i = 0; i < k->n; i++) /* Docker's own key for its hub */
        if (strcmp(k->v[i].key, DOCKER_HUB) == 0 &&
            try_entry(t, auths, repository, &k->v[i], key, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* ---- helpers ---- */

/* The helper's name becomes part of a program's: docker-credential-<name>. */
static bool is_helper(const char *name)
{
    return name != NULL && name[0] != '\0' && strlen(name) < 100 && strchr(name, '/') == NULL;
}

static enum err_code try_helper(struct reg_tries *t, const json_t *node, json_t *auths,
                                const char *repository, struct err *e)
{
    str_auto host = strndup(repository, strcspn(repository, "/"));
    const json_t *helpers = json_object_get(node, "credHelpers");
    json_auto_t *file = NULL, *others = NULL;
    const char *name, *key;
    json_t *value;

    if (host == NULL)
        return err_nomem(e);
    name = json_str(helpers, host);
    if (name == NULL && strcmp(host, "docker.io") == 0)
        name = json_str(helpers, "https://" DOCKER_HUB "/v1/");
    if (name == NULL)
        name = json_str(node, "credsStore");
    if (!is_helper(name))
        return ERR_OK;
    others = json_object();
    json_object_foreach (auths, key, value) /* an entry for this host would take precedence over the helper */
        if (strncmp(key, host, strlen(host)) != 0 && json_object_set(others, key, value) != 0)
            return err_nomem(e);
    file = json_pack("{s:O, s:{s:s}}", "auths", others, "credHelpers", host, name);
    return file == NULL ? err_nomem(e) : add_try(t, file, e);
}

/* ---- the plan ---- */

/* Adds the largest one to the error. */
static void name_largest(const json_t *secrets, struct err *e)
{
    const json_t *largest = NULL;
    json_t *one;
    size_t i, most = 0;

    json_array_foreach (secrets, i, one) {
        const size_t bytes = json_dumpb(one, NULL, 0, JSON_COMPACT);

        if (json_str(one, "name") == NULL || bytes <= most)
            continue;
        most = bytes;
        largest = one;
    }
    if (largest != NULL)
        err_set(
            e, e->code,
            "registry credentials: all that would be tried has more than %u MiB together; Secret \"%s/%s\" "
            "has %zu KiB",
            REG_AUTH_PLAN_MAX >> 20, json_str(largest, "namespace"), json_str(largest, "name"), most >> 10);
}

static enum err_code registry_auth_read_config(const char *text, const char *what, json_t **ret,
                                               struct err *e)
{
    if (text == NULL)
        return ERR_OK;
    return json_parse(text, strlen(text), REG_AUTH_MAX, ret, what, e);
}

static enum err_code registry_auth_plan(struct reg_tries *t, const json_t *secrets, const json_t *node,
                                        const json_t *provided, const char *repository,
                                        const unsigned char *key, struct err *e)
{
    scoped(keyring_free) struct keyring *of_pod = NULL, *of_node = NULL, *of_providers = NULL;
    json_t *auths;

    if (keyring_new(secrets, &of_pod, e) != ERR_OK || keyring_new(node, &of_node, e) != ERR_OK ||
        keyring_new(provided, &of_providers, e) != ERR_OK)
        return e->code;
    auths = all_entries(of_pod, of_node, of_providers);
    if (auths == NULL)
        return err_nomem(e);
    t->with_secrets = of_pod->n > 0;
    if (try_ring(t, of_pod, auths, repository, key, e) == ERR_OK) {
        t->n_secrets = t->n;
        if (try_helper(t, node, auths, repository, e) == ERR_OK)
            ERR_IGNORE(try_ring(t, of_node, auths, repository, key, e));
        t->n_node = t->n;
        if (e->code == ERR_OK)
            ERR_IGNORE(try_ring(t, of_providers, auths, repository, key, e));
        t->n_own = t->n;
    }
    if (e->code == ERR_OK && t->n == 0) {
        json_auto_t *file = json_pack("{s:O}", "auths", auths);

        if (json_object_size(auths) == 0)
            t->n = 1; /* no input */
        else if (file == NULL)
            err_nomem(e);
        else
            ERR_IGNORE(add_try(t, file, e));
    }
    if (t->bytes > REG_AUTH_PLAN_MAX)
        name_largest(secrets, e);
    api_json_wipe(auths);
    json_decref(auths);
    return e->code;
}

static void config_free(json_t *config)
{
    api_json_wipe(config);
    json_decref(config);
}

enum err_code reg_tries_plan(struct reg_tries *ret, const char *secrets, const char *node,
                             const char *provided, const char *repository,
                             const unsigned char key[SIPHASH_KEY_SIZE], struct err *e)
{
    json_t *of_pod = NULL, *of_node = NULL, *of_providers = NULL;

    *ret = (struct reg_tries){ 0 };
    if (registry_auth_read_config(secrets, "image pull secrets", &of_pod, e) == ERR_OK &&
        registry_auth_read_config(node, "the node's registry credentials", &of_node, e) == ERR_OK &&
        registry_auth_read_config(provided, "credentials of image credential providers", &of_providers, e) ==
            ERR_OK)
        ERR_IGNORE(registry_auth_plan(ret, of_pod, of_node, of_providers, repository, key, e));
    if (e->code != ERR_OK)
        reg_tries_done(ret);
    config_free(of_pod);
    config_free(of_node);
    config_free(of_providers);
    return e->code;
}

void reg_tries_done(struct reg_tries *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->v[i] != NULL)
            explicit_bzero(t->v[i], strlen(t->v[i]));
        free(t->v[i]);
        json_decref(t->whose[i]);
    }
    *t = (struct reg_tries){ 0 };
}
