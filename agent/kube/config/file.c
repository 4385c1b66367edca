/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/config/file.h"

#include "base/buf.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum err_code kube_file_read(const char *path, size_t max, char **ret, size_t *ret_n, struct err *e)
{
    fd_auto fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0)
        return err_sys(e, errno, "open %s", path);
    if (S_ISDIR(st.st_mode))
        return err_sys(e, EISDIR, "read %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "read %s: it is not a regular file", path);
    if (fs_read_fd(fd, max, ret, ret_n, e) == ERR_OK)
        return ERR_OK;
    if (e->sys != 0)
        return err_sys(e, e->sys, "read %s", path);
    return err_set(e, e->code, "read %s: more than %zu bytes", path, max);
}

void kube_file_wipe(char *text, size_t n)
{
    if (text != NULL)
        explicit_bzero(text, n);
    free(text);
}

char *kube_path_join(const char *base, const char *path)
{
    bool joined = path[0] != '/';
    char *all = str_printf("%s/%s", joined ? base : "", path);
    size_t n = 0; /* written, without a slash at the end */

    if (all == NULL)
        return NULL;
    for (const char *p = all; *p != '\0';) {
        size_t k;
        p += strspn(p, "/");
        k = strcspn(p, "/");
        if (k == 2 && p[0] == '.' && p[1] == '.') {
            while (n > 0 && all[--n] != '/')
                ;
        } else if (k > 0 && !(k == 1 && p[0] == '.')) {
            all[n++] = '/';
            memmove(all + n, p, k); /* never beyond the bytes that were read: a slash was there, too */
            n += k;
        }
        p += k;
    }
    if (n == 0)
        all[n++] = '/';
    all[n] = '\0';
    return all;
}
