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
    char *volume;      /* the PersistentVolume, or "pvc-<uid>"; NULL: not bound */
    char *path, *type; /* of a PersistentVolume; NULL: the agent's own folder */
    char *size;        /* of what it is bound to */
    char *owner;       /* uid of the pod of an ephemeral volume, or of the StatefulSet; NULL: of the folder */
    bool of_pod;       /* `owner` is a pod */
    bool going;        /* made by the agent: it goes as soon as no pod uses it */
    json_t *made;      /* the object, if the agent made it; otherwise NULL */
    char *own_path;    /* <state>/claims/<key>/data */
    char problem[300]; /* why it is not bound; "" */
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
    bool tell; /* pods that wait may go on */
    void (*freed)(struct claims *c);
};

/* ---- record.c ---- */
/* Reads all records. A damaged one is set aside, and what its claim has stays. */
enum err_code claim_records_load(struct claims *c, struct err *e) MUST_CHECK;
enum err_code claim_record_save(struct claims *c, const struct claim *one, struct err *e) MUST_CHECK;
/* Renames its folder away. */
enum err_code claim_record_remove(struct claims *c, const struct claim *one, struct err *e) MUST_CHECK;
struct claim *claim_new(struct claims *c, const char *namespace_, const char *name); /* NULL: no memory */
void claim_forget(struct claims *c, struct claim *one);
#endif
