/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write - write requests. A job reads the object from the daemon, computes the new version (agent/api/patch),
 * sends it to the daemon, which writes the file, and answers. If the object has changed in the meantime, the
 * job starts again, as in an apiserver. Loop thread only.
 */
#ifndef AGENT_KUBE_APISERVER_WRITE_H
#define AGENT_KUBE_APISERVER_WRITE_H
#include "agent/api/patch/write/write.h"
#include "agent/kube/apiserver/internal.h"

#define API_WRITE_TRIES 32 /* an apiserver's patch: 5; here writes go one after the other */
#define API_PROTOBUF "application/vnd.kubernetes.protobuf"
#define API_WRITE_ANSWER_MAX (16u << 20) /* of the daemon: an object */

enum api_verb_of { JOB_CREATE, JOB_UPDATE, JOB_PATCH, JOB_DELETE };

struct api_job {
    struct api_request r;
    enum api_verb_of verb;
    const char *verb_name; /* "create": constant, for the log; NULL: nothing is written */
    struct api_patch_kind kind;
    enum api_write_type type;
    enum api_field_validation validation;
    bool dry, force;
    char *manager, *user;
    char name[254];
    json_t *body;     /* owned, wiped */
    json_t *live;     /* owned, wiped; NULL: there is none */
    char mark[64];    /* of the live object; "": none */
    json_t *warnings; /* a list of texts */
    json_t *strict;   /* problems that strict decoding finds in the text, a list of texts; owned */
    json_t *object;   /* the object to store; owned, wiped */
    json_t *shown;    /* of a dry run, with the node's members; owned, wiped */
    json_t *added;    /* ephemeral containers that are still to be added */
    char file[256];   /* "": not known */
    bool held;        /* a DELETE that only marked the object: finalizers hold it */
    bool released;    /* a write that took the last finalizer away: the object is gone */
    unsigned tries;
    uint64_t began_ns;
    struct ask *ask;
    void (*looked)(struct api_job *j); /* the live object is known */

    /* of a DELETE of a collection, or of a namespace with its content (write_collection.c) */
    json_t *list;          /* the answer at the end; owned. NULL: the DELETE is of one object */
    struct api_kept *kept; /* the objects that are still to be deleted; owned */
    size_t n_kept, at;
    struct api_target whole; /* the request's; r.target is that of the object in hand */

    /* of a DELETE, or an eviction */
    int64_t grace_s; /* -1: not given */
    bool evict;
    char uid[64], version[32]; /* preconditions; "": none */
};

/* A POST, PUT, PATCH or DELETE of an object, a collection or a subresource. */
void api_write_begin(const struct api_request *r);

/* ---- write.c ---- */
void job_answer(struct api_job *j, int http, json_t *value /* stolen; NULL: out of memory */);
void job_fail(struct api_job *j, json_t *status /* stolen; NULL: out of memory */);
void job_lacks(struct api_job *j); /* 404 */
void job_write(struct api_job *j); /* looked: computes the new object, and stores it */
void job_write_as(struct api_job *j, enum api_write_type type, const json_t *body);

/* ---- write_daemon.c ---- */
/* Asks the daemon for the object, then j->looked. */
void job_look(struct api_job *j);
/* Gives j->object to the daemon (remove: takes it away), then answers with job_stored(). */
void job_store(struct api_job *j, bool remove);
/* The daemon has it: `object` as it is now, borrowed. */
void job_stored(struct api_job *j, int http, json_t *object);
/* The daemon returned something else. */
void job_refused(struct api_job *j, int http, const json_t *body, const struct err *e);
/* Asks the daemon; false: that failed, was answered, and the job is gone. */
bool job_ask(struct api_job *j, const char *method, const char *target, json_t *body, ask_done_fn done);
/* Drops the reference, and overwrites unshared values; NULL is fine. */
void job_wipe(json_t *v);

/* ---- write_options.c ---- */
/* The body, the query and the manager; false: it was answered, and the job is gone. */
bool job_read(struct api_job *j);

/* ---- write_delete.c ---- */
bool job_read_delete(struct api_job *j);  /* likewise */
bool job_read_options(struct api_job *j); /* likewise, of j->body */
void job_delete(struct api_job *j);       /* looked */
void job_deleted(struct api_job *j, json_t *object);
void job_released(struct api_job *j, json_t *object); /* its last finalizer is taken away */

/* ---- write_collection.c ---- */
struct api_kept {
    const struct api_kind_row *kind;
    char namespace[64], name[254];
};
void job_collection(struct api_job *j);      /* its options are read */
void job_collection_next(struct api_job *j); /* one is deleted */
/* The options of a DELETE of a namespace are read: its content is deleted first. */
void job_delete_namespace(struct api_job *j);
/* A new object's namespace exists and does not end; false: it was answered, and the job is gone. */
bool job_namespace_exists(struct api_job *j);

/* ---- write_sub.c ---- */
/* A subresource: answered, or begun; false: it is none that is written. */
bool job_sub(struct api_job *j);
json_t *job_scale_of(const json_t *object); /* NULL: out of memory */
/* j->object has ephemeral containers to add: that is done. False: it is another request. */
bool job_adds_ephemeral(struct api_job *j);
#endif
