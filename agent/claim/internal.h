/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/claim. Loop thread only. */
#ifndef AGENT_CLAIM_INTERNAL_H
#define AGENT_CLAIM_INTERNAL_H
#include "agent/claim/bind.h"
#include "agent/claim/claims.h"
#include "base/work.h"

#define CLAIM_KEY_SIZE 320 /* "<namespace>/<name>" */

struct claim {
    UT_hash_handle hh; /* by key */
    char key[CLAIM_KEY_SIZE];
    char uid[37];
    int64_t created_ns;
    char *volume;           /* the PersistentVolume, or "pvc-<uid>"; NULL: not bound */
    struct api_generic *pv; /* the PersistentVolume as it was bound; NULL: the agent's own folder */
    char *size;             /* capacity of its volume */
    char *owner;  /* uid of the pod of an ephemeral volume, or of the StatefulSet; NULL: a claim of the
                     manifest folder */
    bool of_pod;  /* `owner` is a pod */
    bool going;   /* created by the agent: removed as soon as no pod uses it */
    json_t *made; /* the object, if the agent created or keeps it; otherwise NULL */
    bool kept;    /* its manifest was removed while it was in use */
    struct api_generic *last; /* its manifest; NULL: not seen since the start */
    char *own_path;           /* <state>/claims/<key>/data */
    char problem[300];        /* why it is not bound; "" */
    size_t users;             /* number of pods that use or want the claim, at the last count */
};

/* A PersistentVolume whose claim was removed. It is bound to no other claim, because it contains the first
 * one's data. */
struct released {
    UT_hash_handle hh;
    char volume[256];
    char claim[CLAIM_KEY_SIZE], uid[37];
};

struct claims {
    struct claims_options o;
    struct src_store *store;
    struct claim *all;
    struct node_claims link;
    struct boot_timer timer;
    char *dir, *gone; /* <state>/claims, and .gone in it */
    struct work removal;
    bool begun, stopped, remove_again;
    bool tell;                 /* waiting pods may continue */
    bool putting;              /* a change of the store is our own */
    struct released *released; /* by name of the volume */
    void (*freed)(struct claims *c);
};

/* ---- claims.c ---- */
struct claim *claim_find(const struct claims *c, const char *namespace_, const char *name); /* NULL: none */
const struct api_generic *claim_object(const struct claims *c, const struct claim *one);
bool claim_is_used(const struct claims *c, const struct claim *one);
/* A pod other than `but` that uses the claim and has begun to start; NULL: none. */
const struct pod *claim_user(const struct claims *c, const struct claim *one, const struct pod *but);

/* ---- binding.c ---- */
/* `make`: creates a folder if no volume fits. ERR_PRECONDITION: the claim stays unbound. */
enum err_code claim_bind(struct claims *c, struct claim *one, const struct api_generic *g, bool make,
                         struct err *e) MUST_CHECK;
bool claim_is_of_node(const struct node *n, const struct api_pv *pv); /* by its nodeAffinity */

/* ---- pod_claims.c ---- */
struct node_claims claim_functions(struct claims *c); /* for the rooms of a pod */

/* ---- record.c ---- */
/* Reads all records. A damaged record is set aside, and the folder of its claim is kept. */
enum err_code claim_records_load(struct claims *c, struct err *e) MUST_CHECK;
enum err_code claim_record_save(struct claims *c, const struct claim *one, struct err *e) MUST_CHECK;
/* Renames the claim's folder for removal. */
enum err_code claim_record_remove(struct claims *c, const struct claim *one, struct err *e) MUST_CHECK;
/* The record of one claim, NUL-terminated; ERR_INVALID: it is damaged, and *one may be filled in part. */
enum err_code claim_record_parse(const char *text, size_t n, struct claim *one, struct err *e) MUST_CHECK;
void claim_done(struct claim *one); /* frees the members, not the struct */
struct claim *claim_new(struct claims *c, const char *namespace_, const char *name); /* NULL: no memory */
void claim_forget(struct claims *c, struct claim *one);
/* ---- protect.c ---- */
/* The annotation of a claim or PersistentVolume that is kept because it is in use: the time of its deletion.
 */
#define CLAIM_DELETED "coracle.dev/deleted"
/* NULL: its manifest exists. */
const char *claim_deleted_at(const struct api_generic *g);
/* Restores and marks a claim or volume in use whose manifest was removed; removes one that is no longer in
 * use. */
void claims_protect(struct claims *c);
enum err_code claim_put(struct claims *c, enum api_kind kind, const json_t *object, struct err *e) MUST_CHECK;

/* ---- released.c ---- */
/* Records, also on disk, that the volume of a removed claim must not be bound to another claim. */
enum err_code claim_release(struct claims *c, const struct claim *one, struct err *e) MUST_CHECK;
const struct released *claims_released(const struct claims *c, const char *volume); /* NULL: not released */
void claims_unrelease(struct claims *c, const char *volume);
void claims_tidy_released(struct claims *c); /* drops volumes whose manifests were removed */
void claims_released_load(struct claims *c);
void claims_released_done(struct claims *c);
#endif
