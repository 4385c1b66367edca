/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int unpack_source_open_folder(int dir, const char *path)
{
    return openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Unpacks the archive's parts as plain files into <work>/source. */
static int take_apart(int source, int work, struct unpack_budget *budget, struct err *e)
{
    struct unpack_budget parts = *budget;
    struct unpack_result result;
    fd_auto root = -1;

    parts.progress = NULL; /* the same bytes are counted later, as layers */
    if (mkdirat(work, "source", 0700) != 0 || (root = unpack_source_open_folder(work, "source")) < 0) {
        err_sys(e, errno, "make the folder for the archive's parts");
        return -1;
    }
    if (parts.entries > UNPACK_MAX_PARTS)
        parts.entries = UNPACK_MAX_PARTS;
    if (unpack_stream(source, "", -1, NULL, root, UNPACK_ARCHIVE, NULL, &parts, &result, e) != ERR_OK)
        return -1;
    return take_fd(&root);
}

enum err_code unpack_source_open(struct unpack_source *ret, int source, int work, int blobs,
                                 struct unpack_budget *budget, struct err *e)
{
    struct unpack_source s = { .root = -1, .blobs = -1 };
    struct stat st;

    if (fstat(source, &st) != 0)
        return err_sys(e, errno, "stat the source");
    s.is_archive = S_ISREG(st.st_mode);
    if (s.is_archive)
        s.root = take_apart(source, work, budget, e);
    else if (S_ISDIR(st.st_mode))
        s.root = fcntl(source, F_DUPFD_CLOEXEC, 3);
    else
        return err_set(e, ERR_INVALID, "the source is neither a folder nor a file");
    if (s.root < 0)
        return e->code != ERR_OK ? err_wrap(e, "archive") : err_sys(e, errno, "duplicate a descriptor");

    s.blobs = blobs >= 0 ? fcntl(blobs, F_DUPFD_CLOEXEC, 3) : unpack_source_open_folder(s.root, "blobs");
    *ret = s; /* blobs is -1 for a docker archive without that folder */
    return ERR_OK;
}

void unpack_source_close(struct unpack_source *s)
{
    if (s->root >= 0)
        close(s->root);
    if (s->blobs >= 0)
        close(s->blobs);
    s->root = s->blobs = -1;
}

/* Non-blocking, because a named pipe in the layout must not block us. */
static int unpack_source_open_file(int root, const char *path, struct err *e)
{
    fd_auto fd = -1;
    struct stat st;

    if (!fs_path_is_safe(path)) {
        err_set(e, ERR_INVALID, "\"%.200s\" is not a path inside the image", path);
        return -1;
    }
    fd = fs_open_beneath(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, e);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        err_set(e, ERR_INVALID, "\"%.200s\" is not a file", path);
        return -1;
    }
    return take_fd(&fd);
}

int unpack_source_file(const struct unpack_source *s, const char *path, struct err *e)
{
    return unpack_source_open_file(s->root, path, e);
}

int unpack_source_blob(const struct unpack_source *s, const char *digest, struct err *e)
{
    char path[80];
    int fd;

    if (s->blobs < 0) {
        err_set(e, ERR_NOT_FOUND, "the source has no folder \"blobs\"");
        return -1;
    }
    snprintf(path, sizeof(path), "sha256/%s", unpack_digest_hex(digest));
    fd = unpack_source_open_file(s->blobs, path, e);
    if (fd < 0)
        err_wrap(e, "blob %s", digest);
    return fd;
}

enum err_code unpack_source_json(const struct unpack_source *s, const char *digest, int64_t size,
                                 const char *what, json_t **ret, char **ret_text, size_t *ret_n,
                                 struct err *e)
{
    char sum[UNPACK_DIGEST_SIZE];
    str_auto text = NULL;
    fd_auto fd = -1;
    size_t n = 0;

    fd = unpack_source_blob(s, digest, e);
    if (fd < 0 || fs_read_fd(fd, UNPACK_MAX_JSON, &text, &n, e) != ERR_OK ||
        unpack_hash_text(text, n, sum, e) != ERR_OK)
        return err_wrap(e, "%s", what);
    if (size >= 0 && (uint64_t)size != n)
        return err_set(e, ERR_DATA_LOSS, "%s %s has %zu bytes instead of the announced %lld", what, digest, n,
                       (long long)size);
    if (strcmp(sum, digest) != 0)
        return err_set(e, ERR_DATA_LOSS, "%s %s: its content has the digest %s", what, digest, sum);
    if (json_parse(text, n, UNPACK_MAX_JSON, ret, what, e) != ERR_OK)
        return e->code;
    if (!json_is_object(*ret)) {
        json_decref(*ret);
        *ret = NULL;
        return err_set(e, ERR_INVALID, "%s %s is not a JSON object", what, digest);
    }
    if (ret_text != NULL) {
        *ret_text = take_ptr(&text);
        *ret_n = n;
    }
    return ERR_OK;
}
