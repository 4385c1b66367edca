/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods may use a present image without proving access to its registry, like kubelet's image manager
 * (feature KubeletEnsureSecretPulledImages): according to its record (image_pulled_for.c). */
#include "agent/image/image_internal.h"

#include <string.h>

static bool is_listed(const struct img_store *s, const char *repository)
{
    for (size_t i = 0; i < s->verify_not.n; i++) {
        const char *pattern = s->verify_not.v[i];

        if (str_ends(pattern, "/*") ? strncmp(repository, pattern, strlen(pattern) - 1) == 0
                                    : strcmp(repository, pattern) == 0)
            return true;
    }
    return false;
}

/* Whether an administrator gave the image this name. */
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
    return reg_tries_plan(&run->tries, run->auth, NULL, NULL, repository, run->store->proof_key, e);
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
        yes = yes || (run->tries.whose[i] != NULL && img_pulled_for_has(by, run->tries.whose[i]));
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
