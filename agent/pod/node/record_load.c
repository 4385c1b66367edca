/* SPDX-License-Identifier: Apache-2.0 */
/* record_load - reads the records of an earlier agent, also damaged ones (see record.c). */
#include "agent/pod/node/record_load.h"
#include "agent/pod/record/record.h"

#include "base/codec/json.h"
#include "base/files/damaged_file.h"
#include "base/files/fs.h"
#include "base/files/patience.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* A temporary failure (no memory, disk error): the record is neither damaged nor gone, and its pod may be
 * running: it is read again, and then the start fails. */
static bool is_unknown(const struct err *e)
{
    switch (e->sys) {
    case 0: /* read completely, but not a record */
    case EISDIR:
    case ELOOP:
    case ENOENT:
    case ENOTDIR:
    case ENXIO:
        return false;
    default:
        return true;
    }
}

static enum err_code record_load_same_file(int dir, const char *a, const char *b, bool *ret, struct err *e)
{
    struct stat one, other;
    struct presence first = fs_look_at(dir, a, &one, e), second;

    *ret = false;
    if (presence_is_unknown(first))
        return e->code;
    second = fs_look_at(dir, b, &other, e);
    if (presence_is_unknown(second))
        return e->code;
    *ret = !presence_is_absent(first) && !presence_is_absent(second) && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
    return ERR_OK;
}

/* Moves it away. An empty file, as left by a power failure, is not worth keeping. */
static void put_away(int dir, const char *name, bool empty, const struct err *why)
{
    char away[DAMAGED_FILE_NAME_SIZE];
    struct err failed = { 0 };

    if (empty) {
        log_info("removed an empty pod record left by a power failure", F_STR("record", name));
        fs_remove_quietly(dir, name);
        return;
    }
    log_error("set aside a damaged pod record", F_STR("record", name), F_ERR(why));
    if (damaged_file_set_aside(dir, name, away, &failed) != ERR_OK)
        log_error("cannot set aside a damaged record", F_STR("record", name), F_ERR(&failed));
}

/* For an unusable record, uses the previous version on disk, if any. *ret_taken. */
static enum err_code record_load_stand_in(struct node *n, int dir, const char *name, const char *synced,
                                          bool *ret_taken, struct err *e)
{
    str_auto text = NULL;
    size_t size = 0;

    *ret_taken = fs_read_at(dir, synced, RECORD_MAX, &text, &size, e) == ERR_OK &&
                 record_read(n, name, text, size, false, e) == ERR_OK;
    if (is_unknown(e))
        return err_wrap(e, "pod record %s", synced);
    *e = (struct err){ 0 };
    return ERR_OK;
}

static void keep_stand_in(int dir, const char *name, const char *synced, bool taken)
{
    if (taken) {
        if (linkat(dir, synced, dir, name, 0) != 0) /* until it is saved, with everything after it */
            log_warn("cannot restore a pod record", F_STR("record", name),
                     F_STR("err", strerrordesc_np(errno)));
        log_warn("using the previous version of a pod record", F_STR("record", name));
        return;
    }
    fs_remove_quietly(dir, synced);
    log_warn("no usable pod record; the pod will be started anew if its manifest exists",
             F_STR("record", name));
}

static enum err_code load_one(struct node *n, int dir, const char *name, struct err *e)
{
    str_auto text = NULL;
    str_auto synced = str_printf("%s.synced", name);
    struct err why = { 0 };
    size_t size = 0;
    bool same, taken = false;

    if (synced == NULL)
        return err_nomem(e);
    if (record_load_same_file(dir, name, synced, &same, e) != ERR_OK)
        return err_wrap(e, "pod record %s", name);
    if (fs_read_at(dir, name, RECORD_MAX, &text, &size, &why) == ERR_OK &&
        record_read(n, name, text, size, same, &why) == ERR_OK)
        return ERR_OK;
    if (is_unknown(&why)) {
        *e = why;
        return err_wrap(e, "pod record %s", name);
    }
    if (!same &&
        record_load_stand_in(n, dir, name, synced, &taken, e) != ERR_OK) /* before anything is moved */
        return e->code;
    put_away(dir, name, text != NULL && size == 0, &why);
    keep_stand_in(dir, name, synced, taken);
    return ERR_OK;
}

