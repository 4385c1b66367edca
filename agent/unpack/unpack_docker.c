/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <string.h>

/*
 * The format of docker save before version 25:
 *
 *     manifest.json = [{"Config": "<id>.json", "RepoTags": ["a:1"], "Layers": ["<x>/layer.tar"]}]
 *
 * Its layers are plain tars without digests; they are checked against the configuration's diff ids.
 */

/* A name of the form "<64 hex>.json" or ".../<64 hex>" is a digest and must match the content. */
static enum err_code check_config_name(const char *path, const char *id, struct err *e)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    size_t hex = strspn(name, "0123456789abcdef");

    if (hex == 64 && (name[hex] == '\0' || strcmp(name + hex, ".json") == 0) &&
        memcmp(name, unpack_digest_hex(id), 64) != 0)
        return err_set(e, ERR_DATA_LOSS, "image configuration %.100s: its content has the digest %s", path,
                       id);
    return ERR_OK;
}

static enum err_code unpack_docker_read_config(const struct unpack_source *s, const struct unpack_platform *p,
                                               const char *path, struct unpack_image *image, struct err *e)
{
    json_auto_t *config = NULL;
    str_auto text = NULL;
    fd_auto fd = -1;
    size_t n = 0;

    fd = unpack_source_file(s, path, e);
    if (fd < 0 || fs_read_fd(fd, UNPACK_MAX_JSON, &text, &n, e) != ERR_OK ||
        unpack_hash_text(text, n, image->id, e) != ERR_OK)
        return err_wrap(e, "image configuration");
    memcpy(image->digest, image->id, sizeof(image->digest));
    if (check_config_name(path, image->id, e) != ERR_OK ||
        json_parse(text, n, UNPACK_MAX_JSON, &config, "image configuration", e) != ERR_OK)
        return e->code;
    image->config = take_ptr(&text);
    image->config_size = n;
    return unpack_config_read(config, p, image, e);
}

static enum err_code unpack_docker_read_image(const struct unpack_source *s, const struct unpack_platform *p,
                                              const json_t *item, struct unpack_image *image, struct err *e)
{
    const json_t *tags = json_object_get(item, "RepoTags"), *layers = json_object_get(item, "Layers");
    const char *config = json_str(item, "Config");
    json_t *value;
    size_t i;

    if (config == NULL)
        return err_set(e, ERR_INVALID, "no configuration is named");
    if (unpack_docker_read_config(s, p, config, image, e) != ERR_OK)
        return e->code;
    if (json_array_size(layers) != image->n_layers)
        return err_set(e, ERR_INVALID, "it has %zu layers, but the configuration has %zu",
                       json_array_size(layers), image->n_layers);
    json_array_foreach (layers, i, value) {
        if (!json_is_string(value))
            return err_set(e, ERR_INVALID, "Layers[%zu] is not a string", i);
        image->layers[i].path = strdup(json_string_value(value));
        if (image->layers[i].path == NULL)
            return err_nomem(e);
    }
    json_array_foreach (tags, i, value) {
        if (!json_is_string(value))
            return err_set(e, ERR_INVALID, "RepoTags[%zu] is not a string", i);
        if (unpack_image_add_name(image, json_string_value(value), e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

enum err_code unpack_docker_read(const struct unpack_source *s, const struct unpack_platform *p,
                                 struct unpack_images *ret, struct err *e)
{
    json_auto_t *manifest = NULL;
    str_auto text = NULL;
    fd_auto fd = -1;
    json_t *item;
    size_t i, n = 0;

    fd = unpack_source_file(s, "manifest.json", e);
    if (fd < 0 || fs_read_fd(fd, UNPACK_MAX_JSON, &text, &n, e) != ERR_OK ||
        json_parse(text, n, UNPACK_MAX_JSON, &manifest, "manifest.json", e) != ERR_OK)
        return e->code;
    if (json_array_size(manifest) == 0)
        return err_set(e, ERR_INVALID, "manifest.json lists no image");
    json_array_foreach (manifest, i, item) {
        struct unpack_image *image = unpack_images_add(ret, e);

        if (image == NULL)
            return e->code;
        if (unpack_docker_read_image(s, p, item, image, e) != ERR_OK)
            return err_wrap(e, "manifest.json: image %zu", i + 1);
    }
    return ERR_OK;
}
