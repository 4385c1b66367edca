/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"

#include "base/files/fs.h"
#include "base/list.h"

#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

/*
 * The sum covers, for each entry in the order of sorted names, every text with its NUL:
 *
 *     path, "mode uid gid device size time", attributes sorted by name (name, length, value), then a file's
 * bytes, a link's target, or for further names of one file the number of the first
 *
 * It excludes a folder's size, which depends on the file system, the root's time, and attributes that do not
 * belong to the layer: our own notes, and labels that the host's security modules set and change.
 */

enum { CHUNK = 256 * 1024, ATTRIBUTES_MAX = 64 * 1024 };

struct seen { /* a file with several hard links */
    uint64_t inode, number;
    UT_hash_handle hh;
};

struct summing {
    struct unpack_hash *hash;
    struct seen *seen;
    uint64_t n_seen, bytes;
    char *chunk, *names;
};

static void unpack_sum_forget(struct summing *s)
{
    struct seen *one, *next;

    HASH_ITER (hh, s->seen, one, next) {
        HASH_DEL(s->seen, one);
        free(one);
    }
    unpack_hash_free(s->hash);
    free(s->chunk);
    free(s->names);
}

static enum err_code unpack_sum_add_text(struct summing *s, const char *text, struct err *e)
{
    return unpack_hash_add(s->hash, text, strlen(text) + 1, e);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static bool is_the_layers(const char *name)
{
    static const char *const others[] = { "trusted.coracle.", "security.selinux", "security.SMACK64",
                                          "security.ima", "security.evm" };

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (str_starts(name, others[i]))
            return false;
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum err_code add_attribute(struct summing *s, const char *file, const char *name, struct err *e)
{
    ssize_t n = lgetxattr(file, name, s->chunk, ATTRIBUTES_MAX);
    char size[24];

    if (n < 0)
        return err_sys(e, errno, "read attribute %.100s", name);
    snprintf(size, sizeof(size), "%zd", n);
    if (unpack_sum_add_text(s, name, e) != ERR_OK || unpack_sum_add_text(s, size, e) != ERR_OK)
        return e->code;
    return unpack_hash_add(s->hash, s->chunk, (size_t)n, e);
}

static enum err_code add_attributes(struct summing *s, const char *file, struct err *e)
{
    mem_auto const char **sorted = NULL;
    ssize_t n = llistxattr(file, s->names, ATTRIBUTES_MAX);
    size_t count = 0;

    if (n < 0 && errno != EOPNOTSUPP)
        return err_sys(e, errno, "list attributes");
    if (n <= 0)
        return ERR_OK;
    sorted = calloc((size_t)n, sizeof(*sorted)); /* a name has at least one byte */
    if (sorted == NULL)
        return err_nomem(e);
    for (const char *name = s->names; name < s->names + n; name += strlen(name) + 1)
        if (is_the_layers(name))
            sorted[count++] = name;
    qsort(sorted, count, sizeof(*sorted), by_text);
    for (size_t i = 0; i < count; i++)
        if (add_attribute(s, file, sorted[i], e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* ---- content --------------------------------------------------------------------------------- */

static enum err_code add_bytes(struct summing *s, const char *file, struct err *e)
{
    fd_auto fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return err_sys(e, errno, "open");
    for (;;) {
        n = read(fd, s->chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, errno, "read");
        if (n == 0)
            return ERR_OK;
        s->bytes += (uint64_t)n;
        if (unpack_hash_add(s->hash, s->chunk, (size_t)n, e) != ERR_OK)
            return e->code;
    }
}

static enum err_code add_target(struct summing *s, const char *file, struct err *e)
{
    ssize_t n = readlink(file, s->chunk, CHUNK);

    return n < 0 ? err_sys(e, errno, "read the link") : unpack_hash_add(s->hash, s->chunk, (size_t)n, e);
}

/* *ret: the number of the file if it was seen before under another name, else 0. */
static enum err_code find_seen(struct summing *s, uint64_t inode, uint64_t *ret, struct err *e)
{
    struct seen *one;

    *ret = 0;
    HASH_FIND(hh, s->seen, &inode, sizeof(inode), one);
    if (one != NULL) {
        *ret = one->number;
        return ERR_OK;
    }
    one = calloc(1, sizeof(*one));
    if (one == NULL)
        return err_nomem(e);
    one->inode = inode;
    one->number = ++s->n_seen;
    HASH_ADD(hh, s->seen, inode, sizeof(one->inode), one);
    if (one->hh.tbl == NULL) {
        free(one);
        return err_nomem(e);
    }
    return ERR_OK;
}

static enum err_code unpack_sum_add_entry(struct summing *s, const FTSENT *f, struct err *e)
{
    const struct stat *st = f->fts_statp;
    const bool is_folder = S_ISDIR(st->st_mode), has_time = f->fts_level > 0;
    uint64_t first = 0;
    char text[160];

    snprintf(text, sizeof(text), "%o %u %u %u:%u %lld %lld.%09ld", st->st_mode, st->st_uid, st->st_gid,
             major(st->st_rdev), minor(st->st_rdev), is_folder ? 0LL : (long long)st->st_size,
             has_time ? (long long)st->st_mtim.tv_sec : 0LL, has_time ? st->st_mtim.tv_nsec : 0L);
    if (unpack_sum_add_text(s, f->fts_path, e) != ERR_OK || unpack_sum_add_text(s, text, e) != ERR_OK)
        return e->code;
    if (!is_folder && st->st_nlink > 1) {
        if (find_seen(s, st->st_ino, &first, e) != ERR_OK)
            return e->code;
        if (first != 0) {
            snprintf(text, sizeof(text), "= %llu", (unsigned long long)first);
            return unpack_sum_add_text(s, text, e);
        }
    }
    if (add_attributes(s, f->fts_accpath, e) != ERR_OK)
        return e->code;
    if (S_ISREG(st->st_mode))
        return add_bytes(s, f->fts_accpath, e);
    return S_ISLNK(st->st_mode) ? add_target(s, f->fts_accpath, e) : ERR_OK;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static int unpack_sum_by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static enum err_code unpack_sum_add_all(struct summing *s, FTS *walk, struct err *e)
{
    FTSENT *f;

    while (errno = 0, (f = fts_read(walk)) != NULL) {
        switch (f->fts_info) {
        case FTS_DP:
            continue;
        case FTS_D:
        case FTS_F:
        case FTS_SL:
        case FTS_DEFAULT:
            break;
        default:
            return err_sys(e, f->fts_errno, "\"%.200s\"", f->fts_path);
        }
        if (unpack_sum_add_entry(s, f, e) != ERR_OK)
            return err_wrap(e, "\"%.200s\"", f->fts_path);
    }
    return errno == 0 ? ERR_OK : err_sys(e, errno, "read the tree");
}

enum err_code unpack_sum(int root, char ret[UNPACK_DIGEST_SIZE], uint64_t *ret_bytes, struct err *e)
{
    /*
     * Walk from the working folder, since a layer's paths may be longer than the kernel accepts in one call.
     */
    char here[] = ".", *const roots[] = { here, NULL };
    struct summing s = { .chunk = malloc(CHUNK), .names = malloc(ATTRIBUTES_MAX) };
    fd_auto before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    FTS *walk = NULL;

    if (s.chunk == NULL || s.names == NULL)
        err_nomem(e);
    else if (before < 0 || fchdir(root) != 0)
        err_sys(e, errno, "enter the layer");
    else if (unpack_hash_new(&s.hash, e) == ERR_OK) {
        walk = fts_open(roots, FTS_PHYSICAL | FTS_XDEV, unpack_sum_by_name);
        if (walk == NULL)
            err_sys(e, errno, "read the tree");
        else if (unpack_sum_add_all(&s, walk, e) == ERR_OK && unpack_hash_end(s.hash, ret, e) == ERR_OK)
            *ret_bytes = s.bytes;
    }
    if (walk != NULL)
        fts_close(walk);
    if (before >= 0 && fchdir(before) != 0 && e->code == ERR_OK)
        err_sys(e, errno, "leave the layer");
    unpack_sum_forget(&s);
    return e->code;
}
