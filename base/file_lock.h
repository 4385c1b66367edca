/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_lock - a file that one process at a time holds.
 *
 * The lock goes with the process.  A child has no part in it, not even one that was cloned and hangs on its
 * way to exec with a copy of every descriptor.  For that it is a record lock of fcntl(2), with what comes
 * along: the process must never open the file a second time, as closing any descriptor of it lets go.
 */
#ifndef BASE_FILE_LOCK_H
#define BASE_FILE_LOCK_H
#include "base/error.h"

#include <sys/types.h>

/*
 * `fd` is the caller's; where it is open for reading only, others may hold it for reading, too.  Waits a
 * second for one that was just killed and is still on its way out of the kernel.  ERR_EXISTS: *ret_holder has
 * it (0: in a PID namespace that is not seen from here); the text is for the caller to write.
 */
enum err_code file_lock(int fd, pid_t *ret_holder, struct err *e) MUST_CHECK;
#endif
