/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image - the content-addressed image store, and pulling or importing images.
 *
 *     refs/<sha256 of name>.json   one file per name: {"version":1,"name","id",...}; replaced
 *                                  atomically, synced
 *     images/<hex>.json            one record per image id (config digest): config, layers, size; replaced
 *                                  atomically, synced
 *     layers/<hex>/                an unpacked layer (diff or chain id), complete and on disk (syncfs) once
 *                                  it has this name; with a checksum of its tree as an attribute
 *     parts/<hex>.config           the original configuration of the image with this id
 *     tmp/                         work in progress; emptied by img_store_open()
 *
 * Images are fetched by `skopeo` to a temporary OCI layout and unpacked by `coracle-unpack` (a separate
 * process, because the input is hostile): one source at a time per name, several names in parallel. Loop
 * thread only.
 *
 * One process owns a store. Records are read once and kept in memory (about 2 KiB per image). The store is
 * 0700, so that no other user of the host reaches setuid files in layers. The daemon never opens archives:
 * unpack.h describes the checks there.
 */
#ifndef AGENT_IMAGE_IMAGE_H
#define AGENT_IMAGE_IMAGE_H
#include "agent/image/provider/provider.h"

#include "base/clock.h"
#include "base/op.h"
#include "base/process/process.h"
#include "base/scope.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct img_strs {
    char **v;
    size_t n;
};

struct img_image { /* immutable (except the pin and pulled_for), reference-counted */
    int refs;
    char *id;                   /* "sha256:<hex>" of the image's configuration */
    char *digest;               /* "sha256:<hex>" of its manifest; may equal the requested one */
    struct img_strs layer_dirs; /* absolute paths, lowest first */
    uint64_t *layer_bytes;      /* of each of them; 0 if an older version without sizes pulled the image */
    struct img_strs env, entrypoint, cmd;
    struct img_strs volumes;                /* absolute paths in the image, unresolved */
    char *user, *working_dir, *stop_signal; /* NULL if not set */
    uint64_t size_bytes;                    /* unpacked */
    char *created;                          /* RFC 3339 or NULL */
    bool pinned;                            /* never garbage-collected or pruned */
    json_t *pulled_for; /* the pods that may use it without asking the registry (image_access.c); NULL:
                           unspecified */
};
struct img_image *img_ref(struct img_image *i);
void img_unref(struct img_image *i); /* NULL is fine */
SCOPE_DEFINE(struct img_image, img_unref)

/* kubelet's imagePullCredentialsVerificationPolicy: for which present images a pod's credentials are checked.
 */
enum img_verify {
    IMG_VERIFY_PULLED, /* those pulled for a pod */
    IMG_VERIFY_NEVER,
    IMG_VERIFY_LISTED, /* all except those in a list */
    IMG_VERIFY_ALWAYS
};

struct img_store;
struct img_store_options {
    uv_loop_t *loop;
    const char *dir;         /* /var/lib/coracle/images */
    const char *unpack_path; /* coracle-unpack */
    const char *skopeo_path; /* NULL if not installed: only local images can be used */
    /* For auth files; 0700, or 0710 so that skopeo's user can enter it; emptied by img_store_open(). */
    const char *tmpfs_dir;
    const char *auth_file;          /* the node's credentials, a Docker config.json; may be NULL or missing */
    struct provider_set *providers; /* of credentials; NULL: none; the store's own once it is open */
    /* The folders in which images are mounted, as root file systems (below <run_dir>/containers) and as
     * volumes: layers of a mounted image that the store does not know are kept. NULL: none. */
    const char *run_dir, *pods_dir;
    /* skopeo can access only the parts of the host that it needs (Landlock) and runs as its own user, which
     * can enter `dir` and its parent; false in tests, where it is a script. */
    bool confine;
    int ops_cgroup_fd;
    const char *ops_cgroup_procs;
    const char *registries_conf; /* skopeo's; NULL: the system's, /etc/containers/registries.conf */
    uint64_t max_bytes;          /* per image, for download and unpacked size each; 0: 16 GiB */
    unsigned max_parallel;       /* parallel pulls; the others wait; 0: 4 (skopeo needs 30-60 MB) */
    /* Parallel pulls from one registry; 0: one less than in total, so that a registry that hangs leaves a
     * slot. */
    unsigned max_per_registry;
    enum img_verify verify;
    /* For IMG_VERIFY_LISTED: repositories, or prefixes with "/" and a star; NULL-terminated. */
    const char *const *verify_not;
    /* a pull fails when it receives nothing, or less than 16 KiB, for this long; 0: 5 minutes */
    uint64_t stall_ms;
};
/*
 * Reads the records; a record that cannot be used is set aside (base/files/damaged_file.h) and logged, layers
 * without an image, and everything in tmp/, are removed in the background.  All strings are copied.
 *
 * A failed read (EIO, ENOMEM, ...) is retried: of a folder of records for a third of a second, then the error
 * is returned; of a record without a limit. Until a record was read, its image is missing and no layer is
 * removed.
 */
