/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of unused things: renamed out of place first, then removed in the background. */
#include "agent/image/image_internal.h"

#include "base/files/fs.h"
#include "base/files/patience.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct trash {
    struct work work;
    TAILQ_ENTRY(trash) more;
    struct img_store *store; /* NULL: the store was closed first */
    bool begun;
    int dir;
    int records[4]; /* folders whose entries are removed first */
    char name[256];
};

static void trash_close(struct trash *t)
{
    if (t->dir >= 0)
        close(take_fd(&t->dir));
    for (size_t i = 0; i < ARRAY_LEN(t->records); i++)
        if (t->records[i] >= 0)
            close(take_fd(&t->records[i]));
}

static enum err_code trash_open(struct trash *t, const struct img_store *s, struct err *e)
{
    const int folders[] = { s->images_fd, s->layers_fd, s->parts_fd, s->tmp_fd };
    bool failed;

    t->dir = fcntl(s->tmp_fd, F_DUPFD_CLOEXEC, 3);
    failed = t->dir < 0;
    for (size_t i = 0; i < ARRAY_LEN(t->records); i++) {
        t->records[i] = failed ? -1 : fcntl(folders[i], F_DUPFD_CLOEXEC, 3);
        failed = failed || t->records[i] < 0;
    }
    if (!failed)
        return ERR_OK;
    err_sys(e, errno, "remove temporary folder %s", t->name);
    trash_close(t);
    return e->code;
}

static enum err_code remove_trash(void *arg, struct err *e)
{
    const struct trash *t = arg;
    struct patience patience = { 0 };

    /* Sync the removal of records before removing files: a power failure in between must not leave a record
     * of a layer with half its files. */
    for (size_t i = 0; i < ARRAY_LEN(t->records); i++)
        if (fsync(t->records[i]) != 0)
            return err_sys(e, errno, "sync the image store");
    do
        *e = (struct err){ 0 };
    while (fs_remove_tree(t->dir, t->name, e) != ERR_OK && patience_wait(&patience));
    return e->code;
}

static void on_trash_removed(struct op *op, const struct err *result)
{
    struct trash *t = op->owner;
    struct img_store *s = t->store;

    trash_close(t);
    t->begun = false;
    if (result->code != ERR_OK)
        log_warn("images: cannot remove a temporary folder", F_STR("folder", t->name), F_ERR(result));
    if (result->code != ERR_OK && t->store != NULL) {
        img_look_again(t->store, result);
        return;
    }
    if (s != NULL)
        TAILQ_REMOVE(&s->trash, t, more);
    free(t); /* the next start removes the rest */
    if (s == NULL || img_is_clearing(s))
        return;
    if (s->cleared != NULL)
        s->cleared(s->cleared_arg);
    img_space_wake(s);
}

/* Removals that will only be retried later are not counted. */
bool img_is_clearing(const struct img_store *s)
{
    const struct trash *t;

    TAILQ_FOREACH (t, &s->trash, more)
        if (t->begun)
            return true;
    return false;
}

void img_on_cleared(struct img_store *s, void (*fn)(void *arg), void *arg)
{
    s->cleared = fn;
    s->cleared_arg = arg;
}

static enum err_code trash_begin(struct img_store *s, struct err *e)
{
    struct trash *t;

    TAILQ_FOREACH (t, &s->trash, more) {
        if (t->begun)
            continue;
        if (trash_open(t, s, e) != ERR_OK)
            return e->code;
        t->begun = true;
        work_start(&t->work, "image clean-up", t->name, remove_trash, t, s->loop, on_trash_removed, t);
    }
    return ERR_OK;
}

void img_trash(struct img_store *s, const char *name)
{
    struct trash *t = calloc(1, sizeof(*t));
    struct err e = { 0 };

    if (t == NULL || strlen(name) >= sizeof(t->name)) {
        free(t); /* the next start removes it */
        return;
    }
    t->store = s;
    memcpy(t->name, name, strlen(name) + 1);
    TAILQ_INSERT_TAIL(&s->trash, t, more);
    if (trash_begin(s, &e) != ERR_OK)
        img_look_again(s, &e);
}

void img_trash_forget(struct img_store *s)
{
    struct trash *t;

    while ((t = TAILQ_FIRST(&s->trash)) != NULL) {
        TAILQ_REMOVE(&s->trash, t, more);
        t->store = NULL;
        if (!t->begun)
            free(t);
    }
}

