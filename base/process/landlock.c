/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock for a child before exec: async-signal-safe calls only, as everywhere in spawn.c's child. */
#include "base/process/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE /* Linux 6.2 */
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#define FILE_RIGHTS                                                                                          \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |            \
     LANDLOCK_ACCESS_FS_EXECUTE)
#define READ_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE)
/* No devices, and no execution. */
#define WRITE_RIGHTS                                                                                         \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE |            \
     LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |          \
     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_FIFO |              \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)
#define HANDLED_RIGHTS                                                                                       \
    (WRITE_RIGHTS | READ_RIGHTS | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

int proc_landlock_version(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return version > 0 ? (int)version : 0;
}

static void landlock_allow(int ruleset, const char *const *paths, uint64_t rights)
{
    for (; paths != NULL && *paths != NULL; paths++) {
        struct landlock_path_beneath_attr rule = { .allowed_access = rights };
        struct stat st;

        rule.parent_fd = open(*paths, O_PATH | O_CLOEXEC);
        if (rule.parent_fd < 0)
            continue; /* paths that cannot be opened stay forbidden */
        if (fstat(rule.parent_fd, &st) == 0) {
            if (!S_ISDIR(st.st_mode))
                rule.allowed_access &= FILE_RIGHTS;
            syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
        }
        close(rule.parent_fd);
    }
}

int child_landlock_ruleset(const char *const *read_paths, const char *const *write_paths, int *ret)
{
    const int version = proc_landlock_version();
    const uint64_t known = version >= 3 ? ~0ULL : ~(uint64_t)LANDLOCK_ACCESS_FS_TRUNCATE;
    struct landlock_ruleset_attr attr = { .handled_access_fs = HANDLED_RIGHTS & known };

    *ret = -1;
    if (version < PROC_LANDLOCK_MIN)
        return 0;
    *ret = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (*ret < 0)
        return errno;
    landlock_allow(*ret, read_paths, READ_RIGHTS & known);
    landlock_allow(*ret, write_paths, WRITE_RIGHTS & known);
    return 0;
}

int child_landlock_enter(int ruleset)
{
    if (ruleset < 0)
        return 0;
    return syscall(SYS_landlock_restrict_self, ruleset, 0) == 0 ? 0 : errno;
}
