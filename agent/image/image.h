/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image - the content-addressed image store, and bringing images into it.
 *
 *     refs/<sha256 of name>.json   one file a name: {"version":1,"name","id",...}; written atomically, synced
 *     images/<hex>.json            one record an image id (config digest): config, layers, size; likewise
 *     layers/<hex>/                one unpacked layer (diff or chain id), whole and on the disk (syncfs) once
 *                                  it has the name; with a sum over its tree as an attribute
 *     parts/<hex>.config           the configuration of that image as it came
 *     tmp/                         what is under way; emptied by img_store_open()
 *
 * Images are brought by `skopeo` into a temporary OCI layout and unpacked by `coracle-unpack` (hostile input:
 * a process of its own), one source at a time a name, several names in parallel.  Loop thread only.
 *
 * One process owns a store.  Records are read once and kept in memory (about 2 KiB an image).  The store is
 * 0700, so that no other user of the host reaches setuid files in layers.  Archives are never opened by the
 * daemon: unpack.h has what is checked there.
 */
#ifndef AGENT_IMAGE_IMAGE_H
#define AGENT_IMAGE_IMAGE_H
#include "base/clock.h"
#include "base/op.h"
#include "base/process.h"
#include "base/scope.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct img_strs {
    char **v;
    size_t n;
};

struct img_image { /* immutable (but for the pin and pulled_for), shared by reference count */
    int refs;
    char *id;                   /* "sha256:<hex>" of the image's configuration */
    char *digest;               /* "sha256:<hex>" of its manifest; may equal what was asked for */
    struct img_strs layer_dirs; /* absolute paths, lowest first */
    uint64_t *layer_bytes;      /* of each of them; 0: brought by a version that did not say */
    struct img_strs env, entrypoint, cmd;
    struct img_strs volumes;                /* absolute paths in the image, unresolved */
    char *user, *working_dir, *stop_signal; /* NULL when not set */
    uint64_t size_bytes;                    /* unpacked */
    char *created;                          /* RFC 3339 or NULL */
    bool pinned;                            /* never collected, never pruned */
    json_t *pulled_for; /* who may use it without asking (image_access.c); NULL: not said */
};
struct img_image *img_ref(struct img_image *i);
void img_unref(struct img_image *i); /* NULL is fine */
SCOPE_DEFINE(struct img_image, img_unref)

/* kubelet's imagePullCredentialsVerificationPolicy: whose right to an image that is here is looked at. */
enum img_verify {
    IMG_VERIFY_PULLED, /* to one that was pulled for a pod */
    IMG_VERIFY_NEVER,
    IMG_VERIFY_LISTED, /* to any but those of a list */
    IMG_VERIFY_ALWAYS
};

struct img_store;
struct img_store_options {
    uv_loop_t *loop;
    const char *dir;         /* /var/lib/coracle/images */
    const char *unpack_path; /* coracle-unpack */
    const char *skopeo_path; /* NULL when not installed: only what is there can be used */
    const char *tmpfs_dir;   /* for auth files, 0700 or, for skopeo's user to pass, 0710; what lies in it is
                                removed by img_store_open() */
    const char *auth_file;   /* the node's own credentials, a Docker config.json; NULL or not there: none */
    /* Where images are mounted, as root file systems (below <run_dir>/containers) and as volumes: layers of
     * an image that is there and that the store does not know are kept.  NULL: nowhere. */
    const char *run_dir, *pods_dir;
    /* skopeo sees of the host only what it needs (Landlock) and has a user of its own, which can pass `dir`
     * and the folder around it; false: in tests, where it is a script. */
    bool confine;
    int ops_cgroup_fd;
    const char *ops_cgroup_procs;
    const char *registries_conf; /* skopeo's; NULL: the system's, /etc/containers/registries.conf */
    uint64_t max_bytes;          /* of one image, downloaded and unpacked each; 0: 16 GiB */
    unsigned max_parallel;       /* brings at once, others wait; 0: 4 (skopeo takes 30-60 MB) */
    unsigned max_per_registry; /* of those from one registry; 0: one less than in all, so that one that hangs
                                  leaves a place */
    enum img_verify verify;
    const char *const *verify_not; /* for IMG_VERIFY_LISTED: repositories, or beginnings with "/" and a star;
                                      ends with NULL */
    uint64_t
        stall_ms; /* a pull for which nothing comes so long, or less than 16 KiB, has failed; 0: 5 minutes */
};
/*
 * Reads the records; what was read and cannot be used is set aside (base/damaged_file.h) and logged, layers
 * that no image has and everything in tmp/ is removed in the background.  All strings are copied.
 *
 * What cannot be read (EIO, ENOMEM, ...) is looked at again: a folder of records for a third of a second,
 * then the error is the caller's; a record for as long as it takes.  Until then its image is not here, and no
 * layer is removed.
 */
