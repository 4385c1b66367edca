/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs - files and paths, on directory descriptors; O_CLOEXEC always.
 *
 * Where somebody outside influences a path, the *_beneath functions resolve it with openat2
 * (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS).  Blocking: loop thread only for our own tmpfs and state folder,
 * else the pool or a proc_call.
 */
#ifndef BASE_FS_H
#define BASE_FS_H
#include "base/buf.h"
#include "base/presence.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define FS_SMALL_MAX (64 * 1024) /* status and control files of ours, the kernel and conmon */

/* Whole content of a regular, /proc or cgroup file; ERR_EXHAUSTED past `max`; *ret is malloc'ed and
 * NUL-terminated. */
enum err_code fs_read_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_n /* may be NULL */,
                         struct err *e) MUST_CHECK;
enum err_code fs_read_fd(int fd, size_t max, char **ret, size_t *ret_n, struct err *e) MUST_CHECK;

/* ---- looks: present, absent, or unknown with *e set (base/presence.h) ------------------------ */
/* Whether `path` names something, itself even where it is a symlink; *ret (may be NULL) is set when present.
 */
struct presence fs_look_at(int dirfd, const char *path, struct stat *ret, struct err *e) MUST_CHECK;
/* fs_read_at() of a file that may be missing; *ret and *ret_n are set when present. */
struct presence fs_read_if_there(int dirfd, const char *path, size_t max, char **ret,
                                 size_t *ret_n /* may be NULL */, struct err *e) MUST_CHECK;
/*
 * Calls fn with the name of each entry of a folder but "." and "..", in no order.  The folder is read to its
 * end first: unless that went well fn is not called at all, so that what was not named is proven absent.  fn
 * may change the folder.  fn returns false to stop.  Absent: there is no such folder.
 */
struct presence fs_list(int dirfd, const char *path, bool (*fn)(const char *name, void *arg), void *arg,
                        struct err *e) MUST_CHECK;

int fs_write_all(int fd, const void *data, size_t n); /* 0, or an errno; a signal is no end */
/* One write() to an existing control file (cgroup, /proc/sys): "write <path>: ...". */
enum err_code fs_write_control(int dirfd, const char *path, const char *text, struct err *e) MUST_CHECK;

/* The one atomic replacement: temporary file in the same folder, mode exact, rename.  `sync`: fsync file and
 * folder. */
enum err_code fs_replace_at(int dirfd, const char *path, const void *data, size_t n, mode_t mode, bool sync,
                            struct err *e) MUST_CHECK;

/* mkdir -p; new folders get `mode` exactly (no umask); existing ones stay as they are. */
enum err_code fs_mkdirs(const char *path, mode_t mode, struct err *e) MUST_CHECK;
enum err_code fs_mkdirs_beneath(int root, const char *path, mode_t mode, struct err *e) MUST_CHECK;

/*
 * For a folder whose folders have nothing to do with each other and come and go: asks the file system to find
 * each a place of its own (FS_TOPDIR_FL, chattr +T; ext4), not beside all others, where it would look for
 * a free inode past all that were deleted lately (without a journal 8 ms of CPU for a folder of six files, not
 * 0.4, once some hundred came and went).  What cannot be asked stays as it is.
 */
void fs_spread_below(const char *path);

/* Opens `path` below `root` without leaving it.  The result is O_CLOEXEC. */
int fs_open_beneath(int root, const char *path, int flags, mode_t mode, struct err *e) MUST_CHECK;
/* Likewise, and not through a mount point: what is asked is the file system of `root`, which answers. */
int fs_open_on_mount(int root, const char *path, int flags, mode_t mode, struct err *e) MUST_CHECK;
/* As in a chroot: absolute symlinks and ".." resolve inside (container root file systems). */
int fs_open_in_root(int root, const char *path, int flags, mode_t mode, struct err *e) MUST_CHECK;
/* Likewise; a symlink anywhere in the path is ELOOP. */
int fs_open_in_root_plain(int root, const char *path, int flags, mode_t mode, struct err *e) MUST_CHECK;

/* Removes a tree; missing is success; refuses to enter or delete a mount point (ERR_PRECONDITION). */
enum err_code fs_remove_tree(int dirfd, const char *path, struct err *e) MUST_CHECK;
void fs_remove_quietly(int dirfd, const char *path); /* unlink/rmdir; failure other than ENOENT at debug */

/* "a/b/c" with no empty, "." or ".." element, relative, no element over 255, whole at most 4096 bytes. */
bool fs_path_is_safe(const char *path);
/* "b" of "a/b/"; "": it has none ("/", ".", ".."). */
void fs_base_name(const char *path, char ret[256]);
/* Both clean, and both relative or both absolute; all is below "". */
bool fs_path_is_at_or_below(const char *path, const char *above);
/* In place: "//a/./b/" becomes "a/b"; ".." stays.  The path. */
char *fs_path_clean(char *path);

/* ---- mounts --------------------------------------------------------------------------------- */
/* Calls fn for each line of /proc/self/mountinfo whose mount point is `prefix` or below it (NULL: all), in
 * file order. */
struct fs_mount {
    const char *point, *fstype, *source, *root, *options, *super_options; /* borrowed during fn */
    uint64_t id, parent;
    bool shared, slave;
};
enum err_code fs_each_mount(const char *prefix, bool (*fn)(const struct fs_mount *m, void *arg), void *arg,
                            struct err *e) MUST_CHECK;
/* The parser itself, on text (fuzzed): returns false when fn stopped it. */
bool fs_parse_mountinfo(char *text, const char *prefix, bool (*fn)(const struct fs_mount *m, void *arg),
                        void *arg);
/* Whether something is mounted right at `path`.  Absent also when there is no such path. */
struct presence fs_look_mountpoint(const char *path, struct err *e) MUST_CHECK;
/* Best effort: false also when it is not known.  Only where a wrong answer changes nothing that lasts. */
bool fs_is_mountpoint(const char *path);
/* Unmounts (MNT_DETACH) everything at or below prefix, deepest first.  May hang: in a proc_call for foreign
 * paths. */
enum err_code fs_unmount_below(const char *prefix, struct err *e) MUST_CHECK;

/* ---- ids ------------------------------------------------------------------------------------ */
void id_random_hex(char *ret, size_t digits); /* writes digits + NUL */
void id_random_uuid(char ret[37]);
#define ID_BOOT_SIZE 37
/* The kernel's id of this boot; "" when it has none.  Tries a few times; before the loop runs. */
enum err_code id_boot(char ret[ID_BOOT_SIZE], struct err *e) MUST_CHECK;
#endif
