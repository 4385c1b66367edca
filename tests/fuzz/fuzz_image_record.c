/* SPDX-License-Identifier: Apache-2.0 */
/* What coracle-unpack prints and what the store's records hold, and skopeo's last words: "answer", "%%",
 * "words". */
#include "agent/image/image_internal.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An image that was accepted says the same after it went through its own record. */
static void check_record(const struct img_image *image)
{
    json_t *record = img_record_encode(image), *again;
    struct img_image *back = NULL;
    struct err e = { 0 };

    assert(record != NULL && image->layer_dirs.n >= 1 && image->layer_dirs.n <= IMG_MAX_LAYERS);
    assert(image->volumes.n <= IMG_MAX_VOLUMES);
    for (size_t i = 0; i < image->volumes.n; i++)
        assert(image->volumes.v[i][0] == '/');
    assert(img_digest_is_valid(image->id) && img_digest_is_valid(image->digest));
    assert(img_record_decode(record, "/s", &back, &e) == ERR_OK);
    again = img_record_encode(back);
    assert(again != NULL && json_equal(record, again));
    json_decref(record);
    json_decref(again);
    img_unref(back);
}

static void check_names(const struct img_found *f)
{
    char full[IMG_NAME_MAX];
    struct err e = { 0 };

    for (size_t k = 0; k < f->n_names; k++)
        assert(img_normalise(f->names[k].name, full, &e) == ERR_OK && strcmp(full, f->names[k].name) == 0 &&
               strlen(f->names[k].file) == 64);
}

static void check_stored(struct str text)
{
    struct img_image *image = NULL;
    json_t *record = NULL;
    struct err e = { 0 };

    if (json_parse(text.p, text.n, IMG_RECORD_MAX, &record, "record", &e) == ERR_OK &&
        img_record_decode(record, "/s", &image, &e) == ERR_OK)
        check_record(image);
    json_decref(record);
    img_unref(image);
}

/* The same words as the registry's answer. */
static void check_answer(char *words)
{
    struct img_job job = { .key = (char *)"k" };
    struct err e = { 0 };

    if (img_blobs_take(&job, words, &e) == ERR_OK)
        assert(img_digest_is_valid(job.digest) && job.n_blobs <= IMG_MAX_LAYERS);
    for (size_t i = 0; i < job.n_blobs; i++) {
        assert(strlen(job.blobs[i]) == 64);
        free(job.blobs[i]);
    }
    free(job.blobs);
    free(job.digest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct img_store store = { .dir = (char *)"/s" };
    struct img_job job = { .store = &store, .key = (char *)"k" };
    struct err e = { 0 };
    struct str parts[2];
    size_t n = scratch_parts(data, size, parts, 2);
    str_auto words = n == 2 ? text_of(parts[1].p, parts[1].n) : strdup("");

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    if (img_take_result(&job, parts[0].p, parts[0].n, &e) == ERR_OK)
        for (size_t i = 0; i < job.n_found; i++) {
            check_record(job.found[i].image);
            check_names(&job.found[i]);
        }
    else
        assert(e.text[0] != '\0');
    img_found_free(&job);

    e = (struct err){ 0 };
    job.found = calloc(1, sizeof(*job.found));
    job.n_found = 1;
    if (img_take_names(&job, parts[0].p, parts[0].n, &e) == ERR_OK)
        check_names(&job.found[0]);
    img_found_free(&job);

    e = (struct err){ 0 };
    if (img_take_failure(parts[0].p, parts[0].n, &e))
        assert(e.code != ERR_OK);
    e = (struct err){ .code = ERR_UNKNOWN };
    job.proc.err_out = (struct buf){ .p = words, .n = strlen(words) };
    img_skopeo_error(&job, &e);
    assert(e.code != ERR_OK && e.text[0] != '\0');
    check_stored(parts[0]);
    check_answer(words);
    return 0;
}