enum err_code img_store_open(struct img_store **ret, const struct img_store_options *o,
                             struct err *e) MUST_CHECK;
const char *img_store_dir(const struct img_store *s);
/* A look at the store failed, or found an image mounted that it does not know: no layer is removed until a
 * look succeeds, and an image may be here that is not listed.  False: all is known. */
struct img_look {
    struct err why;
    int64_t since_ns; /* wall clock */
    struct boot_time retry_at;
};
bool img_look_failed(const struct img_store *s, struct img_look *ret);
/* Whether records were not read: an image that is not found may be here all the same, and *why (may be NULL)
 * says so. */
bool img_is_unsure(const struct img_store *s, struct err *why);
/* Brings under way are cancelled (their done runs); the memory goes with the last of them.  NULL is fine. */
void img_store_close(struct img_store *s);

/*
 * "busybox" -> "docker.io/library/busybox:latest" as Docker and kubelet do; "localhost/busybox:1",
 * "host:5000/a/b@sha256:..." stay.  ERR_INVALID: does not parse.  ret: at least IMG_NAME_MAX bytes.
 */
#define IMG_NAME_MAX 512
enum err_code img_normalise(const char *reference, char ret[IMG_NAME_MAX], struct err *e) MUST_CHECK;

/*
 * A reference to a present image, NULL when absent; the caller unrefs.  By name (normalised first),
 * name@digest, id with or without "sha256:", or a part of the id, 12 digits or more, that begins only one.  A
 * name comes before an id.
 */
struct img_image *img_lookup(struct img_store *s, const char *reference);
/*
 * What a registry calls the image: "repository@sha256:...", the digest of the manifest or index that it was
 * pulled by; of several that of the repository of `reference`, else the first.  Without one (imported, or not
 * here) its id.  NULL: no memory; the caller frees.
 */
char *img_repo_digest(struct img_store *s, const char *id, const char *reference);
/*
 * [{"id","names":[],"digest","sizeBytes","ownBytes","sharedBytes","created","pinned","config":{"Env":[],...},
 * "layers":[{"id","sizeBytes"}]}], new; the lowest layer first.  Own are layers that no other image has: what
 * a removal frees.
 */
json_t *img_list(struct img_store *s);
/* Of one image, now; 0: not here. */
uint64_t img_own_bytes(struct img_store *s, const char *id);

struct img_seen { /* for whoever chooses what may go */
    const struct img_image *image;
    size_t n_names;
    bool held; /* somebody has it by img_ref(), or it is being verified, pinned or brought */
};
/* fn may remove the image that it is called for. */
void img_each(struct img_store *s, void (*fn)(const struct img_seen *seen, void *arg), void *arg);
/*
 * Removes the name (for an id or name@digest: all its names); with its last name the image goes, too, and
 * layers that nothing refers to follow in the background.  `in_use` (may be NULL) answers for an image id.
 * ERR_NOT_FOUND; ERR_PRECONDITION: a container uses the image, or somebody holds it by img_ref(), and this is
 * its last name; ERR_UNAVAILABLE: it is just being brought, verified or pinned.
 */
enum err_code img_remove(struct img_store *s, const char *reference,
                         bool (*in_use)(const char *id, void *arg), void *arg, struct err *e) MUST_CHECK;
/* The image with all its names; errors as above. */
enum err_code img_remove_id(struct img_store *s, const char *id, struct err *e) MUST_CHECK;
/*
 * The k-th name that a reference stands for, normalised: one, but for short names where registries.conf says
 * more (registry_names.h).  False: there are no more, or it does not parse.
 */
bool img_candidate(struct img_store *s, const char *reference, size_t k, char ret[IMG_NAME_MAX]);
/* Called on the loop after a name was added: pods waiting for it wake up. */
void img_on_added(struct img_store *s, void (*fn)(const char *name, void *arg), void *arg);

enum img_failure { /* the kinds of failures that the CRI has names for */
                   IMG_FAILED,
                   IMG_REGISTRY_UNAVAILABLE, /* nobody answers there, or not in time, or only that he cannot
                                              */
                   IMG_SIGNATURE_REJECTED    /* the node's policy.json does not let it in */
};

struct img_bring { /* one pull or import; { 0 } before */
    struct op op;
    struct img_image *image; /* in done on success; the first one; unref'ed by the store after done returns */
    json_t *names;           /* what was added, likewise */
    enum img_failure failure;  /* in done, of one that failed */
    uint64_t ran_ms;           /* in done: how long the work itself took, without waiting for a turn */
    struct img_bring_run *run; /* private */
};
#define IMG_BRING_DEADLINE_MS (30 * 60 * 1000)