enum err_code img_store_open(struct img_store **ret, const struct img_store_options *o,
                             struct err *e) MUST_CHECK;
const char *img_store_dir(const struct img_store *s);
/* Whether a lookup in the store failed or found an unknown mounted image: no layer is removed until a lookup
 * succeeds, and there may be images that are not listed. False: the tables are complete. */
struct img_look {
    struct err why;
    int64_t since_ns; /* wall clock */
    struct boot_time retry_at;
};
bool img_look_failed(const struct img_store *s, struct img_look *ret);
/* Whether records could not be read: an image that is not found may exist nevertheless; *why (may be NULL)
 * has the reason. */
bool img_is_unsure(const struct img_store *s, struct err *why);
/* Cancels pulls in progress (their done runs); the memory is freed with the last of them. NULL is fine. */
void img_store_close(struct img_store *s);

/* "busybox" -> "docker.io/library/busybox:latest" as in Docker and kubelet; "localhost/busybox:1",
 * "host:5000/a/b@sha256:..." are unchanged. ERR_INVALID: a syntax error. ret: at least IMG_NAME_MAX bytes. */
#define IMG_NAME_MAX 512
enum err_code img_normalise(const char *reference, char ret[IMG_NAME_MAX], struct err *e) MUST_CHECK;

/* A reference to a present image, or NULL. By name (normalised first), name@digest, id with or without
 * "sha256:", or a unique prefix of the id with at least 12 digits. Names take precedence over ids. The caller
 * unrefs. */
struct img_image *img_lookup(struct img_store *s, const char *reference);
/* The registry's name of the image: "repository@sha256:...", with the digest of the pulled manifest or index;
 * if there are several, the one for the repository of `reference`, otherwise the first. Without one
 * (imported, or not present) its id. NULL when out of memory; the caller frees. */
char *img_repo_digest(struct img_store *s, const char *id, const char *reference);
/* [{"id","names":[],"digest","sizeBytes","ownBytes","sharedBytes","created","pinned","config":{"Env":[],...},
 * "layers":[{"id","sizeBytes"}]}], new; the lowest layer first. Own layers belong to no other image: removing
 * the image frees them. */
json_t *img_list(struct img_store *s);
/* The present size of an image's own layers; 0 if there is no such image. */
uint64_t img_own_bytes(struct img_store *s, const char *id);

struct img_seen { /* for choosing images to remove */
    const struct img_image *image;
    size_t n_names;
    bool held; /* referenced by img_ref(), or being verified, pinned or pulled */
};
/* fn may remove the image it is called with. */
void img_each(struct img_store *s, void (*fn)(const struct img_seen *seen, void *arg), void *arg);
/*
 * Removes the name (for an id or name@digest: all its names); with its last name the image is removed, and
 * unused layers follow in the background. `in_use` (may be NULL) is asked about the image id. ERR_NOT_FOUND;
 * ERR_PRECONDITION: this is its last name, and a container uses the image or it is referenced by img_ref();
 * ERR_UNAVAILABLE: it is being pulled, verified or pinned.
 */
