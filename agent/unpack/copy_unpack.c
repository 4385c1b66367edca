/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/copy.h"
#include "agent/unpack/unpack.h"

#include "base/files/fs.h"
#include "base/utf8.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 64 * 1024, NAME_SIZE = 256, TEXT_MAX = 4096 };
enum { NAMES_TRIED = 100, BESIDE_SIZE = 48 }; /* temporary names of files that are being written */

struct unpack {
    int dir, in;
    const struct copy_options *o;
    struct archive *archive;
    bool ended; /* `in` has reached its end */
    char piece[PIECE];
    char content[PIECE];
    const char *name;    /* the entry's name */
    char top[NAME_SIZE]; /* the first element, which is renamed */
    bool below;          /* the archive holds ".": entries go below the new name */
};

/* ---- reading --------------------------------------------------------------------------------- */

static la_ssize_t read_piece(struct archive *a, void *arg, const void **ret)
{
    struct unpack *u = arg;
    ssize_t n;

    do
        n = read(u->in, u->piece, sizeof(u->piece));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        archive_set_error(a, errno, "read the archive");
    u->ended = n == 0;
    *ret = u->piece;
    return n;
}

static enum err_code read_failed(const struct unpack *u, struct err *e)
{
    const char *text = archive_error_string(u->archive);
    int sys = archive_errno(u->archive);

    if (sys == ENOMEM)
        return err_nomem(e);
    if (sys > 0 && sys != EILSEQ) /* libarchive sets EILSEQ when it does not recognise the format */
        return err_sys(e, sys, "read the archive");
    return text != NULL && str_starts(text, "Truncated")
               ? err_set(e, ERR_DATA_LOSS, "the archive is truncated")
               : err_set(e, ERR_INVALID, "this is not a tar archive, or it is damaged");
}

/* ---- the destination --------------------------------------------------------------------------- */

static void copy_unpack_warn(const struct unpack *u, const char *what)
{
    char text[TEXT_MAX];

    snprintf(text, sizeof(text), "%s: %s", u->name, what);
    text_printable(text); /* names may hold any byte, and warnings go to terminals */
    if (u->o->warn != NULL)
        u->o->warn(text, u->o->arg);
}

static bool is_dots(const char *s, size_t n)
{
    return (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.');
}

static enum err_code copy_unpack_enter(int *dir, const char *name, const struct unpack *u, struct err *e)
{
    int next;

    if (mkdirat(*dir, name, 0755) != 0 && errno != EEXIST)
        return err_sys(e, errno, "create %s", u->name);
    next = openat(*dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
        return err_sys(e, errno, "%s: open folder %s", u->name, name);
    close(*dir);
    *dir = next;
    return ERR_OK;
}

/* An archive whose first element is renamed must hold a single file or folder. */
static enum err_code rename_first(struct unpack *u, char last[NAME_SIZE], struct err *e)
{
    if (u->top[0] == '\0')
        snprintf(u->top, sizeof(u->top), "%s", last);
    if (strcmp(u->top, last) != 0)
        return err_set(
            e, ERR_INVALID,
            "the archive holds more than one file or folder (%s, %s): its destination must be a folder",
            u->top, last);
    snprintf(last, NAME_SIZE, "%s", u->o->rename);
    return ERR_OK;
}

/*
 * Opens the folder that receives the entry, and returns the last element of its name ("" for the destination
 * itself).  Each element is opened relative to the one before; links are refused.
 */
static enum err_code copy_unpack_walk(struct unpack *u, int *ret_dir, char last[NAME_SIZE], struct err *e)
{
    fd_auto dir = fcntl(u->dir, F_DUPFD_CLOEXEC, 3);
    const char *at = u->name;
    bool first = true;

    snprintf(last, NAME_SIZE, "%s", u->below ? u->o->rename : "");
    if (dir < 0)
        return err_sys(e, errno, "open the destination");
    if (at[0] == '/')
        return err_set(e, ERR_INVALID, "the archive has a name that begins with /: %s", at);
    while (*at != '\0') {
        size_t n = strcspn(at, "/");

        if (n >= NAME_SIZE)
            return err_set(e, ERR_INVALID, "the archive has a name that is too long: %s", at);
        if (n == 2 && is_dots(at, n))
            return err_set(e, ERR_INVALID, "the archive has a name with ..: %s", u->name);
        if (n > 0 && !is_dots(at, n)) {
            if (last[0] != '\0' && copy_unpack_enter(&dir, last, u, e) != ERR_OK)
                return e->code;
            snprintf(last, NAME_SIZE, "%.*s", (int)n, at);
            if (first && u->o->rename != NULL && !u->below && rename_first(u, last, e) != ERR_OK)
                return e->code;
            first = false;
        }
        at += n;
        at += strspn(at, "/");
    }
    *ret_dir = take_fd(&dir);
    return ERR_OK;
}

static void set_time(int fd, int64_t mtime)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = (time_t)mtime } };

    if (futimens(fd, times) != 0)
        return; /* ignored: the content matters more than its time */
}