/*
 * `source`: "docker://name" (registry) or a path to an OCI layout folder, an OCI archive or a docker archive
 * (told apart by content).  `name`: what to call it; NULL: the names the archive holds (ERR_INVALID when it
 * has none), the registry's name.  For a short name the registries of registries.conf are asked in their
 * order; what comes has the name of where it was found.
 *
 * A registry needs skopeo; folders and archives are read by coracle-unpack alone.  A pull first asks the
 * registry for the name's digest and fetches nothing when that image is here.  The same source under the same
 * name twice: the second joins the first; another source under the same name waits for it.
 *
 * ERR_INVALID: name, source or content is wrong; ERR_PRECONDITION: skopeo is not installed; ERR_NOT_FOUND: no
 * such file, no such image in the registry or none for this machine; ERR_UNAUTHENTICATED: the registry wants
 * (other) credentials; ERR_UNAVAILABLE: it does not answer; ERR_EXHAUSTED: a limit or the disk is full;
 * ERR_DATA_LOSS: a digest is wrong.  Nothing half done stays.
 */
void img_bring_start(struct img_bring *b, struct img_store *s, const char *source, const char *name,
                     op_done_fn done, void *owner);
struct img_progress {
    const char *step;           /* "waiting", "asking", "pulling", "unpacking", "storing" */
    uint64_t bytes;             /* that have come, or that are unpacked, in this step */
    uint32_t layers, of_layers; /* unpacking: done, and how many there are (0: not known yet) */
};
/*
 * How far it is, for a bring that is under way.  What has come is counted once a second; whole blobs of pulls
 * beside it count, too, as all share a folder.  The other numbers are coracle-unpack's own.
 */
void img_bring_progress(const struct img_bring *b, struct img_progress *ret);
/*
 * The same for a pod, with credentials: the content of a Docker config.json ({"auths":{...}}, as in a Secret
 * of type kubernetes.io/dockerconfigjson), or a JSON array of several, or of such with the names of their
 * secrets; copied, kept in a file of its own on tmpfs while skopeo runs.  NULL: none.  registry_auth.h says
 * which are tried, and in which order; the node's own come last.  The image's record keeps who was let in.
 */
void img_bring_start_auth(struct img_bring *b, struct img_store *s, const char *source, const char *name,
                          const char *auth_json, op_done_fn done, void *owner);

/* ---- who may use what is here ------------------------------------------------------------------ */
enum img_access {
    IMG_ACCESS_GRANTED,
    IMG_ACCESS_REFUSED, /* only a pull can show the right to it */
    IMG_ACCESS_SECRETS  /* whoever has certain credentials: img_access_start() compares */
};
/* By this name, as normalised; the image is here. */
enum img_access img_access(struct img_store *s, const struct img_image *image, const char *name);

/* ---- looking after what is there ------------------------------------------------------------- */
struct img_task { /* { 0 } before */
    struct op op;
    json_t *answer;           /* in done on success; unref'ed by the store after done returns */
    struct img_task_run *run; /* private */
};
/*
 * Compares the image's configuration and every layer's tree with what was brought; `reference` NULL: of all
 * images, and looks for what belongs to none.  The images cannot be removed meanwhile.  Answer:
 *     {"items":[{"id","names":[],"problems":[]}],"orphans":[],"bytes":N}
 * A helper process reads: minutes for a full disk.  ERR_NOT_FOUND.
 */
void img_verify_start(struct img_task *t, struct img_store *s, const char *reference, op_done_fn done,
                      void *owner);
/*
 * As OCI archive into `path`, an existing empty file: layers byte for byte as they came, uncompressed, so
 * that an import has the same id.  ERR_PRECONDITION: a layer's tar cannot be put together again.
 */
void img_export_start(struct img_task *t, struct img_store *s, const char *reference, const char *path,
                      op_done_fn done, void *owner);
/*
 * Whether one of these credentials (as for img_bring_start_auth()) has pulled the image of this name before:
 * the same ones, or a secret of the same namespace, name and uid.  Answer: true or false.
 */
void img_access_start(struct img_task *t, struct img_store *s, const char *name, const char *auth_json,
                      op_done_fn done, void *owner);
/* A pinned image is never collected; `rm` by name still takes it.  done when the record is on the disk.
 * ERR_NOT_FOUND. */
void img_pin_start(struct img_task *t, struct img_store *s, const char *reference, bool pin, op_done_fn done,
                   void *owner);
#endif
