/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/unpack_progress.h"
#include "agent/unpack/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <sys/statvfs.h>

enum { CHUNK = 256 * 1024 };

/* Free space is checked again after this many bytes. */
#define CHECK_BYTES (16u << 20)

/*
 * gzip reaches at most 1032 to 1, zstd easily a million to 1.  Real layers have ratios of 2 to 10; a stream
 * that stays above this limit for a whole gigabyte is an attempt to fill the disk.
 */
#define RATIO_MAX 250
#define RATIO_FROM (1ull << 30)

/*
 * file -> [hash, size] -> inner: gzip, zstd or nothing -> [hash, limit] -> outer: tar -> entries
 *
 * There are two libarchive readers because the diff id is the hash of the data between them.  The inner one
 * gets exactly the filter that the first bytes indicate; by default libarchive would undo up to 25 layers of
 * compression.
 */
struct stream {
    int fd;
    const char *digest; /* NULL: not checked */
    int64_t size;       /* -1: not checked */
    struct unpack_hash *blob_hash, *diff_hash;
    uint64_t n_in, n_out, max_out;
    struct archive *inner, *outer;
    bool inner_ended;
    struct err err; /* the original error, which libarchive does not pass on */
    char *chunk;
};

enum err_code unpack_spend_bytes(struct unpack_budget *b, int fd, uint64_t n, struct err *e)
{
    struct statvfs fs;

    if (n > b->bytes)
        return err_set(e, ERR_EXHAUSTED, "the image is larger than the limit for unpacked images");
    b->bytes -= n;
    if (b->progress != NULL)
        atomic_fetch_add_explicit(&b->progress->bytes, n, memory_order_relaxed);
    if (n < b->until_check) {
        b->until_check -= n;
        return ERR_OK;
    }
    if (fstatvfs(fd, &fs) != 0)
        return err_sys(e, errno, "read the free space of the image store");
    if ((uint64_t)fs.f_bavail * fs.f_frsize < b->reserve + n)
        return err_set(
            e, ERR_EXHAUSTED,
            "no space left for images: %llu MiB are free on the store's file system, %llu MiB are needed and "
            "%llu MiB must stay free",
            (unsigned long long)((uint64_t)fs.f_bavail * fs.f_frsize >> 20), (unsigned long long)(n >> 20),
            (unsigned long long)(b->reserve >> 20));
    b->until_check = CHECK_BYTES;
    return ERR_OK;
}

enum err_code unpack_spend_entry(struct unpack_budget *b, struct err *e)
{
    if (b->entries == 0)
        return err_set(e, ERR_EXHAUSTED, "the image has more files than the limit allows");
    b->entries--;
    return ERR_OK;
}

enum err_code unpack_archive_error(struct archive *a, const char *what, struct err *e)
{
    const char *text = archive_error_string(a);

    if (archive_errno(a) == ENOMEM)
        return err_nomem(e);
    return err_set(e, ERR_INVALID, "\"%.200s\": %.200s", what, text != NULL ? text : "broken archive");
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Reads, hashes and counts up to CHUNK bytes of the blob.  Returns 0 at its end, -1 with s->err set. */
static ssize_t read_blob(struct stream *s)
{
    ssize_t n;

    do
        n = read(s->fd, s->chunk, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        err_sys(&s->err, errno, "read");
        return -1;
    }
    s->n_in += (uint64_t)n;
    if (s->size >= 0 && s->n_in > (uint64_t)s->size) {
        err_set(&s->err, ERR_DATA_LOSS, "it is longer than the %lld bytes in its manifest",
                (long long)s->size);
        return -1;
    }
    if (s->blob_hash != NULL && unpack_hash_add(s->blob_hash, s->chunk, (size_t)n, &s->err) != ERR_OK)
        return -1;
    return n;
}

static ssize_t read_for_inner(struct archive *a, void *arg, const void **ret)
{
    struct stream *s = arg;
    ssize_t n = read_blob(s);

    *ret = s->chunk;
    if (n < 0)
        archive_set_error(a, EIO, "%s", s->err.text);
    return n;
}

static enum err_code open_inner(struct stream *s, struct err *e)
{
    unsigned char magic[6] = { 0 };
    struct archive_entry *entry;
    int r = ARCHIVE_OK;

