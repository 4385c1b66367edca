/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept - a folder with the last content of objects of another server, for a start at which that server does
 * not answer. One file for each object (kept_file.h), replaced by rename and fsync, like other records.
 *
 * coracle-seal, a separate process for each batch, seals Secret objects: so the agent maps no cryptography,
 * and no process runs while nothing changes. The key is created at the first use. If `systemd-creds has-tpm2`
 * reports a TPM, the key is in `key.tpm`, sealed by systemd-creds with the TPM; otherwise in `key`, which
 * only root may read. If the TPM refuses the key, the sealed files are kept but unusable. When an object has
 * to be sealed, the agent tries the TPM again; if it still refuses, a new key is created, since the apiserver
 * has just sent the objects again.
 *
 * A change is written within KEPT_FIRST_MS; a further change of the same object within KEPT_AGAIN_MS. A
 * damaged file is set aside, logged and ignored. Nothing is read before kept_load(). Loop thread only.
 */
#ifndef AGENT_KEPT_KEPT_H
#define AGENT_KEPT_KEPT_H
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define KEPT_FIRST_MS 1000   /* simultaneous changes form one batch */
#define KEPT_AGAIN_MS 10000  /* per object: some objects change every second, and a disk wears out */
#define KEPT_FAILED_MS 60000 /* after a failure */
/* Deadline of systemd-creds: a TPM may take some seconds, and may hang. */
#define KEPT_CREDS_MS 30000
#define KEPT_SEAL_MS 30000
/* Maximum number of objects; further ones are not kept. A node with 110 pods has some hundred. */
#define KEPT_OBJECTS_MAX 16384

struct kept;

struct kept_options { /* texts are borrowed while it exists */
    uv_loop_t *loop;
    const char *dir;           /* created at the first use, 0700 */
    const char *program;       /* coracle-seal */
    const char *systemd_creds; /* its path; need not exist */
    int cgroup_fd;             /* for the children, as in base/process/process.h */
    const char *cgroup_procs;
    /* Called for each file after kept_load(). The text is borrowed. */
    void (*on_object)(const char *name, bool sealed, const char *text, size_t n, void *arg);
    void (*on_loaded)(void *arg); /* all files were read */
    /* Appends the present content of the object. False: unknown, and the file is unchanged. */
    bool (*content)(const char *name, struct buf *ret, void *arg);
    void *arg;
};

enum err_code kept_open(struct kept **ret, const struct kept_options *o, struct err *e) MUST_CHECK;
/* Reads the files; may be called again. */
void kept_load(struct kept *k);
/* Called when the result of content() for this name has changed. Names: kept_name_is_good(). */
void kept_changed(struct kept *k, const char *name, bool sealed);
/* The object is no longer needed: removes its file. */
void kept_drop(struct kept *k, const char *name);
/* Drops objects for which `wanted` is false; for files that were not read yet, after the read. */
void kept_sweep(struct kept *k, bool (*wanted)(const char *name, void *arg));
/* {"state", "detail"} for `coracle explain node`: the number of objects, and how they are sealed; new. */
struct json_t *kept_explain(const struct kept *k);

void kept_close(struct kept *k);      /* NULL is fine; the loop must run until it is not busy */
bool kept_busy(const struct kept *k); /* false for NULL */
void kept_free(struct kept *k);       /* NULL is fine */
#endif
