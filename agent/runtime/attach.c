/* SPDX-License-Identifier: Apache-2.0 */
/* conmon's attach socket and its control fifo, both in the bundle (--full-attach). */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONTROL_RESIZE = 1 }; /* conmon: src/ctrl.c */

enum err_code rt_attach(struct rt *rt, const char *id, struct rt_attach *ret, struct err *e)
{
    struct rt_path dir = rt_container_dir(rt, id);
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    fd_auto folder = open(dir.s, O_PATH | O_DIRECTORY | O_CLOEXEC);
    fd_auto stream = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (folder < 0)
        return err_set(e, ERR_PRECONDITION, "container %.12s is not running", id);
    if (stream < 0)
        return err_sys(e, errno, "create a socket");
    /* By descriptor: the path may be too long for a socket address. */
    snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/attach", folder);
    if (connect(stream, (struct sockaddr *)&to, sizeof(to)) != 0)
        return errno == ENOENT || errno == ECONNREFUSED
                   ? err_set(e, ERR_PRECONDITION, "container %.12s is not running", id)
                   : err_sys(e, errno, "attach to container %.12s", id);
    ret->control = openat(folder, "ctl", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    ret->stream = take_fd(&stream);
    return ERR_OK;
}

void rt_attach_resize(int control, unsigned short rows, unsigned short columns)
{
    char text[40];
    int n = snprintf(text, sizeof(text), "%d %hu %hu\n", CONTROL_RESIZE, rows, columns);

    if (control >= 0 && write(control, text, (size_t)n) != n)
        return; /* conmon has ended or does not read: the terminal's size is unchanged */
}
