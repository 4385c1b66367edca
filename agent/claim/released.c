/* SPDX-License-Identifier: Apache-2.0 */
/*
 * released - PersistentVolumes whose claims were removed, in <state>/claims/.released/<volume>.json. As in
 * Kubernetes, such a volume is bound to no other claim, because it contains the first claim's data, until an
 * administrator releases it by removing its manifest and creating it again.
 */
#include "agent/claim/internal.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RELEASED_MAX 4096

static char *path_of(const struct claims *c, const char *volume)
{
    return str_printf("%s/.released%s%s%s", c->dir, volume != NULL ? "/" : "", volume != NULL ? volume : "",
                      volume != NULL ? ".json" : "");
}

static struct released *find(const struct claims *c, const char *volume)
{
    struct released *found;

    HASH_FIND_STR(c->released, volume, found);
    return found;
}

const struct released *claims_released(const struct claims *c, const char *volume)
{
    return find(c, volume);
}

static enum err_code add(struct claims *c, const char *volume, const char *claim, const char *uid,
                         struct err *e)
{
    struct released *r = find(c, volume);

    if (r == NULL) {
        r = calloc(1, sizeof(*r));
        if (r == NULL)
            return err_nomem(e);
        snprintf(r->volume, sizeof(r->volume), "%.253s", volume);
        HASH_ADD_STR(c->released, volume, r);
        if (r->hh.tbl == NULL) {
            free(r);
            return err_nomem(e);
        }
    }
    snprintf(r->claim, sizeof(r->claim), "%.318s", claim);
    snprintf(r->uid, sizeof(r->uid), "%.36s", uid);
    return ERR_OK;
}

enum err_code claim_release(struct claims *c, const struct claim *one, struct err *e)
{
    str_auto dir = path_of(c, NULL);
    str_auto path = path_of(c, one->volume);
    str_auto text = NULL;
    json_auto_t *o = NULL;

    if (one->pv == NULL ||
        src_store_generic(c->store, API_FROM_FOLDER, API_KIND_PERSISTENT_VOLUME, NULL, one->volume) == NULL)
        return ERR_OK;
    o = json_pack("{s:i, s:s, s:s}", "version", 1, "claim", one->key, "uid", one->uid);
    text = o != NULL ? json_dumps(o, JSON_SORT_KEYS) : NULL;
    if (dir == NULL || path == NULL || text == NULL)
        return err_nomem(e);
    if (fs_mkdirs(dir, 0700, e) != ERR_OK ||
        fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, true, e) != ERR_OK)
        return err_wrap(e, "release volume %.253s", one->volume);
    return add(c, one->volume, one->key, one->uid, e);
}

static void forget(struct claims *c, struct released *r)
{
    HASH_DEL(c->released, r);
    free(r);
}

void claims_unrelease(struct claims *c, const char *volume)
{
    struct released *r = find(c, volume);
    str_auto path = path_of(c, volume);

    if (r == NULL)
        return;
    if (path != NULL)
        unlink(path); /* if the unlink fails, the volume is released again at the next start */
    forget(c, r);
}

static bool load_one(const char *name, void *arg)
{
    struct claims *c = arg;
    str_auto path = str_printf("%s/.released/%s", c->dir, name);
    str_auto text = NULL;
    json_auto_t *o = NULL;
    size_t n = strlen(name), size = 0;
    struct err e = { 0 };
    char volume[256];

    if (path == NULL || n <= 5 || n > 258 || strcmp(name + n - 5, ".json") != 0)
        return true;
    snprintf(volume, sizeof(volume), "%.*s", (int)(n - 5), name);
    /* A damaged record counts, too, because the volume contains a claim's data. */
    if (presence_is_unknown(fs_read_if_there(AT_FDCWD, path, RELEASED_MAX, &text, &size, &e)) ||
        json_parse(text != NULL ? text : "", size, RELEASED_MAX, &o, "released volume", &e) != ERR_OK)
        log_warn("cannot read the record of a released volume; it stays released", F_STR("file", path),
                 F_ERR(&e));
    e = (struct err){ 0 };
    if (add(c, volume, json_str(o, "claim") != NULL ? json_str(o, "claim") : "",
            json_str(o, "uid") != NULL ? json_str(o, "uid") : "", &e) != ERR_OK)
        log_error("cannot adopt a released volume", F_STR("volume", volume), F_ERR(&e));
    return true;
}

void claims_released_load(struct claims *c)
{
    str_auto dir = path_of(c, NULL);
    struct err e = { 0 };

    if (dir != NULL && presence_is_unknown(fs_list(AT_FDCWD, dir, load_one, c, &e)))
        log_error("cannot read released volumes", F_STR("folder", dir), F_ERR(&e));
}

void claims_tidy_released(struct claims *c)
{
    struct released *r, *tmp;

    HASH_ITER (hh, c->released, r, tmp)
        if (src_store_generic(c->store, API_FROM_FOLDER, API_KIND_PERSISTENT_VOLUME, NULL, r->volume) == NULL)
            claims_unrelease(c, r->volume);
}

void claims_released_done(struct claims *c)
{
    struct released *r, *tmp;

    HASH_ITER (hh, c->released, r, tmp)
        forget(c, r);
}
