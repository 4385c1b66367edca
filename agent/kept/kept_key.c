/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_key - the key: in a file of root, or unsealed by the TPM. systemd-creds is a child with a deadline,
 * because a TPM may hang. Once known, the key stays in memory, as the Secrets do.
 */
#include "agent/kept/internal.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#define CREDS_NAME "--name=coracle-kept" /* authenticated by systemd-creds with the sealed data */
#define CREDS_STDERR 200

static void key_answer(struct kept *k, bool ok)
{
    void (*then)(struct kept *, bool) = k->key_then;

    k->key_then = NULL;
    then(k, ok);
}

static void key_got(struct kept *k)
{
    k->have_key = true;
    free(take_ptr(&k->key_trouble));
    key_answer(k, true);
}

static void key_failed(struct kept *k, const struct err *e)
{
    if (e->code != ERR_CANCELLED)
        kept_trouble(&k->key_trouble, "there is no key to keep Secrets on the disk", e);
    key_answer(k, false);
}

/* ---- the files, on the pool ---- */

static char *key_path(const struct kept *k, const char *file)
{
    return str_printf("%s/%s", k->o.dir, file);
}

/* The result is in k->look, because the loop may show the present state meanwhile. */
enum err_code kept_key_look(struct kept *k, struct err *e)
{
    str_auto plain = key_path(k, KEPT_KEY_FILE);
    str_auto tpm = key_path(k, KEPT_TPM_FILE);
    struct kept_look *l = &k->look;
    str_auto text = NULL;
    struct presence there;
    size_t n = 0;

    *l = (struct kept_look){ 0 };
    if (plain == NULL || tpm == NULL)
        return err_nomem(e);
    there = fs_read_if_there(AT_FDCWD, tpm, KEPT_TPM_MAX, &l->tpm, &l->tpm_n, e);
    if (presence_is_unknown(there))
        return e->code;
    if (!presence_is_absent(there)) {
        l->seal = KEPT_SEAL_TPM;
        return ERR_OK;
    }
    there = fs_read_if_there(AT_FDCWD, plain, FS_SMALL_MAX, &text, &n, e);
    if (presence_is_unknown(there))
        return e->code;
    l->seal = text != NULL && n == BATCH_KEY_SIZE ? KEPT_SEAL_ROOT : KEPT_SEAL_NONE;
    if (l->seal == KEPT_SEAL_ROOT)
        memcpy(l->key, text, BATCH_KEY_SIZE);
    if (text != NULL)
        explicit_bzero(text, n);
    return ERR_OK;
}

void kept_key_looked(struct kept *k)
{
    struct kept_look *l = &k->look;

    if (!k->have_key && l->seal != KEPT_SEAL_UNKNOWN) {
        k->seal = l->seal;
        k->have_key = l->seal == KEPT_SEAL_ROOT;
        memcpy(k->key, l->key, sizeof(k->key));
        buf_reset(&k->tpm);
        if (l->tpm != NULL)
            buf_add(&k->tpm, l->tpm, l->tpm_n);
    }
    free(l->tpm);
    explicit_bzero(l, sizeof(*l));
}

/* Writes the key durably before data is sealed with it. */
static enum err_code key_write(void *kept, struct err *e)
{
    struct kept *k = kept;
    bool tpm = k->seal == KEPT_SEAL_TPM;
    str_auto path = key_path(k, tpm ? KEPT_TPM_FILE : KEPT_KEY_FILE);
    str_auto other = key_path(k, tpm ? KEPT_KEY_FILE : KEPT_TPM_FILE);

    if (path == NULL || other == NULL)
        return err_nomem(e);
    if (fs_mkdirs(k->o.dir, 0700, e) != ERR_OK ||
        fs_replace_at(AT_FDCWD, path, tpm ? (const void *)k->tpm.p : k->key, tpm ? k->tpm.n : sizeof(k->key),
                      0600, true, e) != ERR_OK)
        return e->code;
    if (unlink(other) != 0 && errno != ENOENT) /* otherwise the next start would use that file as the key */
        return err_sys(e, errno, "remove %s", other);
    return ERR_OK;
}

/* Seals objects of an older key again, as far as their text is known. */
static void key_all_again(struct kept *k)
{
    struct kept_entry *t, *tmp;

    HASH_ITER (hh, k->entries, t, tmp)
        if (t->sealed && !t->dropped) {
            t->hash = 0;
            t->dirty = true;
            t->due_ms = clock_mono_ms() + KEPT_FIRST_MS;
        }
}

static void key_on_written(struct op *op, const struct err *result)
{
    struct kept *k = op->owner;

    if (result->code == ERR_OK) {
        key_all_again(k);
        log_info("a key was made to keep Secrets on the disk",
                 F_STR("sealed", k->seal == KEPT_SEAL_TPM ? "by the TPM" : "readable for root only"));
        key_got(k);
        return;
    }
    k->seal = KEPT_SEAL_NONE;
    key_failed(k, result);
}

