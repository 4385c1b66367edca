/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/copy.h"
#include "agent/unpack/unpack.h"

#include "base/files/fs.h"
#include "base/utf8.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 4095, DEPTH_MAX = 256, PIECE = 64 * 1024, UNSIZED_MAX = 1024 * 1024 };

struct pack {
    struct archive *out;
    const struct copy_options *o;
    struct buf path; /* the path in the archive */
    unsigned depth;
};

static enum err_code copy_pack_failed(const struct pack *p, struct err *e)
{
    return err_sys(e, archive_errno(p->out) > 0 ? archive_errno(p->out) : EIO, "write the archive");
}

static enum err_code copy_pack_put(const struct pack *p, const void *data, size_t n, struct err *e)
{
    return archive_write_data(p->out, data, n) == (la_ssize_t)n ? ERR_OK : copy_pack_failed(p, e);
}

static enum err_code put_head(const struct pack *p, const struct stat *st, const char *link, struct err *e)
{
    struct archive_entry *entry = archive_entry_new();

    if (entry == NULL)
        return err_nomem(e);
    archive_entry_set_pathname(entry, p->path.p);
    archive_entry_set_mode(entry, st->st_mode);
    archive_entry_set_size(entry, S_ISREG(st->st_mode) ? st->st_size : 0);
    archive_entry_set_mtime(entry, st->st_mtim.tv_sec > 0 ? st->st_mtim.tv_sec : 0, 0);
    if (link != NULL)
        archive_entry_set_symlink(entry, link);
    if (archive_write_header(p->out, entry) < ARCHIVE_WARN)
        copy_pack_failed(p, e);
    archive_entry_free(entry);
    return e->code;
}

static void copy_pack_warn(const struct pack *p, const char *what)
{
    char text[NAME_MAX_BYTES + 100];

    snprintf(text, sizeof(text), "%s: %s", p->path.p, what);
    text_printable(text);
    if (p->o->warn != NULL)
        p->o->warn(text, p->o->arg);
}

/* Opens the node that was examined, even if its name belongs to another file by now. */
static int reopen(int node, int flags)
{
    char name[32];

    snprintf(name, sizeof(name), "/proc/self/fd/%d", node);
    return open(name, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Files of procfs report a size of 0; their size is known only after they are read. */
static enum err_code pack_unsized(const struct pack *p, int fd, const struct stat *st, struct err *e)
{
    struct stat sized = *st;
    struct err why = { 0 };
    str_auto text = NULL;
    size_t n = 0;

    if (fs_read_fd(fd, UNSIZED_MAX, &text, &n, &why) != ERR_OK) {
        char what[sizeof(why.text) + 20];

        if (p->depth == 0)
            return err_set(e, why.code, "read %s: %s", p->path.p, why.text);
        snprintf(what, sizeof(what), "left out: %s", why.text);
        copy_pack_warn(p, what);
        return ERR_OK;
    }
    sized.st_size = (off_t)n;
    return put_head(p, &sized, NULL, e) == ERR_OK ? copy_pack_put(p, text, n, e) : e->code;
}

/* Packs exactly as many bytes as the header announces: a file may grow or shrink meanwhile. */
static enum err_code pack_file(const struct pack *p, int node, const struct stat *st, struct err *e)
{
    fd_auto fd = reopen(node, O_RDONLY);
    uint64_t left = (uint64_t)st->st_size;
    char piece[PIECE];

    if (fd < 0)
        return err_sys(e, errno, "open %s", p->path.p);
    if (left == 0)
        return pack_unsized(p, fd, st, e);
    if (put_head(p, st, NULL, e) != ERR_OK)
        return e->code;
    while (left > 0) {
        size_t wanted = left < sizeof(piece) ? (size_t)left : sizeof(piece);
        ssize_t n = read(fd, piece, wanted);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, errno, "read %s", p->path.p);
        if (n == 0)
            return err_set(e, ERR_ABORTED, "%s was truncated while it was read", p->path.p);
        if (copy_pack_put(p, piece, (size_t)n, e) != ERR_OK)
            return e->code;
        left -= (uint64_t)n;
    }
    return ERR_OK;
}

static enum err_code pack_node(struct pack *p, int node, struct err *e);

static enum err_code pack_entry(struct pack *p, int dir, const char *name, struct err *e)
{
    size_t before = p->path.n;
    fd_auto node = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (node < 0)
        return errno == ENOENT ? ERR_OK : err_sys(e, errno, "open %s/%s", p->path.p, name);
    buf_addf(&p->path, "%s%s", before > 0 && p->path.p[before - 1] == '/' ? "" : "/", name);
    if (p->path.failed)
        return err_set(e, ERR_INVALID, "a path of more than %d bytes", NAME_MAX_BYTES);
    if (pack_node(p, node, e) == ERR_OK) {
        p->path.n = before;
        p->path.p[before] = '\0';
    }
    return e->code;
}

static enum err_code pack_folder(struct pack *p, int node, const struct stat *st, struct err *e)
{
    int fd = reopen(node, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (dir == NULL) {
        err_sys(e, errno, "open %s", p->path.p);
        if (fd >= 0)
            close(fd);
        return e->code;
    }
    if (++p->depth > DEPTH_MAX)
        err_set(e, ERR_INVALID, "%s: folders are nested more than %d deep", p->path.p, DEPTH_MAX);
    else
        ERR_IGNORE(put_head(p, st, NULL, e));
    while (e->code == ERR_OK && (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ERR_IGNORE(pack_entry(p, dirfd(dir), entry->d_name, e));
    p->depth--;
    closedir(dir);
    return e->code;
}

static enum err_code pack_link(const struct pack *p, int node, const struct stat *st, struct err *e)
{
    char target[NAME_MAX_BYTES + 1];
    ssize_t n = readlinkat(node, "", target, sizeof(target) - 1);

    if (n < 0)
        return err_sys(e, errno, "read the link %s", p->path.p);
    target[n] = '\0';
    return put_head(p, st, target, e);
}

static enum err_code pack_node(struct pack *p, int node, struct err *e)
{
    struct stat st;

    if (fstat(node, &st) != 0)
        return err_sys(e, errno, "stat %s", p->path.p);
    if (S_ISREG(st.st_mode))
        return pack_file(p, node, &st, e);
    if (S_ISDIR(st.st_mode))
        return pack_folder(p, node, &st, e);
    if (S_ISLNK(st.st_mode))
        return pack_link(p, node, &st, e);
    if (p->depth == 0) /* it was the only entry to pack */
        return err_set(e, ERR_INVALID, "%s is neither a file, a folder nor a link", p->path.p);
    copy_pack_warn(p, "left out: neither a file, a folder nor a link");
    return ERR_OK;
}

enum err_code copy_pack(int node, const char *as, int out, const struct copy_options *o, struct err *e)
{
    struct pack p = { .out = archive_write_new(), .o = o, .path = BUF_INIT(NAME_MAX_BYTES) };

    buf_adds(&p.path, as);
    if (p.out == NULL)
        err_nomem(e);
    else if (archive_write_set_format_gnutar(p.out) != ARCHIVE_OK ||
             archive_write_open_fd(p.out, out) != ARCHIVE_OK)
        copy_pack_failed(&p, e);
    else if (pack_node(&p, node, e) == ERR_OK && archive_write_close(p.out) != ARCHIVE_OK)
        copy_pack_failed(&p, e);
    if (e->code != ERR_OK)
        archive_write_fail(p.out); /* do not write the end marker of a broken archive */
    archive_write_free(p.out);
    buf_done(&p.path);
    return e->code;
}
