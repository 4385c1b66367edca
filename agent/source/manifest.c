/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/internal.h"

#include "base/clock.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* NULL for a regular file. */
static const char *what_else(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFDIR:
        return "a folder";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
}

static void cannot_read(struct manifest *m, int sys, const char *why)
{
    m->lacking = sys != ENOENT && sys != ENOTDIR && sys != ELOOP && sys != ENAMETOOLONG;
    api_problems_add(&m->problems, m->name, "cannot be read: %s", why);
}

static enum err_code note_target(struct manifest *m, const char *path, struct err *e)
{
    char link[PATH_MAX], real[PATH_MAX];
    const char *slash;
    ssize_t n;

    /* The final target; of a dangling link, its direct target. */
    if (realpath(path, real) == NULL) {
        n = readlink(path, link, sizeof(link) - 1);
        if (n < 0)
            return ERR_OK;
        link[n] = '\0';
        if (snprintf(real, sizeof(real), "%s%s%s", link[0] == '/' ? "" : m->dir, link[0] == '/' ? "" : "/",
                     link) >= (int)sizeof(real))
            return ERR_OK;
    }
    slash = strrchr(real, '/');
    m->target_dir = strndup(real, slash == real ? 1 : (size_t)(slash - real));
    m->target_name = strdup(slash + 1);
    return m->target_dir == NULL || m->target_name == NULL ? err_nomem(e) : ERR_OK;
}

static bool same_content(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static enum err_code read_and_decode(struct manifest *m, const char *path, struct err *e)
{
    struct err why = { 0 };
    struct stat before, after;
    str_auto text = NULL;
    enum err_code code;
    size_t n;
    fd_auto fd = -1;

    /* stat first, so that no FIFO or device is opened; and again on the descriptor, so that swapping is
     * detected. */
    if (stat(path, &before) < 0) {
        if (m->target_dir != NULL && (errno == ENOENT || errno == ENOTDIR))
            api_problems_add(&m->problems, m->name,
                             "is a symbolic link that leads nowhere: %s%s%s does not exist", m->target_dir,
                             str_eq(m->target_dir, "/") ? "" : "/", m->target_name);
        else
            cannot_read(m, errno, strerror(errno));
        return ERR_OK;
    }
    if (S_ISREG(before.st_mode)) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &before) < 0) {
            cannot_read(m, errno, strerror(errno));
            return ERR_OK;
        }
    }
    if (what_else(before.st_mode) != NULL) {
        api_problems_add(&m->problems, m->name, "is %s, not a file", what_else(before.st_mode));
        return ERR_OK;
    }
    if (before.st_size > API_FILE_MAX) {
        api_problems_add(&m->problems, m->name, "has %lld bytes, allowed are %d", (long long)before.st_size,
                         API_FILE_MAX);
        return ERR_OK;
    }
    if (fs_read_fd(fd, API_FILE_MAX, &text, &n, &why) != ERR_OK) {
        cannot_read(m, why.code == ERR_EXHAUSTED && why.sys == 0 ? ENOMEM : why.sys, why.text);
        return ERR_OK;
    }
    m->torn = fstat(fd, &after) < 0 || !same_content(&before, &after) || n != (size_t)before.st_size;
    code = m->torn ? ERR_OK : api_decode_static(m->name, text, n, m->node_name, &m->objects, &m->problems, e);
    explicit_bzero(text, n); /* Secrets */
    return code;
}

enum err_code manifest_read(void *arg, struct err *e)
{
    struct manifest *m = arg;
    char path[PATH_MAX];
    struct stat st;

    m->read_ns = clock_wall_ns();
    if (snprintf(path, sizeof(path), "%s/%s", m->dir, m->name) >= (int)sizeof(path)) {
        api_problems_add(&m->problems, m->name, "cannot be read: %s", strerror(ENAMETOOLONG));
        return ERR_OK;
    }
    if (lstat(path, &st) < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            m->missing = true;
        else
            cannot_read(m, errno, strerror(errno));
        return ERR_OK;
    }
    if (S_ISLNK(st.st_mode) && note_target(m, path, e) != ERR_OK)
        return e->code;
    return read_and_decode(m, path, e);
}

void manifest_done(struct manifest *m)
{
    api_objects_done(&m->objects);
    api_problems_done(&m->problems);
    free(m->target_dir);
    free(m->target_name);
    free(m->name);
    free(m->dir);
    *m = (struct manifest){ 0 };
}
