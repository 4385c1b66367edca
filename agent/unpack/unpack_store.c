/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/unpack_progress.h"
#include "agent/unpack/unpack.h"
#include "agent/unpack/unpack_node.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* An attribute of a layer's folder: the bytes of its files.  Spares a walk when the layer is found again. */
#define SIZE_ATTRIBUTE "trusted.coracle.size"

/* An attribute of a layer that borrowed folders: it can only be used above the layers it was unpacked on. */
#define BORROWED_ATTRIBUTE "trusted.coracle.borrowed"

/* An attribute of a layer's folder: the sum over its tree (unpack_sum()), used by `coracle image verify`. */
#define SUM_ATTRIBUTE "trusted.coracle.sum"

struct fresh { /* a layer in the work folder that is not named yet */
    const char *name;
    char work_name[32];
};

struct layers { /* of one image that is being unpacked */
    struct unpack_store *st;
    const struct unpack_source *source;
    struct unpack_image *image;
    struct unpack_budget *budget;
    struct fresh fresh[UNPACK_MAX_LAYERS];
    size_t n_fresh;
};

static int unpack_store_open_folder(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens a layer that is in the store or about to be named; -1: it does not exist. */
static int unpack_store_open_layer(const struct layers *l, const char *name)
{
    for (size_t i = 0; i < l->n_fresh; i++)
        if (strcmp(l->fresh[i].name, name) == 0)
            return unpack_store_open_folder(l->st->work, l->fresh[i].work_name);
    return unpack_store_open_folder(l->st->layers, unpack_digest_hex(name));
}

/* ---- names ----------------------------------------------------------------------------------- */

static enum err_code chain_id(const char *below, const char *diff_id, char ret[UNPACK_DIGEST_SIZE],
                              struct err *e)
{
    char both[2 * UNPACK_DIGEST_SIZE];
    int n = snprintf(both, sizeof(both), "%s %s", below, diff_id);

    return unpack_hash_text(both, (size_t)n, ret, e);
}

static bool have_layer(const struct layers *l, const char *name, bool borrowed_too)
{
    fd_auto fd = unpack_store_open_layer(l, name);

    return fd >= 0 && (borrowed_too || fgetxattr(fd, BORROWED_ATTRIBUTE, NULL, 0) < 0);
}

/* ---- one layer ------------------------------------------------------------------------------- */

static enum err_code open_lower(const struct layers *l, size_t i, struct unpack_lower *ret, struct err *e)
{
    while (i-- > 0) {
        int fd = unpack_store_open_layer(l, l->image->layers[i].name);

        if (fd < 0)
            return err_sys(e, errno, "open layer %s", l->image->layers[i].name);
        ret->fds[ret->n++] = fd;
    }
    return ERR_OK;
}

/* Facts about a layer are noted on its folder before the layer gets its name. */
static enum err_code unpack_store_note(int root, const char *attribute, const char *text, struct err *e)
{
    if (fsetxattr(root, attribute, text, strlen(text), 0) != 0)
        return err_sys(e, errno, "set attribute %s", attribute);
    return ERR_OK;
}

/* The sum is computed from the tree on disk rather than from the written data, so that it reveals our own
 * errors. */
static enum err_code note_sum(int root, struct err *e)
{
    char sum[UNPACK_DIGEST_SIZE];
    uint64_t bytes;

    if (unpack_sum(root, sum, &bytes, e) != ERR_OK)
        return err_wrap(e, "sum over the tree");
    return unpack_store_note(root, SUM_ATTRIBUTE, sum, e);
}

/* Unpacks into the work folder.  *ret_borrowed: the result depends on `lower`. */
static enum err_code unpack_layer(struct layers *l, const struct unpack_layer *layer, const char *work_name,
                                  const struct unpack_lower *lower, bool *ret_borrowed, struct err *e)
{
    struct unpack_result result = { 0 };
    fd_auto root = -1, fd = -1;
    char size[24];

    fd = layer->path != NULL ? unpack_source_file(l->source, layer->path, e)
                             : unpack_source_blob(l->source, layer->digest, e);
    if (fd < 0 && layer->foreign && e->sys == ENOENT)
        return err_set(e, ERR_UNIMPLEMENTED,
                       "foreign layer on another server: layers are fetched from registries only");
    if (fd < 0)
        return e->code;
    if (mkdirat(l->st->work, work_name, 0755) != 0 ||
        (root = unpack_store_open_folder(l->st->work, work_name)) < 0)
        return err_sys(e, errno, "create a folder");
    if (unpack_stream(fd, layer->digest, layer->size, layer->diff_id, root, UNPACK_LAYER, lower, l->budget,
                      &result, e) != ERR_OK)
        return e->code;
    snprintf(size, sizeof(size), "%llu", (unsigned long long)result.bytes);
    *ret_borrowed = result.borrowed_folders > 0;
    if (unpack_store_note(root, SIZE_ATTRIBUTE, size, e) != ERR_OK ||
        (*ret_borrowed && unpack_store_note(root, BORROWED_ATTRIBUTE, "y", e) != ERR_OK) ||
        note_sum(root, e) != ERR_OK)
        return e->code;
    l->st->skipped_devices += result.skipped_devices;
    return ERR_OK;
}

/* Finds or unpacks layer i, whose chain id is given, and sets its name. */
static enum err_code bring_layer(struct layers *l, size_t i, const char *chain, struct err *e)
{
    struct unpack_layer *layer = &l->image->layers[i];
    struct fresh *fresh = &l->fresh[l->n_fresh];
    struct unpack_lower lower = { .n = 0 };
    const char *name;
    bool borrowed = false;

    if (have_layer(l, layer->diff_id, i == 0) || have_layer(l, chain, true)) {
        name = have_layer(l, layer->diff_id, i == 0) ? layer->diff_id : chain;
    } else {
        snprintf(fresh->work_name, sizeof(fresh->work_name), "layer-%u", l->st->n_done++);
        if (open_lower(l, i, &lower, e) == ERR_OK)
            unpack_layer(l, layer, fresh->work_name, &lower, &borrowed, e);
        unpack_lower_close(&lower);
        if (e->code != ERR_OK)
            return err_wrap(e, "layer %zu of %zu (%.19s...)", i + 1, l->image->n_layers,
                            layer->digest[0] != '\0' ? layer->digest : layer->diff_id);
        name = borrowed ? chain : layer->diff_id;
        fresh->name = layer->name;
        l->n_fresh++;
    }
    memcpy(layer->name, name, sizeof(layer->name));
    return ERR_OK;
}

/* Syncs all data before a layer gets its name, so that a named layer is complete even after a power cut. */
static enum err_code name_layers(struct unpack_store *st, const struct fresh *fresh, size_t n, struct err *e)
{
    if (n > 0 && syncfs(st->layers) != 0)
        return err_sys(e, errno, "sync the image store");
    for (size_t i = 0; i < n; i++) {
        /* EEXIST: another run unpacked the same layer meanwhile; use that one. */
        if (renameat(st->work, fresh[i].work_name, st->layers, unpack_digest_hex(fresh[i].name)) != 0 &&
            errno != EEXIST && errno != ENOTEMPTY)
            return err_sys(e, errno, "name layer %s", fresh[i].name);
    }
    /* Needed for existing layers too: the run that named them may have been killed before its own fsync. */
    if (fsync(st->layers) != 0)
        return err_sys(e, errno, "sync the layers' folder");
    return ERR_OK;
}

static enum err_code bring_layers(struct layers *l, struct err *e)
{
    char chain[UNPACK_DIGEST_SIZE] = "", next[UNPACK_DIGEST_SIZE];

    for (size_t i = 0; i < l->image->n_layers; i++) {
        const char *diff_id = l->image->layers[i].diff_id;

        memcpy(next, diff_id, sizeof(next));
        if ((i > 0 && chain_id(chain, diff_id, next, e) != ERR_OK) || bring_layer(l, i, next, e) != ERR_OK)
            return e->code;
        memcpy(chain, next, sizeof(chain));
        if (l->budget->progress != NULL)
            unpack_progress_add(&l->budget->progress->layers, 1);
    }
    return name_layers(l->st, l->fresh, l->n_fresh, e);
}

/* Reads the attribute; 0 when a layer has none, because another program created it. */
static uint64_t layer_size(int fd)
{
    char text[24] = "";
    uint64_t size = 0;

    if (fgetxattr(fd, SIZE_ATTRIBUTE, text, sizeof(text) - 1) <= 0 ||
        parse_u64(text, 0, UINT64_MAX, &size, "size", ERR_IGNORED) != ERR_OK)
        return 0;
    return size;
}

/* Keeps the configuration unchanged, because the image's id is its digest. */
static enum err_code keep_config(const struct unpack_store *st, const struct unpack_image *image,
                                 struct err *e)
{
    char file[UNPACK_DIGEST_SIZE + 8];

    if (st->parts < 0)
        return ERR_OK;
    snprintf(file, sizeof(file), "%s" UNPACK_CONFIG, unpack_digest_hex(image->id));
    if (fs_replace_at(st->parts, file, image->config, image->config_size, 0600, true, e) != ERR_OK)
        return err_wrap(e, "image configuration");
    return ERR_OK;
}

enum err_code unpack_store_image(struct unpack_store *st, const struct unpack_source *s,
                                 struct unpack_image *image, struct unpack_budget *budget, struct err *e)
{
    struct layers l = { .st = st, .source = s, .image = image, .budget = budget };
    json_t *layers = json_array(), *sizes = json_array();
    uint64_t size = 0;

    /* The record owns the lists from here on, so no path has to free them. */
    if (json_object_set_new(image->record, "layers", layers) != 0 ||
        json_object_set_new(image->record, "layerBytes", sizes) != 0)
        return err_nomem(e);
    if (bring_layers(&l, e) != ERR_OK || keep_config(st, image, e) != ERR_OK)
        return e->code;

    for (size_t i = image->n_layers; i-- > 0;) { /* from the top */
        const char *name = image->layers[i].name;
        fd_auto fd = -1;

        if (json_has(layers, name))
            continue;
        fd = unpack_store_open_folder(st->layers, unpack_digest_hex(name));
        if (fd < 0)
            return err_sys(e, errno, "open layer %s", name);
        size += layer_size(fd);
        if (json_array_insert_new(layers, 0, json_string(name)) != 0 ||
            json_array_insert_new(sizes, 0, json_integer((json_int_t)layer_size(fd))) != 0)
            return err_nomem(e);
        if (unpack_is_opaque(fd)) /* overlayfs has no opaque root, so the layers below are omitted */
            break;
    }
    if (json_object_set_new(image->record, "sizeBytes", json_integer((json_int_t)size)) != 0)
        return err_nomem(e);
    return ERR_OK;
}

/* ---- verification --------------------------------------------------------------------------- */

enum err_code unpack_check_layer(int layers, const char *hex, uint64_t *ret_bytes, struct err *e)
{
    char wanted[UNPACK_DIGEST_SIZE] = "", sum[UNPACK_DIGEST_SIZE];
    fd_auto fd = unpack_store_open_folder(layers, hex);

    if (fd < 0)
        return err_sys(e, errno, "open");
    if (fgetxattr(fd, SUM_ATTRIBUTE, wanted, sizeof(wanted) - 1) < 0 && errno != ENODATA)
        return err_sys(e, errno, "read the recorded checksum");
    if (wanted[0] == '\0')
        return err_set(e, ERR_PRECONDITION, "no checksum was recorded when it was unpacked");
    if (unpack_sum(fd, sum, ret_bytes, e) != ERR_OK)
        return e->code;
    if (strcmp(sum, wanted) != 0)
        return err_set(e, ERR_DATA_LOSS,
                       "files, modes, owners or attributes differ from those that were unpacked");
    return ERR_OK;
}

enum err_code unpack_check_config(int parts, const char *hex, uint64_t *ret_bytes, struct err *e)
{
    char file[UNPACK_DIGEST_SIZE + 8], sum[UNPACK_DIGEST_SIZE];
    str_auto text = NULL;
    size_t n = 0;

    snprintf(file, sizeof(file), "%.64s" UNPACK_CONFIG, hex);
    if (fs_read_at(parts, file, UNPACK_MAX_JSON, &text, &n, e) != ERR_OK ||
        unpack_hash_text(text, n, sum, e) != ERR_OK)
        return e->code;
    *ret_bytes = n;
    if (strcmp(unpack_digest_hex(sum), hex) != 0)
        return err_set(e, ERR_DATA_LOSS, "its content has the digest %s", sum);
    return ERR_OK;
}
