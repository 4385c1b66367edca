/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/env/env_file.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct scan {
    const char *p, *end;
    size_t line;
};

static enum err_code env_file_bad(const struct scan *s, const char *what, struct err *e)
{
    return err_set(e, ERR_PRECONDITION, "line %zu: %s", s->line, what);
}

static void skip_blanks(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
        s->p++;
}

static void skip_line(struct scan *s)
{
    const char *newline = memchr(s->p, '\n', (size_t)(s->end - s->p));

    s->p = newline != NULL ? newline + 1 : s->end;
    s->line++;
}

/* NAME= ; *ret_n: the length of the name at *ret. */
static enum err_code read_name(struct scan *s, const char **ret, size_t *ret_n, struct err *e)
{
    const char *name = s->p;

    while (s->p < s->end && *s->p != '=') {
        if (*s->p < 0x20 || *s->p > 0x7e)
            return env_file_bad(s, "invalid environment variable format", e);
        s->p++;
    }
    if (s->p == s->end || s->p == name)
        return env_file_bad(s, "invalid environment variable format", e);
    if (s->p[-1] == ' ')
        return env_file_bad(s, "whitespace before '=' is not allowed", e);
    if (memchr(name, ' ', (size_t)(s->p - name)) != NULL)
        return env_file_bad(s, "invalid environment variable format", e);
    *ret = name;
    *ret_n = (size_t)(s->p++ - name);
    return ERR_OK;
}

static enum err_code read_value(struct scan *s, const char **ret, size_t *ret_n, struct err *e)
{
    const char *close;

    if (s->p == s->end || *s->p != '\'')
        return env_file_bad(s, "value must be enclosed in single quotes", e);
    s->p++;
    close = memchr(s->p, '\'', (size_t)(s->end - s->p));
    if (close == NULL)
        return env_file_bad(s, "the value's single quote is not closed", e);
    if (memchr(s->p, '\0', (size_t)(close - s->p)) != NULL)
        return env_file_bad(s, "the value contains a NUL byte", e);
    *ret = s->p;
    *ret_n = (size_t)(close - s->p);
    for (const char *p = s->p; p < close; p++)
        s->line += *p == '\n';
    s->p = close + 1;
    skip_blanks(s);
    if (s->p < s->end && *s->p != '\n' && !(*s->p == '#' && s->p > close + 1))
        return env_file_bad(s, "unexpected content after closing quote", e);
    return ERR_OK;
}

enum err_code env_file_find(const char *text, size_t n, const char *name, struct arena *a, char **ret,
                            struct err *e)
{
    struct scan s = { .p = text, .end = text + n, .line = 1 };

    *ret = NULL;
    while (s.p < s.end) {
        const char *found = NULL, *value = NULL;
        size_t found_n = 0, value_n = 0;

        skip_blanks(&s);
        if (s.p == s.end)
            break;
        if (*s.p != '\n' && *s.p != '#') {
            if (read_name(&s, &found, &found_n, e) != ERR_OK || read_value(&s, &value, &value_n, e) != ERR_OK)
                return e->code;
            if (found_n == strlen(name) && memcmp(found, name, found_n) == 0) {
                *ret = arena_strndup(a, value, value_n);
                return *ret != NULL ? ERR_OK : err_nomem(e);
            }
        }
        skip_line(&s);
    }
    return ERR_OK;
}

enum err_code env_file_read(const char *folder, const char *path, char **ret, size_t *ret_n, struct err *e)
{
    struct stat st;
    char self[64];
    fd_auto dir = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0)
        return errno == ENOENT ? err_set(e, ERR_NOT_FOUND, "the volume does not exist")
                               : err_sys(e, errno, "open %s", folder);
    /* First by path only: the container may have put a device there, and opening it could have effects. */
    fd_auto fd = fs_open_on_mount(dir, path, O_PATH, 0, e);
    if (fd < 0)
        return e->code;
    if (fstat(fd, &st) != 0)
        return err_sys(e, errno, "stat");
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_PRECONDITION, "it is not a regular file");
    if (st.st_size > ENV_FILE_MAX)
        return err_set(e, ERR_PRECONDITION, "it has %lld bytes, allowed are %d", (long long)st.st_size,
                       ENV_FILE_MAX);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    fd_auto again = open(self, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (again < 0)
        return err_sys(e, errno, "open");
    return fs_read_fd(again, ENV_FILE_MAX, ret, ret_n, e);
}
