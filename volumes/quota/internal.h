/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of volumes/quota. */
#ifndef VOLUMES_QUOTA_INTERNAL_H
#define VOLUMES_QUOTA_INTERNAL_H
#include "base/list.h"
#include "volumes/quota/projects.h"
#include "volumes/quota/quota.h"
#include "volumes/quota/quota_warn.h"

#include <stddef.h>

/* One request about projects to the kernel; 0 or an errno. Tests have their own. */
typedef int (*quota_call_fn)(const struct quota_fs *f, int command, uint32_t id, void *data);

struct quota_fs {
    int fd;
    dev_t device;
    const char *type;
    char identity[64];
    char *source; /* the block device, for quotactl(2) */
    quota_call_fn call;
    _Atomic bool enforces, warns;
};

/* ---- quota_call.c ---- */
int quota_call_fd(const struct quota_fs *f, int command, uint32_t id, void *data);
int quota_call_device(const struct quota_fs *f, int command, uint32_t id, void *data);
bool quota_call_fd_exists(void);
/* Sets f->source: the path of the block device that is mounted. */
enum err_code quota_find_device(struct quota_fs *f, struct err *e) MUST_CHECK;
/* The errno of a file system that has no quotas of projects, or not any more. */
bool quota_is_off(int sys);

/* ---- quota_message.c ---- */
/* Calls fn for each warning in a datagram. False: it has something else, or is damaged. */
bool quota_message_read(const void *data, size_t n, unsigned family,
                        void (*fn)(const struct quota_warning *w, void *arg), void *arg);

/* ---- replace.c ---- */
/* Replaces a file by a new one that is synced, so that it is the old or the new one after a loss of power,
 * and with sync_folder the new one. Its temporary file has one name, so that a killed writer leaves at most
 * one. One writer at a time. *ret_replaced may be true with an error: the folder could not be synced. */
enum err_code quota_replace_file(const char *path, const char *text, size_t n, mode_t mode, bool sync_folder,
                                 bool *ret_replaced, struct err *e) MUST_CHECK;
/* Removes leftovers of a killed writer. */
void quota_replace_clean(const char *path);

struct project_entry {
    struct project x;
    char *tree;        /* its path, also when it is released */
    bool loaded;       /* read from the table, and not taken since */
    bool freeing;      /* nothing uses it: it is about to leave files and table */
    bool fresh;        /* of the call that is under way */
    bool reserved;     /* released, and about to be used */
    UT_hash_handle hh; /* by id */
    UT_hash_handle by_path;
};

struct projects {
    char *state_file, *projects_file, *projid_file;
    struct project_entry *ids, *paths; /* paths: those that are not released */
    uint32_t next;                     /* where the search for a free id begins */
    bool files_due;                    /* the files of /etc may differ from the table */
};

#define PROJECT_ID_MAX INT32_MAX /* some programs read ids as signed numbers */

/* ---- projects_table.c: in memory ---- */
/* Adds one; NULL: out of memory. Id, and path unless released, are new; texts fit. */
struct project_entry *projects_add(struct projects *p, uint32_t id, const char *owner, const char *tree,
                                   const char *fs, bool released);
void projects_remove(struct projects *p, struct project_entry *x);
void projects_mark_released(struct projects *p, struct project_entry *x);
struct project_entry *projects_entry(const struct projects *p, const char *path); /* NULL: none */
void projects_clear(struct projects *p);
/* Absolute, bounded, and one line in /etc/projects. */
/* Gives a released one its tree. False: out of memory; it is released all the same. */
bool projects_set_tree(struct projects *p, struct project_entry *x, const char *owner, const char *tree);
enum err_code projects_check_path(const char *path, struct err *e) MUST_CHECK;

/* ---- projects.c ---- */
struct etc_files;
/* *ret is NULL if the files are not kept. */
enum err_code projects_lock_files(const struct projects *p, struct etc_files **ret, struct err *e) MUST_CHECK;
/* Makes the files agree with the table, without entries that are `freeing`. */
enum err_code projects_write_files(struct projects *p, struct etc_files *f, struct err *e) MUST_CHECK;

/* ---- projects_file.c ---- */
/* The table's text; ERR_INVALID, ERR_EXHAUSTED: it is damaged, and p has a part of it. */
enum err_code projects_parse(struct projects *p, const char *text, size_t n, struct err *e) MUST_CHECK;
/* Reads the file; absent is an empty table. A damaged one is set aside, and *ret_damaged is set. */
enum err_code projects_load(struct projects *p, bool *ret_damaged, struct err *e) MUST_CHECK;
enum err_code projects_save(const struct projects *p, struct err *e) MUST_CHECK;
#endif
