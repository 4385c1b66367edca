/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

struct img_write { /* a record being written */
    int dir;       /* the store's descriptor, open while the job exists */
    char file[80];
    char *text;
    bool *written; /* set for a name's record; NULL for an image's */
};

void img_writes_free(struct img_job *j)
{
    for (size_t i = 0; i < j->n_writes; i++)
        free(j->writes[i].text);
    free(j->writes);
    j->writes = NULL;
    j->n_writes = 0;
}

void img_found_free(struct img_job *j)
{
    for (size_t i = 0; i < j->n_found; i++) {
        struct img_found *f = &j->found[i];

        for (size_t k = 0; k < f->n_names; k++)
            free(f->names[k].name);
        free(f->names);
        json_decref(f->pulled_for);
        img_unref(f->image);
    }
    free(j->found);
    j->found = NULL;
    j->n_found = 0;
}

/* ---- coracle-unpack's output ---- */

/* The output is checked like that of any peer, because coracle-unpack has read hostile input. */
static enum err_code image_commit_take_names(struct img_found *f, const json_t *names, struct err *e)
{
    size_t n = json_array_size(names), i;
    char full[IMG_NAME_MAX];
    json_t *item;

    if (n == 0)
        return err_set(e, ERR_INVALID, "coracle-unpack: an image without a name");
    f->names = calloc(n, sizeof(*f->names));
    if (f->names == NULL)
        return err_nomem(e);
    json_array_foreach (names, i, item) {
        const char *name = json_str(item, "name"), *ref = json_str(item, "ref");

        if (name == NULL || img_normalise(name, full, e) != ERR_OK || strcmp(name, full) != 0 ||
            ref == NULL || strlen(ref) != 64 || strspn(ref, "0123456789abcdef") != 64)
            return err_set(e, ERR_INVALID, "coracle-unpack: a name is not valid");
        memcpy(f->names[i].file, ref, sizeof(f->names[i].file));
        f->names[i].name = strdup(name);
        if (f->names[i].name == NULL)
            return err_nomem(e);
        f->n_names++;
    }
    return ERR_OK;
}

enum err_code img_take_result(struct img_job *j, const char *text, size_t n, struct err *e)
{
    json_auto_t *record = NULL;
    const json_t *images;
    json_int_t skipped;
    json_t *item;
    size_t i;

    if (json_parse(text, n, IMG_RECORD_MAX, &record, "coracle-unpack", e) != ERR_OK)
        return e->code;
    images = json_object_get(record, "images");
    if (json_array_size(images) == 0)
        return err_set(e, ERR_INVALID, "coracle-unpack: its answer has no images");
    j->found = calloc(json_array_size(images), sizeof(*j->found));
    if (j->found == NULL)
        return err_nomem(e);
    json_array_foreach (images, i, item) {
        j->n_found++;
        if (img_record_decode(item, j->store->dir, &j->found[i].image, e) != ERR_OK ||
            image_commit_take_names(&j->found[i], json_object_get(item, "names"), e) != ERR_OK)
            return e->code;
        j->found[i].image->pinned = false; /* coracle-unpack does not decide that */
        json_decref(take_ptr(&j->found[i].image->pulled_for));
    }
    skipped = json_int(record, "skippedDevices", 0);
    if (skipped > 0)
        log_info("omitted device nodes of an image that no container may open", F_STR("image", j->key),
                 F_I64("count", skipped));
    return ERR_OK;
}

enum err_code img_take_names(struct img_job *j, const char *text, size_t n, struct err *e)
{
    json_auto_t *record = NULL;

    if (json_parse(text, n, IMG_RECORD_MAX, &record, "coracle-unpack", e) != ERR_OK)
        return e->code;
    return image_commit_take_names(&j->found[0], json_object_get(record, "names"), e);
}

