/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by the files of agent/kept. Loop thread only, except for the parts of a job.
 */
#ifndef AGENT_KEPT_INTERNAL_H
#define AGENT_KEPT_INTERNAL_H
#include "agent/kept/batch.h"
#include "agent/kept/kept.h"
#include "agent/kept/kept_file.h"
#include "base/list.h"
#include "base/process/process.h"
#include "base/strs.h"
#include "base/work.h"

#define KEPT_BATCH_BYTES ((size_t)4 << 20) /* a batch accepts no further item beyond this */
#define KEPT_BATCH_FILES 64
#define KEPT_KEY_FILE "key"
#define KEPT_TPM_FILE "key.tpm"
#define KEPT_TPM_MAX (64 * 1024) /* systemd-creds' text has some 500 bytes */

struct kept_entry {
    UT_hash_handle hh;
    bool sealed, dirty, dropped, on_disk;
    bool in_job;
    uint64_t hash; /* of the text on the disk; 0: unknown */
    uint64_t due_ms, written_ms;
    char name[];
};

struct kept_item { /* one file of a job */
    char file[KEPT_FILE_SIZE], name[KEPT_NAME_SIZE];
    bool sealed, removed, damaged, done;
    struct buf text;  /* the plain text; after the read of a sealed file, its sealed bytes */
    struct buf bytes; /* of the file */
    struct err e;
};

struct kept_job { /* data for the pool; the loop does not touch it meanwhile */
    struct kept_item *items;
    size_t n;
};

enum kept_state { KEPT_IDLE, KEPT_LOADING, KEPT_SAVING };
/* The location of the key. */
enum kept_seal { KEPT_SEAL_UNKNOWN, KEPT_SEAL_NONE, KEPT_SEAL_ROOT, KEPT_SEAL_TPM };

struct kept_look { /* the files of the key that the pool found */
    enum kept_seal seal;
    unsigned char key[BATCH_KEY_SIZE];
    char *tpm;
    size_t tpm_n;
};

struct kept {
    struct kept_options o;
    enum kept_state state;
    bool load_due, closing, loaded;
    struct kept_entry *entries;
    struct work work;
    struct proc proc;
    uv_timer_t timer;
    int open_handles;
    struct kept_job job;
    struct strs files; /* files that a load still has to read */
    size_t next_file;
    bool (*wanted)(const char *name, void *arg);
    bool refused_once;  /* during this load */
    char *save_trouble; /* the error of the last write; NULL: none */

    /* kept_key.c */
    enum kept_seal seal;
    bool have_key;
    unsigned char key[BATCH_KEY_SIZE];
    struct buf tpm;    /* the content of key.tpm */
    char *key_trouble; /* why there is no key; NULL */
    bool key_anew;     /* after another refusal a new key is created */
    void (*key_then)(struct kept *k, bool ok);
    struct kept_look look;
};

/* ---- kept.c ---- */
struct kept_entry *kept_entry_of(struct kept *k, const char *name, bool sealed); /* NULL: no room */
struct kept_entry *kept_find(struct kept *k, const char *name);
void kept_entry_free(struct kept *k, struct kept_entry *t);
void kept_wake(struct kept *k);                 /* starts due work, or sets the timer */
void kept_over(struct kept *k);                 /* a load or a save has ended */
void kept_job_done(struct kept *k);             /* wipes and frees its items */
struct kept_item *kept_job_add(struct kept *k); /* NULL: no memory */
void kept_text_wipe(struct buf *b);
uint64_t kept_hash(const char *text, size_t n);
void kept_trouble(char **at, const char *what,
                  const struct err *e); /* logged if it differs from the last one */
/* Runs coracle-seal with a request, which is wiped. The answer is k->proc.out. */
void kept_seal_start(struct kept *k, struct buf *request, op_done_fn done);

/* ---- kept_key.c ---- */
/* On the pool: reads the files of the key. */
enum err_code kept_key_look(struct kept *k, struct err *e);
void kept_key_looked(struct kept *k); /* on the loop, after that */
/* Calls `then` when the key is available, perhaps at once. `make`: creates a key if there is none. */
void kept_key_need(struct kept *k, bool make, void (*then)(struct kept *k, bool ok));

/* ---- kept_load.c ---- */
void kept_load_start(struct kept *k);

/* ---- kept_save.c ---- */
/* False: nothing is due. */
bool kept_save_start(struct kept *k);
#endif
