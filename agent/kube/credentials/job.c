/* SPDX-License-Identifier: Apache-2.0 */
/* job - the part of credentials that reads and writes files: on the pool. */
#include "agent/kube/config/file.h"
#include "agent/kube/config/write.h"
#include "agent/kube/credentials/internal.h"
#include "agent/kube/credentials/pki.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

void cred_load_done(struct cred_load *l)
{
    kube_message_done(&l->message);
    strs_done(&l->folders);
    strs_done(&l->bases);
}

static bool job_add_path(struct cred_load *l, const char *path)
{
    const char *slash = strrchr(path, '/');
    str_auto folder = slash == NULL || slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));

    return folder != NULL && strs_add_once(&l->folders, folder) &&
           strs_add_once(&l->bases, slash != NULL ? slash + 1 : path);
}

bool cred_watch_path(struct cred_load *l, const char *path)
{
    str_auto real = realpath(path, NULL);

    return job_add_path(l, path) && (real == NULL || job_add_path(l, real));
}

static bool job_add_watched(struct cred_load *l, const struct strs *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        if (!cred_watch_path(l, paths->v[i]))
            return false;
    return true;
}

/* ---- TLS bootstrap ---- */

static enum err_code job_read_bootstrap(const struct cred_names *names, char **ret_text, struct err *e)
{
    struct kube_ask ask = { .flags = { .kubeconfig = names->bootstrap } };
    struct kube_config all = { 0 };
    struct kube_choice choice = { 0 };
    str_auto pem = str_printf("%s/kubelet-client-current.pem", names->cert_dir);

    if (pem == NULL)
        return err_nomem(e);
    if (kube_config_load(&all, &ask, e) == ERR_OK &&
        kube_config_choose(&choice, &all, &ask.flags, e) == ERR_OK &&
        (*ret_text = kube_config_written(&choice, pem)) == NULL)
        err_nomem(e);
    kube_choice_done(&choice);
    kube_config_done(&all);
    return e->code;
}

enum err_code cred_write_kubeconfig(const struct cred_names *names, struct err *e)
{
    const char *slash = strrchr(names->kubeconfig, '/');
    str_auto folder = strndup(names->kubeconfig, slash != NULL ? (size_t)(slash - names->kubeconfig) : 0);
    str_auto text = NULL;
    str_auto there = NULL;
    size_t n = 0;

    if (folder == NULL)
        return err_nomem(e);
    if (job_read_bootstrap(names, &text, e) != ERR_OK || text == NULL)
        return err_wrap(e, "bootstrap kubeconfig");
    if (kube_file_read(names->kubeconfig, KUBE_FILE_MAX, &there, &n, ERR_IGNORED) == ERR_OK &&
        strcmp(there, text) == 0)
        return ERR_OK;
    if ((folder[0] != '\0' && fs_mkdirs(folder, 0755, e) != ERR_OK) ||
        fs_replace_at(AT_FDCWD, names->kubeconfig, text, strlen(text), 0600, true, e) != ERR_OK)
        return err_wrap(e, "write kubeconfig");
    return ERR_OK;
}

/* Includes a key whose certificate was requested before this agent started, so that coracle-kube repeats the
 * same request, which may have been approved by now. */
static enum err_code job_put_waiting_key(struct cred_load *l, struct err *e)
{
    char *key = pki_waiting_key(l->names->cert_dir);
    bool ok = json_object_set_new(l->message.json, "bootstrap", json_true()) == 0 &&
              (key == NULL || json_object_set_new(l->message.json, "waitingKey", json_string(key)) == 0);

    kube_file_wipe(key, key != NULL ? strlen(key) : 0);
    return ok ? ERR_OK : err_nomem(e);
}

static enum err_code load_bootstrap(struct cred_load *l, const struct err *why, struct err *e)
{
    struct strs before = { 0 };
    struct err failed = { 0 };
    bool ok = strs_copy(&before, &l->message.paths);

    if (kube_message_load(&l->message, l->names->bootstrap, l->names->environment, &failed) != ERR_OK) {
        err_wrap(&failed, "unable to load bootstrap kubeconfig");
        if (why->code != ERR_OK)
            err_set(e, failed.code, "%s (%s)", failed.text, why->text);
        else
            *e = failed;
    } else {
        l->bootstrap = true;
        if (job_put_waiting_key(l, e) == ERR_OK && l->names->rotate)
            ERR_IGNORE(cred_write_kubeconfig(l->names, e));
    }
    ok = ok && strs_copy(&l->message.paths, &before);
    strs_done(&before);
    return ok || e->code != ERR_OK ? e->code : err_nomem(e);
}

enum err_code cred_load_run(void *load, struct err *e)
{
    struct cred_load *l = load;
    struct err why = { 0 };

    if (kube_message_load(&l->message, l->names->kubeconfig, l->names->environment, &why) != ERR_OK ||
        l->want_bootstrap) {
        if (l->names->bootstrap != NULL)
            ERR_IGNORE(load_bootstrap(l, &why, e));
        else
            *e = why;
    }
    if (!job_add_watched(l, &l->message.paths) && e->code == ERR_OK)
        err_nomem(e);
    return e->code;
}