bool img_take_failure(const char *text, size_t n, struct err *e)
{
    json_auto_t *record = NULL;
    const char *why, *code;

    if (json_parse(text, n, IMG_RECORD_MAX, &record, "coracle-unpack", ERR_IGNORED) != ERR_OK)
        return false;
    why = json_str(record, "error");
    code = json_str(record, "code");
    if (why == NULL || code == NULL)
        return false;
    for (int c = ERR_CANCELLED; c <= ERR_UNAUTHENTICATED; c++)
        if (strcmp(err_code_name((enum err_code)c), code) == 0) {
            err_set(e, (enum err_code)c, "%s", why);
            return true;
        }
    err_set(e, ERR_UNKNOWN, "%s", why);
    return true;
}

/* ---- records ---- */

/* Takes ownership of the JSON value. */
static enum err_code image_commit_plan(struct img_job *j, int dir, const char *hex, json_t *value,
                                       struct err *e)
{
    struct img_write *w = &j->writes[j->n_writes];

    if (value == NULL)
        return err_nomem(e);
    snprintf(w->file, sizeof(w->file), "%s.json", hex);
    w->dir = dir;
    w->text = json_text(value);
    json_decref(value);
    if (w->text == NULL)
        return err_nomem(e);
    j->n_writes++;
    return ERR_OK;
}

static json_t *name_record(const struct img_job *j, const struct img_found *f, const char *name)
{
    json_t *record = json_object();

    if (json_object_set_new(record, "version", json_integer(IMG_RECORD_VERSION)) == 0 &&
        json_put_str(record, "name", name) && json_put_str(record, "id", f->image->id) &&
        json_put_str(record, "digest", j->digest))
        return record;
    json_decref(record);
    return NULL;
}

/* The digest of the name in the registry (an index's, if there is one) becomes the image's, as everywhere. */
static enum err_code settle_digest(const struct img_job *j, struct img_image *image, struct err *e)
{
    char *digest;

    if (j->digest == NULL || image->refs > 1) /* a present image is unchanged */
        return ERR_OK;
    digest = strdup(j->digest);
    if (digest == NULL)
        return err_nomem(e);
    free(image->digest);
    image->digest = digest;
    return ERR_OK;
}

static enum err_code image_commit_write_all(void *arg, struct err *e)
{
    const struct img_job *j = arg;

    for (size_t i = 0; i < j->n_writes; i++) {
        const struct img_write *w = &j->writes[i];

        if (fs_replace_at(w->dir, w->file, w->text, strlen(w->text), 0600, true, e) != ERR_OK)
            return err_wrap(e, "image store");
        if (w->written != NULL)
            *w->written = true;
    }
    return ERR_OK;
}

/* The pods that may use the image from now on; NULL: out of memory. */
static json_t *image_commit_whose(const struct img_job *j, const json_t *is)
{
    /* A mirror, or another prefix, may have been asked with any entry of the pod's secrets: which one was
     * accepted is unknown. */
    const bool unsure = j->tries.with_secrets && j->store->short_names.redirects;
    char full[IMG_NAME_MAX], repository[IMG_NAME_MAX];

    img_auth_repository(img_job_reference(j, full), repository);
    return img_pulled_for_add(is, repository, unsure ? NULL : j->tries.whose[j->attempt], unsure);
}

/* The record of a present and complete image only changes its access rights. */
static enum err_code plan_image(struct img_job *j, struct img_found *f, struct err *e)
{
    const struct img_entry *entry = img_find(j->store, f->image->id);
    const bool complete = entry != NULL && strcmp(entry->image->digest, entry->image->id) != 0;
    const json_t *is = entry != NULL ? entry->image->pulled_for : NULL;
    json_auto_t *record = NULL;

    if (j->for_pod && (f->pulled_for = image_commit_whose(j, is)) == NULL)
        return err_nomem(e);
    if (complete && (!j->for_pod || json_equal(f->pulled_for, is)))
        return ERR_OK;
    if (!complete && entry != NULL)
        f->image->pinned = entry->image->pinned;
    if (!complete && settle_digest(j, f->image, e) != ERR_OK)
        return e->code;
    record = img_record_encode(complete ? entry->image : f->image);
    if (f->pulled_for == NULL)
        f->pulled_for = json_incref((json_t *)is);
    if (f->pulled_for != NULL && json_object_set(record, "pulledFor", f->pulled_for) != 0)
        return err_nomem(e);
    return image_commit_plan(j, j->store->images_fd, f->image->id + 7, json_incref(record), e);
}

