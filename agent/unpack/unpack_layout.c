/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <string.h>

#define OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define DOCKER_LIST "application/vnd.docker.distribution.manifest.list.v2+json"
#define DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"
#define DOCKER_CONFIG "application/vnd.docker.container.image.v1+json"

struct layout {
    const struct unpack_source *source;
    const struct unpack_platform *platform;
    struct unpack_images *images;
    struct buf others; /* unsuitable platforms, for the error text */
};

/* ---- descriptors ----------------------------------------------------------------------------- */

static enum err_code check_descriptor(const json_t *d, const char *what, const char **ret_digest,
                                      int64_t *ret_size, struct err *e)
{
    const char *digest = json_str(d, "digest");
    json_int_t size = json_int(d, "size", -1);

    if (!unpack_digest_is_valid(digest))
        return err_set(e, ERR_INVALID, "%s has no SHA-256 digest", what);
    if (size < 0)
        return err_set(e, ERR_INVALID, "%s %s has no size", what, digest);
    *ret_digest = digest;
    *ret_size = size;
    return ERR_OK;
}

/* Rates how well a descriptor suits the node; 0: not at all. */
static int suits(const json_t *descriptor, const struct unpack_platform *p)
{
    const json_t *platform = json_object_get(descriptor, "platform");
    const char *os = json_str(platform, "os"), *arch = json_str(platform, "architecture");
    const char *variant = json_str(platform, "variant");

    /* buildx stores attestations beside the images. */
    if (json_str(json_object_get(descriptor, "annotations"), "vnd.docker.reference.type") != NULL)
        return 0;
    if (os == NULL || arch == NULL || os[0] == '\0' || arch[0] == '\0')
        return 1; /* unknown at this point; the image's configuration has the platform */
    if (strcmp(os, p->os) != 0 || strcmp(arch, p->arch) != 0)
        return 0;
    if (str_eq(variant != NULL ? variant : "", p->variant))
        return 4;
    return variant == NULL || variant[0] == '\0' ? 3 : 2;
}

static void note_other(struct layout *l, const json_t *descriptor)
{
    const json_t *platform = json_object_get(descriptor, "platform");
    const char *os = json_str(platform, "os"), *arch = json_str(platform, "architecture");

    if (os != NULL && arch != NULL && strcmp(os, "unknown") != 0 && l->others.n < 150)
        buf_addf(&l->others, "%s%.20s/%.20s", l->others.n > 0 ? ", " : "", os, arch);
}

static enum err_code nothing_suits(const struct layout *l, struct err *e)
{
    if (l->others.n > 0)
        return err_set(e, ERR_NOT_FOUND, "no image for %s/%s, only for %s", l->platform->os,
                       l->platform->arch, l->others.p);
    return err_set(e, ERR_NOT_FOUND, "no image for %s/%s", l->platform->os, l->platform->arch);
}

/* ---- manifests ------------------------------------------------------------------------------- */

static enum err_code check_layer_type(const char *type, struct err *e)
{
    if (type == NULL || (!str_starts(type, "application/vnd.oci.image.layer.") &&
                         !str_starts(type, "application/vnd.docker.image.rootfs.")))
        return err_set(e, ERR_INVALID, "type \"%.100s\" is not a file system layer",
                       type != NULL ? type : "");
    if (str_ends(type, "+encrypted"))
        return err_set(e, ERR_UNIMPLEMENTED, "the layer is encrypted");
    return ERR_OK;
}

static enum err_code read_layers(struct unpack_image *image, const json_t *manifest, struct err *e)
{
    const json_t *layers = json_object_get(manifest, "layers");
    json_t *layer;
    size_t i;

    if (json_array_size(layers) != image->n_layers)
        return err_set(e, ERR_INVALID, "the manifest has %zu layers, the configuration %zu",
                       json_array_size(layers), image->n_layers);
    json_array_foreach (layers, i, layer) {
        const char *digest;

        if (check_descriptor(layer, "layer", &digest, &image->layers[i].size, e) != ERR_OK ||
            check_layer_type(json_str(layer, "mediaType"), e) != ERR_OK)
            return err_wrap(e, "layer %zu", i + 1);
        memcpy(image->layers[i].digest, digest, UNPACK_DIGEST_SIZE);
        image->layers[i].foreign = json_array_size(json_object_get(layer, "urls")) > 0;
    }
    return ERR_OK;
}

static enum err_code read_manifest(struct layout *l, const json_t *manifest, struct unpack_image *image,
                                   struct err *e)
{
    const json_t *d = json_object_get(manifest, "config");
    const char *digest, *type = json_str(d, "mediaType");
    json_auto_t *config = NULL;
    int64_t size;

