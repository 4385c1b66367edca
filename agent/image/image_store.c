/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include "base/codec/json.h"
#include "base/files/damaged_file.h"
#include "base/files/fs.h"
#include "base/files/patience.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the tables ---- */

struct img_entry *img_find(struct img_store *s, const char *id)
{
    struct img_entry *entry;

    HASH_FIND_STR(s->images, id, entry);
    return entry;
}

/* The image is present again: the layers of its damaged record are known. */
struct replaced {
    struct img_store *store;
    const char *hex;
    unsigned others;
};

static bool remove_if_of_it(const char *name, void *arg)
{
    struct replaced *r = arg;

    if (!damaged_file_is(name))
        return true;
    if (strncmp(name, r->hex, 64) == 0)
        fs_remove_quietly(r->store->images_fd, name);
    else
        r->others++;
    return true;
}

static void replaced(struct img_store *s, const struct img_image *image)
{
    struct replaced r = { .store = s, .hex = image->id + strlen("sha256:") };
    struct err e = { 0 };

    if (!s->loading)
        img_unread_forget(s, s->images_fd, r.hex);
    if (s->damaged == 0 || s->loading)
        return;
    switch (presence_of(fs_list(s->images_fd, ".", remove_if_of_it, &r, &e))) {
    case PRESENCE_UNKNOWN: /* there may be other damaged records: layers are kept */
        log_warn("images: cannot list damaged records that were set aside", F_ERR(&e));
        return;
    case PRESENCE_ABSENT:
    case PRESENCE_PRESENT:
        s->damaged = r.others;
    }
}

struct img_entry *img_keep(struct img_store *s, struct img_image *image, struct err *e)
{
    struct img_entry *entry = img_find(s, image->id);

    replaced(s, image);

    if (entry != NULL) {
        /* The image was imported from a docker archive, which has no manifest, and is now added from another
         * source. */
        if (strcmp(entry->image->digest, entry->image->id) == 0 && strcmp(image->digest, image->id) != 0) {
            struct img_image *old = entry->image;

            HASH_DEL(s->images, entry); /* the key belongs to the image */
            entry->image = img_ref(image);
            img_unref(old);
            HASH_ADD_KEYPTR(hh, s->images, entry->image->id, strlen(entry->image->id), entry);
        }
        return entry;
    }
    if (HASH_COUNT(s->images) >= IMG_MAX_IMAGES) {
        err_set(e, ERR_EXHAUSTED, "the store already contains %d images", IMG_MAX_IMAGES);
        return NULL;
    }
    entry = calloc(1, sizeof(*entry));
    if (entry != NULL) {
        entry->image = img_ref(image);
        HASH_ADD_KEYPTR(hh, s->images, entry->image->id, strlen(entry->image->id), entry);
    }
    if (entry == NULL || entry->hh.tbl == NULL) {
        if (entry != NULL)
            img_unref(entry->image);
        free(entry);
        err_nomem(e);
        return NULL;
    }
    return entry;
}

void img_drop(struct img_store *s, struct img_entry *entry)
{
    HASH_DEL(s->images, entry);
    img_unref(entry->image);
    free(entry);
}

static void name_free(struct img_name *n)
{
    free(n->name);
    free(n->digest);
    free(n);
}

void img_drop_name(struct img_store *s, struct img_name *n)
{
    HASH_DEL(s->names, n);
    name_free(n);
}

enum err_code img_keep_name(struct img_store *s, const char *name, const char *file, const char *digest,
                            struct img_entry *entry, struct err *e)
{
    struct img_name *n = calloc(1, sizeof(*n)), *old;

    if (n == NULL)
        return err_nomem(e);
    if (!s->loading)
        img_unread_forget(s, s->refs_fd, file);
    n->entry = entry;
    snprintf(n->file, sizeof(n->file), "%s", file);
    n->name = strdup(name);
    n->digest = digest == NULL ? NULL : strdup(digest);
    if (n->name == NULL || (digest != NULL && n->digest == NULL)) {
        name_free(n);
        return err_nomem(e);
    }
    HASH_FIND_STR(s->names, name, old);
    if (old == NULL && HASH_COUNT(s->names) >= IMG_MAX_NAMES) {
        name_free(n);
        return err_set(e, ERR_EXHAUSTED, "the store already contains %d names", IMG_MAX_NAMES);
    }
    if (old != NULL)
        img_drop_name(s, old);
    HASH_ADD_KEYPTR(hh, s->names, n->name, strlen(n->name), n);
    if (n->hh.tbl == NULL) {
        name_free(n);
        return err_nomem(e);
    }
    return ERR_OK;
}

/* ---- reading the records ---- */

