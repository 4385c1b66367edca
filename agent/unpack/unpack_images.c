/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"

#include "agent/image/image.h"
#include "base/array.h"

#include <fcntl.h>
#include <string.h>

static void unpack_image_done(struct unpack_image *image)
{
    for (size_t i = 0; i < image->n_names; i++)
        free(image->names[i]);
    for (size_t i = 0; i < image->n_layers; i++)
        free(image->layers[i].path);
    free(image->names);
    free(image->layers);
    json_decref(image->record);
    free(image->config);
}

void unpack_images_done(struct unpack_images *images)
{
    for (size_t i = 0; i < images->n; i++)
        unpack_image_done(&images->v[i]);
    free(images->v);
    *images = (struct unpack_images){ 0 };
}

struct unpack_image *unpack_images_add(struct unpack_images *images, struct err *e)
{
    if (images->n == UNPACK_MAX_IMAGES) {
        err_set(e, ERR_EXHAUSTED, "the source contains more than %d images", UNPACK_MAX_IMAGES);
        return NULL;
    }
    if (!array_room(images->v, images->n)) {
        err_nomem(e);
        return NULL;
    }
    images->v[images->n] = (struct unpack_image){ 0 };
    return &images->v[images->n++];
}

enum err_code unpack_image_add_name(struct unpack_image *image, const char *name, struct err *e)
{
    char full[IMG_NAME_MAX];
    if (img_normalise(name, full, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < image->n_names; i++)
        if (strcmp(image->names[i], full) == 0)
            return ERR_OK;
    if (image->n_names == UNPACK_MAX_NAMES)
        return err_set(e, ERR_EXHAUSTED, "the image has more than %d names", UNPACK_MAX_NAMES);
    if (!array_room(image->names, image->n_names) || (image->names[image->n_names] = strdup(full)) == NULL)
        return err_nomem(e);
    image->n_names++;
    return ERR_OK;
}

static bool unpack_images_holds(const struct unpack_source *s, const char *name)
{
    return faccessat(s->root, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

enum err_code unpack_images_read(const struct unpack_source *s, const struct unpack_platform *p,
                                 struct unpack_images *ret, struct err *e)
{
    struct unpack_images images = { 0 };
    enum err_code code;

    if (unpack_images_holds(s, "index.json"))
        code = unpack_layout_read(s, p, &images, e);
    else if (unpack_images_holds(s, "manifest.json"))
        code = unpack_docker_read(s, p, &images, e);
    else
        code = err_set(e, ERR_INVALID,
                       "not an OCI layout, OCI archive or docker archive: it holds neither index.json nor "
                       "manifest.json");
    if (code != ERR_OK) {
        unpack_images_done(&images);
        return code;
    }
    *ret = images;
    return ERR_OK;
}