/* Creates a file under an unused temporary name, in the folder of its final name. */
static int open_beside(int dir, char name[BESIDE_SIZE])
{
    int fd = -1;

    for (int i = 0; i < NAMES_TRIED && fd < 0; i++) {
        snprintf(name, BESIDE_SIZE, ".coracle-cp.%d.%d", (int)getpid(), i);
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

static enum err_code copy_unpack_fill(struct unpack *u, int fd, mode_t mode, int64_t mtime, struct err *e)
{
    la_ssize_t n;

    while ((n = archive_read_data(u->archive, u->content, sizeof(u->content))) > 0) {
        int sys = fs_write_all(fd, u->content, (size_t)n);

        if (sys != 0)
            return err_sys(e, sys, "write %s", u->name);
    }
    if (n < 0)
        return read_failed(u, e);
    if (fchmod(fd, mode) != 0)
        return err_sys(e, errno, "set permissions of %s", u->name);
    set_time(fd, mtime);
    return ERR_OK;
}

/* A file that has the name already stays unchanged until the new one is complete. */
static enum err_code copy_unpack_make_file(struct unpack *u, int dir, const char *last, mode_t mode,
                                           int64_t mtime, struct err *e)
{
    char beside[BESIDE_SIZE];
    fd_auto fd = open_beside(dir, beside);

    if (fd < 0)
        return err_sys(e, errno, "create %s", u->name);
    if (copy_unpack_fill(u, fd, mode, mtime, e) == ERR_OK && renameat(dir, beside, dir, last) != 0)
        err_sys(e, errno, "replace %s", u->name);
    if (e->code != ERR_OK)
        unlinkat(dir, beside, 0);
    return e->code;
}

static enum err_code copy_unpack_make_folder(struct unpack *u, int dir, const char *last, mode_t mode,
                                             struct err *e)
{
    fd_auto fd = -1;

    if (mkdirat(dir, last, 0700) != 0)
        return errno == EEXIST ? ERR_OK : err_sys(e, errno, "create %s", u->name);
    fd = openat(dir, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* Its owner may write, so that its entries can be created. */
    if (fd < 0 || fchmod(fd, mode | 0700) != 0)
        return err_sys(e, errno, "set permissions of %s", u->name);
    return ERR_OK;
}

static enum err_code copy_unpack_make_link(struct unpack *u, int dir, const char *last, const char *target,
                                           struct err *e)
{
    if (u->o->no_links) {
        copy_unpack_warn(u, "left out: a symbolic link");
        return ERR_OK;
    }
    if (unlinkat(dir, last, 0) != 0 && errno != ENOENT)
        return err_sys(e, errno, "replace %s", u->name);
    if (symlinkat(target != NULL ? target : "", dir, last) != 0)
        return err_sys(e, errno, "create the link %s", u->name);
    return ERR_OK;
}

static enum err_code make_entry(struct unpack *u, struct archive_entry *entry, struct err *e)
{
    const mode_t kind = archive_entry_filetype(entry), mode = archive_entry_perm(entry) & 0777;
    char last[NAME_SIZE];
    fd_auto dir = -1;

    u->name = archive_entry_pathname(entry);
    if (u->name == NULL)
        return err_set(e, ERR_INVALID, "the archive has an entry without a name");
    if (archive_entry_hardlink(entry) != NULL || (kind != AE_IFREG && kind != AE_IFDIR && kind != AE_IFLNK)) {
        copy_unpack_warn(u, "left out: neither a file, a folder nor a symbolic link");
        return ERR_OK;
    }
    if (copy_unpack_walk(u, &dir, last, e) != ERR_OK)
        return e->code;
    if (last[0] == '\0' && u->o->rename != NULL && u->top[0] == '\0' && kind == AE_IFDIR) {
        u->below = true;
        snprintf(last, sizeof(last), "%s", u->o->rename);
    }
    if (last[0] == '\0')
        return ERR_OK;
    if (kind == AE_IFREG)
        return copy_unpack_make_file(u, dir, last, mode, archive_entry_mtime(entry), e);
    return kind == AE_IFDIR ? copy_unpack_make_folder(u, dir, last, mode, e)
                            : copy_unpack_make_link(u, dir, last, archive_entry_symlink(entry), e);
}

/* ---- the archive ------------------------------------------------------------------------------- */

/* A file name is a single element other than "." and "..". */
static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < NAME_SIZE && !is_dots(name, n) && strchr(name, '/') == NULL;
}

static enum err_code copy_unpack_run(struct unpack *u, struct err *e)
{
    struct archive_entry *entry;
    int r;

    if (archive_read_support_format_tar(u->archive) != ARCHIVE_OK ||
        archive_read_support_format_empty(u->archive) != ARCHIVE_OK ||
        archive_read_open(u->archive, u, NULL, read_piece, NULL) != ARCHIVE_OK)
        return read_failed(u, e);
    while ((r = archive_read_next_header(u->archive, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN)
        if (make_entry(u, entry, e) != ERR_OK)
            return e->code;
    if (r != ARCHIVE_EOF)
        return read_failed(u, e);
    /* Read the padding that follows, so that the sender does not write into a closed pipe. */
    while (!u->ended && read(u->in, u->piece, sizeof(u->piece)) > 0)
        ;
    return ERR_OK;
}

enum err_code copy_unpack(int dir, int in, const struct copy_options *o, struct err *e)
{
    struct unpack *u;

    if (o->rename != NULL && !is_name(o->rename))
        return err_set(e, ERR_INVALID, "\"%s\" cannot be the name of a file or folder", o->rename);
    u = calloc(1, sizeof(*u));
    if (u == NULL)
        return err_nomem(e);
    u->dir = dir;
    u->in = in;
    u->o = o;
    u->archive = archive_read_new();
    if (u->archive == NULL)
        err_nomem(e);
    else
        copy_unpack_run(u, e);
    archive_read_free(u->archive);
    free(u);
    return e->code;
}
