/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/cache.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/files/damaged_file.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"
#include "cni/plugin/names.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define KIND "cniAttachment"
#define VERSION 1

static char *file_name(const struct cni_entry *entry)
{
    return str_printf("%s-%s-%s.json", entry->list.name, entry->container_id, entry->ifname);
}

enum err_code cni_cache_write(int dirfd, const struct cni_entry *entry, struct err *e)
{
    str_auto name = file_name(entry);
    str_auto text = NULL;
    json_auto_t *doc = json_pack("{s:s, s:i, s:b, s:s, s:s, s:s, s:s, s:s, s:O}", "kind", KIND, "version",
                                 VERSION, "complete", entry->complete, "containerId", entry->container_id,
                                 "ifName", entry->ifname, "networkName", entry->list.name, "netns",
                                 entry->netns, "cniArgs", entry->args, "config", entry->list.conf);

    if (name == NULL || doc == NULL)
        return err_nomem(e);
    if ((entry->capability_args != NULL &&
         json_object_set(doc, "capabilityArgs", entry->capability_args) < 0) ||
        (entry->result != NULL && json_object_set(doc, "result", entry->result) < 0) ||
        (entry->n_unrun > 0 &&
         json_object_set_new(doc, "unrun", json_integer((json_int_t)entry->n_unrun)) < 0) ||
        (entry->check != NULL && json_object_set_new(doc, "check", json_string(entry->check)) < 0) ||
        (entry->boot_id != NULL && !json_put_str(doc, "bootId", entry->boot_id)))
        return err_nomem(e);
    text = json_text(doc);
    if (text == NULL)
        return err_nomem(e);
    /* jansson could not read it again: 0.1 is written as 0.10000000000000001. */
    if (strlen(text) > CNI_CACHE_ENTRY_MAX)
        return err_set(e, ERR_EXHAUSTED, "CNI result cache: %zu bytes are more than the %d allowed",
                       strlen(text), CNI_CACHE_ENTRY_MAX);
    if (fs_replace_lazily_at(dirfd, name, text, strlen(text), 0600, e) != ERR_OK)
        return err_wrap(e, "CNI result cache");
    return ERR_OK;
}

enum err_code cni_cache_remove(int dirfd, const struct cni_entry *entry, struct err *e)
{
    str_auto name = file_name(entry);

    if (name == NULL)
        return err_nomem(e);
    if (unlinkat(dirfd, name, 0) != 0 && errno != ENOENT)
        return err_sys(e, errno, "CNI result cache: remove %s", name);
    return ERR_OK;
}

static enum err_code cache_decode(struct cni_entry *ret, json_t *doc, struct err *e)
{
    struct cni_entry entry = {
        .container_id = json_str(doc, "containerId"),
        .ifname = json_str(doc, "ifName"),
        .netns = json_str(doc, "netns"),
        .args = json_str(doc, "cniArgs"),
        .capability_args = json_object_get(doc, "capabilityArgs"),
        .result = json_object_get(doc, "result"),
        .check = json_str(doc, "check"),
        .boot_id = json_str(doc, "bootId"),
        .complete = json_flag(doc, "complete"),
    };
    json_int_t unrun;

    if (!str_eq(json_str(doc, "kind"), KIND) || !cni_name_ok(entry.container_id) ||
        !cni_ifname_ok(entry.ifname) || entry.netns == NULL || entry.args == NULL ||
        (entry.complete && !json_is_object(entry.result)))
        return err_set(e, ERR_DATA_LOSS, "not a cached attachment");
    if (json_int(doc, "version", VERSION) != VERSION)
        return err_set(e, ERR_DATA_LOSS, "version %lld is not %d", (long long)json_int(doc, "version", 0),
                       VERSION);
    if (cni_list_from_json(&entry.list, json_object_get(doc, "config"), e) != ERR_OK)
        return e->code;
    unrun = json_int(doc, "unrun", 0);
    if (unrun > 0 && unrun <= (json_int_t)cni_list_size(&entry.list))
        entry.n_unrun = (size_t)unrun;
    entry.doc = json_incref(doc);
    *ret = entry;
    return ERR_OK;
}