void img_trash_leftover(struct img_store *s, const char *name)
{
    char away[33];

    if (strcmp(name, "blobs") == 0) /* complete blobs: img_blobs_adopt() */
        return;
    id_random_hex(away, sizeof(away) - 1);
    if (renameat(s->tmp_fd, name, s->tmp_fd, away) == 0)
        img_trash(s, away);
}

struct each {
    struct img_store *store;
    void (*fn)(struct img_store *s, const char *name);
};

static bool on_entry(const char *name, void *arg)
{
    const struct each *each = arg;

    each->fn(each->store, name);
    return true;
}

enum err_code img_each_entry(struct img_store *s, int dir, void (*fn)(struct img_store *s, const char *name),
                             struct err *e)
{
    struct each each = { s, fn };
    struct presence found = fs_list(dir, ".", on_entry, &each, e);

    if (presence_is_absent(found)) /* it was opened, and no other process may remove it */
        return err_set(e, ERR_DATA_LOSS, "the folder was removed");
    return presence_is_unknown(found) ? e->code : ERR_OK;
}

static bool layer_is_used(const struct img_store *s, const char *name)
{
    for (const struct img_entry *entry = s->images; entry != NULL; entry = entry->hh.next)
        for (size_t i = 0; i < entry->image->layer_dirs.n; i++)
            if (strcmp(img_layer_name(entry->image, i), name) == 0)
                return true;
    return false;
}

static void take_away(struct img_store *s, int folder, const char *name)
{
    char away[33];

    id_random_hex(away, sizeof(away) - 1);
    /* A rename is atomic. */
    if (renameat(folder, name, s->tmp_fd, away) == 0)
        img_trash(s, away);
    else
        log_warn("images: cannot remove a leftover", F_STR("file", name),
                 F_STR("err", strerrordesc_np(errno)));
}

static void collect_layer(struct img_store *s, const char *name)
{
    if (!layer_is_used(s, name))
        take_away(s, s->layers_fd, name);
}

bool img_named_by_hex(const char *file, const char *ending, char hex[65])
{
    if (strlen(file) != 64 + strlen(ending) || strspn(file, "0123456789abcdef") != 64 ||
        strcmp(file + 64, ending) != 0)
        return false;
    memcpy(hex, file, 64);
    hex[64] = '\0';
    return true;
}

static bool part_is_used(struct img_store *s, const char *name)
{
    char id[72] = "sha256:";

    return img_named_by_hex(name, IMG_CONFIG, id + strlen(id)) && img_find(s, id) != NULL;
}

static void collect_part(struct img_store *s, const char *name)
{
    if (!part_is_used(s, name))
        take_away(s, s->parts_fd, name);
}

static void note_unused_layer(struct img_store *s, const char *name)
{
    s->have_rubbish = s->have_rubbish || !layer_is_used(s, name);
}

static void note_unused_part(struct img_store *s, const char *name)
{
    s->have_rubbish = s->have_rubbish || !part_is_used(s, name);
}

/* Nothing is removed until all folders and mounts were read. */
static enum err_code image_rubbish_collect(struct img_store *s, struct err *e)
{
    s->have_rubbish = false;
    if (img_each_entry(s, s->layers_fd, note_unused_layer, e) != ERR_OK ||
        img_each_entry(s, s->parts_fd, note_unused_part, e) != ERR_OK)
        return err_wrap(e, "list the store's layers");
    if (!s->have_rubbish)
        return ERR_OK;
    if (img_check_mounted(s, e) != ERR_OK || img_each_entry(s, s->layers_fd, collect_layer, e) != ERR_OK)
        return e->code;
    return img_each_entry(s, s->parts_fd, collect_part, e);
}

void img_collect(struct img_store *s)
{
    struct err e = { 0 };

    if (img_unread_any(s)) /* these records may refer to any layer */
        return;
    if (s->damaged > 0 && !s->said_damaged)
        log_warn("images: layers that no image names are kept: a damaged record may have named them, and "
                 "pods may run on "
                 "them; bring the image again, or remove the record",
                 F_STR("folder", s->dir), F_U64("damagedRecords", s->damaged));
    s->said_damaged = s->damaged > 0;
    /* A pull relies on existing layers, and adds some before their image exists: the last pull collects. */
    if (s->running > 0)
        return;
    if ((s->damaged == 0 && image_rubbish_collect(s, &e) != ERR_OK) || trash_begin(s, &e) != ERR_OK)
        img_look_again(s, &e);
    else
        img_look_over(s);
}
