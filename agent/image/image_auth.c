/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

const char *img_job_reference(const struct img_job *j, char full[IMG_NAME_MAX])
{
    const char *given = j->source + strlen("docker://");

    return img_normalise(given, full, ERR_IGNORED) == ERR_OK ? full
                                                             /* skopeo will reject it with its own message */
                                                             : given;
}

void img_auth_repository(const char *reference, char ret[IMG_NAME_MAX])
{
    snprintf(ret, IMG_NAME_MAX, "%.*s", (int)img_repository(reference), reference);
}

/* ---- on the pool ---- */

/* A node without a usable auth file still pulls images that need no password of the node. *unknown: a
 * shortage or disk error; the next try may succeed. */
static char *read_node_file(const char *path, bool *unknown, struct err *e)
{
    char *text = NULL;

    if (path == NULL || fs_read_at(AT_FDCWD, path, REG_AUTH_MAX, &text, NULL, e) == ERR_OK)
        return text;
    if (e->sys == ENOENT || e->sys == ENOTDIR)
        *e = (struct err){ 0 };
    *unknown = err_is_shortage(e) || e->sys == EIO;
    return NULL;
}

static void wipe(char *text)
{
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* The providers' answers may exceed the limit together with the other sources; the pull then continues
 * without them. */
static enum err_code plan_provided(struct img_job *j, const char *node, const char *repository, struct err *e)
{
    const unsigned char *key = j->store->proof_key;
    struct err bad = { 0 };

    if (j->provided != NULL) {
        if (reg_tries_plan(&j->tries, j->auth, node, j->provided, repository, key, &bad) == ERR_OK)
            return ERR_OK;
        log_warn("cannot use the credentials of image credential providers; pulling the image without them",
                 F_STR("image", repository), F_ERR(&bad));
    }
    return reg_tries_plan(&j->tries, j->auth, node, NULL, repository, key, e);
}

static enum err_code image_auth_plan(void *arg, struct err *e)
{
    struct img_job *j = arg;
    const unsigned char *key = j->store->proof_key;
    struct err node_error = { 0 };
    char full[IMG_NAME_MAX], repository[IMG_NAME_MAX];
    bool unknown = false;
    char *node = read_node_file(j->store->auth_file, &unknown, &node_error);

    if (unknown) {
        *e = node_error;
        e->code = ERR_UNAVAILABLE;
        return err_wrap(e, "registry credentials of the node");
    }
    img_auth_repository(img_job_reference(j, full), repository);
    if (node != NULL && reg_tries_plan(&j->tries, NULL, node, NULL, repository, key, &node_error) != ERR_OK) {
        wipe(node);
        node = NULL;
    }
    reg_tries_done(&j->tries);
    if (node_error.code != ERR_OK)
        log_warn("cannot read the node's registry credentials; pulling images without them",
                 F_STR("file", j->store->auth_file), F_ERR(&node_error));
    ERR_IGNORE(plan_provided(j, node, repository, e));
    wipe(node);
    return e->code == ERR_OK ? img_user_plan(j, e) : e->code;
}

/* ---- providers ---- */

void img_auth_go_on(struct img_job *j)
{
    j->store->aside -= j->aside != IMG_NOT_ASIDE;
    j->aside = IMG_NOT_ASIDE;
    work_start(&j->work, "registry credentials", j->key, image_auth_plan, j, j->store->loop, j->auth_done, j);
}

static void on_provided(struct provider_ask *a)
{
    struct img_job *j = container_of(a, struct img_job, ask);

    if (a->configs != NULL)
        j->provided = json_text(a->configs);
    provider_ask_done(a);
    if (j->aside == IMG_ASKS && !j->cancelled && !j->over_limit && !img_has_slot(j->store))
        j->aside = IMG_ASKED;
    else
        img_auth_go_on(j);
}

void img_auth_start(struct img_job *j, op_done_fn done)
{
    char full[IMG_NAME_MAX];

    j->auth_done = done;
    if (j->store->providers == NULL) {
        on_provided(&j->ask);
        return;
    }
    img_auth_repository(img_job_reference(j, full), j->repository);
    j->ask_options = (struct provider_ask_options){ .loop = j->store->loop,
                                                    .repository = j->repository,
                                                    .cgroup_fd = j->store->ops_cgroup_fd,
                                                    .cgroup_procs = j->store->ops_cgroup_procs,
                                                    .done = on_provided };
    if (j->store->aside < j->store->max_parallel) {
        j->store->aside++;
        j->aside = IMG_ASKS;
    }
    provider_ask_start(&j->ask, j->store->providers, &j->ask_options);
}

void img_auth_forget(struct img_job *j)
{
    wipe(take_ptr(&j->provided));
    provider_ask_done(&j->ask);
}

/* ---- the file for skopeo ---- */

static enum err_code make_home(struct img_job *j, struct err *e)
{
    if (j->auth_home != NULL)
        return ERR_OK;
    j->auth_home = str_printf("%s/auth-%s", j->store->tmpfs_dir, j->tmp);
    if (j->auth_home == NULL)
        return err_nomem(e);
    return fs_mkdirs(j->auth_home, 0700, e) == ERR_OK ? img_user_give(j, j->auth_home, e) : e->code;
}

enum err_code img_auth_write(struct img_job *j, struct err *e)
{
    const char *folder = j->store->tmpfs_dir, *text = j->tries.v[j->attempt];

    if (text == NULL)
        return ERR_OK;
    if (folder == NULL)
        return err_set(e, ERR_PRECONDITION, "there is no tmpfs for registry credentials");
    if (j->auth_path == NULL)
        j->auth_path = str_printf("%s/auth-%s.json", folder, j->tmp);
    if (j->auth_path == NULL)
        return err_nomem(e);
    if (make_home(j, e) != ERR_OK)
        return err_wrap(e, "registry credentials");
    if (fs_replace_at(AT_FDCWD, j->auth_path, text, strlen(text), 0600, false, e) != ERR_OK)
        return e->code;
    return img_user_give(j, j->auth_path, e);
}

bool img_auth_next(struct img_job *j, const struct err *refused)
{
    /* Registries hide images without access, so "not found" may mean "access denied". */
    if (refused->code != ERR_UNAUTHENTICATED && refused->code != ERR_NOT_FOUND)
        return false;
    if (j->attempt + 1 >= j->tries.n)
        return false;
    j->attempt++;
    return true;
}

/* "Secret default/bad, the node, image credential providers" */
static void add_tried(const struct reg_tries *t, struct buf *b)
{
    for (size_t i = 0; i < t->n_secrets; i++) {
        buf_adds(b, i > 0 ? ", " : "");
        if (t->whose[i] != NULL)
            buf_addf(b, "Secret %s/%s", json_str(t->whose[i], "namespace"), json_str(t->whose[i], "name"));
        else
            buf_adds(b, "a Secret");
    }
    if (t->n_node > t->n_secrets)
        buf_addf(b, "%sthe node", b->n > 0 ? ", " : "");
    if (t->n_own > t->n_node)
        buf_addf(b, "%simage credential providers", b->n > 0 ? ", " : "");
}

/* Adds the error of a provider that failed, which may be the cause. */
static void add_problem(const struct img_job *j, struct err *refused)
{
    const struct err was = *refused;

    if (j->ask.problem.code != ERR_OK)
        err_set(refused, was.code, "%.300s; %.200s", was.text, j->ask.problem.text);
}

void img_auth_add_source(const struct img_job *j, struct err *refused)
{
    const struct err was = *refused;
    buf_auto tried = BUF_INIT(64 * 1024);

    if (refused->code == ERR_NOT_FOUND)
        add_problem(j, refused);
    if (refused->code != ERR_UNAUTHENTICATED)
        return;
    add_tried(&j->tries, &tried);
    if (tried.n == 0)
        err_set(refused, was.code, "%.380s (no credentials for %.80s are given)", was.text,
                j->host != NULL ? j->host : "it");
    else
        err_set(refused, was.code, "%.330s (refused with the credentials of %.120s)", was.text, tried.p);
    add_problem(j, refused);
}

static void remove_left(int dir, const char *name)
{
    struct err e = { 0 };

    if (fs_remove_tree(dir, name, &e) != ERR_OK)
        log_warn("cannot remove used registry credentials", F_STR("file", name), F_ERR(&e));
}

void img_auth_remove(struct img_job *j)
{
    if (j->auth_path != NULL)
        fs_remove_quietly(AT_FDCWD, j->auth_path);
    if (j->auth_home != NULL)
        remove_left(AT_FDCWD, j->auth_home);
    free(take_ptr(&j->auth_path));
    free(take_ptr(&j->auth_home));
}

static bool remove_left_of_agent(const char *name, void *arg)
{
    const int *folder = arg;

    if (str_starts(name, "auth-") || str_starts(name, ".auth-"))
        remove_left(*folder, name);
    return true;
}

void img_auth_clean(const struct img_store *s)
{
    fd_auto folder = s->tmpfs_dir == NULL ? -1 : open(s->tmpfs_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e = { 0 };
    struct presence found;

    if (s->tmpfs_dir == NULL)
        return;
    if (folder < 0) {
        err_sys(&e, errno, "open %s", s->tmpfs_dir);
        found = presence_from_err(&e);
    } else {
        found = fs_list(folder, ".", remove_left_of_agent, &folder, &e);
    }
    if (presence_is_unknown(found))
        log_warn("cannot list the folder of registry credentials; some of an earlier run may be left",
                 F_STR("folder", s->tmpfs_dir), F_ERR(&e));
}
