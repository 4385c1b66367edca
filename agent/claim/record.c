/* SPDX-License-Identifier: Apache-2.0 */
/* record - claims on the disk. */
#include "agent/claim/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/damaged_file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_MAX (64 * 1024)

struct claim *claim_new(struct claims *c, const char *namespace_, const char *name)
{
    struct claim *one = calloc(1, sizeof(*one));

    if (one == NULL)
        return NULL;
    snprintf(one->key, sizeof(one->key), "%.63s/%.253s", namespace_, name);
    one->own_path = str_printf("%s/%s/data", c->dir, one->key);
    id_random_uuid(one->uid);
    one->created_ns = clock_wall_ns();
    if (one->own_path != NULL)
        HASH_ADD_STR(c->all, key, one);
    if (one->own_path != NULL && one->hh.tbl != NULL)
        return one;
    free(one->own_path);
    free(one);
    return NULL;
}

void claim_done(struct claim *one)
{
    free(one->volume);
    free(one->size);
    free(one->owner);
    free(one->own_path);
    json_decref(one->made);
    api_generic_unref(one->pv);
    api_generic_unref(one->last);
}

void claim_forget(struct claims *c, struct claim *one)
{
    HASH_DEL(c->all, one);
    claim_done(one);
    free(one);
}

enum err_code claim_record_save(struct claims *c, const struct claim *one, struct err *e)
{
    json_t *pv = one->pv != NULL ? json_loads(one->pv->json, 0, NULL) : NULL;
    json_auto_t *o = json_pack("{s:i, s:s, s:I, s:s*, s:o*, s:s*, s:s*, s:b, s:b, s:O*}", "version", 1, "uid",
                               one->uid, "created", (json_int_t)one->created_ns, "volume", one->volume,
                               "object", pv, "size", one->size, "owner", one->owner, "ofPod", one->of_pod,
                               "going", one->going, "made", one->made);
    str_auto text = o != NULL ? json_dumps(o, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
    str_auto dir = str_printf("%s/%s", c->dir, one->key);
    str_auto path = str_printf("%s/%s/claim.json", c->dir, one->key);

    if (text == NULL || dir == NULL || path == NULL || (one->pv != NULL && pv == NULL))
        return err_nomem(e);
    if (strlen(text) > RECORD_MAX)
        return err_set(e, ERR_EXHAUSTED, "claim %s: its record is too large", one->key);
    if (fs_mkdirs(dir, 0700, e) != ERR_OK ||
        fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, true, e) != ERR_OK)
        return err_wrap(e, "claim %s", one->key);
    return ERR_OK;
}

enum err_code claim_record_remove(struct claims *c, const struct claim *one, struct err *e)
{
    str_auto from = str_printf("%s/%s", c->dir, one->key);
    str_auto to = str_printf("%s/%s", c->gone, one->uid);

    if (from == NULL || to == NULL)
        return err_nomem(e);
    if (fs_mkdirs(c->gone, 0700, e) != ERR_OK)
        return e->code;
    if (rename(from, to) != 0 && errno != ENOENT)
        return err_sys(e, errno, "rename %s to %s", from, to);
    return ERR_OK;
}

/* ---- at the start ---- */

static void take_text(char **ret, const json_t *o, const char *key)
{
    const char *text = json_str(o, key);

    *ret = text != NULL ? strdup(text) : NULL;
}

/* Records written before 2026-11 have a path instead of the PersistentVolume. */
static json_t *volume_of_path(const struct claim *one, const json_t *o)
{
    const char *path = json_str(o, "path"), *type = json_str(o, "type");

    if (path == NULL || one->volume == NULL)
        return NULL;
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:s}, s:[s], s:{s:s, s:s}}}", "apiVersion", "v1", "kind",
                     "PersistentVolume", "metadata", "name", one->volume, "spec", "capacity", "storage",
                     one->size != NULL ? one->size : "1", "accessModes", "ReadWriteOnce", "hostPath", "path",
                     path, "type", type != NULL ? type : "");
}

static enum err_code take_volume(struct claim *one, json_t *o, struct err *e)
{
    json_t *stored = json_object_get(o, "object");
    json_auto_t *volume = stored != NULL ? json_incref(stored) : volume_of_path(one, o);

