/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"
#include "agent/unpack/unpack_node.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define OCI_LAYER "application/vnd.oci.image.layer.v1.tar"

struct packed_layer {
    char digest[UNPACK_DIGEST_SIZE];
    uint64_t size;
};

struct export
{
    const struct unpack_export_image *image;
    int layers, parts;
    struct archive *out;
    size_t n;
    struct packed_layer packed[UNPACK_MAX_LAYERS];
};

/* ---- the archive ----------------------------------------------------------------------------- */

static enum err_code unpack_export_put_header(struct export *x, const char *path, uint64_t size,
                                              struct err *e)
{
    struct archive_entry *entry = archive_entry_new();

    if (entry == NULL)
        return err_nomem(e);
    archive_entry_set_pathname(entry, path);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)size);
    archive_entry_set_mtime(entry, 0, 0);
    if (archive_write_header(x->out, entry) != ARCHIVE_OK)
        unpack_archive_error(x->out, "archive", e);
    archive_entry_free(entry);
    return e->code;
}

static enum err_code put_bytes(struct export *x, const void *data, size_t n, struct err *e)
{
    if (archive_write_data(x->out, data, n) != (la_ssize_t)n)
        return err_sys(e, archive_errno(x->out) != 0 ? archive_errno(x->out) : EIO, "write the archive");
    return ERR_OK;
}

static enum err_code put_file(struct export *x, const char *path, const char *text, size_t n, struct err *e)
{
    return unpack_export_put_header(x, path, n, e) == ERR_OK ? put_bytes(x, text, n, e) : e->code;
}

static enum err_code put_blob(struct export *x, const char *text, size_t n, char ret[UNPACK_DIGEST_SIZE],
                              struct err *e)
{
    char path[96];

    if (unpack_hash_text(text, n, ret, e) != ERR_OK)
        return e->code;
    snprintf(path, sizeof(path), "blobs/sha256/%s", unpack_digest_hex(ret));
    return put_file(x, path, text, n, e);
}

/* Takes ownership of the value. */
static enum err_code put_json(struct export *x, const char *path, json_t *value, struct err *e)
{
    str_auto text = value != NULL ? json_text(value) : NULL;

    json_decref(value);
    return text == NULL ? err_nomem(e) : put_file(x, path, text, strlen(text), e);
}

/* ---- one layer's tree as a tar ---------------------------------------------------------------- */

struct packing {
    struct export *x; /* NULL: compute only digest and size */
    struct unpack_hash *hash;
    uint64_t size;
    struct err err; /* the original error, which libarchive does not pass on */
};

static la_ssize_t take_packed(struct archive *a, void *arg, const void *data, size_t n)
{
    struct packing *p = arg;

    p->size += n;
    if (unpack_hash_add(p->hash, data, n, &p->err) == ERR_OK &&
        (p->x == NULL || put_bytes(p->x, data, n, &p->err) == ERR_OK))
        return (la_ssize_t)n;
    archive_set_error(a, EIO, "%s", p->err.text);
    return -1;
}

/*
 * In overlayfs, a whiteout is a device with the hidden name; in a layer's tar, it is an empty file beside it.
 */
static enum err_code put_whiteout(struct archive *tar, const char *folder, const char *name, struct err *e)
{
    struct archive_entry *entry = archive_entry_new();
    str_auto path = str_printf("%s/%s", folder, name);

    if (entry == NULL || path == NULL) {
        archive_entry_free(entry);
        return err_nomem(e);
    }
    archive_entry_set_pathname(entry, path);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0);
    archive_entry_set_size(entry, 0);
    if (archive_write_header(tar, entry) < ARCHIVE_WARN)
        unpack_archive_error(tar, path, e);
    archive_entry_free(entry);
    return e->code;
}

static enum err_code put_hidden(struct archive *tar, const char *path, struct err *e)
{
    const char *name = strrchr(path, '/');
    str_auto folder = name != NULL ? strndup(path, (size_t)(name - path)) : strdup(".");
    str_auto hidden = str_printf(UNPACK_WHITEOUT "%s", name != NULL ? name + 1 : path);

