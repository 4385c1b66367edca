/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/plugin/networks.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/files/fs.h"
#include "base/scope.h"
#include "cni/plugin/names.h"
#include "cni/plugin/plugin.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct load {
    struct cni_networks *out;
    const char *conf_dir;
    const char *const *bin_dirs;
    const char *data_dir;
    struct cni_versions *versions;
    int dirfd;
};

static bool is_config_name(const char *name)
{
    return str_ends(name, ".conf") || str_ends(name, ".conflist") || str_ends(name, ".json");
}

static bool is_conf_name(const char *name)
{
    return str_ends(name, ".conf");
}

/* Sorted names of non-folders; empty for a missing folder. */
static enum err_code list_files(int dirfd, const char *path, bool (*wanted)(const char *name),
                                struct strs *ret, struct err *e)
{
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *d;
    struct stat st;

    if (dir == NULL) {
        int sys = errno;

        if (fd >= 0)
            close(fd);
        return sys == ENOENT || sys == ENOTDIR ? ERR_OK : err_sys(e, sys, "read the folder");
    }
    for (;;) {
        errno = 0;
        d = readdir(dir);
        if (d == NULL && errno != 0) /* an incomplete listing might have another first file */
            err_sys(e, errno, "read the folder");
        if (d == NULL)
            break;
        if (!wanted(d->d_name) || (fstatat(fd, d->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode)))
            continue;
        if (ret->n == CNI_FILES_MAX) {
            err_set(e, ERR_RANGE, "more than %d files", CNI_FILES_MAX);
            break;
        }
        if (!strs_add(ret, d->d_name)) {
            err_nomem(e);
            break;
        }
    }
    closedir(dir);
    strs_sort(ret);
    return e->code;
}

/* <folder>/<list name>/<any>.conf: more plugins of a list. */
static enum err_code append_folder(const struct load *l, struct cni_list *list, struct err *e)
{
    struct strs files = { 0 };
    struct stat st;

    if (fstatat(l->dirfd, list->name, &st, 0) != 0) {
        err_sys(e, errno, "folder %s", list->name);
        return presence_is_unknown(presence_from_err(e)) ? e->code : ERR_OK;
    }
    if (!S_ISDIR(st.st_mode))
        return ERR_OK;
    if (!strs_take(&l->out->folders, str_printf("%s/%s", l->conf_dir, list->name)))
        return err_nomem(e);
    if (list_files(l->dirfd, list->name, is_conf_name, &files, e) != ERR_OK)
        err_wrap(e, "folder %s", list->name);
    for (size_t i = 0; i < files.n && e->code == ERR_OK; i++) {
        str_auto path = str_printf("%s/%s", list->name, files.v[i]);
        str_auto text = NULL;
        size_t n;

        if (path == NULL)
            err_nomem(e);
        else if (fs_read_at(l->dirfd, path, CNI_CONF_MAX, &text, &n, e) != ERR_OK ||
                 cni_list_append(list, text, n, e) != ERR_OK)
            err_wrap(e, "%s", path);
    }
    strs_done(&files);
    return e->code;
}

static enum err_code networks_load_file(const struct load *l, const char *name, struct cni_list *ret,
                                        struct err *e)
{
    struct cni_list list = { 0 };
    str_auto text = NULL;
    bool more = false;
    size_t n;

    if (fs_read_at(l->dirfd, name, CNI_CONF_MAX, &text, &n, e) != ERR_OK)
        return e->code;
    if ((str_ends(name, ".conflist") ? cni_list_parse(&list, name, text, n, &more, e)
                                     : cni_list_parse_single(&list, name, text, n, e)) != ERR_OK)
        return e->code;
    if ((more && append_folder(l, &list, e) != ERR_OK) || cni_list_check(&list, l->data_dir, e) != ERR_OK) {
        cni_list_done(&list);
        return e->code;
    }
    *ret = list;
    return ERR_OK;
}

static enum err_code note_missing(const struct load *l, const char *type, struct strs *here, struct err *e)
{
    str_auto path = NULL;

    if (type == NULL)
        return ERR_OK;
    if (presence_is_unknown(cni_plugin_find(l->bin_dirs, type, &path, e)))
        return e->code;
    if (path != NULL && access(path, X_OK) != 0)
        return errno == EACCES
                   ? err_set(e, ERR_PERMISSION, "plugin \"%.60s\": %s is not executable", type, path)
                   : err_sys(e, errno, "stat plugin %s", path);
    if (path != NULL)
        return ERR_OK;
    return strs_add_once(here, type) && strs_add_once(&l->out->missing, type) ? ERR_OK : err_nomem(e);
}

