/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs - files and paths, relative to directory descriptors; always O_CLOEXEC.
 *
 * Where a pod or another program can influence a path, use the *_beneath functions: they resolve it with
 * openat2 (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS). Blocking: on the loop thread only for our own tmpfs and
 * state folder, otherwise on the pool or in a proc_call.
 */
#ifndef BASE_FILES_FS_H
#define BASE_FILES_FS_H
#include "base/buf.h"
#include "base/presence.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define FS_SMALL_MAX (64 * 1024) /* for small status and control files: ours, the kernel's, conmon's */

/* Reads a whole regular, /proc or cgroup file; ERR_EXHAUSTED if longer than `max`; *ret is malloc'ed and
 * NUL-terminated. */
enum err_code fs_read_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_n /* may be NULL */,
                         struct err *e) MUST_CHECK;
enum err_code fs_read_fd(int fd, size_t max, char **ret, size_t *ret_n, struct err *e) MUST_CHECK;

/* ---- lookups: present, absent, or unknown with *e set (base/presence.h) ---- */
/* Whether `path` exists; a symlink is not followed. *ret (may be NULL) is set when present. */
struct presence fs_look_at(int dirfd, const char *path, struct stat *ret, struct err *e) MUST_CHECK;
/* Like fs_read_at(), for a file that may not exist; *ret and *ret_n are set when present. */
struct presence fs_read_if_there(int dirfd, const char *path, size_t max, char **ret,
                                 size_t *ret_n /* may be NULL */, struct err *e) MUST_CHECK;
/* Calls fn with the name of each entry of a folder except "." and "..", in no particular order. fn is called
 * only after the whole folder was read successfully, so a name it does not see is proven absent. fn may
 * change the folder, and returns false to stop. Absent: the folder does not exist. */
struct presence fs_list(int dirfd, const char *path, bool (*fn)(const char *name, void *arg), void *arg,
                        struct err *e) MUST_CHECK;

int fs_write_all(int fd, const void *data, size_t n); /* 0 or an errno; retries after signals */
/* One write() to an existing control file (cgroup, /proc/sys): "write <path>: ...". */
enum err_code fs_write_control(int dirfd, const char *path, const char *text, struct err *e) MUST_CHECK;

/* Atomically replaces a file: writes a temporary file with exactly this mode in the same folder and renames
 * it. `sync`: fsync the file and the folder. */
enum err_code fs_replace_at(int dirfd, const char *path, const void *data, size_t n, mode_t mode, bool sync,
                            struct err *e) MUST_CHECK;
/* The same without a sync, and without the one that ext4 adds: it writes a file's data at once when the file
 * replaces another one. For files that change several times a second, of which a power failure may leave an
 * empty one, as other file systems do. */
enum err_code fs_replace_lazily_at(int dirfd, const char *path, const void *data, size_t n, mode_t mode,
                                   struct err *e) MUST_CHECK;

/* mkdir -p; new folders get exactly `mode` (umask ignored); existing ones are left alone. */
enum err_code fs_mkdirs(const char *path, mode_t mode, struct err *e) MUST_CHECK;
enum err_code fs_mkdirs_beneath(int root, const char *path, mode_t mode, struct err *e) MUST_CHECK;

/* For a folder whose subfolders are unrelated and short-lived: asks the file system (FS_TOPDIR_FL, chattr +T;
 * ext4) to spread them instead of placing them together, where it would search for a free inode past all
 * recently deleted ones (without a journal 8 ms of CPU instead of 0.4 for a folder of six files, after some
 * hundred deletions). Best effort. */
void fs_spread_below(const char *path);

/* Opens `path` below `root` without leaving it.  The result is O_CLOEXEC. */
int fs_open_beneath(int root, const char *path, int flags, mode_t mode, struct err *e) MUST_CHECK;
/* The same, but does not cross a mount point, so that the answer comes from the file system of `root`. */
int fs_open_on_mount(int root, const char *path, int flags, mode_t mode, struct err *e) MUST_CHECK;
/* As in a chroot: absolute symlinks and ".." are resolved inside (container root file systems). */
int fs_open_in_root(int root, const char *path, int flags, mode_t mode, struct err *e) MUST_CHECK;
/* The same, but a symlink anywhere in the path fails with ELOOP. */
int fs_open_in_root_plain(int root, const char *path, int flags, mode_t mode, struct err *e) MUST_CHECK;

/* Removes a tree; success if it does not exist; refuses to enter or delete a mount point
 * (ERR_PRECONDITION). */
enum err_code fs_remove_tree(int dirfd, const char *path, struct err *e) MUST_CHECK;
/* unlink/rmdir; failures except ENOENT are logged at debug */
void fs_remove_quietly(int dirfd, const char *path);

/* Whether a path is relative, without empty, "." or ".." elements, elements of at most 255 bytes, 4096 in
 * total. */
bool fs_path_is_safe(const char *path);
/* "b" of "a/b/"; "" if there is none ("/", ".", ".."). */
void fs_base_name(const char *path, char ret[256]);
/* Both paths are clean, and both relative or both absolute; every path is below "". */
bool fs_path_is_at_or_below(const char *path, const char *above);
/* Cleans in place and returns path: "//a/./b/" becomes "a/b"; ".." stays. */
char *fs_path_clean(char *path);

/* ---- mounts ---- */
/* Calls fn for each line of /proc/self/mountinfo whose mount point is at or below `prefix` (NULL: all), in
 * file order. */
struct fs_mount {
    const char *point, *fstype, *source, *root, *options, *super_options; /* borrowed while fn runs */
    uint64_t id, parent;
    bool shared, slave;
};
enum err_code fs_each_mount(const char *prefix, bool (*fn)(const struct fs_mount *m, void *arg), void *arg,
                            struct err *e) MUST_CHECK;
/* The parser itself, exposed for fuzzing. Returns false if fn stopped it. */
bool fs_parse_mountinfo(char *text, const char *prefix, bool (*fn)(const struct fs_mount *m, void *arg),
                        void *arg);
/* Whether `path` is a mount point. Absent also when the path does not exist. */
struct presence fs_look_mountpoint(const char *path, struct err *e) MUST_CHECK;
/* Best effort: false also when unknown. Only for decisions without lasting effect. */
bool fs_is_mountpoint(const char *path);
/* Unmounts (MNT_DETACH) everything at or below prefix, deepest first. May hang: use a proc_call for foreign
 * paths. */
enum err_code fs_unmount_below(const char *prefix, struct err *e) MUST_CHECK;

/* ---- ids ---- */
void id_random_hex(char *ret, size_t digits); /* writes digits and a NUL */
void id_random_uuid(char ret[37]);
#define ID_BOOT_SIZE 37
/* The kernel's id of this boot, "" if there is none. Retries a few times; call it before the loop runs. */
enum err_code id_boot(char ret[ID_BOOT_SIZE], struct err *e) MUST_CHECK;
#endif
