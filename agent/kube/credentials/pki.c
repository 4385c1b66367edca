/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/credentials/pki.h"

#include "agent/kube/config/file.h"
#include "agent/kube/config/pem.h"
#include "base/buf.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAITING "kubelet-client.key.tmp"

static enum err_code put_file(int dir, const char *name, const char *text, mode_t mode, struct err *e)
{
    return fs_replace_at(dir, name, text, strlen(text), mode, true, e);
}

/* kubelet-client-2006-01-02-15-04-05.pem; the local time, as kubelet. */
static char *dated_name(const char *prefix)
{
    time_t now = time(NULL);
    struct tm tm;

    if (localtime_r(&now, &tm) == NULL)
        gmtime_r(&now, &tm);
    return str_printf("%s-%04d-%02d-%02d-%02d-%02d-%02d.pem", prefix, tm.tm_year + 1900, tm.tm_mon + 1,
                      tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* kubelet refuses a "current" that is no symlink; so do we, instead of losing its content. */
static enum err_code point_current(int dir, const char *cert_dir, const char *prefix, const char *name,
                                   struct err *e)
{
    str_auto current = str_printf("%s-current.pem", prefix);
    str_auto update = str_printf("%s-updated.pem", prefix);
    str_auto target = kube_path_join(cert_dir, name);
    struct stat st;

    if (current == NULL || update == NULL || target == NULL)
        return err_nomem(e);
    if (fstatat(dir, current, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode))
        return err_set(e, ERR_PRECONDITION, "%s/%s is not a symlink", cert_dir, current);
    if (unlinkat(dir, update, 0) != 0 && errno != ENOENT)
        return err_sys(e, errno, "remove %s/%s", cert_dir, update);
    if (symlinkat(target, dir, update) != 0)
        return err_sys(e, errno, "symlink %s/%s", cert_dir, update);
    if (renameat(dir, update, dir, current) != 0)
        return err_sys(e, errno, "rename %s/%s to %s", cert_dir, update, current);
    return fsync(dir) == 0 ? ERR_OK : err_sys(e, errno, "sync %s", cert_dir);
}

static enum err_code write_pair(int dir, const char *cert_dir, const char *prefix, const char *certificate,
                                const char *key, struct err *e)
{
    bool line = str_ends(certificate, "\n");
    str_auto name = dated_name(prefix);
    char *both = str_printf("%s%s%s", certificate, line ? "" : "\n", key);

    if (name == NULL || both == NULL)
        err_nomem(e);
    else if (put_file(dir, name, both, 0600, e) == ERR_OK)
        ERR_IGNORE(point_current(dir, cert_dir, prefix, name, e));
    kube_file_wipe(both, both != NULL ? strlen(both) : 0);
    return e->code;
}

static enum err_code check_pem(const char *certificate, const char *key, bool alone, struct err *e)
{
    if (key == NULL || strlen(key) > PKI_PEM_MAX || !pem_has_key(key))
        return err_set(e, ERR_INVALID, "its key is not a PEM private key");
    if (certificate == NULL && alone)
        return ERR_OK;
    if (certificate == NULL || strlen(certificate) > PKI_PEM_MAX || !pem_has_certificate(certificate))
        return err_set(e, ERR_INVALID, "it is not a PEM certificate");
    return ERR_OK;
}

static enum err_code write_usage(int dir, const char *cert_dir, const char *usage, const char *certificate,
                                 const char *key, struct err *e)
{
    if (certificate == NULL) /* check_pem(): of a client only */
        return put_file(dir, WAITING, key, 0600, e);
    if (strcmp(usage, "client") == 0) {
        if (write_pair(dir, cert_dir, "kubelet-client", certificate, key, e) == ERR_OK)
            fs_remove_quietly(dir, WAITING);
        return e->code;
    }
    if (strcmp(usage, "server") == 0)
        return write_pair(dir, cert_dir, "kubelet-server", certificate, key, e);
    /* The key first: kubelet makes a new pair where one of the two cannot be read. */
    if (put_file(dir, "kubelet.key", key, 0600, e) != ERR_OK)
        return e->code;
    return put_file(dir, "kubelet.crt", certificate, 0644, e);
}

static const char *pki_given(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

enum err_code pki_write(const char *cert_dir, const char *usage, const char *certificate, const char *key,
                        struct err *e)
{
    bool known = str_eq(usage, "client") || str_eq(usage, "server") || str_eq(usage, "self-signed");
    fd_auto dir = -1;

    certificate = pki_given(certificate);
    key = pki_given(key);
    if (!known)
        return err_set(e, ERR_INVALID, "certificate: unknown usage \"%.40s\"", usage != NULL ? usage : "");
    if (check_pem(certificate, key, strcmp(usage, "client") == 0, e) != ERR_OK || key == NULL)
        return err_wrap(e, "%s certificate", usage);
    if (fs_mkdirs(cert_dir, 0755, e) != ERR_OK)
        return e->code;
    dir = open(cert_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, errno, "open %s", cert_dir);
    if (write_usage(dir, cert_dir, usage, certificate, key, e) != ERR_OK)
        return err_wrap(e, "write %s certificate in %s", usage, cert_dir);
    return ERR_OK;
}

char *pki_waiting_key(const char *cert_dir)
{
    str_auto path = str_printf("%s/" WAITING, cert_dir);
    char *text = NULL;
    size_t n = 0;

    if (path == NULL || kube_file_read(path, PKI_PEM_MAX, &text, &n, ERR_IGNORED) != ERR_OK)
        return NULL;
    if (strlen(text) == n && pem_has_key(text))
        return text;
    kube_file_wipe(text, n);
    return NULL;
}

static enum err_code read_pem(const char *path, bool (*is)(const char *text), char **ret, struct err *e)
{
    size_t n = 0;

    if (kube_file_read(path, PKI_PEM_MAX, ret, &n, e) != ERR_OK)
        return e->code;
    if (strlen(*ret) == n && is(*ret))
        return ERR_OK;
    kube_file_wipe(take_ptr(ret), n);
    return err_set(e, ERR_INVALID, "%s: failed to find any PEM data in it", path);
}

enum err_code pki_read_serving(const char *cert_dir, const char *cert_file, const char *key_file, bool rotate,
                               char **ret_certificate, char **ret_key, struct err *e)
{
    bool given = pki_given(cert_file) != NULL && pki_given(key_file) != NULL;
    str_auto current = str_printf("%s/kubelet-server-current.pem", cert_dir);
    str_auto certificate = given ? strdup(cert_file) : str_printf("%s/kubelet.crt", cert_dir);
    str_auto key = given ? strdup(key_file) : str_printf("%s/kubelet.key", cert_dir);
    bool rotated = !given && rotate && current != NULL && access(current, F_OK) == 0;
    char *pem = NULL;

    if (current == NULL || certificate == NULL || key == NULL)
        return err_nomem(e);
    if (read_pem(rotated ? current : certificate, pem_has_certificate, &pem, e) != ERR_OK)
        return e->code;
    if (read_pem(rotated ? current : key, pem_has_key, ret_key, e) != ERR_OK) {
        free(pem);
        return e->code;
    }
    *ret_certificate = pem;
    return ERR_OK;
}
