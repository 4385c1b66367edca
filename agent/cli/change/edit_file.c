/* SPDX-License-Identifier: Apache-2.0 */
/* The file that `coracle edit` opens in the user's editor. It may contain a Secret, so no other user can read
 * it, and it is overwritten before it is removed. */
#include "agent/cli/change/internal.h"

#include "agent/api/manifest/decode.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int edit_file_make(struct cli *cli, struct edit_file *f, const char *text)
{
    struct err e = { 0 };

    if (f->path[0] == '\0') {
        const char *tmp = getenv("TMPDIR");

        if (tmp == NULL || tmp[0] != '/' || strlen(tmp) > 30)
            tmp = "/tmp";
        snprintf(f->dir, sizeof(f->dir), "%s/coracle-edit-XXXXXX", tmp);
        if (mkdtemp(f->dir) == NULL) {
            err_sys(&e, errno, "create a folder in %s", tmp);
            return cli_failed(cli, &e);
        }
        snprintf(f->path, sizeof(f->path), "%s/object.yaml", f->dir);
    }
    return fs_replace_at(AT_FDCWD, f->path, text, strlen(text), 0600, false, &e) == ERR_OK
               ? EXIT_OK
               : cli_failed(cli, &e);
}

static const char *editor_of(void)
{
    static const char *const names[] = { "KUBE_EDITOR", "VISUAL", "EDITOR" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (getenv(names[i]) != NULL && getenv(names[i])[0] != '\0')
            return getenv(names[i]);
    return "vi";
}

int edit_file_run(struct cli *cli, const struct edit_file *f)
{
    const char *editor = editor_of();
    str_auto command = str_printf("%s \"$1\"", editor);
    int status = 0;
    pid_t pid;

    if (command == NULL)
        return cli_error(cli, "out of memory");
    cli_flush(cli);
    fflush(cli->err);
    pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, "sh", f->path, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return EXIT_OK;
    return cli_error(cli, "there was a problem with the editor \"%s\": it %s%s", editor,
                     pid < 0                                           ? strerror(errno)
                     : WIFEXITED(status) && WEXITSTATUS(status) == 127 ? "was not found"
                                                                       : "failed",
                     pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127
                         ? " (set EDITOR to the name of one)"
                         : "; nothing is changed");
}

char *edit_file_read(struct cli *cli, const struct edit_file *f, size_t *ret_n)
{
    struct err e = { 0 };
    char *text = NULL, *from;

    if (fs_read_at(AT_FDCWD, f->path, API_FILE_MAX, &text, ret_n, &e) != ERR_OK) {
        cli_failed(cli, &e);
        return NULL;
    }
    for (from = text; str_starts(from, EDIT_COMMENT);) {
        const char *end = strchr(from, '\n');

        from = end != NULL ? text + (end + 1 - text) : from + strlen(from);
    }
    *ret_n -= (size_t)(from - text);
    memmove(text, from, *ret_n + 1);
    return text;
}

void edit_file_remove(const struct edit_file *f)
{
    struct stat st;
    int fd = f->path[0] != '\0' ? open(f->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC) : -1;

    if (fd >= 0 && fstat(fd, &st) == 0) {
        mem_auto char *zeros = calloc(1, (size_t)st.st_size + 1);

        if (zeros != NULL && fs_write_all(fd, zeros, (size_t)st.st_size) == 0)
            fdatasync(fd);
    }
    if (fd >= 0)
        close(fd);
    if (f->path[0] != '\0')
        unlink(f->path);
    if (f->dir[0] != '\0')
        rmdir(f->dir); /* stays, if the editor left something in it */
}