enum err_code img_commit_start(struct img_job *j, op_done_fn done, struct err *e)
{
    struct img_store *s = j->store;
    size_t n = j->n_found;

    for (size_t i = 0; i < j->n_found; i++)
        n += j->found[i].n_names;
    j->writes = calloc(n + 1, sizeof(*j->writes));
    if (j->writes == NULL)
        return err_nomem(e);

    /* Images before names: a crash in between leaves an image without a name, never the reverse. */
    for (size_t i = 0; i < j->n_found; i++)
        if (plan_image(j, &j->found[i], e) != ERR_OK)
            return e->code;
    for (size_t i = 0; i < j->n_found; i++)
        for (size_t k = 0; k < j->found[i].n_names; k++) {
            struct img_named *name = &j->found[i].names[k];

            if (image_commit_plan(j, s->refs_fd, name->file, name_record(j, &j->found[i], name->name), e) !=
                ERR_OK)
                return e->code;
            j->writes[j->n_writes - 1].written = &name->written;
        }
    work_start(&j->work, "image records", j->key, image_commit_write_all, j, s->loop, done, j);
    return ERR_OK;
}

static void image_commit_take_pulled_for(const struct img_found *f, struct img_image *image)
{
    if (f->pulled_for == NULL)
        return;
    json_decref(image->pulled_for);
    image->pulled_for = json_incref(f->pulled_for);
}

enum err_code img_commit_finish(struct img_job *j, struct err *e)
{
    struct img_store *s = j->store;

    for (size_t i = 0; i < j->n_found; i++) {
        struct img_found *f = &j->found[i];
        struct img_entry *entry = img_keep(s, f->image, e);

        if (entry == NULL)
            return e->code;
        if (entry->image != f->image) { /* the image was already present and shared */
            img_unref(f->image);
            f->image = img_ref(entry->image);
        }
        image_commit_take_pulled_for(f, entry->image);
        for (size_t k = 0; k < f->n_names; k++)
            if (img_keep_name(s, f->names[k].name, f->names[k].file, j->digest, entry, e) != ERR_OK)
                return e->code;
    }
    for (size_t i = 0; i < j->n_found; i++)
        for (size_t k = 0; k < j->found[i].n_names; k++) {
            log_info("image added", F_STR("image", j->found[i].names[k].name),
                     F_STR("imageID", j->found[i].image->id));
            if (s->on_added != NULL)
                s->on_added(j->found[i].names[k].name, s->on_added_arg);
        }
    return ERR_OK;
}

static void keep_written_names(struct img_job *j, struct img_found *f)
{
    struct err e = { 0 };

    for (size_t k = 0; k < f->n_names; k++) {
        struct img_entry *entry = f->names[k].written ? img_keep(j->store, f->image, &e) : NULL;

        if (entry != NULL)
            image_commit_take_pulled_for(f, entry->image);
        if (entry != NULL &&
            img_keep_name(j->store, f->names[k].name, f->names[k].file, j->digest, entry, &e) != ERR_OK)
            log_warn("an image name takes effect only after the next start", F_STR("image", f->names[k].name),
                     F_ERR(&e));
    }
}

void img_commit_undo(struct img_job *j)
{
    struct img_store *s = j->store;

    for (size_t i = 0; i < j->n_found; i++) {
        const char *id = j->found[i].image->id;
        char file[80];

        keep_written_names(j, &j->found[i]);
        /* Otherwise the next start would find a record whose layers were collected. */
        snprintf(file, sizeof(file), "%s.json", id + strlen("sha256:"));
        if (img_find(s, id) != NULL || img_job_holds(s, id) ||
            img_unread_has(s, s->images_fd, id + strlen("sha256:")))
            continue;
        if (unlinkat(s->images_fd, file, 0) != 0 && errno != ENOENT) {
            struct err e = { 0 };

            err_sys(&e, errno, "remove record %s", file);
            img_unread_add(s, s->images_fd, file, &e);
        }
    }
}