/* All its plugins must be installed (CRI-O's rule), including IPAM plugins, which plugins call. */
static enum err_code check_installed(const struct load *l, const struct cni_list *list, struct err *e)
{
    struct strs here = { 0 };
    struct buf text = BUF_INIT(8192);

    for (size_t i = 0; i < cni_list_size(list) && e->code == ERR_OK; i++) {
        const json_t *plugin = cni_list_plugin(list, i);
        const char *bridge = cni_plugin_bridge(plugin);

        if (bridge != NULL && !strs_add_once(&l->out->bridges, bridge))
            err_nomem(e);
        else if (note_missing(l, cni_plugin_type(plugin), &here, e) == ERR_OK)
            note_missing(l, cni_plugin_ipam_type(plugin), &here, e);
    }
    if (e->code == ERR_OK && here.n > 0) {
        for (size_t i = 0; i < here.n; i++) {
            str_auto other = NULL;

            if (presence_is_unknown(cni_plugin_find_other(l->bin_dirs, here.v[i], &other, ERR_IGNORED)))
                other = NULL; /* it is only needed for the message */
            buf_addf(&text, "%s\"%.60s\"", i > 0 ? ", " : "", here.v[i]);
            if (other != NULL)
                buf_addf(&text, " (%s is not a file)", other);
        }
        buf_adds(&text, " in path [");
        for (size_t i = 0; l->bin_dirs[i] != NULL; i++)
            buf_addf(&text, "%s%s", i > 0 ? ":" : "", l->bin_dirs[i]);
        err_set(e, ERR_NOT_FOUND, "network \"%s\": failed to find plugin %s]", list->name, text.p);
    }
    buf_done(&text);
    strs_done(&here);
    return e->code;
}

/* ---- versions ---- */

/* NULL: unknown. */
static struct cni_speaker *speaker_of(const struct load *l, const char *type)
{
    str_auto path = NULL;
    struct err e = { 0 };

    return !presence_is_unknown(cni_plugin_find(l->bin_dirs, type, &path, &e)) && path != NULL
               ? cni_versions_of(l->versions, path)
               : NULL;
}

static bool all_may_speak(const struct load *l, const struct cni_list *list, int version)
{
    for (size_t i = 0; i < cni_list_size(list); i++)
        if (!cni_speaker_may_speak(speaker_of(l, cni_plugin_type(cni_list_plugin(list, i))), version))
            return false;
    return true;
}

/* Chooses the highest version of the list supported by all its plugins, as far as known. */
static enum err_code negotiate(const struct load *l, struct cni_list *list, struct err *e)
{
    char said[100];

    if (l->versions == NULL)
        return ERR_OK;
    for (size_t i = 0; i < cni_list_size(list); i++) {
        const char *type = cni_plugin_type(cni_list_plugin(list, i));
        const struct cni_speaker *s = speaker_of(l, type);

        if (s != NULL && !s->asking && (s->state == SPEAKER_UNASKED || s->again) &&
            !strs_add_once(&l->out->unasked, type))
            return err_nomem(e);
        if (s != NULL && s->state == SPEAKER_BROKEN)
            return err_set(e, ERR_PRECONDITION, "network \"%s\": %s", list->name, s->why.text);
    }
    for (size_t v = 0; v < list->n_versions; v++)
        if (all_may_speak(l, list, list->versions[v]))
            return cni_list_choose(list, list->versions[v], e);
    for (size_t i = 0; i < cni_list_size(list); i++) {
        const char *type = cni_plugin_type(cni_list_plugin(list, i));
        const struct cni_speaker *s = speaker_of(l, type);

        if (cni_speaker_may_speak(s, list->versions[0]))
            continue;
        cni_speaker_text(s, said, sizeof(said));
        return err_set(e, ERR_PRECONDITION,
                       "network \"%s\": plugin \"%s\" does not speak cniVersion %s%s (it speaks %s)",
                       list->name, type, cni_version_text(list->versions[0]),
                       list->n_versions > 1 ? " or a lower one that all do" : "", said);
    }
    return ERR_OK; /* the information changed meanwhile */
}

