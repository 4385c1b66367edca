#include "agent/unpack/unpack.h"

#include "base/fs.h"
#include "base/json.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <string.h>

#define OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define OCI_LAYER "application/vnd.oci.image.layer.v1.tar"

struct tar_of_layer { /* found again */
    const char *diff_id;
    char hex[65]; /* its name in the store */
    uint64_t size;
};

struct export
{
    int layers, parts;
    struct archive *out;
    struct unpack_image image; /* of the configuration: the layers' diff ids */
    struct tar_of_layer tars[UNPACK_MAX_LAYERS];
};

/* ---- the archive ----------------------------------------------------------------------------- */

static enum err_code put_header(struct export *x, const char *path, uint64_t size, struct err *e)
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

static enum err_code put_bytes(void *arg, const void *data, size_t n, struct err *e)
{
    struct export *x = arg;

    if (archive_write_data(x->out, data, n) != (la_ssize_t)n)
        return err_sys(e, archive_errno(x->out) != 0 ? archive_errno(x->out) : EIO, "write the archive");
    return ERR_OK;
}

static enum err_code put_file(struct export *x, const char *path, const char *text, size_t n, struct err *e)
{
    return put_header(x, path, n, e) == ERR_OK ? put_bytes(x, text, n, e) : e->code;
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

/* Takes the value. */
static enum err_code put_json(struct export *x, const char *path, json_t *value, struct err *e)
{
    str_auto text = value != NULL ? json_text(value) : NULL;

    json_decref(value);
    return text == NULL ? err_nomem(e) : put_file(x, path, text, strlen(text), e);
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* By its own digest, or by that of the chain: see unpack_store_image(). */
static bool find_tar(struct export *x, struct tar_of_layer *t, const char *chain, struct err *e)
{
    const char *const names[] = { t->diff_id, chain };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct err why = { 0 };
        int root = -1;
        fd_auto frame = unpack_open_tar(x->layers, x->parts, unpack_digest_hex(names[i]), &root, &why);
        fd_auto opened = root;

        if (frame < 0)
            continue;
        if (unpack_frame_check(frame, opened, t->diff_id, &t->size, e) != ERR_OK)
            return false;
        snprintf(t->hex, sizeof(t->hex), "%s", unpack_digest_hex(names[i]));
        return true;
    }
    err_set(e, ERR_PRECONDITION,
            "its tar is not here: a layer above hides all of it, an older version brought it, or it holds a "
            "file twice");
    return false;
}

static enum err_code find_tars(struct export *x, struct err *e)
{
    char chain[UNPACK_DIGEST_SIZE], next[UNPACK_DIGEST_SIZE];

    for (size_t i = 0; i < x->image.n_layers; i++) {
        struct tar_of_layer *t = &x->tars[i];

        t->diff_id = x->image.layers[i].diff_id;
        memcpy(next, t->diff_id, sizeof(next));
        if (i > 0 && unpack_chain_id(chain, t->diff_id, next, e) != ERR_OK)
            return e->code;
        memcpy(chain, next, sizeof(chain));
        if (!find_tar(x, t, chain, e))
            return err_wrap(e, "layer %zu of %zu (%.19s...) cannot be exported", i + 1, x->image.n_layers,
                            t->diff_id);
    }
    return ERR_OK;
}

static bool came_before(const struct export *x, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(x->tars[k].diff_id, x->tars[i].diff_id) == 0)
            return true;
    return false;
}

static enum err_code put_layer(struct export *x, const struct tar_of_layer *t, struct err *e)
{
    char path[96];
    int root = -1;
    fd_auto frame = unpack_open_tar(x->layers, x->parts, t->hex, &root, e);
    fd_auto opened = root;

    if (frame < 0)
        return e->code;
    snprintf(path, sizeof(path), "blobs/sha256/%s", unpack_digest_hex(t->diff_id));
    if (put_header(x, path, t->size, e) != ERR_OK)
        return e->code;
    return unpack_frame_replay(frame, opened, put_bytes, x, e);
}

/* ---- manifest and index ---------------------------------------------------------------------- */

static json_t *descriptor(const char *type, const char *digest, uint64_t size)
{
    return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", digest, "size", (json_int_t)size);
}