    if (json_int(manifest, "schemaVersion", 0) != 2)
        return err_set(e, ERR_INVALID, "the manifest is not of schema version 2");
    if (check_descriptor(d, "image configuration", &digest, &size, e) != ERR_OK)
        return e->code;
    if (type != NULL && strcmp(type, OCI_CONFIG) != 0 && strcmp(type, DOCKER_CONFIG) != 0)
        return err_set(e, ERR_INVALID, "not a container image: its configuration is of type \"%.100s\"",
                       type);
    if (unpack_source_json(l->source, digest, size, "image configuration", &config, &image->config,
                           &image->config_size, e) != ERR_OK)
        return e->code;
    memcpy(image->id, digest, UNPACK_DIGEST_SIZE);
    if (unpack_config_read(config, l->platform, image, e) != ERR_OK)
        return e->code;
    return read_layers(image, manifest, e);
}

static struct unpack_image *find_image(struct unpack_images *images, const char *manifest_digest)
{
    for (size_t i = 0; i < images->n; i++)
        if (strcmp(images->v[i].digest, manifest_digest) == 0)
            return &images->v[i];
    return NULL;
}

/*
 * Follows a descriptor to the manifest that suits best.  *ret is a new image, or one already found under
 * another name.
 */
static enum err_code unpack_layout_resolve(struct layout *l, const json_t *descriptor, unsigned depth,
                                           struct unpack_image **ret, struct err *e)
{
    json_auto_t *object = NULL;
    const json_t *list, *best = NULL;
    int best_rank = 0;
    const char *digest;
    json_t *item;
    int64_t size;
    size_t i;

    if (check_descriptor(descriptor, "manifest", &digest, &size, e) != ERR_OK)
        return e->code;
    *ret = find_image(l->images, digest);
    if (*ret != NULL)
        return ERR_OK;
    if (unpack_source_json(l->source, digest, size, "manifest", &object, NULL, NULL, e) != ERR_OK)
        return e->code;

    list = json_object_get(object, "manifests");
    if (list == NULL) {
        *ret = unpack_images_add(l->images, e);
        if (*ret == NULL)
            return e->code;
        memcpy((*ret)->digest, digest, UNPACK_DIGEST_SIZE);
        return read_manifest(l, object, *ret, e);
    }
    if (depth == UNPACK_MAX_INDEX_DEPTH)
        return err_set(e, ERR_INVALID, "index %s: indexes are nested too deeply", digest);
    json_array_foreach (list, i, item) {
        int rank = suits(item, l->platform);

        if (rank > best_rank) {
            best = item;
            best_rank = rank;
        }
        if (rank == 0)
            note_other(l, item);
    }
    return best == NULL ? nothing_suits(l, e) : unpack_layout_resolve(l, best, depth + 1, ret, e);
}

/* ---- the index at the top -------------------------------------------------------------------- */

static bool is_image_type(const char *type)
{
    return type == NULL || strcmp(type, OCI_INDEX) == 0 || strcmp(type, OCI_MANIFEST) == 0 ||
           strcmp(type, DOCKER_LIST) == 0 || strcmp(type, DOCKER_MANIFEST) == 0;
}

/*
 * containerd's annotation holds a whole name.  OCI's own holds a whole name (podman, skopeo) or only a tag
 * (docker, buildx); a tag alone is ignored.
 */
static enum err_code unpack_layout_take_names(struct unpack_image *image, const json_t *descriptor,
                                              struct err *e)
{
    const json_t *annotations = json_object_get(descriptor, "annotations");
    const char *name = json_str(annotations, "io.containerd.image.name");

    if (name == NULL || name[0] == '\0')
        name = json_str(annotations, "org.opencontainers.image.ref.name");
    if (name == NULL || strpbrk(name, "/:@") == NULL)
        return ERR_OK;
    return unpack_image_add_name(image, name, e);
}

static enum err_code read_index(struct layout *l, const json_t *index, struct err *e)
{
    const json_t *list = json_object_get(index, "manifests");
    json_t *descriptor;
    size_t i;

    if (!json_is_array(list))
        return err_set(e, ERR_INVALID, "index.json has no list \"manifests\"");
    json_array_foreach (list, i, descriptor) {
        struct unpack_image *image;

        if (!is_image_type(json_str(descriptor, "mediaType")))
            continue;
        if (suits(descriptor, l->platform) == 0) {
            note_other(l, descriptor);
            continue;
        }
        if (unpack_layout_resolve(l, descriptor, 0, &image, e) != ERR_OK ||
            unpack_layout_take_names(image, descriptor, e) != ERR_OK)
            return e->code;
    }
    return l->images->n == 0 ? nothing_suits(l, e) : ERR_OK;
}

enum err_code unpack_layout_read(const struct unpack_source *s, const struct unpack_platform *p,
                                 struct unpack_images *ret, struct err *e)
{
    struct layout l = { .source = s, .platform = p, .images = ret, .others = BUF_INIT(256) };
    json_auto_t *index = NULL;
    str_auto text = NULL;
    fd_auto fd = -1;
    size_t n = 0;

    fd = unpack_source_file(s, "index.json", e);
    if (fd >= 0 && fs_read_fd(fd, UNPACK_MAX_JSON, &text, &n, e) == ERR_OK &&
        json_parse(text, n, UNPACK_MAX_JSON, &index, "index.json", e) == ERR_OK)
        read_index(&l, index, e);
    buf_done(&l.others);
    return e->code;
}
