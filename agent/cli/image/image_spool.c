/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary file that the daemon can open by its path, for an archive to or from a pipe. Archives may be
 * large, so it is in TMPDIR, by default on the disk; it is always removed. */
#include "agent/cli/image/internal.h"

#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *spooled; /* removed on a signal, too */

static void image_spool_on_signal(int signo)
{
    if (spooled != NULL)
        unlink(spooled);
    raise(signo); /* with the default action: SA_RESETHAND */
}

int cli_spool_open(struct cli *cli, const char **ret_path)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    const struct sigaction action = { .sa_handler = image_spool_on_signal, .sa_flags = (int)SA_RESETHAND };
    const char *dir = getenv("TMPDIR");
    int fd = -1;

    spooled = str_printf("%s/coracle-image.XXXXXX", dir != NULL && dir[0] == '/' ? dir : "/var/tmp");
    if (spooled != NULL)
        fd = mkostemp(spooled, O_CLOEXEC);
    if (fd < 0) {
        cli_error(cli, "make %s: %s", spooled != NULL ? spooled : "a file", strerror(errno));
        free(spooled);
        spooled = NULL;
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct sigaction before;

        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* ignored, as by nohup */
            sigaction(ends[i], &action, NULL);
    }
    *ret_path = spooled;
    return fd;
}

void cli_spool_close(int fd)
{
    char *path = spooled;

    unlink(path);
    spooled = NULL;
    free(path);
    close(fd);
}

/* ---- its content ---- */

enum err_code cli_spool_fill(int fd, int from, struct err *e)
{
    char piece[64 * 1024];
    ssize_t n;
    int sys;

    while ((n = read(from, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, errno, "read the archive");
        sys = fs_write_all(fd, piece, (size_t)n);
        if (sys != 0)
            return err_sys(e, sys, "write %s", spooled);
    }
    return ERR_OK;
}

enum err_code cli_spool_print(struct cli *cli, int fd, struct err *e)
{
    char piece[64 * 1024];
    ssize_t n;

    while ((n = read(fd, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, errno, "read %s", spooled);
        if (!cli_write(cli, piece, (size_t)n))
            break; /* cli_main() reports it if necessary */
    }
    return ERR_OK;
}