enum err_code img_remove(struct img_store *s, const char *reference,
                         bool (*in_use)(const char *id, void *arg), void *arg, struct err *e) MUST_CHECK;
/* Whether files of removed images are still being removed in the background. */
bool img_is_clearing(const struct img_store *s);
/* Calls fn each time that this removal has ended; NULL: none. */
void img_on_cleared(struct img_store *s, void (*fn)(void *arg), void *arg);
/* ---- space: image_space.c ---- */
/* Keeps this many bytes of the store's file system free: an archive that would need some of them is refused
 * with ERR_EXHAUSTED. 0: none. */
void img_keep_free(struct img_store *s, uint64_t bytes);
/* Called before a refusal: fn may remove unused images to free `wanted` bytes; the import waits for the
 * removal. */
void img_on_short(struct img_store *s, void (*fn)(uint64_t wanted, void *arg), void *arg);
/* Called whenever a download or an import begins to write. */
void img_on_writing(struct img_store *s, void (*fn)(void *arg), void *arg);
/* Ends all downloads and unpacking with this error, and removes their files in the background
 * (img_is_clearing()). Returns the number of ended jobs. */
unsigned img_stop_writers(struct img_store *s, const struct err *why);
bool img_is_writing(const struct img_store *s); /* also while stopped jobs end */

/* The image with all its names; errors as above. */
enum err_code img_remove_id(struct img_store *s, const char *id, struct err *e) MUST_CHECK;
/* The k-th name that a reference may mean, normalised: one, except for short names with several registries in
 * registries.conf (registry_names.h). False: no more, or a syntax error. */
bool img_candidate(struct img_store *s, const char *reference, size_t k, char ret[IMG_NAME_MAX]);
/* Called on the loop after a name was added, to wake up waiting pods. */
void img_on_added(struct img_store *s, void (*fn)(const char *name, void *arg), void *arg);

enum img_failure { /* kinds of failures distinguished by the CRI */
                   IMG_FAILED,
                   /* It does not answer, answers too late, or reports its unavailability. */
                   IMG_REGISTRY_UNAVAILABLE,
                   IMG_SIGNATURE_REJECTED /* rejected by the node's policy.json */
};

struct img_bring { /* one pull or import; initialize to { 0 } */
    struct op op;
    struct img_image *image; /* in done on success: the first image; the store unrefs it after done returns */
    json_t *names; /* in done on success: the added names; the store unrefs them after done returns */
    enum img_failure failure;  /* in done, if it failed */
    uint64_t ran_ms;           /* in done: duration without waiting for a slot */
    struct img_bring_run *run; /* private */
};
/*
 * `source`: "docker://name" (registry) or the path of an OCI layout folder, an OCI archive or a docker
 * archive (distinguished by content). `name`: the image's name; NULL: the names in the archive (ERR_INVALID
 * if it has none) or the registry's. For a short name the registries of registries.conf are tried in order;
 * the image is named after the registry where it was found. A registry needs skopeo; folders and archives are
 * read by coracle-unpack alone. A pull first asks the registry for the name's digest and fetches nothing if
 * that image is present. If the same source is requested twice under the same name, the second request joins
 * the first; another source under that name waits. ERR_INVALID: invalid name, source or content;
 * ERR_PRECONDITION: skopeo is not installed; ERR_NOT_FOUND: no such file, no such image in the registry or
 * none for this machine; ERR_UNAUTHENTICATED: the registry requires (other) credentials; ERR_UNAVAILABLE: it
 * does not answer; ERR_EXHAUSTED: a limit was reached or the disk is full; ERR_DATA_LOSS: a wrong digest.
 * Nothing incomplete is left behind.
 */