    return folder == NULL || hidden == NULL ? err_nomem(e) : put_whiteout(tar, folder, hidden, e);
}

/*
 * Reduces the attributes to those that unpacking keeps.  *ret_opaque: the folder hides the content of lower
 * layers.
 */
static enum err_code keep_attributes(struct archive_entry *entry, bool *ret_opaque, struct err *e)
{
    struct archive_entry *all = archive_entry_clone(entry);
    const char *name;
    const void *value;
    size_t n;

    if (all == NULL)
        return err_nomem(e);
    archive_entry_xattr_clear(entry);
    archive_entry_xattr_reset(all);
    while (archive_entry_xattr_next(all, &name, &value, &n) == ARCHIVE_OK) {
        if (unpack_attribute_is_kept(name))
            archive_entry_xattr_add_entry(entry, name, value, n);
        *ret_opaque = *ret_opaque || strcmp(name, UNPACK_OPAQUE_ATTRIBUTE) == 0;
    }
    archive_entry_free(all);
    return ERR_OK;
}

static enum err_code put_content(struct archive *tree, struct archive *tar, const char *path, struct err *e)
{
    const void *data;
    la_int64_t at;
    size_t n;
    int r;

    while ((r = archive_read_data_block(tree, &data, &n, &at)) == ARCHIVE_OK)
        if (archive_write_data(tar, data, n) != (la_ssize_t)n)
            return unpack_archive_error(tar, path, e);
    return r == ARCHIVE_EOF ? ERR_OK : unpack_archive_error(tree, path, e);
}

static enum err_code put_entry(struct archive *tree, struct archive *tar,
                               struct archive_entry_linkresolver *links, struct archive_entry *entry,
                               struct err *e)
{
    str_auto path = strdup(archive_entry_pathname(entry));
    struct archive_entry *later = NULL;
    bool opaque = false;

    if (path == NULL)
        return err_nomem(e);
    if (archive_entry_filetype(entry) == AE_IFCHR && archive_entry_rdev(entry) == 0)
        return put_hidden(tar, path, e);
    if (keep_attributes(entry, &opaque, e) != ERR_OK)
        return e->code;
    archive_entry_unset_atime(entry); /* reading a file changes it */
    archive_entry_unset_ctime(entry);
    archive_entry_unset_birthtime(entry);
    archive_entry_linkify(links, &entry, &later);
    if (archive_write_header(tar, entry) < ARCHIVE_WARN)
        return unpack_archive_error(tar, path, e);
    if (archive_entry_hardlink(entry) == NULL && archive_entry_size(entry) > 0 &&
        put_content(tree, tar, path, e) != ERR_OK)
        return e->code;
    return opaque ? put_whiteout(tar, path, UNPACK_OPAQUE, e) : ERR_OK;
}

static enum err_code put_entries(struct archive *tree, struct archive *tar,
                                 struct archive_entry_linkresolver *links, struct archive_entry *entry,
                                 struct err *e)
{
    int r;

    archive_entry_linkresolver_set_strategy(links, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE);
    while ((r = archive_read_next_header2(tree, entry)) == ARCHIVE_OK) {
        archive_read_disk_descend(tree);
        if (put_entry(tree, tar, links, entry, e) != ERR_OK)
            return e->code;
    }
    if (r != ARCHIVE_EOF)
        return unpack_archive_error(tree, "layer", e);
    return archive_write_close(tar) == ARCHIVE_OK ? ERR_OK : unpack_archive_error(tar, "layer", e);
}

/* Walks from the working folder, since a layer's paths may be longer than the kernel accepts in one call. */
static enum err_code pack_tree(struct packing *p, int root, struct err *e)
{
    struct archive *tree = archive_read_disk_new(), *tar = archive_write_new();
    struct archive_entry_linkresolver *links = archive_entry_linkresolver_new();
    struct archive_entry *entry = archive_entry_new();

