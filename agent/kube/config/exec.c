/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/config/exec.h"

#include "agent/api/yaml/yaml.h"
#include "agent/kube/config/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/process/env.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void kube_exec_done(struct kube_exec *x)
{
    strs_done(&x->argv);
    for (size_t i = 0; i < x->env.n; i++) /* values may be secret */
        explicit_bzero(x->env.v[i], strlen(x->env.v[i]));
    strs_done(&x->env);
    free(x->version);
    free(x->hint);
    *x = (struct kube_exec){ 0 };
}

/* ---- the program ---- */

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As exec.LookPath(), but a relative element of PATH is skipped: Go refuses a program that it finds there. */
static char *look_in_path(const char *name, const char *path)
{
    while (path != NULL && *path != '\0') {
        size_t n = strcspn(path, ":");
        str_auto found = path[0] == '/' ? str_printf("%.*s/%s", (int)n, path, name) : NULL;

        if (found != NULL && is_program(found))
            return take_ptr(&found);
        path += n + (path[n] == ':');
    }
    return NULL;
}

static char *hint_of(const json_t *exec)
{
    const char *text = json_str(exec, "installHint");
    char *hint = text != NULL ? strdup(text) : NULL;

    for (char *p = hint; p != NULL && *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return hint;
}

static enum err_code take_argv(struct kube_exec *x, const json_t *exec, const char *const *environment,
                               struct err *e)
{
    const char *command = json_str(exec, "command");
    str_auto found = command == NULL                ? NULL
                     : strchr(command, '/') != NULL ? strdup(command)
                                                    : look_in_path(command, kube_env(environment, "PATH"));
    json_t *arg;
    size_t i;

    if (found == NULL)
        return err_set(e, ERR_NOT_FOUND, "exec: executable %.100s not found in PATH%s%.300s",
                       command != NULL ? command : "", x->hint != NULL ? "; " : "",
                       x->hint != NULL ? x->hint : "");
    if (!strs_add(&x->argv, found))
        return err_nomem(e);
    json_array_foreach (json_object_get(exec, "args"), i, arg)
        if (!strs_add(&x->argv, json_string_value(arg)))
            return err_nomem(e);
    return ERR_OK;
}

/* ---- KUBERNETES_EXEC_INFO ---- */

/* The extension's content with sorted keys, as the real client has it after its way through a map. */
static json_t *config_of(const json_t *cluster)
{
    const json_t *config = json_object_get(json_object_get(cluster, "extensions"), KUBE_EXEC_EXTENSION);
    mem_auto char *text = config != NULL ? json_dumps(config, JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
    json_t *sorted = text != NULL ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;

    return sorted != NULL ? sorted : json_null();
}

static json_t *info_cluster(const json_t *cluster)
{
    static const char *const members[] = {
        "server",    "tls-server-name",    "insecure-skip-tls-verify", "certificate-authority-data",
        "proxy-url", "disable-compression"
    };
    json_t *out = json_object();
    bool ok = out != NULL;

    for (size_t i = 0; ok && i < ARRAY_LEN(members); i++) {
        json_t *v = json_object_get(cluster, members[i]);
        ok = v == NULL || json_object_set(out, members[i], v) == 0;
    }
    if (ok && json_object_set_new(out, "config", config_of(cluster)) == 0)
        return out;
    json_decref(out);
    return NULL;
}

static char *exec_info(const json_t *exec, const json_t *cluster)
{
    bool with = json_flag(exec, "provideClusterInfo");
    json_auto_t *info = json_pack("{s:s, s:s, s:{}}", "kind", "ExecCredential", "apiVersion",
                                  json_str(exec, "apiVersion"), "spec");
    json_t *spec = json_object_get(info, "spec");
    mem_auto char *text = NULL;

    if (spec == NULL || (with && json_object_set_new(spec, "cluster", info_cluster(cluster)) != 0) ||
        json_object_set_new(spec, "interactive", json_false()) != 0)
        return NULL;
    text = json_dumps(info, JSON_COMPACT);
    return text != NULL ? str_printf("KUBERNETES_EXEC_INFO=%s\n", text) : NULL;
}

/* ---- the environment ---- */

static bool take_env(struct kube_exec *x, const json_t *exec, const json_t *cluster,
                     const char *const *environment)
{
    json_t *pair;
    size_t i;

    if (!proc_env_inherit(&x->env, environment))
        return false;
    json_array_foreach (json_object_get(exec, "env"), i, pair) {
        const char *value = json_str(pair, "value");
        if (!proc_env_put(&x->env, str_printf("%s=%s", json_str(pair, "name"), value != NULL ? value : "")))
            return false;
    }
    return proc_env_put(&x->env, exec_info(exec, cluster));
}

enum err_code kube_exec_make(struct kube_exec *ret, const json_t *exec, const json_t *cluster,
                             const char *const *environment, struct err *e)
{
    struct kube_exec x = { .hint = hint_of(exec) };
    const char *version = json_str(exec, "apiVersion");

    if (take_argv(&x, exec, environment, e) == ERR_OK &&
        ((x.version = strdup(version != NULL ? version : "")) == NULL ||
         !take_env(&x, exec, cluster, environment)))
        err_nomem(e);
    if (e->code != ERR_OK) {
        kube_exec_done(&x);
        return e->code;
    }
    kube_exec_done(ret);
    *ret = x;
    return ERR_OK;
}
