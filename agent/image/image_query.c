/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"

#include <stdio.h>
#include <string.h>

/* As shown by docker and crictl; a shorter prefix is too likely to be ambiguous. */
enum { ID_DIGITS_MIN = 12 };

static struct img_name *find_name(struct img_store *s, const char *name)
{
    struct img_name *n;

    HASH_FIND_STR(s->names, name, n);
    return n;
}

/* "repo@digest" for an image present as "repo:tag". */
static struct img_entry *find_digest(struct img_store *s, const char *name)
{
    const char *at = strchr(name, '@');
    size_t n = img_repository(name);

    if (at == NULL)
        return NULL;
    for (const struct img_name *i = s->names; i != NULL; i = i->hh.next)
        if (img_repository(i->name) == n && memcmp(i->name, name, n) == 0 &&
            (str_eq(i->digest, at + 1) || strcmp(i->entry->image->digest, at + 1) == 0))
            return i->entry;
    return NULL;
}

static struct img_entry *find_id(struct img_store *s, const char *reference)
{
    struct img_entry *found = NULL;
    size_t n;

    if (str_starts(reference, "sha256:"))
        reference += 7;
    n = strlen(reference);
    if (n < ID_DIGITS_MIN || n > 64 || strspn(reference, "0123456789abcdef") != n)
        return NULL;
    for (struct img_entry *entry = s->images; entry != NULL; entry = entry->hh.next) {
        if (memcmp(entry->image->id + 7, reference, n) != 0)
            continue;
        if (found != NULL)
            return NULL; /* ambiguous */
        found = entry;
    }
    return found;
}

/* *ret_name: the matching name, NULL if found by digest or id. */
static struct img_entry *image_query_find(struct img_store *s, const char *reference,
                                          struct img_name **ret_name)
{
    char full[IMG_NAME_MAX];
    struct img_entry *entry;

    *ret_name = NULL;
    for (size_t k = 0; img_candidate(s, reference, k, full); k++)
        if ((*ret_name = find_name(s, full)) != NULL)
            return (*ret_name)->entry;
    /* also for a short name: imports use this full name */
    if (img_normalise(reference, full, ERR_IGNORED) == ERR_OK) {
        *ret_name = find_name(s, full);
        if (*ret_name != NULL)
            return (*ret_name)->entry;
        entry = find_digest(s, full);
        if (entry != NULL)
            return entry;
    }
    return find_id(s, reference);
}

struct img_image *img_lookup(struct img_store *s, const char *reference)
{
    struct img_name *name;
    struct img_entry *entry = image_query_find(s, reference, &name);

    return entry == NULL ? NULL : img_ref(entry->image);
}

/* How closely a pulled name matches: its repository, and then the same tag or digest. */
static int nearness(const struct img_name *n, const char *wanted)
{
    const char *at = strchr(wanted, '@');
    size_t length = img_repository(wanted);

    if (img_repository(n->name) != length || memcmp(n->name, wanted, length) != 0)
        return 0;
    return strcmp(n->name, wanted) == 0 || (at != NULL && str_eq(n->digest, at + 1)) ? 2 : 1;
}

char *img_repo_digest(struct img_store *s, const char *id, const char *reference)
{
    const struct img_entry *entry = img_find(s, id);
    const struct img_name *best = NULL;
    int best_nearness = 0;

    for (const struct img_name *n = s->names; entry != NULL && n != NULL; n = n->hh.next) {
        char wanted[IMG_NAME_MAX];
        int near = 0;

        if (n->entry != entry || n->digest == NULL)
            continue;
        for (size_t k = 0; near == 0 && img_candidate(s, reference, k, wanted); k++)
            near = nearness(n, wanted);
        if (best == NULL || near > best_nearness ||
            (near == best_nearness && strcmp(n->name, best->name) < 0)) {
            best = n;
            best_nearness = near;
        }
    }
    if (best == NULL)
        return strdup(id);
    return str_printf("%.*s@%s", (int)img_repository(best->name), best->name, best->digest);
}

enum err_code img_find_reference(struct img_store *s, const char *reference, struct img_entry **ret,
                                 struct err *e)
{
    struct img_name *ignored;
    struct img_entry *entry = image_query_find(s, reference, &ignored);

    if (entry == NULL)
        return err_set(e, ERR_NOT_FOUND, "no such image: \"%.300s\"", reference);
    *ret = entry;
    return ERR_OK;
}

/* ---- the list ---- */

