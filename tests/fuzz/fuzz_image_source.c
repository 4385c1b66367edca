/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of an image: index.json or manifest.json, manifests, configurations, and their layers into a
 * store.  The input's parts are the files: the first is the table (a docker archive's when it begins with
 * "["), the others are blobs.
 * "@3" in a part stands for the digest of part 3, "#3" for its size: only later parts, so there is no cycle.
 * A part is also the file "p3", for docker's tables.
 */
#include "agent/unpack/unpack.h"
#include "tests/fuzz/scratch.h"

#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARTS = 10 };

static int scratch = -1;

/* The part with its references filled in. */
static struct buf expand(struct str part, size_t number, char (*digests)[UNPACK_DIGEST_SIZE],
                         const size_t *sizes, size_t n)
{
    struct buf out = BUF_INIT(1 << 20);

    for (size_t i = 0; i < part.n; i++) {
        size_t to = i + 1 < part.n ? (size_t)(part.p[i + 1] - '0') : n;

        if ((part.p[i] == '@' || part.p[i] == '#') && to < n && to > number) {
            if (part.p[i] == '@')
                buf_adds(&out, digests[to]);
            else
                buf_addf(&out, "%zu", sizes[to]);
            i++;
        } else {
            buf_addc(&out, part.p[i]);
        }
    }
    return out;
}

static void write_parts(int dir, const uint8_t *data, size_t size)
{
    char digests[PARTS][UNPACK_DIGEST_SIZE], path[128];
    struct str parts[PARTS];
    size_t sizes[PARTS], n = scratch_parts(data, size, parts, PARTS);
    struct err e = { 0 };

    scratch_mkdir(dir, "blobs");
    scratch_mkdir(dir, "blobs/sha256");
    for (size_t i = n; i-- > 0;) {
        struct buf text = expand(parts[i], i, digests, sizes, n);
        struct str whole = { text.p, text.n };

        sizes[i] = text.n;
        assert(unpack_hash_text(text.p, text.n, digests[i], &e) == ERR_OK);
        if (i == 0) {
            scratch_write(dir, text.p[0] == '[' ? "manifest.json" : "index.json", whole);
        } else {
            snprintf(path, sizeof(path), "blobs/sha256/%s", unpack_digest_hex(digests[i]));
            scratch_write(dir, path, whole);
            snprintf(path, sizeof(path), "p%zu", i);
            scratch_write(dir, path, whole);
        }
        buf_done(&text);
    }
}

static void check_image(const struct unpack_image *image)
{
    const json_t *layers = json_object_get(image->record, "layers"), *layer;
    size_t i;

    assert(unpack_digest_is_valid(image->id) && unpack_digest_is_valid(image->digest));
    assert(image->n_layers > 0 && image->n_layers <= UNPACK_MAX_LAYERS && image->n_names <= UNPACK_MAX_NAMES);
    json_array_foreach (layers, i, layer)
        assert(unpack_digest_is_valid(json_string_value(layer)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct unpack_platform platform = { .os = "linux", .arch = "amd64" };
    struct unpack_budget budget = { .bytes = 1 << 20, .entries = 200 };
    struct unpack_source source = { -1, -1, false };
    struct unpack_images images = { 0 };
    struct unpack_store store = { 0 };
    struct err e = { 0 };
    int dir;

    if (scratch < 0) {
        scratch = scratch_open();
        umask(0);
    }
    scratch_mkdir(scratch, "source");
    scratch_mkdir(scratch, "work");
    scratch_mkdir(scratch, "layers");
    dir = scratch_open_folder(scratch, "source");
    store.work = scratch_open_folder(scratch, "work");
    store.layers = scratch_open_folder(scratch, "layers");
    write_parts(dir, data, size);

    if (unpack_source_open(&source, dir, store.work, -1, &budget, &e) == ERR_OK &&
        unpack_images_read(&source, &platform, &images, &e) == ERR_OK) {
        assert(images.n > 0 && images.n <= UNPACK_MAX_IMAGES);
        for (size_t i = 0;
             i < images.n && unpack_store_image(&store, &source, &images.v[i], &budget, &e) == ERR_OK; i++)
            check_image(&images.v[i]);
    }
    assert(e.code == ERR_OK || e.text[0] != '\0');
    unpack_images_done(&images);
    unpack_source_close(&source);
    close(dir);
    close(store.work);
    close(store.layers);
    scratch_clear(scratch, "source");
    scratch_clear(scratch, "work");
    scratch_clear(scratch, "layers");
    return 0;
}