/* Whether the failure is temporary (no memory, no descriptor, disk error): it proves nothing about the file's
 * content. */
static bool is_for_now(const struct err *e)
{
    switch (e->sys) {
    case 0: /* read completely, but not an entry */
    case EISDIR:
    case ELOOP:
    case ENOENT: /* a dangling symlink */
    case ENXIO:
        return false;
    default:
        return true;
    }
}

/* Reads one file. An invalid file is set aside, an empty one removed. After a temporary failure
 * (is_for_now()) the file is kept. */
static enum err_code cache_read_entry(int dirfd, const char *name, struct cni_entry *ret, struct err *e)
{
    json_auto_t *doc = NULL;
    str_auto text = NULL;
    str_auto expected = NULL;
    size_t n;

    if (fs_read_at(dirfd, name, CNI_CACHE_ENTRY_MAX, &text, &n, e) == ERR_OK && n == 0) {
        log_info("removed an empty CNI result left by a power failure", F_STR("file", name));
        fs_remove_quietly(dirfd, name);
        return err_set(e, ERR_DATA_LOSS, "%s is empty", name);
    }
    if (e->code == ERR_OK && json_parse(text, n, CNI_CACHE_ENTRY_MAX, &doc, name, e) == ERR_OK &&
        cache_decode(ret, doc, e) == ERR_OK) {
        expected = file_name(ret);
        if (expected != NULL && strcmp(expected, name) == 0)
            return ERR_OK;
        cni_entry_done(ret);
        if (expected == NULL)
            return err_nomem(e);
        err_set(e, ERR_DATA_LOSS, "belongs to another file name");
    }
    if (!is_for_now(e)) {
        char away[DAMAGED_FILE_NAME_SIZE];
        struct err failed = { 0 };

        if (damaged_file_set_aside(dirfd, name, away, &failed) == ERR_OK)
            log_warn(
                "set aside a damaged CNI result; its attachment will be undone using the current network "
                "say now",
                F_STR("file", name), F_ERR(e));
        else if (failed.sys != ENOENT)
            log_error("cannot set aside a damaged CNI result", F_STR("file", name), F_ERR(&failed));
    }
    return e->code;
}

/* Other files of the folder have no two dashes. */
static bool is_entry_name(const char *name)
{
    const char *dash = strchr(name, '-');

    return name[0] != '.' && str_ends(name, ".json") && dash != NULL && strchr(dash + 1, '-') != NULL;
}

/* A temporary file of an agent killed between writing and renaming: ".<name>.json.<random>". */
static bool is_temporary(const char *name)
{
    return name[0] == '.' && strstr(name, ".json.") != NULL;
}

struct wanted_names {
    bool (*wanted)(const char *name);
    bool (*fn)(const char *name, void *arg);
    void *arg;
};

static bool visit_wanted(const char *name, void *arg)
{
    const struct wanted_names *w = arg;

    return !w->wanted(name) || w->fn(name, w->arg);
}

/* Calls fn for each wanted file name until it returns false. */
static enum err_code each_name(int dirfd, bool (*wanted)(const char *name),
                               bool (*fn)(const char *name, void *arg), void *arg, struct err *e)
{
    struct wanted_names w = { wanted, fn, arg };

    if (presence_is_unknown(fs_list(dirfd, ".", visit_wanted, &w, e)))
        return err_wrap(e, "CNI result cache");
    return ERR_OK;
}

static bool remove_temporary(const char *name, void *arg)
{
    fs_remove_quietly(*(int *)arg, name);
    return true;
}

int cni_cache_open(const char *path, struct err *e)
{
    fd_auto fd = -1;

    if (fs_mkdirs(path, 0700, e) != ERR_OK)
        return -1;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        err_sys(e, errno, "open %s", path);
        return -1;
    }
    if (each_name(fd, is_temporary, remove_temporary, &fd, e) != ERR_OK)
        return -1;
    return take_fd(&fd);
}