static void key_keep(struct kept *k, enum kept_seal seal)
{
    k->seal = seal;
    work_start(&k->work, "write a key", NULL, key_write, k, k->o.loop, key_on_written, k);
}

/* ---- systemd-creds ---- */

static void creds_start(struct kept *k, const char *const *argv, const void *data, size_t n, op_done_fn done)
{
    const struct proc_spec spec = { .name = "systemd-creds",
                                    .subject = argv[1],
                                    .argv = argv,
                                    .stdin_data = data,
                                    .stdin_size = n,
                                    .stdout_max = KEPT_TPM_MAX,
                                    .cgroup_fd = k->o.cgroup_fd,
                                    .cgroup_procs = k->o.cgroup_procs,
                                    .deadline_ms = KEPT_CREDS_MS };

    proc_start(&k->proc, &spec, k->o.loop, done, k);
}

static void key_make(struct kept *k);

static void creds_on_decrypted(struct op *op, const struct err *result)
{
    struct kept *k = op->owner;
    struct err e = *result;

    if (e.code == ERR_OK && k->proc.out.n != BATCH_KEY_SIZE)
        err_set(&e, ERR_DATA_LOSS, "systemd-creds returned %zu bytes instead of a key", k->proc.out.n);
    if (e.code == ERR_OK) {
        memcpy(k->key, k->proc.out.p, BATCH_KEY_SIZE);
        explicit_bzero(k->proc.out.p, k->proc.out.n);
        k->key_anew = false;
        key_got(k);
        return;
    }
    explicit_bzero(k->proc.out.p, k->proc.out.n);
    if (k->key_anew && e.code != ERR_CANCELLED) {
        k->key_anew = false;
        log_warn("the TPM does not release the key; creating a new one, and objects sealed with the old one "
                 "are lost",
                 F_ERR(&e));
        key_make(k);
        return;
    }
    err_wrap(&e, "the TPM does not give the key");
    key_failed(k, &e);
}

static void creds_decrypt(struct kept *k)
{
    const char *const argv[] = { k->o.systemd_creds, "decrypt", CREDS_NAME, "-", "-", NULL };

    creds_start(k, argv, k->tpm.p, k->tpm.n, creds_on_decrypted);
}

static void creds_on_encrypted(struct op *op, const struct err *result)
{
    struct kept *k = op->owner;
    struct err e = *result;

    if (e.code == ERR_OK && k->proc.out.n == 0)
        err_set(&e, ERR_INTERNAL, "systemd-creds returned nothing");
    if (e.code != ERR_OK) {
        err_wrap(&e, "the TPM does not seal a key");
        key_failed(k, &e);
        return;
    }
    buf_reset(&k->tpm);
    buf_add(&k->tpm, k->proc.out.p, k->proc.out.n);
    key_keep(k, KEPT_SEAL_TPM);
}

static void creds_on_has_tpm2(struct op *op, const struct err *result)
{
    struct kept *k = op->owner;
    const char *const argv[] = {
        k->o.systemd_creds, "encrypt", "--with-key=tpm2", CREDS_NAME, "-", "-", NULL
    };

    if (result->code == ERR_OK) {
        creds_start(k, argv, k->key, sizeof(k->key), creds_on_encrypted);
        return;
    }
    /* The exit status shows what is missing. Without an exit there is no information: there may be a TPM. */
    if (result->code == ERR_UNKNOWN && k->proc.exited && WIFEXITED(k->proc.status))
        key_keep(k, KEPT_SEAL_ROOT);
    else
        key_failed(k, result);
}

static void key_make(struct kept *k)
{
    const char *const argv[] = { k->o.systemd_creds, "has-tpm2", "--quiet", NULL };
    struct err e = { 0 };

    if (getrandom(k->key, sizeof(k->key), 0) != (ssize_t)sizeof(k->key)) {
        err_sys(&e, errno, "generate a key");
        key_failed(k, &e);
        return;
    }
    if (access(k->o.systemd_creds, X_OK) == 0)
        creds_start(k, argv, NULL, 0, creds_on_has_tpm2);
    else
        key_keep(k, KEPT_SEAL_ROOT);
}

static void key_missing(struct kept *k)
{
    struct err e = { 0 };

    err_set(&e, ERR_NOT_FOUND, "the file of the key is missing in %s", k->o.dir);
    key_failed(k, &e);
}

void kept_key_need(struct kept *k, bool make, void (*then)(struct kept *k, bool ok))
{
    k->key_then = then;
    k->key_anew = make;
    if (k->have_key) {
        key_answer(k, true);
    } else if (k->seal == KEPT_SEAL_TPM) {
        creds_decrypt(k);
    } else if (make && k->seal != KEPT_SEAL_UNKNOWN) {
        key_make(k);
    } else if (k->seal == KEPT_SEAL_NONE) {
        key_missing(k);
    } else {
        k->load_due = make; /* the key could not be read: the next attempt retries */
        key_answer(k, false);
    }
}
