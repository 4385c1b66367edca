/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define TRIES 50
#define PAUSE_US 20000

enum err_code file_lock(int fd, pid_t *ret_holder, struct err *e)
{
    bool writes = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;

    *ret_holder = 0;
    for (int tries = 0;; tries++) {
        struct flock mine = { .l_type = writes ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET }, other = mine;

        if (fcntl(fd, F_SETLK, &mine) == 0)
            return ERR_OK;
        if (errno != EACCES && errno != EAGAIN)
            return err_sys(e, errno, "lock");
        if (tries < TRIES) {
            usleep(PAUSE_US);
            continue;
        }
        if (fcntl(fd, F_GETLK, &other) == 0 && other.l_type != F_UNLCK)
            *ret_holder = other.l_pid;
        return err_set(e, ERR_EXISTS, "locked");
    }
}
