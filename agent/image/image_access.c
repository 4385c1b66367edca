/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pods may use a present image without proving access to its registry, like kubelet's image manager
 * (feature KubeletEnsureSecretPulledImages). The image's record keeps it, so it is written and removed with
 * the image:
 *
 *     "pulledFor": {"<repository>": true | [{"namespace","name","uid","hash"}, ...]}
 *
 * true: all pods of the node, because it was pulled without a password or with the node's own. Otherwise the
 * accepted secrets, each with a keyed hash of its credentials; the key is on tmpfs, so after a reboot only
 * the secrets' names are compared. An empty list: unknown. No "pulledFor": never pulled for a pod
 * ("preloaded"); a missing repository: not pulled from there.
 */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"

#include <string.h>

enum { SECRETS_MAX = 100, REPOSITORIES_MAX = 20 }; /* dropped entries are asked for again */

/* ---- the record ---- */

static bool is_secret(const json_t *v)
{
    const char *hash = json_str(v, "hash");

    return json_str(v, "namespace") != NULL && json_str(v, "name") != NULL && hash != NULL &&
           strlen(hash) == 16 && strspn(hash, "0123456789abcdef") == 16;
}

bool img_access_is_valid(const json_t *pulled_for)
{
    const char *repository;
    json_t *by, *one;
    size_t i;

    if (!json_is_object(pulled_for) || json_object_size(pulled_for) > REPOSITORIES_MAX)
        return false;
    json_object_foreach ((json_t *)pulled_for, repository, by) {
        if (!json_is_true(by) && (!json_is_array(by) || json_array_size(by) > SECRETS_MAX))
            return false;
        json_array_foreach (by, i, one)
            if (!is_secret(one))
                return false;
    }
    return true;
}

static bool same_secret(const json_t *a, const json_t *b)
{
    return str_eq(json_str(a, "namespace"), json_str(b, "namespace")) &&
           str_eq(json_str(a, "name"), json_str(b, "name")) && str_eq(json_str(a, "uid"), json_str(b, "uid"));
}

/* The newest is last; false when out of memory. */
static bool image_access_add_secret(json_t *list, json_t *whose)
{
    json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (same_secret(one, whose)) {
            json_array_remove(list, i);
            break;
        }
    if (json_array_size(list) == SECRETS_MAX)
        json_array_remove(list, 0);
    return json_array_append(list, whose) == 0;
}

/* A mirror, or another prefix, may have been asked with any entry of the pod's secrets: which one was
 * accepted is unknown. */
static bool is_unsure(const struct img_job *j)
{
    return j->tries.with_secrets && j->store->short_names.redirects;
}

static bool image_access_add(const struct img_job *j, json_t *to, const char *repository)
{
    json_t *list = json_object_get(to, repository);
    json_t *whose = is_unsure(j) ? NULL : j->tries.whose[j->attempt];

    if (json_is_true(list))
        return true;
    if (whose == NULL && !is_unsure(j))
        return json_object_set_new(to, repository, json_true()) == 0;
    if (list == NULL) {
        while (json_object_size(to) >= REPOSITORIES_MAX)
            json_object_del(to, json_object_iter_key(json_object_iter(to)));
        list = json_array();
        if (json_object_set_new(to, repository, list) != 0)
            return false;
    }
    return whose == NULL || image_access_add_secret(list, whose);
}

json_t *img_access_add(const struct img_job *j, const json_t *is)
{
    json_t *to = is != NULL ? json_deep_copy(is) : json_object();
    char full[IMG_NAME_MAX], repository[IMG_NAME_MAX];

    img_auth_repository(img_job_reference(j, full), repository);
    if (to != NULL && image_access_add(j, to, repository))
        return to;
    json_decref(to);
    return NULL;
}

/* ---- may it be used? ---- */

static bool is_listed(const struct img_store *s, const char *repository)
{
    for (size_t i = 0; s->verify_not != NULL && s->verify_not[i] != NULL; i++) {
        const char *pattern = s->verify_not[i];

        if (str_ends(pattern, "/*") ? strncmp(repository, pattern, strlen(pattern) - 1) == 0
                                    : strcmp(repository, pattern) == 0)
            return true;
    }
    return false;
}

/* An administrator gave it this name. */
static bool was_imported(const struct img_store *s, const struct img_image *image, const char *name)
{
    const struct img_name *n;

    HASH_FIND_STR(s->names, name, n);
    return n != NULL && n->entry->image == image && n->digest == NULL;
}

enum img_access img_access(struct img_store *s, const struct img_image *image, const char *name)
{
    char repository[IMG_NAME_MAX];
    const json_t *by;

    img_auth_repository(name, repository);
    if (s->verify == IMG_VERIFY_NEVER ||
        (s->verify == IMG_VERIFY_PULLED && (image->pulled_for == NULL || was_imported(s, image, name))) ||
        (s->verify == IMG_VERIFY_LISTED && is_listed(s, repository)))
        return IMG_ACCESS_GRANTED;
    by = json_object_get(image->pulled_for, repository);
    if (json_is_true(by))
        return IMG_ACCESS_GRANTED;
    return json_array_size(by) > 0 ? IMG_ACCESS_SECRETS : IMG_ACCESS_REFUSED;
}

static enum err_code image_access_plan(void *arg, struct err *e)
{
    struct img_task_run *run = arg;
    char repository[IMG_NAME_MAX];

    img_auth_repository(run->name, repository);
    return reg_tries_plan(&run->tries, run->auth, NULL, repository, run->store->proof_key, e);
}

static bool was_let_in(const json_t *by, const json_t *whose)
{
    json_t *one;
    size_t i;

    json_array_foreach ((json_t *)by, i, one)
        if (same_secret(one, whose) || str_eq(json_str(one, "hash"), json_str(whose, "hash")))
            return true;
    return false;
}

static void on_planned(struct op *op, const struct err *result)
{
    struct img_task_run *run = op->owner;
    struct err e = *result;
    char repository[IMG_NAME_MAX];
    const json_t *by;
    bool yes = false;

    img_auth_repository(run->name, repository);
    by = json_object_get(run->held[0]->image->pulled_for, repository);
    for (size_t i = 0; e.code == ERR_OK && i < run->tries.n; i++)
        yes = yes || (run->tries.whose[i] != NULL && was_let_in(by, run->tries.whose[i]));
    reg_tries_done(&run->tries);
    explicit_bzero(run->auth, strlen(run->auth));
    run->answer = json_boolean(yes);
    img_task_end(run, &e);
}

void img_access_start(struct img_task *t, struct img_store *s, const char *name, const char *auth_json,
                      op_done_fn done, void *owner)
{
    struct img_task_run *run = img_task_begin(t, s, "image access", name, 0, done, owner);
    struct err e = { 0 };

    if (run == NULL)
        return;
    run->name = strdup(name);
    run->auth = strdup(auth_json != NULL ? auth_json : "[]");
    if (run->name == NULL || run->auth == NULL)
        img_task_end(run, (err_nomem(&e), &e));
    else
        work_start(&run->work, "registry credentials", name, image_access_plan, run, s->loop, on_planned,
                   run);
}