static int image_query_by_name(const struct img_name *a, const struct img_name *b)
{
    return strcmp(a->name, b->name);
}

json_t *img_names_of(struct img_store *s, const struct img_entry *entry)
{
    json_t *names = json_array();

    HASH_SORT(s->names, image_query_by_name);
    for (const struct img_name *n = s->names; n != NULL && names != NULL; n = n->hh.next)
        if (n->entry == entry && json_array_append_new(names, json_string(n->name)) != 0) {
            json_decref(names);
            names = NULL;
        }
    return names;
}

struct layer_use { /* number of images with a layer */
    const char *name;
    size_t n;
    UT_hash_handle hh;
};

static void uses_free(struct layer_use **uses)
{
    struct layer_use *one, *next;

    HASH_ITER (hh, *uses, one, next) {
        HASH_DEL(*uses, one);
        free(one);
    }
}

static enum err_code count_uses(const struct img_store *s, struct layer_use **uses, struct err *e)
{
    for (const struct img_entry *entry = s->images; entry != NULL; entry = entry->hh.next)
        for (size_t i = 0; i < entry->image->layer_dirs.n; i++) {
            const char *name = img_layer_name(entry->image, i);
            struct layer_use *one;

            HASH_FIND_STR(*uses, name, one);
            if (one == NULL) {
                one = calloc(1, sizeof(*one));
                if (one == NULL)
                    return err_nomem(e);
                one->name = name;
                HASH_ADD_KEYPTR(hh, *uses, name, strlen(name), one);
                if (one->hh.tbl == NULL) {
                    free(one);
                    return err_nomem(e);
                }
            }
            one->n++;
        }
    return ERR_OK;
}

static uint64_t own_bytes(struct layer_use *uses, const struct img_image *image)
{
    uint64_t own = 0;

    for (size_t i = 0; i < image->layer_dirs.n; i++) {
        struct layer_use *one;

        HASH_FIND_STR(uses, img_layer_name(image, i), one);
        if (one != NULL && one->n == 1)
            own += image->layer_bytes[i];
    }
    return own;
}

uint64_t img_own_bytes(struct img_store *s, const char *id)
{
    const struct img_entry *entry = img_find(s, id);
    struct layer_use *uses = NULL;
    uint64_t own = 0;

    if (entry != NULL && count_uses(s, &uses, ERR_IGNORED) == ERR_OK)
        own = own_bytes(uses, entry->image);
    uses_free(&uses);
    return own;
}

static uint64_t all_bytes(const struct img_image *image)
{
    uint64_t all = 0;

    for (size_t i = 0; i < image->layer_dirs.n; i++)
        all += image->layer_bytes[i];
    return all;
}

/* Nothing if empty. */
static bool put_strs(json_t *o, const char *key, const struct img_strs *strs)
{
    json_t *list = strs->n > 0 ? json_array() : NULL;

    for (size_t i = 0; i < strs->n; i++)
        json_array_append_new(list, json_string(strs->v[i]));
    return strs->n == 0 || json_object_set_new(o, key, list) == 0;
}

/* The container settings of the image, with the member names of an image's configuration. */
static json_t *config_of(const struct img_image *i)
{
    json_t *config = json_object();

    if (put_strs(config, "Env", &i->env) && put_strs(config, "Entrypoint", &i->entrypoint) &&
        put_strs(config, "Cmd", &i->cmd) && json_put_str(config, "User", i->user) &&
        json_put_str(config, "WorkingDir", i->working_dir) &&
        json_put_str(config, "StopSignal", i->stop_signal))
        return config;
    json_decref(config);
    return NULL;
}

static json_t *layers_of(const struct img_image *image)
{
    json_t *layers = json_array();

    for (size_t i = 0; i < image->layer_dirs.n; i++)
        json_array_append_new(layers, json_pack("{s:o, s:I}", "id",
                                                json_sprintf("sha256:%s", img_layer_name(image, i)),
                                                "sizeBytes", (json_int_t)image->layer_bytes[i]));
    return layers;
}

static json_t *image_query_describe(struct img_store *s, struct layer_use *uses,
                                    const struct img_entry *entry)
{
    const struct img_image *i = entry->image;
    const uint64_t own = own_bytes(uses, i);
    json_t *item =
        json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:b, s:o, s:o}", "id", i->id, "names",
                  img_names_of(s, entry), "digest", i->digest, "sizeBytes", (json_int_t)i->size_bytes,
                  "ownBytes", (json_int_t)own, "sharedBytes", (json_int_t)(all_bytes(i) - own), "pinned",
                  i->pinned, "config", config_of(i), "layers", layers_of(i));

    if (item != NULL && json_put_str(item, "created", i->created))
        return item;
    json_decref(item);
    return NULL;
}