    if (pread(s->fd, magic, sizeof(magic), 0) < 0)
        return err_sys(e, errno, "read");
    if (memcmp(magic,
               "\xfd"
               "7zXZ",
               6) == 0 ||
        memcmp(magic, "BZh", 3) == 0)
        return err_set(e, ERR_INVALID, "it is compressed with xz or bzip2; images may use gzip and zstd");

    s->inner = archive_read_new();
    if (s->inner == NULL)
        return err_nomem(e);
    if (magic[0] == 0x1f && magic[1] == 0x8b)
        r = archive_read_append_filter(s->inner, ARCHIVE_FILTER_GZIP);
    else if (memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0)
        r = archive_read_append_filter(s->inner, ARCHIVE_FILTER_ZSTD);
    if (r != ARCHIVE_OK || archive_read_support_format_raw(s->inner) != ARCHIVE_OK ||
        archive_read_support_format_empty(s->inner) != ARCHIVE_OK ||
        archive_read_open(s->inner, s, NULL, read_for_inner, NULL) != ARCHIVE_OK)
        return unpack_archive_error(s->inner, "compressed stream", e);
    r = archive_read_next_header(s->inner, &entry);
    s->inner_ended = r == ARCHIVE_EOF;
    if (r != ARCHIVE_OK && r != ARCHIVE_EOF)
        return unpack_archive_error(s->inner, "compressed stream", e);
    return ERR_OK;
}

/* ---- the tar --------------------------------------------------------------------------------- */

/* Returns the next piece of the uncompressed stream, 0 at its end, -1 with s->err set. */
static ssize_t read_inner(struct stream *s, const void **ret)
{
    la_int64_t offset;
    size_t n = 0;
    int r;

    if (s->inner_ended)
        return 0;
    do
        r = archive_read_data_block(s->inner, ret, &n, &offset);
    while (r == ARCHIVE_OK && n == 0);
    if (r == ARCHIVE_EOF) {
        s->inner_ended = true;
        return 0;
    }
    if (r != ARCHIVE_OK && r != ARCHIVE_WARN) {
        if (s->err.code == ERR_OK)
            unpack_archive_error(s->inner, "compressed stream", &s->err);
        return -1;
    }
    s->n_out += n;
    if (s->n_out > s->max_out) {
        err_set(&s->err, ERR_EXHAUSTED, "the image is larger than the limit for unpacked images");
        return -1;
    }
    if (s->n_out > RATIO_FROM && s->n_out / RATIO_MAX > s->n_in) {
        err_set(&s->err, ERR_INVALID, "it is compressed more than %d to 1: taken for a decompression bomb",
                RATIO_MAX);
        return -1;
    }
    return unpack_hash_add(s->diff_hash, *ret, n, &s->err) == ERR_OK ? (ssize_t)n : -1;
}

static ssize_t read_for_outer(struct archive *a, void *arg, const void **ret)
{
    struct stream *s = arg;
    ssize_t n = read_inner(s, ret);

    if (n < 0)
        archive_set_error(a, EIO, "%s", s->err.text);
    return n;
}

static enum err_code apply_all(struct stream *s, struct unpack_apply *u, struct err *e)
{
    struct archive_entry *entry;
    const void *rest;
    ssize_t n;
    int r;

    s->outer = archive_read_new();
    if (s->outer == NULL)
        return err_nomem(e);
    if (archive_read_support_format_tar(s->outer) != ARCHIVE_OK ||
        archive_read_support_format_empty(s->outer) != ARCHIVE_OK ||
        archive_read_open(s->outer, s, NULL, read_for_outer, NULL) != ARCHIVE_OK)
        return unpack_archive_error(s->outer, "tar", e);