/* An unusable record is moved aside and kept for inspection; the next start does not see it. */
static void set_aside(struct img_store *s, int dir, const char *file, const struct err *why)
{
    char away[DAMAGED_FILE_NAME_SIZE] = "";
    struct err e = { 0 };

    if (dir == s->images_fd)
        s->damaged++;
    if (damaged_file_set_aside(dir, file, away, &e) == ERR_OK)
        log_warn("images: set aside a damaged record", F_STR("file", away), F_ERR(why));
    else
        log_error("images: cannot set aside a damaged record", F_STR("record", file),
                  F_STR("damage", why->text), F_ERR(&e));
}

/* Whether the failure is a disk error or shortage rather than a damaged record. A folder or link in its place
 * is damage. */
static bool is_not_seen(const struct err *e)
{
    return e->sys != 0 && e->sys != EISDIR && e->sys != ELOOP;
}

static void reject(struct img_store *s, int dir, const char *file, const struct err *why)
{
    if (is_not_seen(why))
        img_unread_add(s, dir, file, why);
    else
        set_aside(s, dir, file, why);
}

/* ERR_NOT_FOUND: it does not exist any more. */
static enum err_code read_record(int dir, const char *file, json_t **ret, struct err *e)
{
    str_auto text = NULL;
    size_t n = 0;

