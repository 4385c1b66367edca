/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept - a folder with the last content of objects that somebody else has, for a start at which it does not
 * answer. One file for each (kept_file.h), replaced by rename and fsync, as other records are.
 *
 * Secret objects are sealed by coracle-seal, a process of its own for each batch: so the agent maps no
 * cryptography, and nothing runs while nothing changes. The key is made at the first use. Where
 * `systemd-creds has-tpm2` says that there is a TPM, the key stands in `key.tpm`, sealed by systemd-creds
 * with it, else in `key`, which only root may read. A TPM that refuses the key leaves the sealed files alone:
 * they are of no use until it gives it; when an object is to be sealed, it is asked again, and if it still
 * refuses, a new key is made, since the apiserver has just sent the objects again.
 *
 * A change is written within KEPT_FIRST_MS, one that follows another within KEPT_AGAIN_MS. A damaged file is
 * set aside, named, and of no use. Nothing is read before kept_load(). Loop thread only.
 */
#ifndef AGENT_KEPT_KEPT_H
#define AGENT_KEPT_KEPT_H
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define KEPT_FIRST_MS 1000   /* many changes at once are one batch */
#define KEPT_AGAIN_MS 10000  /* of one object: some change every second, and a disk wears out */
#define KEPT_FAILED_MS 60000 /* after a failure */
/* systemd-creds: a TPM takes up to some seconds, one that hangs is ended. */
#define KEPT_CREDS_MS 30000
#define KEPT_SEAL_MS 30000
/* Objects; more are not kept. A node of 110 pods has some hundred. */
#define KEPT_OBJECTS_MAX 16384

struct kept;

struct kept_options { /* texts are borrowed while it exists */
    uv_loop_t *loop;
    const char *dir;           /* made at the first use, 0700 */
    const char *program;       /* coracle-seal */
    const char *systemd_creds; /* its path; need not exist */
    int cgroup_fd;             /* of the children, as in base/process/process.h */
    const char *cgroup_procs;
    /* After kept_load(): a file. The text is borrowed. */
    void (*on_object)(const char *name, bool sealed, const char *text, size_t n, void *arg);
    void (*on_loaded)(void *arg); /* all files were read */
    /* Appends what is to be on the disk now. False: that is not known, and what is there stays. */
    bool (*content)(const char *name, struct buf *ret, void *arg);
    void *arg;
};

enum err_code kept_open(struct kept **ret, const struct kept_options *o, struct err *e) MUST_CHECK;
/* Reads the files; may be called again. */
void kept_load(struct kept *k);
/* What content() gives for this name has changed. Names: kept_name_is_good(). */
void kept_changed(struct kept *k, const char *name, bool sealed);
/* Nobody needs it any more: its file goes. */
void kept_drop(struct kept *k, const char *name);
/* Drops those for which `wanted` is false. Of files that were not read yet, when they were. */
void kept_sweep(struct kept *k, bool (*wanted)(const char *name, void *arg));
/* {"state", "detail"} for `coracle explain node`: how many there are, and by what they are sealed; new. */
struct json_t *kept_explain(const struct kept *k);

void kept_close(struct kept *k);      /* NULL is fine; the loop must run until it is not busy */
bool kept_busy(const struct kept *k); /* false for NULL */
void kept_free(struct kept *k);       /* NULL is fine */
#endif