static enum err_code check_name_is_new(const struct load *l, const struct cni_list *list, struct err *e)
{
    for (size_t i = 0; i < l->out->n; i++) {
        if (strcmp(l->out->lists[i].name, list->name) == 0)
            return err_set(e, ERR_EXISTS, "network \"%s\" is already defined in an earlier file", list->name);
    }
    return ERR_OK;
}

/* Takes ownership of *list. */
static enum err_code networks_keep(struct cni_networks *out, struct cni_list *list, struct err *e)
{
    if (!array_room(out->lists, out->n)) {
        cni_list_done(list);
        return err_nomem(e);
    }
    out->lists[out->n++] = *list;
    return ERR_OK;
}

/* A failure to read a file that exists: its content is unknown. */
static bool networks_is_not_seen(const struct err *e)
{
    return e->sys != 0 && e->sys != ENOENT && e->sys != ENOTDIR && e->sys != EISDIR && e->sys != ELOOP;
}

static enum err_code networks_load_all(const struct load *l, const struct strs *files, struct err *e)
{
    for (size_t i = 0; i < files->n; i++) {
        struct cni_list list = { 0 };
        struct err bad = { 0 };

        if (networks_load_file(l, files->v[i], &list, &bad) == ERR_OK &&
            check_name_is_new(l, &list, &bad) == ERR_OK && check_installed(l, &list, &bad) == ERR_OK &&
            negotiate(l, &list, &bad) == ERR_OK) {
            if (networks_keep(l->out, &list, e) != ERR_OK)
                return e->code;
            continue;
        }
        cni_list_done(&list);
        if (networks_is_not_seen(&bad)) { /* the network that it defines may be the first of all */
            *e = bad;
            return err_wrap(e, "%s", files->v[i]);
        }
        if (!strs_take(&l->out->problems, str_printf("%s: %s", files->v[i], bad.text)))
            return err_nomem(e);
    }
    return ERR_OK;
}

static enum err_code set_reason(struct cni_networks *out, const char *conf_dir, struct err *e)
{
    if (out->n > 0)
        return ERR_OK;
    if (out->problems.n > 0)
        out->why = str_printf("no usable CNI configuration in %s: %s%s", conf_dir, out->problems.v[0],
                              out->problems.n > 1 ? " (and more)" : "");
    else /* CRI-O's text, which users search for */
        out->why =
            str_printf("no CNI configuration file in %s. Has your network provider started?", conf_dir);
    return out->why != NULL ? ERR_OK : err_nomem(e);
}

enum err_code cni_networks_load(struct cni_networks *ret, const char *conf_dir, const char *const *bin_dirs,
                                const char *data_dir, struct cni_versions *versions, struct err *e)
{
    struct cni_networks out = { 0 };
    fd_auto dirfd = open(conf_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct load l = {
        .out = &out,
        .conf_dir = conf_dir,
        .bin_dirs = bin_dirs,
        .data_dir = data_dir,
        .versions = versions,
        .dirfd = dirfd,
    };
    struct strs files = { 0 };
    struct err bad = { 0 };
    enum err_code code = ERR_OK;

    if (dirfd < 0 && errno != ENOENT)
        err_sys(&bad, errno, "open %s", conf_dir);
    else if (dirfd >= 0)
        list_files(dirfd, ".", is_config_name, &files, &bad);
    if (bad.sys != 0 && bad.sys != ENOTDIR && bad.sys != ELOOP) { /* unknown: keep the previous state */
        strs_done(&files);
        *e = bad;
        return e->code;
    }
    if (bad.code != ERR_OK && !strs_add(&out.problems, bad.text))
        code = err_nomem(e);
    if (code == ERR_OK)
        code = networks_load_all(&l, &files, e);
    if (code == ERR_OK)
        code = set_reason(&out, conf_dir, e);
    strs_done(&files);
    if (code != ERR_OK) {
        cni_networks_done(&out);
        return code;
    }
    *ret = out;
    return ERR_OK;
}

void cni_networks_done(struct cni_networks *n)
{
    for (size_t i = 0; i < n->n; i++)
        cni_list_done(&n->lists[i]);
    free(n->lists);
    free(n->why);
    strs_done(&n->problems);
    strs_done(&n->missing);
    strs_done(&n->unasked);
    strs_done(&n->folders);
    strs_done(&n->bridges);
    *n = (struct cni_networks){ 0 };
}