    if (volume == NULL)
        return ERR_OK;
    if (api_make_generic(API_KIND_PERSISTENT_VOLUME, volume, &one->pv, e) != ERR_OK)
        return err_wrap(e, "the volume of the claim");
    if (one->volume == NULL || one->pv->pv == NULL || !str_eq(one->volume, one->pv->meta.name))
        return err_set(e, ERR_INVALID, "the claim has a different volume");
    return ERR_OK;
}

enum err_code claim_record_parse(const char *text, size_t n, struct claim *one, struct err *e)
{
    json_auto_t *o = NULL;
    const json_t *marks;
    const char *uid;

    if (json_parse(text, n, RECORD_MAX, &o, "claim", e) != ERR_OK)
        return e->code;
    uid = json_str(o, "uid");
    if (json_int(o, "version", 0) != 1 || uid == NULL)
        return err_set(e, ERR_INVALID, "it does not have version 1, or lacks a uid");
    if (strlen(uid) >= sizeof(one->uid) || strchr(uid, '/') != NULL || uid[0] == '.' || uid[0] == '\0')
        return err_set(e, ERR_INVALID, "its uid is invalid");
    snprintf(one->uid, sizeof(one->uid), "%s", uid);
    one->created_ns = json_int(o, "created", one->created_ns);
    take_text(&one->volume, o, "volume");
    take_text(&one->size, o, "size");
    take_text(&one->owner, o, "owner");
    one->of_pod = json_flag(o, "ofPod");
    one->going = json_flag(o, "going");
    if (json_is_object(json_object_get(o, "made")))
        one->made = json_incref(json_object_get(o, "made"));
    marks = json_object_get(json_object_get(one->made, "metadata"), "annotations");
    one->kept = json_object_get(marks, CLAIM_DELETED) != NULL;
    return take_volume(one, o, e);
}

struct loading {
    struct claims *c;
    const char *namespace_;
};

static void set_aside(const char *dir, const struct err *why)
{
    char name[DAMAGED_FILE_NAME_SIZE] = "";
    struct err e = { 0 };
    fd_auto at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (at >= 0 && damaged_file_set_aside(at, "claim.json", name, &e) != ERR_OK)
        log_error("cannot set a damaged file aside", F_STR("folder", dir), F_ERR(&e));
    log_error("the record of a claim is damaged; its folder stays", F_STR("folder", dir), F_STR("kept", name),
              F_ERR(why));
}

static bool load_one(const char *name, void *arg)
{
    const struct loading *l = arg;
    str_auto dir = str_printf("%s/%s/%s", l->c->dir, l->namespace_, name);
    str_auto path = str_printf("%s/%s/%s/claim.json", l->c->dir, l->namespace_, name);
    str_auto text = NULL;
    struct err e = { 0 };
    struct claim *one;
    size_t n = 0;

    if (dir == NULL || path == NULL)
        return true;
    switch (presence_of(fs_read_if_there(AT_FDCWD, path, RECORD_MAX, &text, &n, &e))) {
    case PRESENCE_UNKNOWN:
        log_error("cannot read the record of a claim", F_STR("file", path), F_ERR(&e));
        return true;
    case PRESENCE_ABSENT: /* the agent was killed before it wrote the record: the folder is empty */
        return true;
    case PRESENCE_PRESENT:
        break;
    }
    one = claim_new(l->c, l->namespace_, name);
    if (one == NULL) {
        log_error("cannot adopt a claim: out of memory", F_STR("file", path));
    } else if (claim_record_parse(text, n, one, &e) != ERR_OK) {
        claim_forget(l->c, one);
        set_aside(dir, &e);
    }
    return true;
}

static bool load_namespace(const char *name, void *arg)
{
    struct claims *c = arg;
    struct loading l = { .c = c, .namespace_ = name };
    struct err e = { 0 };
    str_auto dir = str_printf("%s/%s", c->dir, name);

    if (name[0] != '.' && dir != NULL && presence_is_unknown(fs_list(AT_FDCWD, dir, load_one, &l, &e)))
        log_error("cannot read claims", F_STR("folder", dir), F_ERR(&e));
    return true;
}

enum err_code claim_records_load(struct claims *c, struct err *e)
{
    if (fs_mkdirs(c->dir, 0711, e) != ERR_OK)
        return e->code;
    return presence_is_unknown(fs_list(AT_FDCWD, c->dir, load_namespace, c, e)) ? e->code : ERR_OK;
}