struct find {
    int dirfd;
    const char *suffix, *container_id, *ifname;
    struct cni_entry *ret;
    bool found;
    struct err failed;
};

static bool cache_find_one(const char *name, void *arg)
{
    struct find *f = arg;
    struct cni_entry entry;
    struct err e = { 0 };

    if (!str_ends(name, f->suffix))
        return true;
    if (cache_read_entry(f->dirfd, name, &entry, &e) != ERR_OK) {
        if (is_for_now(&e))
            f->failed = e;
        return f->failed.code == ERR_OK;
    }
    if (strcmp(entry.container_id, f->container_id) == 0 && strcmp(entry.ifname, f->ifname) == 0) {
        *f->ret = entry;
        f->found = true;
        return false;
    }
    cni_entry_done(&entry);
    return true;
}

enum err_code cni_cache_find(int dirfd, const char *container_id, const char *ifname, struct cni_entry *ret,
                             struct err *e)
{
    str_auto suffix = str_printf("-%s-%s.json", container_id, ifname);
    struct find f = {
        .dirfd = dirfd, .suffix = suffix, .container_id = container_id, .ifname = ifname, .ret = ret
    };

    if (suffix == NULL)
        return err_nomem(e);
    if (each_name(dirfd, is_entry_name, cache_find_one, &f, e) != ERR_OK)
        return e->code;
    if (f.failed.code != ERR_OK) {
        *e = f.failed;
        return e->code;
    }
    if (!f.found)
        return err_set(e, ERR_NOT_FOUND, "container %s: no cached attachment for %s", container_id, ifname);
    return ERR_OK;
}

enum err_code cni_cache_find_in(int dirfd, const char *network, const char *container_id, const char *ifname,
                                struct cni_entry *ret, struct err *e)
{
    const struct cni_entry wanted = { .list.name = network, .container_id = container_id, .ifname = ifname };
    str_auto name = file_name(&wanted);
    struct cni_entry entry;

    if (name == NULL)
        return err_nomem(e);
    if (faccessat(dirfd, name, F_OK, 0) != 0)
        return err_set(e, ERR_NOT_FOUND, "%s: no such entry", name);
    if (cache_read_entry(dirfd, name, &entry, e) != ERR_OK)
        return e->code;
    if (strcmp(entry.container_id, container_id) != 0 || strcmp(entry.ifname, ifname) != 0) {
        cni_entry_done(&entry);
        return err_set(e, ERR_NOT_FOUND, "%s: of another attachment", name);
    }
    *ret = entry;
    return ERR_OK;
}

struct each {
    int dirfd;
    bool (*fn)(const struct cni_entry *entry, void *arg);
    void *arg;
    struct err failed;
};

static bool visit(const char *name, void *arg)
{
    struct each *v = arg;
    struct cni_entry entry;
    struct err e = { 0 };
    bool more;

    if (cache_read_entry(v->dirfd, name, &entry, &e) != ERR_OK) {
        if (is_for_now(&e))
            v->failed = e;
        return v->failed.code == ERR_OK; /* otherwise set aside */
    }
    more = v->fn(&entry, v->arg);
    cni_entry_done(&entry);
    return more;
}

enum err_code cni_cache_each(int dirfd, bool (*fn)(const struct cni_entry *entry, void *arg), void *arg,
                             struct err *e)
{
    struct each v = { .dirfd = dirfd, .fn = fn, .arg = arg };

    if (each_name(dirfd, is_entry_name, visit, &v, e) == ERR_OK && v.failed.code != ERR_OK)
        *e = v.failed;
    return e->code;
}

static void note_some(const char *name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
}

bool cni_cache_lacks_some(int dirfd)
{
    bool some = false;
    struct err e = { 0 };

    return presence_is_unknown(damaged_file_look(dirfd, note_some, &some, &e)) || some;
}

void cni_entry_done(struct cni_entry *entry)
{
    cni_list_done(&entry->list);
    json_decref(entry->doc);
    *entry = (struct cni_entry){ 0 };
}