#define IMG_BRING_DEADLINE_MS (30 * 60 * 1000)
void img_bring_start(struct img_bring *b, struct img_store *s, const char *source, const char *name,
                     op_done_fn done, void *owner);
struct img_progress {
    const char *step;           /* "waiting", "asking", "pulling", "unpacking", "storing" */
    uint64_t bytes;             /* received or unpacked in this step */
    uint32_t layers, of_layers; /* unpacking: completed, and total (0: unknown) */
};
/* The progress of a pull. Received bytes are counted once a second; whole blobs of parallel pulls are
 * included because they share a folder. The other numbers are coracle-unpack's. */
void img_bring_progress(const struct img_bring *b, struct img_progress *ret);
/*
 * The same for a pod, with credentials: the content of a Docker config.json ({"auths":{...}}, as in a Secret
 * of type kubernetes.io/dockerconfigjson), or a JSON array of such, optionally with the names of their
 * secrets; copied, and kept in a file on tmpfs while skopeo runs. NULL: none. registry_auth.h has the order
 * in which credentials are tried; the node's come last. The image's record keeps which credentials were
 * accepted.
 */
void img_bring_start_auth(struct img_bring *b, struct img_store *s, const char *source, const char *name,
                          const char *auth_json, op_done_fn done, void *owner);

/* ---- access to present images ---- */
enum img_access {
    IMG_ACCESS_GRANTED,
    IMG_ACCESS_REFUSED, /* only a pull can prove access */
    IMG_ACCESS_SECRETS  /* holders of certain credentials: img_access_start() compares them */
};
/* For a pod that names the image by this normalised name; the image is present. */
enum img_access img_access(struct img_store *s, const struct img_image *image, const char *name);

/* ---- maintenance ---- */
struct img_task { /* initialize to { 0 } */
    struct op op;
    json_t *answer;           /* in done on success; the store unrefs it after done returns */
    struct img_task_run *run; /* private */
};
/*
 * Compares the image's configuration and every layer's tree with their state when pulled; `reference` NULL:
 * all images, and reports orphans. The images cannot be removed meanwhile. Answer:
 *     {"items":[{"id","names":[],"problems":[]}],"orphans":[],"bytes":N}
 * A helper process reads them, which takes minutes for a full disk. ERR_NOT_FOUND.
 */
void img_verify_start(struct img_task *t, struct img_store *s, const char *reference, op_done_fn done,
                      void *owner);
/* As OCI archive into `path`, an existing empty file: layers byte for byte as received, uncompressed, so that
 * an import has the same id. ERR_PRECONDITION: a layer's tar cannot be reconstructed. */
void img_export_start(struct img_task *t, struct img_store *s, const char *reference, const char *path,
                      op_done_fn done, void *owner);
/* Whether one of these credentials (as for img_bring_start_auth()) has pulled the image of this name before:
 * the same ones, or a secret of the same namespace, name and uid. Answer: true or false. */
void img_access_start(struct img_task *t, struct img_store *s, const char *name, const char *auth_json,
                      op_done_fn done, void *owner);
/* Adds a name to the image, as an import under that name would; another image with the name loses it. done
 * when the record is on disk. ERR_NOT_FOUND; ERR_INVALID: no name, or one with a digest. */
void img_tag_start(struct img_task *t, struct img_store *s, const char *reference, const char *name,
                   op_done_fn done, void *owner);
/* The steps that built the image, the first step first, from its configuration: the author's text, unchecked.
 * Answer:
 *     {"id","names":[],"items":[{"created","createdBy","author","comment","emptyLayer","sizeBytes"}]}
 * ERR_NOT_FOUND. */
void img_history_start(struct img_task *t, struct img_store *s, const char *reference, op_done_fn done,
                       void *owner);
/* A pinned image is never garbage-collected; `rm` by name still removes it. done when the record is on disk.
 * ERR_NOT_FOUND. */
void img_pin_start(struct img_task *t, struct img_store *s, const char *reference, bool pin, op_done_fn done,
                   void *owner);
#endif