/* An interrupted write, or the second name of a removed record. */
static bool is_rubbish(int dir, const char *name)
{
    char first[256];

    if (name[0] == '.')
        return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    if (!str_ends(name, ".json.synced") || strlen(name) >= sizeof(first))
        return false;
    snprintf(first, sizeof(first), "%.*s", (int)(strlen(name) - strlen(".synced")), name);
    return faccessat(dir, first, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static bool record_load_add_name(const char *name, void *arg)
{
    buf_add(arg, name, strlen(name) + 1);
    return true;
}

/* The list is read first: files set aside or made meanwhile are ignored. */
static enum err_code record_load_list(const char *path, int *ret_dir, struct buf *names, struct err *e)
{
    struct patience patience = { 0 };
    struct presence found;

    *ret_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_dir < 0)
        return err_sys(e, errno, "open %s", path);
    do {
        *e = (struct err){ 0 };
        found = fs_list(*ret_dir, ".", record_load_add_name, names, e);
    } while (presence_is_unknown(found) && patience_wait(&patience));
    if (presence_is_unknown(found))
        return err_wrap(e, "%s", path);
    return buf_check(names, e);
}

/* ---- records that the disk did not take ---- */

/* A record's text and its number; below 0: it has none. Fails if that is unknown. */
static enum err_code read_numbered(int dir, const char *name, char **ret, size_t *ret_size,
                                   json_int_t *ret_number, struct err *e)
{
    json_auto_t *o = NULL;

    *ret_number = -1;
    if (fs_read_at(dir, name, RECORD_MAX, ret, ret_size, e) == ERR_OK &&
        json_parse(*ret, *ret_size, RECORD_MAX, &o, "pod record", e) == ERR_OK)
        *ret_number = json_int(o, "number", 0);
    if (is_unknown(e))
        return err_wrap(e, "pod record %s", name);
    *e = (struct err){ 0 };
    return ERR_OK;
}

static struct pod *pod_of(struct node *n, const char *name)
{
    str_auto uid = strndup(name, strlen(name) - strlen(".json"));

    return uid != NULL ? pods_by_uid(n, uid) : NULL;
}

/* The run folder's record, if it is newer; it is removed as soon as the disk accepts it. */
static enum err_code load_aside(struct node *n, int aside, int dir, const char *name, struct err *e)
{
    str_auto text = NULL;
    str_auto other = NULL;
    json_int_t number, others_number;
    size_t size = 0, others_size = 0;
    struct err why = { 0 };
    struct pod *p;

    if (read_numbered(aside, name, &text, &size, &number, e) != ERR_OK ||
        read_numbered(dir, name, &other, &others_size, &others_number, e) != ERR_OK)
        return e->code;
    if (number <= others_number) {
        fs_remove_quietly(aside, name);
        return ERR_OK;
    }
    if (record_read(n, name, text, size, false, &why) == ERR_OK) {
        p = pod_of(n, name);
        if (p == NULL)
            return err_nomem(e);
        record_is_aside(p);
        return ERR_OK;
    }
    if (is_unknown(&why)) {
        *e = why;
        return err_wrap(e, "pod record %s", name);
    }
    log_warn("cannot use a pod record in the run folder", F_STR("record", name), F_ERR(&why));
    fs_remove_quietly(aside, name);
    return ERR_OK;
}

/* `aside` below 0: the disk's. */
static enum err_code load_patiently(struct node *n, int aside, int dir, const char *name, struct err *e)
{
    struct patience patience = { 0 };
    enum err_code code;

    do {
        *e = (struct err){ 0 };
        code = aside >= 0 ? load_aside(n, aside, dir, name, e) : load_one(n, dir, name, e);
    } while (code != ERR_OK && patience_wait(&patience));
    return code;
}

static enum err_code load_all_aside(struct node *n, int dir, struct err *e)
{
    str_auto path = str_printf("%s/records", n->o.run_dir);
    buf_auto names = BUF_INIT(64u << 20);
    fd_auto aside = -1;

    if (path == NULL)
        return err_nomem(e);
    if (fs_mkdirs(path, 0700, e) != ERR_OK || record_load_list(path, &aside, &names, e) != ERR_OK)
        return e->code;
    for (const char *name = names.p; name < names.p + names.n; name += strlen(name) + 1) {
        if (is_rubbish(aside, name))
            unlinkat(aside, name, 0);
        else if (str_ends(name, ".json") && load_patiently(n, aside, dir, name, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

enum err_code record_load_all(struct node *n, struct err *e)
{
    str_auto path = str_printf("%s/pods", n->o.state_dir);
    buf_auto names = BUF_INIT(64u << 20);
    fd_auto dir = -1;

    if (path == NULL)
        return err_nomem(e);
    if (fs_mkdirs(path, 0700, e) != ERR_OK || record_load_list(path, &dir, &names, e) != ERR_OK ||
        load_all_aside(n, dir, e) != ERR_OK)
        return e->code;
    bool some_aside = n->n_pods > 0;

    for (const char *name = names.p; name < names.p + names.n; name += strlen(name) + 1) {
        if (is_rubbish(dir, name))
            unlinkat(dir, name, 0);
        else if (str_ends(name, ".json") && !(some_aside && pod_of(n, name) != NULL) &&
                 load_patiently(n, -1, dir, name, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}