    if (tree == NULL || tar == NULL || links == NULL || entry == NULL)
        err_nomem(e);
    else if (fchdir(root) != 0)
        err_sys(e, errno, "enter the layer");
    else if (archive_read_disk_set_symlink_physical(tree) != ARCHIVE_OK ||
             archive_read_disk_set_behavior(tree, ARCHIVE_READDISK_NO_TRAVERSE_MOUNTS |
                                                      ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS |
                                                      ARCHIVE_READDISK_NO_SPARSE) != ARCHIVE_OK ||
             archive_read_disk_open(tree, ".") != ARCHIVE_OK)
        unpack_archive_error(tree, "layer", e);
    else if (archive_write_set_format_pax(tar) != ARCHIVE_OK ||
             archive_write_set_format_option(tar, "pax", "xattrheader", "SCHILY") != ARCHIVE_OK ||
             archive_write_open(tar, p, NULL, take_packed, NULL) != ARCHIVE_OK)
        unpack_archive_error(tar, "layer", e);
    else
        put_entries(tree, tar, links, entry, e);
    if (e->code != ERR_OK && p->err.code != ERR_OK)
        *e = p->err;
    archive_entry_free(entry);
    archive_entry_linkresolver_free(links);
    archive_write_free(tar);
    archive_read_free(tree);
    return e->code;
}

static enum err_code pack_layer(struct export *x, const char *hex, bool write, struct packed_layer *ret,
                                struct err *e)
{
    fd_auto root = openat(x->layers, hex, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    scoped(unpack_hash_free) struct unpack_hash *hash = NULL;
    struct packing p = { .x = write ? x : NULL };

    if (root < 0)
        return err_sys(e, errno, "open layer %s", hex);
    if (unpack_hash_new(&hash, e) != ERR_OK)
        return e->code;
    p.hash = hash;
    if (pack_tree(&p, root, e) != ERR_OK || unpack_hash_end(hash, ret->digest, e) != ERR_OK)
        return err_wrap(e, "layer %s", hex);
    ret->size = p.size;
    return ERR_OK;
}

/* Packs twice, because digest and size precede the bytes. */
static enum err_code unpack_export_put_layer(struct export *x, const char *hex, struct err *e)
{
    struct packed_layer *layer = &x->packed[x->n++], again;
    char path[96];

    if (pack_layer(x, hex, false, layer, e) != ERR_OK)
        return e->code;
    snprintf(path, sizeof(path), "blobs/sha256/%s", unpack_digest_hex(layer->digest));
    if (unpack_export_put_header(x, path, layer->size, e) != ERR_OK ||
        pack_layer(x, hex, true, &again, e) != ERR_OK)
        return e->code;
    return strcmp(again.digest, layer->digest) == 0
               ? ERR_OK
               : err_set(e, ERR_DATA_LOSS, "layer %s changed while it was read", hex);
}

/* ---- manifest and index ---------------------------------------------------------------------- */

static json_t *descriptor(const char *type, const char *digest, uint64_t size)
{
    return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", digest, "size", (json_int_t)size);
}

static json_t *manifest_of(const struct export *x, const char *config_digest, size_t config_size)
{
    json_t *layers = json_array();

    for (size_t i = 0; i < x->n && layers != NULL; i++)
        if (json_array_append_new(layers, descriptor(OCI_LAYER, x->packed[i].digest, x->packed[i].size)) !=
            0) {
            json_decref(layers);
            layers = NULL;
        }
    return json_pack("{s:i, s:s, s:o, s:o}", "schemaVersion", 2, "mediaType", OCI_MANIFEST, "config",
                     descriptor(OCI_CONFIG, config_digest, config_size), "layers", layers);
}

/*
 * Takes the image's own configuration with the digests of the new tars.  A history that does not match the
 * layers is dropped.
 */
static enum err_code make_config(const struct export *x, char **ret, struct err *e)
{
    json_auto_t *config = NULL;
    json_t *rootfs, *digests = json_array();
    str_auto text = NULL;
    char file[96];
    uint64_t bytes;
    size_t n = 0;
    bool ok = digests != NULL;