    for (;;) {
        r = archive_read_next_header(s->outer, &entry);
        if (r == ARCHIVE_EOF)
            break;
        /*
         * A warning means a name that is not UTF-8; its bytes are available all the same.  ARCHIVE_RETRY
         * means a damaged header.
         */
        if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
            return unpack_archive_error(s->outer, "tar", e);
        if (unpack_apply_entry(u, s->outer, entry, e) != ERR_OK)
            return e->code;
    }
    /*
     * Bytes after the tar's end are part of the diff id; bytes after the compressed stream are part of the
     * digest.
     */
    do
        n = read_inner(s, &rest);
    while (n > 0);
    if (n == 0) {
        do
            n = read_blob(s);
        while (n > 0);
    }
    if (n < 0)
        *e = s->err;
    return e->code;
}

/* ---- the whole stream -------------------------------------------------------------------------------- */

static enum err_code check_hashes(struct stream *s, const char *diff_id, struct err *e)
{
    char sum[UNPACK_DIGEST_SIZE];

    if (s->size >= 0 && s->n_in != (uint64_t)s->size)
        return err_set(e, ERR_DATA_LOSS, "it has %llu bytes, but its manifest says %lld",
                       (unsigned long long)s->n_in, (long long)s->size);
    if (s->blob_hash != NULL) {
        if (unpack_hash_end(s->blob_hash, sum, e) != ERR_OK)
            return e->code;
        if (strcmp(sum, s->digest) != 0)
            return err_set(e, ERR_DATA_LOSS, "its content has the digest %s", sum);
    }
    if (unpack_hash_end(s->diff_hash, sum, e) != ERR_OK)
        return e->code;
    if (diff_id != NULL && strcmp(sum, diff_id) != 0)
        return err_set(e, ERR_DATA_LOSS,
                       "its uncompressed digest is %s, but the image's configuration says %s", sum, diff_id);
    return ERR_OK;
}

static enum err_code unpack_stream_run(struct stream *s, const char *diff_id, int root, enum unpack_kind kind,
                                       const struct unpack_lower *lower, struct unpack_budget *budget,
                                       struct unpack_result *ret, struct err *e)
{
    scoped(unpack_apply_free) struct unpack_apply *u = NULL;

    s->chunk = malloc(CHUNK);
    if (s->chunk == NULL)
        return err_nomem(e);
    if ((s->digest != NULL && unpack_hash_new(&s->blob_hash, e) != ERR_OK) ||
        unpack_hash_new(&s->diff_hash, e) != ERR_OK ||
        unpack_apply_new(&u, root, kind, lower, budget, e) != ERR_OK || open_inner(s, e) != ERR_OK ||
        apply_all(s, u, e) != ERR_OK)
        return e->code;
    if (check_hashes(s, diff_id, e) != ERR_OK)
        return e->code;
    return unpack_apply_finish(u, ret, e);
}

enum err_code unpack_stream(int fd, const char *digest, int64_t size, const char *diff_id, int root,
                            enum unpack_kind kind, const struct unpack_lower *lower,
                            struct unpack_budget *budget, struct unpack_result *ret, struct err *e)
{
    struct stream s = {
        .fd = fd,
        .digest = digest[0] != '\0' ? digest : NULL,
        .size = size,
        /* The limit of file content, plus a header, its padding and a pax header for each file. */
        .max_out = budget->bytes + budget->entries * 4096 + 1024 * 1024,
    };

    unpack_stream_run(&s, diff_id, root, kind, lower, budget, ret, e);
    if (e->code != ERR_OK && s.err.code != ERR_OK)
        *e = s.err;

    archive_read_free(s.outer);
    archive_read_free(s.inner);
    unpack_hash_free(s.blob_hash);
    unpack_hash_free(s.diff_hash);
    free(s.chunk);
    return e->code;
}