json_t *img_list(struct img_store *s)
{
    json_t *list = json_array();
    struct layer_use *uses = NULL;
    struct err e = { 0 };

    if (count_uses(s, &uses, &e) != ERR_OK) {
        json_decref(list);
        list = NULL;
    }
    for (const struct img_entry *entry = s->images; entry != NULL && list != NULL; entry = entry->hh.next)
        if (json_array_append_new(list, image_query_describe(s, uses, entry)) != 0) {
            json_decref(list);
            list = NULL;
        }
    uses_free(&uses);
    return list;
}

/* ---- removal ---- */

static enum err_code unlink_record(int dir, const char *hex, struct err *e)
{
    char file[80];

    snprintf(file, sizeof(file), "%s.json", hex);
    if (unlinkat(dir, file, 0) != 0 && errno != ENOENT)
        return err_sys(e, errno, "remove record %s", file);
    return ERR_OK;
}

static size_t count_names(const struct img_store *s, const struct img_entry *entry)
{
    size_t n = 0;

    for (const struct img_name *i = s->names; i != NULL; i = i->hh.next)
        n += i->entry == entry;
    return n;
}

static enum err_code remove_name(struct img_store *s, struct img_name *name, struct err *e)
{
    if (unlink_record(s->refs_fd, name->file, e) != ERR_OK)
        return e->code;
    img_drop_name(s, name);
    return ERR_OK;
}

/* Removes names first, then the record, then layers: after a crash an image is either complete or an orphan
 * that is collected. */
static enum err_code image_query_remove_image(struct img_store *s, struct img_entry *entry, struct err *e)
{
    struct img_name *name, *next;

    HASH_ITER (hh, s->names, name, next)
        if (name->entry == entry && remove_name(s, name, e) != ERR_OK)
            return e->code;
    if (unlink_record(s->images_fd, entry->image->id + 7, e) != ERR_OK)
        return e->code;
    img_drop(s, entry);
    img_collect(s);
    return ERR_OK;
}

/* Fails with the reason if the image cannot be removed now. */
static enum err_code check_held(const struct img_store *s, const struct img_entry *entry,
                                const char *reference, struct err *e)
{
    if (img_job_holds(s, entry->image->id))
        return err_set(e, ERR_UNAVAILABLE, "image \"%.300s\" is being pulled or imported", reference);
    if (entry->held > 0)
        return err_set(e, ERR_UNAVAILABLE, "image \"%.300s\" is being verified, exported or pinned",
                       reference);
    if (entry->image->refs > 1)
        return err_set(e, ERR_PRECONDITION, "image \"%.300s\" is in use by a container", reference);
    return ERR_OK;
}

enum err_code img_remove_id(struct img_store *s, const char *id, struct err *e)
{
    struct img_entry *entry = img_find(s, id);

    if (entry == NULL)
        return err_set(e, ERR_NOT_FOUND, "no such image: \"%.300s\"", id);
    return check_held(s, entry, id, e) == ERR_OK ? image_query_remove_image(s, entry, e) : e->code;
}

void img_each(struct img_store *s, void (*fn)(const struct img_seen *seen, void *arg), void *arg)
{
    struct img_entry *entry, *next;

    HASH_ITER (hh, s->images, entry, next) {
        struct err why = { 0 };
        const struct img_seen seen = { .image = entry->image,
                                       .n_names = count_names(s, entry),
                                       .held = check_held(s, entry, "", &why) != ERR_OK };

        fn(&seen, arg);
    }
}

enum err_code img_remove(struct img_store *s, const char *reference,
                         bool (*in_use)(const char *id, void *arg), void *arg, struct err *e)
{
    struct img_name *name;
    struct img_entry *entry = image_query_find(s, reference, &name);

    if (entry == NULL)
        return err_set(e, ERR_NOT_FOUND, "no such image: \"%.300s\"", reference);
    if (name != NULL && count_names(s, entry) > 1)
        return remove_name(s, name, e);
    if (in_use != NULL && !img_job_holds(s, entry->image->id) && in_use(entry->image->id, arg))
        return err_set(e, ERR_PRECONDITION, "image \"%.300s\" is in use by a container", reference);
    return check_held(s, entry, reference, e) == ERR_OK ? image_query_remove_image(s, entry, e) : e->code;
}