    for (size_t i = 0; i < x->n; i++)
        ok = ok && json_array_append_new(digests, json_string(x->packed[i].digest)) == 0;
    rootfs = json_pack("{s:s, s:o}", "type", "layers", "diff_ids", digests);
    snprintf(file, sizeof(file), "%.64s" UNPACK_CONFIG, x->image->id_hex);
    if (unpack_check_config(x->parts, x->image->id_hex, &bytes, e) != ERR_OK ||
        fs_read_at(x->parts, file, UNPACK_MAX_JSON, &text, &n, e) != ERR_OK ||
        json_parse(text, n, UNPACK_MAX_JSON, &config, "image configuration", e) != ERR_OK) {
        json_decref(rootfs);
        return err_wrap(e, "image configuration");
    }
    if (json_array_size(json_object_get(json_object_get(config, "rootfs"), "diff_ids")) != x->n)
        json_object_del(config, "history");
    ok = json_object_set_new(config, "rootfs", rootfs) == 0 && ok;
    *ret = ok ? json_text(config) : NULL;
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

/* Creates one entry for each name, as OCI requires, or a single one without a name. */
static json_t *index_of(const char *digest, size_t size, char *const *names)
{
    json_t *list = json_array();

    do {
        json_t *d = descriptor(OCI_MANIFEST, digest, size);

        if (*names != NULL && d != NULL &&
            json_object_set_new(d, "annotations",
                                json_pack("{s:s, s:s}", "org.opencontainers.image.ref.name", *names,
                                          "io.containerd.image.name", *names)) != 0) {
            json_decref(d);
            d = NULL;
        }
        if (json_array_append_new(list, d) != 0) {
            json_decref(list);
            return NULL;
        }
    } while (*names != NULL && *++names != NULL);
    return json_pack("{s:i, s:o}", "schemaVersion", 2, "manifests", list);
}

static enum err_code put_image(struct export *x, struct err *e)
{
    char config_digest[UNPACK_DIGEST_SIZE], digest[UNPACK_DIGEST_SIZE];
    str_auto config = NULL;
    str_auto text = NULL;
    json_auto_t *manifest = NULL;

    if (put_json(x, "oci-layout", json_pack("{s:s}", "imageLayoutVersion", "1.0.0"), e) != ERR_OK)
        return e->code;
    for (char *const *hex = x->image->layers; *hex != NULL; hex++)
        if (unpack_export_put_layer(x, *hex, e) != ERR_OK)
            return e->code;
    if (make_config(x, &config, e) != ERR_OK ||
        put_blob(x, config, strlen(config), config_digest, e) != ERR_OK)
        return e->code;
    manifest = manifest_of(x, config_digest, strlen(config));
    text = manifest != NULL ? json_text(manifest) : NULL;
    if (text == NULL)
        return err_nomem(e);
    if (put_blob(x, text, strlen(text), digest, e) != ERR_OK)
        return e->code;
    return put_json(x, "index.json", index_of(digest, strlen(text), x->image->names), e);
}

static enum err_code write_archive(struct export *x, int out, struct err *e)
{
    x->out = archive_write_new();
    if (x->out == NULL)
        return err_nomem(e);
    if (archive_write_set_format_ustar(x->out) != ARCHIVE_OK ||
        archive_write_open_fd(x->out, out) != ARCHIVE_OK)
        return unpack_archive_error(x->out, "archive", e);
    if (put_image(x, e) != ERR_OK)
        return e->code;
    if (archive_write_close(x->out) != ARCHIVE_OK)
        return err_sys(e, archive_errno(x->out) != 0 ? archive_errno(x->out) : EIO, "write the archive");
    return fsync(out) == 0 || errno == EINVAL ? ERR_OK : err_sys(e, errno, "sync the archive");
}

enum err_code unpack_export(int out, const struct unpack_export_image *image, int layers, int parts,
                            struct err *e)
{
    struct export *x = calloc(1, sizeof(*x));

    if (x == NULL)
        return err_nomem(e);
    x->image = image;
    x->layers = layers;
    x->parts = parts;
    write_archive(x, out, e);
    archive_write_free(x->out);
    free(x);
    return e->code;
}
