#include "agent/runtime/unpack.h"
#include "agent/runtime/unpack_node.h"

#include "base/json.h"
#include "base/parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* On a layer's own folder: the bytes of its files, so that a layer found again need not be walked. */
#define SIZE_ATTRIBUTE "trusted.coracle.size"

struct fresh { /* a layer that waits in the work folder for its name */
    const char *diff_id;
    char work_name[32];
};

static bool have_layer(const struct unpack_store *st, const char *diff_id)
{
    struct stat s;

    return fstatat(st->layers, unpack_digest_hex(diff_id), &s, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(s.st_mode);
}

static enum err_code unpack_layer(struct unpack_store *st, const struct unpack_source *s,
                                  const struct unpack_layer *layer, const char *work_name,
                                  struct unpack_budget *budget, struct err *e)
{
    struct unpack_result result = { 0 };
    fd_auto root = -1, fd = -1;
    char size[24];

    fd =
        layer->path != NULL ? unpack_source_file(s, layer->path, e) : unpack_source_blob(s, layer->digest, e);
    if (fd < 0)
        return e->code;
    if (mkdirat(st->work, work_name, 0755) != 0 ||
        (root = openat(st->work, work_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return err_sys(e, errno, "make a folder");
    if (unpack_stream(fd, layer->digest, layer->size, layer->diff_id, root, UNPACK_LAYER, budget, &result,
                      e) != ERR_OK)
        return e->code;
    snprintf(size, sizeof(size), "%llu", (unsigned long long)result.bytes);
    if (fsetxattr(root, SIZE_ATTRIBUTE, size, strlen(size), 0) != 0)
        return err_sys(e, errno, "set attribute " SIZE_ATTRIBUTE);
    st->skipped_devices += result.skipped_devices;
    return ERR_OK;
}

/* All data is on the disk before a name says so: after a power cut a named layer is a whole one. */
static enum err_code name_layers(struct unpack_store *st, const struct fresh *fresh, size_t n, struct err *e)
{
    if (n == 0)
        return ERR_OK;
    if (syncfs(st->layers) != 0)
        return err_sys(e, errno, "sync the image store");
    for (size_t i = 0; i < n; i++) {
        /* The same layer was unpacked by another run meanwhile: theirs is as good. */
        if (renameat(st->work, fresh[i].work_name, st->layers, unpack_digest_hex(fresh[i].diff_id)) != 0 &&
            errno != EEXIST && errno != ENOTEMPTY)
            return err_sys(e, errno, "name layer %s", fresh[i].diff_id);
    }
    if (fsync(st->layers) != 0)
        return err_sys(e, errno, "sync the layers' folder");
    return ERR_OK;
}

static enum err_code unpack_missing(struct unpack_store *st, const struct unpack_source *s,
                                    const struct unpack_image *image, struct unpack_budget *budget,
                                    struct err *e)
{
    struct fresh fresh[UNPACK_MAX_LAYERS];
    size_t n = 0;

    for (size_t i = 0; i < image->n_layers; i++) {
        const struct unpack_layer *layer = &image->layers[i];
        bool known = have_layer(st, layer->diff_id);

        for (size_t j = 0; j < n && !known; j++)
            known = strcmp(fresh[j].diff_id, layer->diff_id) == 0;
        if (known)
            continue;
        fresh[n].diff_id = layer->diff_id;
        snprintf(fresh[n].work_name, sizeof(fresh[n].work_name), "layer-%u", st->n_done++);
        if (unpack_layer(st, s, layer, fresh[n].work_name, budget, e) != ERR_OK)
            return err_wrap(e, "layer %zu of %zu (%.19s...)", i + 1, image->n_layers,
                            layer->digest[0] != '\0' ? layer->digest : layer->diff_id);
        n++;
    }
    return name_layers(st, fresh, n, e);
}

/* What the attribute says; 0 for a layer that somebody else put there. */
static uint64_t layer_size(int fd)
{
    struct err ignored = { 0 };
    char text[24] = "";
    uint64_t size = 0;

    if (fgetxattr(fd, SIZE_ATTRIBUTE, text, sizeof(text) - 1) <= 0 ||
        parse_u64(text, 0, UINT64_MAX, &size, "size", &ignored) != ERR_OK)
        return 0;
    return size;
}

static bool listed(const json_t *list, const char *text)
{
    json_t *item;
    size_t i;

    json_array_foreach (list, i, item)
        if (str_eq(json_string_value(item), text))
            return true;
    return false;
}

enum err_code unpack_store_image(struct unpack_store *st, const struct unpack_source *s,
                                 struct unpack_image *image, struct unpack_budget *budget, struct err *e)
{
    json_t *layers = json_array();
    uint64_t size = 0;

    /* The record takes the list at once: one owner on every path. */
    if (layers == NULL || json_object_set_new(image->record, "layers", layers) != 0)
        return err_nomem(e);
    if (unpack_missing(st, s, image, budget, e) != ERR_OK)
        return e->code;

    for (size_t i = image->n_layers; i-- > 0;) { /* from the top */
        const char *diff_id = image->layers[i].diff_id;
        fd_auto fd = -1;

        if (listed(layers, diff_id))
            continue;
        fd = openat(st->layers, unpack_digest_hex(diff_id), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return err_sys(e, errno, "open layer %s", diff_id);
        size += layer_size(fd);
        if (json_array_insert_new(layers, 0, json_string(diff_id)) != 0)
            return err_nomem(e);
        if (unpack_is_opaque(fd)) /* overlayfs has no opaque root: the layers below are left out instead */
            break;
    }
    if (json_object_set_new(image->record, "sizeBytes", json_integer((json_int_t)size)) != 0)
        return err_nomem(e);
    return ERR_OK;
}