    switch (presence_of(fs_read_if_there(dir, file, IMG_RECORD_MAX, &text, &n, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_ABSENT:
        return err_set(e, ERR_NOT_FOUND, "record %s is gone", file);
    case PRESENCE_PRESENT:
        break;
    }
    return json_parse(text, n, IMG_RECORD_MAX, ret, file, e);
}

static enum err_code check_layers(const struct img_store *s, const struct img_image *i, struct err *e)
{
    struct stat st = { 0 };

    for (size_t n = 0; n < i->layer_dirs.n; n++) {
        struct presence found = fs_look_at(s->layers_fd, img_layer_name(i, n), &st, e);

        if (presence_is_unknown(found))
            return err_wrap(e, "its layer");
        if (presence_is_absent(found) || !S_ISDIR(st.st_mode))
            return err_set(e, ERR_DATA_LOSS, "its layer %s is missing", img_layer_name(i, n));
    }
    return ERR_OK;
}

static void load_image(struct img_store *s, const char *file)
{
    scoped(img_unref) struct img_image *image = NULL;
    json_auto_t *record = NULL;
    struct err e = { 0 };
    char hex[65];

    if (!img_named_by_hex(file, ".json", hex)) {
        if (file[0] == '.') /* a write interrupted by a crash */
            fs_remove_quietly(s->images_fd, file);
        else if (damaged_file_is(file))
            s->damaged++;
        return;
    }
    if (read_record(s->images_fd, file, &record, &e) == ERR_NOT_FOUND)
        return;
    if (e.code == ERR_OK && img_record_decode(record, s->dir, &image, &e) == ERR_OK &&
        strcmp(image->id + 7, hex) != 0)
        err_set(&e, ERR_INVALID, "image record: it is for %s", image->id);
    if (e.code == ERR_OK && check_layers(s, image, &e) == ERR_OK && img_keep(s, image, &e) != NULL)
        return;
    reject(s, s->images_fd, file, &e);
}

/* Checks the record and stores its content. */
static enum err_code take_name(struct img_store *s, const json_t *record, const char *hex, struct err *e)
{
    const char *name = json_str(record, "name"), *id = json_str(record, "id");
    const char *digest = json_str(record, "digest");
    struct img_entry *entry;
    char full[IMG_NAME_MAX];

    if (img_record_version(record, e) != ERR_OK)
        return e->code;
    if (name == NULL || img_normalise(name, full, e) != ERR_OK || strcmp(full, name) != 0 ||
        !img_digest_is_valid(id) || (digest != NULL && !img_digest_is_valid(digest)))
        return err_set(e, ERR_INVALID, "name record: name or id is not valid");
    entry = img_find(s, id);
    if (entry == NULL && img_unread_has(s, s->images_fd, id + strlen("sha256:")))
        return err_sys(e, EAGAIN, "name record: image %s is not read yet", id);
    if (entry == NULL)
        return err_set(e, ERR_DATA_LOSS, "name record: there is no image %s", id);
    if (img_keep_name(s, name, hex, digest, entry, e) == ERR_OK && s->on_added != NULL)
        s->on_added(name, s->on_added_arg); /* added after the start: pods may be waiting for it */
    return e->code;
}

static void load_name(struct img_store *s, const char *file)
{
    json_auto_t *record = NULL;
    struct err e = { 0 };
    char hex[65];

    if (!img_named_by_hex(file, ".json", hex)) {
        if (file[0] == '.')
            fs_remove_quietly(s->refs_fd, file);
        return;
    }
    if (read_record(s->refs_fd, file, &record, &e) == ERR_NOT_FOUND)
        return;
    if (e.code != ERR_OK || take_name(s, record, hex, &e) != ERR_OK)
        reject(s, s->refs_fd, file, &e);
}

void img_load_record(struct img_store *s, int dir, const char *file)
{
    const bool was_loading = s->loading;

    s->loading = true;
    if (dir == s->images_fd)
        load_image(s, file);
    else
        load_name(s, file);
    s->loading = was_loading;
}

static enum err_code image_store_load_all(struct img_store *s, struct err *e)
{
    s->loading = true;
    if (img_list_surely(s, s->images_fd, "images", load_image, e) == ERR_OK)
        ERR_IGNORE(img_list_surely(s, s->refs_fd, "refs", load_name, e));
    s->loading = false;
    if (e->code == ERR_OK)
        img_read_surely(s);
    return e->code;
}

/* ---- open and close ---- */

static int open_part(int dir, const char *name, struct err *e)
{
    int fd;

    if (mkdirat(dir, name, 0700) != 0 && errno != EEXIST) {
        err_sys(e, errno, "create folder %s", name);
        return -1;
    }
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        err_sys(e, errno, "open folder %s", name);
    return fd;
}

static enum err_code image_store_open_folders(struct img_store *s, struct err *e)
{
    struct stat st;
    fd_auto dir = -1;

    if (fs_mkdirs(s->dir, 0700, e) != ERR_OK)
        return e->code;
    dir = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, errno, "open %s", s->dir);
    if (fchmod(dir, 0700) != 0 &&
        !(errno == EROFS && fstat(dir, &st) == 0 &&
          /* layers contain setuid files: no other user of the host may access them */
          (st.st_mode & 077) == 0))
        return err_sys(e, errno, "close %s to others", s->dir);
    if ((s->refs_fd = open_part(dir, "refs", e)) < 0 || (s->images_fd = open_part(dir, "images", e)) < 0 ||
        (s->layers_fd = open_part(dir, "layers", e)) < 0 || (s->parts_fd = open_part(dir, "parts", e)) < 0 ||
        (s->tmp_fd = open_part(dir, "tmp", e)) < 0)
        return e->code;
    return ERR_OK;
}

static void close_folders(struct img_store *s)
{
    int *const fds[] = { &s->refs_fd, &s->images_fd, &s->layers_fd, &s->parts_fd, &s->tmp_fd };

    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

/* A shortage or disk error may be temporary. */
static enum err_code open_folders_surely(struct img_store *s, struct err *e)
{
    struct patience patience = { 0 };

    while (image_store_open_folders(s, e) != ERR_OK) {
        close_folders(s);
        if ((!err_is_shortage(e) && e->sys != EIO) || !patience_wait(&patience))
            return e->code;
        *e = (struct err){ 0 };
    }
    return ERR_OK;
}

static char *image_store_copy(const char *text, bool *failed)
{
    char *mine = text == NULL ? NULL : strdup(text);

    *failed = *failed || (text != NULL && mine == NULL);
    return mine;
}

static void store_free(struct img_store *s)
{
    struct img_entry *entry, *next_entry;
    struct img_name *name, *next_name;

    HASH_ITER (hh, s->names, name, next_name)
        img_drop_name(s, name);
    HASH_ITER (hh, s->images, entry, next_entry)
        img_drop(s, entry);
    img_trash_forget(s);
    close_folders(s);
    free(s->dir);
    free(s->unpack_path);
    free(s->skopeo_path);
    free(s->tmpfs_dir);
    free(s->ops_cgroup_procs);
    free(s->registries_conf);
    free(s->auth_file);
    free(s->run_dir);
    free(s->pods_dir);
    img_unread_free(s);
    strs_done(&s->verify_not);
    reg_names_done(&s->short_names);
    free(s->blobs_for);
    provider_set_free(s->providers);
    free(s);
}

static void read_proof_key(const char *path, unsigned char ret[SIPHASH_KEY_SIZE], struct err *e)
{
    struct patience patience = { 0 };

    do {
        *e = (struct err){ 0 };
        siphash_key(path, ret, e);
    } while ((err_is_shortage(e) || e->sys == EIO) && patience_wait(&patience));
}

static void load_proof_key(struct img_store *s)
{
    str_auto path = s->tmpfs_dir == NULL ? NULL : str_printf("%s/proof-key", s->tmpfs_dir);
    struct err e = { 0 };

    if (path != NULL)
        read_proof_key(path, s->proof_key, &e);
    else
        id_random_hex((char *)s->proof_key, sizeof(s->proof_key) - 1);
    if (e.code != ERR_OK)
        log_warn("after a restart, pull secrets are only recognized by name", F_ERR(&e));
}

enum err_code img_store_open(struct img_store **ret, const struct img_store_options *o, struct err *e)
{
    struct img_store *s = calloc(1, sizeof(*s));
    struct err left = { 0 };
    bool failed = false;

    if (s == NULL)
        return err_nomem(e);
    s->loop = o->loop;
    s->dir = image_store_copy(o->dir, &failed);
    s->unpack_path = image_store_copy(o->unpack_path, &failed);
    s->skopeo_path = image_store_copy(o->skopeo_path, &failed);
    s->tmpfs_dir = image_store_copy(o->tmpfs_dir, &failed);
    s->ops_cgroup_procs = image_store_copy(o->ops_cgroup_procs, &failed);
    s->registries_conf = image_store_copy(o->registries_conf, &failed);
    s->auth_file = image_store_copy(o->auth_file, &failed);
    s->run_dir = image_store_copy(o->run_dir, &failed);
    s->pods_dir = image_store_copy(o->pods_dir, &failed);
    s->verify = o->verify;
    for (const char *const *one = o->verify_not; one != NULL && *one != NULL; one++)
        failed = !strs_add(&s->verify_not, *one) || failed;
    s->confine = o->confine;
    s->ops_cgroup_fd = o->ops_cgroup_fd;
    s->max_bytes = o->max_bytes > 0 ? o->max_bytes : IMG_DEFAULT_BYTES;
    s->max_parallel = o->max_parallel > 0 ? o->max_parallel : IMG_DEFAULT_PARALLEL;
    s->max_per_registry =
        o->max_per_registry > 0 ? o->max_per_registry : s->max_parallel - (s->max_parallel > 1);
    s->stall_ms = o->stall_ms > 0 ? o->stall_ms : IMG_DEFAULT_STALL_MS;
    s->refs_fd = s->images_fd = s->layers_fd = s->parts_fd = s->tmp_fd = -1;
    TAILQ_INIT(&s->writers);
    TAILQ_INIT(&s->jobs);
    TAILQ_INIT(&s->tasks);
    TAILQ_INIT(&s->trash);
    TAILQ_INIT(&s->looks.unread);
    if (failed || open_folders_surely(s, e) != ERR_OK) {
        store_free(s);
        return failed ? err_nomem(e) : err_wrap(e, "image store %s", o->dir);
    }
    uv_timer_init(s->loop, &s->usage);
    uv_timer_init(s->loop, &s->looks.timer);
    s->usage.data = s->looks.timer.data = s;
    s->n_timers = 2;

    if (s->confine)
        img_user_find(s);
    img_auth_clean(s);
    load_proof_key(s);
    img_look_at_names(s);
    if (img_each_entry(s, s->tmp_fd, img_trash_leftover, &left) != ERR_OK)
        log_warn("images: cannot list leftovers; keeping them until the next start", F_ERR(&left));
    if (image_store_load_all(s, e) != ERR_OK) {
        img_store_close(s);
        return err_wrap(e, "image store %s", o->dir);
    }
    img_collect(s);
    img_blobs_adopt(s);
    s->providers = o->providers;
    *ret = s;
    return ERR_OK;
}

const char *img_store_dir(const struct img_store *s)
{
    return s->dir;
}

static void image_store_on_timer_closed(uv_handle_t *handle)
{
    struct img_store *s = handle->data;

    if (--s->n_timers == 0)
        store_free(s);
}

void img_store_settle(struct img_store *s)
{
    if (s->closing && TAILQ_EMPTY(&s->jobs) && TAILQ_EMPTY(&s->tasks) &&
        !uv_is_closing((uv_handle_t *)&s->usage)) {
        uv_close((uv_handle_t *)&s->usage, image_store_on_timer_closed);
        uv_close((uv_handle_t *)&s->looks.timer, image_store_on_timer_closed);
    }
}

void img_store_close(struct img_store *s)
{
    struct img_job *job, *next_job;
    struct img_task_run *task, *next_task;

    if (s == NULL)
        return;
    s->closing = true;
    s->on_added = NULL;
    uv_timer_stop(&s->looks.timer);
    TAILQ_FOREACH_SAFE (job, &s->jobs, more, next_job) {
        struct img_bring_run *run, *next_run;

        TAILQ_FOREACH_SAFE (run, &job->waiters, more, next_run)
            op_cancel(&run->bring->op); /* the job ends with its last caller */
    }
    TAILQ_FOREACH_SAFE (task, &s->tasks, more, next_task)
        op_cancel(&task->task->op);
    img_store_settle(s);
}

void img_on_added(struct img_store *s, void (*fn)(const char *name, void *arg), void *arg)
{
    s->on_added = fn;
    s->on_added_arg = arg;
}
