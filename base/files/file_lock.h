/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_lock - a file that one process at a time can lock.
 *
 * The lock is released when the process ends. Children do not inherit it, not even a child that hangs between
 * clone and exec with a copy of every descriptor. That is why it is a POSIX record lock (fcntl(2)), with its
 * drawback: the process must never open the file a second time, because closing any descriptor of it releases
 * the lock.
 */
#ifndef BASE_FILES_FILE_LOCK_H
#define BASE_FILES_FILE_LOCK_H
#include "base/error.h"

#include <sys/types.h>

/* `fd` belongs to the caller. If it is open read-only, the lock is shared with other readers. Waits up to a
 * second for a holder that was just killed and is still exiting. ERR_EXISTS: *ret_holder is the holder (0 if
 * it is in a PID namespace we cannot see); the caller writes the error text. */
enum err_code file_lock(int fd, pid_t *ret_holder, struct err *e) MUST_CHECK;
#endif