static json_t *manifest_of(const struct export *x, const char *config_digest, size_t config_size)
{
    json_t *layers = json_array();

    for (size_t i = 0; i < x->image.n_layers && layers != NULL; i++)
        if (json_array_append_new(layers, descriptor(OCI_LAYER, x->tars[i].diff_id, x->tars[i].size)) != 0) {
            json_decref(layers);
            layers = NULL;
        }
    return json_pack("{s:i, s:s, s:o, s:o}", "schemaVersion", 2, "mediaType", OCI_MANIFEST, "config",
                     descriptor(OCI_CONFIG, config_digest, config_size), "layers", layers);
}

/* One entry a name, as OCI wants it; without names one that has none. */
static json_t *index_of(const char *digest, size_t size, const char *const *names)
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

static enum err_code put_image(struct export *x, const char *config, size_t n, const char *const *names,
                               struct err *e)
{
    char config_digest[UNPACK_DIGEST_SIZE], digest[UNPACK_DIGEST_SIZE];
    json_auto_t *manifest = NULL;
    str_auto text = NULL;

    if (put_json(x, "oci-layout", json_pack("{s:s}", "imageLayoutVersion", "1.0.0"), e) != ERR_OK ||
        put_blob(x, config, n, config_digest, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < x->image.n_layers; i++)
        if (!came_before(x, i) && put_layer(x, &x->tars[i], e) != ERR_OK)
            return e->code;
    manifest = manifest_of(x, config_digest, n);
    text = manifest != NULL ? json_text(manifest) : NULL;
    if (text == NULL)
        return err_nomem(e);
    if (put_blob(x, text, strlen(text), digest, e) != ERR_OK)
        return e->code;
    return put_json(x, "index.json", index_of(digest, strlen(text), names), e);
}

/* ---- together -------------------------------------------------------------------------------- */

static enum err_code read_config(struct export *x, const char *id_hex, char **ret, size_t *ret_n,
                                 struct err *e)
{
    struct unpack_platform any = { 0 };
    json_auto_t *config = NULL;
    char file[96];
    uint64_t bytes;

    if (unpack_check_config(x->parts, id_hex, &bytes, e) != ERR_OK)
        return err_wrap(e, "image configuration");
    snprintf(file, sizeof(file), "%.64s" UNPACK_CONFIG, id_hex);
    if (fs_read_at(x->parts, file, UNPACK_MAX_JSON, ret, ret_n, e) != ERR_OK ||
        json_parse(*ret, *ret_n, UNPACK_MAX_JSON, &config, "image configuration", e) != ERR_OK)
        return e->code;
    snprintf(any.os, sizeof(any.os), "%s", json_str(config, "os") != NULL ? json_str(config, "os") : "");
    snprintf(any.arch, sizeof(any.arch), "%s",
             json_str(config, "architecture") != NULL ? json_str(config, "architecture") : "");
    return unpack_config_read(config, &any, &x->image, e);
}

static enum err_code write_archive(struct export *x, int out, const char *id_hex, const char *const *names,
                                   struct err *e)
{
    str_auto config = NULL;
    size_t n = 0;

    if (read_config(x, id_hex, &config, &n, e) != ERR_OK || find_tars(x, e) != ERR_OK)
        return e->code;
    x->out = archive_write_new();
    if (x->out == NULL)
        return err_nomem(e);
    if (archive_write_set_format_ustar(x->out) != ARCHIVE_OK ||
        archive_write_open_fd(x->out, out) != ARCHIVE_OK)
        return unpack_archive_error(x->out, "archive", e);
    if (put_image(x, config, n, names, e) != ERR_OK)
        return e->code;
    if (archive_write_close(x->out) != ARCHIVE_OK)
        return err_sys(e, archive_errno(x->out) != 0 ? archive_errno(x->out) : EIO, "write the archive");
    return fsync(out) == 0 || errno == EINVAL ? ERR_OK : err_sys(e, errno, "sync the archive");
}

enum err_code unpack_export(int out, const char *id_hex, const char *const *names, int layers, int parts,
                            struct err *e)
{
    struct export *x = calloc(1, sizeof(*x));

    if (x == NULL)
        return err_nomem(e);
    x->layers = layers;
    x->parts = parts;
    write_archive(x, out, id_hex, names, e);
    archive_write_free(x->out); /* NULL is fine */
    unpack_image_done(&x->image);
    free(x);
    return e->code;
}
