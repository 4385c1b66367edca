/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack - coracle-unpack, the helper that reads images from outside.  Archives, manifests and layers are
 * hostile input.  They are therefore parsed in a separate process that drops every right it does not need,
 * and never by the daemon.
 *
 *     coracle-unpack --source PATH --work DIR --layers DIR [--parts DIR] [--blobs DIR] [--name NAME]
 *                    [--platform OS/ARCH[/VARIANT]] [--max-bytes N] [--max-entries N] [--reserve-bytes N]
 *                    [--progress FD]
 *     coracle-unpack --verify some|all --layers DIR --parts DIR
 *     coracle-unpack --export ID --out FILE --layers DIR --parts DIR
 *     coracle-unpack --hash-name NAME
 *
 *     --source     an OCI layout folder, or an OCI archive or a docker archive (tar, tar+gzip, tar+zstd);
 *                  recognised by its content: index.json marks an OCI layout, else manifest.json a docker
 *                  archive.  A source with both (docker save since version 25) is read as OCI, because every
 *                  part of that has a digest.
 *     --work       an empty folder for unfinished work, on the file system of --layers; the caller removes it
 *                  afterwards
 *     --layers     the store's layers, <hex>/ each; a layer is complete as soon as its name exists; see
 *                  unpack_store_image()
 *     --parts      the folder for other files of an image (UNPACK_CONFIG); without the option they are
 *                  not kept
 *     --verify     reads lines "layer <hex>" and "config <hex>", compares a layer with its recorded sum and a
 *                  configuration with its name, and prints
 *                  {"problems":[{"part","what"}],"bytes":N,"orphans":[]}; with `all`, the lines name
 *                  every part that should exist, and any other part is reported as an orphan
 *     --export     writes the image with this id (64 hex digits) as an OCI archive into the existing
 *                  file --out; standard input has lines "layer <hex>", lowest first, and "name <name>";
 *                  prints {}
 *     --blobs      the layout's blobs, if they are not in <source>/blobs (skopeo --dest-shared-blob-dir)
 *     --name       the image's name; ERR_INVALID when the source holds several images
 *     --progress   the descriptor of a shared page with progress counters (unpack_progress.h)
 *     --platform   the platform to pick from a multi-platform index; default: this machine's
 *     --hash-name  only prints {"names":[{"name","ref"}]} for a name
 *
 * Success, exit status 0, one line on standard output:
 *     {"images":[{"id","digest","names":[{"name","ref"}],"layers":[their names, lowest first],"sizeBytes",
 *                 "created","env":[],"entrypoint":[],"cmd":[],"user","workingDir","stopSignal"}],
 *      "skippedDevices":N}
 * `names` are normalised (img_normalise), `ref` is the SHA-256 of the name (file name below refs/).  Failure,
 * exit status 1: {"error":text,"code":err_code_name()} and the same text on standard error.  After a failure,
 * --layers may have new layers, but only complete and verified ones.
 *
 * Digest and size of every blob are checked while it is read, and the diff id of every layer (SHA-256 of its
 * uncompressed tar) before the layer gets its name.  unpack_apply_entry() and unpack_path describe what a
 * layer may contain and how it is stored.
 *
 * Each limit is explained at its constant; unpack_confine() describes the confinement.  The program has one
 * thread, blocks, and runs once for each image.
 */
#ifndef AGENT_UNPACK_UNPACK_H
#define AGENT_UNPACK_UNPACK_H
#include "base/buf.h"
#include "base/scope.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#define UNPACK_MAX_BYTES (16ull << 30)   /* default; no image on a node should be larger */
#define UNPACK_MAX_ENTRIES 1000000       /* default; a whole Debian desktop has 300,000 files */
#define UNPACK_RESERVE_BYTES (64u << 20) /* default; space left on a full disk for the agent */
#define UNPACK_MAX_LAYERS 128            /* Docker's limit is 127; overlayfs takes 500 */
#define UNPACK_MAX_IMAGES 64             /* of one archive; docker save accepts several */
#define UNPACK_MAX_NAMES 64              /* of one image */
#define UNPACK_MAX_VOLUMES 100           /* of one image; they have one or two */
#define UNPACK_MAX_JSON (4u << 20)       /* index, manifest, config: registries refuse manifests over 4 MiB */
#define UNPACK_MAX_INDEX_DEPTH 4         /* index in an index: buildx nests once */
#define UNPACK_MAX_PARTS 20000 /* files in an archive; docker's old format has three for each layer */
#define UNPACK_DIGEST_SIZE 72  /* "sha256:" + 64 + NUL */

struct unpack_progress;

/* ---- what one run may use up, all layers and the archive around them together ---------------- */
struct unpack_budget {
    uint64_t bytes, entries;          /* left */
    uint64_t reserve;                 /* free bytes that must remain on the file system */
    uint64_t until_check;             /* bytes that may be written before free space is checked again */
    struct unpack_progress *progress; /* counts the used amounts; may be NULL */
};
/*
 * Call before writing n more bytes to fd's file system.  ERR_EXHAUSTED: beyond the limit, or too little free
 * space.
 */
enum err_code unpack_spend_bytes(struct unpack_budget *b, int fd, uint64_t n, struct err *e) MUST_CHECK;
enum err_code unpack_spend_entry(struct unpack_budget *b, struct err *e) MUST_CHECK;

/* ---- digests (unpack_digest.c) --------------------------------------------------------------- */
struct unpack_hash; /* a running SHA-256 */
enum err_code unpack_hash_new(struct unpack_hash **ret, struct err *e) MUST_CHECK;
enum err_code unpack_hash_add(struct unpack_hash *h, const void *data, size_t n, struct err *e) MUST_CHECK;
enum err_code unpack_hash_end(struct unpack_hash *h, char ret[UNPACK_DIGEST_SIZE], struct err *e) MUST_CHECK;
void unpack_hash_free(struct unpack_hash *h); /* accepts NULL */
SCOPE_DEFINE(struct unpack_hash, unpack_hash_free)
enum err_code unpack_hash_text(const void *data, size_t n, char ret[UNPACK_DIGEST_SIZE],
                               struct err *e) MUST_CHECK;
/* Accepts "sha256:" and 64 lower-case hex digits; registries and layouts use no other algorithm for blobs. */
bool unpack_digest_is_valid(const char *digest);
static inline const char *unpack_digest_hex(const char *digest) /* `digest` must be valid */
{
    return digest + 7;
}

/* ---- the source: a folder with the image's parts (unpack_source.c) --------------------------- */
struct unpack_source {
    int root;        /* holds index.json or manifest.json */
    int blobs;       /* holds sha256/<hex>; -1: a docker archive without blobs */
    bool is_archive; /* root is our own copy in the work folder */
};
/*
 * Borrows its descriptors: `source` is an open file or folder, `work` the work folder, `blobs` a separate
 * blob folder or -1.  An archive is first unpacked into <work>/source.  The rules for layers apply, but only
 * plain files, folders and links are allowed.
 */
enum err_code unpack_source_open(struct unpack_source *ret, int source, int work, int blobs,
                                 struct unpack_budget *budget, struct err *e) MUST_CHECK;
void unpack_source_close(struct unpack_source *s);
/* Opens a regular file of the source; the path cannot lead out of the source. */
int unpack_source_file(const struct unpack_source *s, const char *path, struct err *e) MUST_CHECK;
int unpack_source_blob(const struct unpack_source *s, const char *digest, struct err *e) MUST_CHECK;
/*
 * Reads a JSON blob and verifies its digest and size (-1: unknown).  Returns its bytes too if ret_text is not
 * NULL.
 */
enum err_code unpack_source_json(const struct unpack_source *s, const char *digest, int64_t size,
                                 const char *what, json_t **ret, char **ret_text, size_t *ret_n,
                                 struct err *e) MUST_CHECK;

/* ---- images of a source (unpack_layout.c, unpack_docker.c, unpack_config.c) ------------------ */
struct unpack_layer {
    char diff_id[UNPACK_DIGEST_SIZE]; /* of the uncompressed tar */
    char digest[UNPACK_DIGEST_SIZE];  /* of the blob; "" for a file of a docker archive */
    int64_t size;                     /* of the blob; -1: unknown */
    char *path;                       /* docker archive: the layer's file in the source */
    bool foreign;                     /* its descriptor names another server */
    char name[UNPACK_DIGEST_SIZE];    /* in the store; "" until unpack_store_image() sets it */
};

struct unpack_image {
    char id[UNPACK_DIGEST_SIZE];     /* of the configuration */
    char digest[UNPACK_DIGEST_SIZE]; /* of the manifest; the id in a docker archive, which has none */
    char **names;
    size_t n_names;
    struct unpack_layer *layers; /* lowest first */
    size_t n_layers;
    json_t *record; /* the configuration's fields (env, entrypoint, ...), as printed */
    char *config;   /* the configuration's own bytes */
    size_t config_size;
};

struct unpack_images {
    struct unpack_image *v;
    size_t n;
};

struct unpack_platform {
    char os[16], arch[16], variant[16]; /* Go's names: linux, amd64, arm64, ... */
};
void unpack_platform_host(struct unpack_platform *ret);
enum err_code unpack_platform_parse(const char *text, struct unpack_platform *ret, struct err *e) MUST_CHECK;

/* Reads the index or manifest files, and picks the platform's image where an index offers several. */
enum err_code unpack_images_read(const struct unpack_source *s, const struct unpack_platform *p,
                                 struct unpack_images *ret, struct err *e) MUST_CHECK;
void unpack_images_done(struct unpack_images *images);
/* Appends an empty image; returns NULL and sets *e when there are too many. */
struct unpack_image *unpack_images_add(struct unpack_images *images, struct err *e) MUST_CHECK;
/* Normalises a name and adds it, unless the image has it already. */
enum err_code unpack_image_add_name(struct unpack_image *image, const char *name, struct err *e) MUST_CHECK;
/* Parts of unpack_images_read(). */
enum err_code unpack_layout_read(const struct unpack_source *s, const struct unpack_platform *p,
                                 struct unpack_images *ret, struct err *e) MUST_CHECK;
enum err_code unpack_docker_read(const struct unpack_source *s, const struct unpack_platform *p,
                                 struct unpack_images *ret, struct err *e) MUST_CHECK;
/* Fills `record`, and allocates layers[] with their diff ids, from the configuration. */
enum err_code unpack_config_read(const json_t *config, const struct unpack_platform *p,
                                 struct unpack_image *image, struct err *e) MUST_CHECK;

/* ---- one tar stream onto the disk (unpack_stream.c, unpack_apply.c, unpack_path.c) ----------- */
enum unpack_kind {
    UNPACK_LAYER,   /* owners, modes, times, xattrs, whiteouts */
    UNPACK_ARCHIVE, /* the archive around an image: plain files (0600), folders (0700) and links only */
};

struct unpack_result {
    uint64_t bytes;            /* of regular files */
    uint64_t skipped_devices;  /* device nodes that were skipped, see unpack_apply_entry() */
    uint64_t borrowed_folders; /* folders missing in the tar, created with the metadata of lower layers */
};

/* The layers below a layer, topmost first (unpack_lower.c). */
struct unpack_lower {
    int fds[UNPACK_MAX_LAYERS];
    size_t n;
};
/*
 * Finds the folder `path` in the topmost layer that has it; links within that layer are followed as in a
 * chroot. Returns false if no layer has the folder, or if a higher layer has something else at that path.
 */
bool unpack_lower_find(const struct unpack_lower *lower, const char *path, struct stat *ret);
void unpack_lower_close(struct unpack_lower *lower);

/*
 * Reads a tar from fd to its end and applies it to the empty folder `root`.  The first bytes determine
 * whether it is plain, gzip or zstd.  `digest` and `size` are those that the bytes of fd must have ("" and
 * -1: not checked); `diff_id` is the digest that the uncompressed stream must have (NULL: not checked);
 * `lower` holds the layers below, for folders that the tar lacks (NULL: none).  ERR_DATA_LOSS: a digest or
 * size is wrong; ERR_INVALID: the tar is damaged or breaks a rule; ERR_EXHAUSTED: beyond a limit.
 */
enum err_code unpack_stream(int fd, const char *digest, int64_t size, const char *diff_id, int root,
                            enum unpack_kind kind, const struct unpack_lower *lower,
                            struct unpack_budget *budget, struct unpack_result *ret,
                            struct err *e) MUST_CHECK;

/*
 * unpack_path - resolves the names in a tar below `root`, one element at a time.  Up to 40 symbolic links on
 * the way are followed as if `root` were "/".  Images rely on this: a layer with the link "bin -> usr/bin"
 * may ship "bin/sh"; containerd does the same (continuity's fs.RootPath).  Each step opens one element
 * relative to a descriptor, and the kernel never resolves a whole path, so no name leads out of `root`.
 * Links of other layers have no effect, because each layer is unpacked into a separate folder.
 */
struct unpack_path {
    int root;
    int dir;           /* the folder of the last path; may equal root */
    char parent[4097]; /* its path, "" for the root; the next entry is often in the same folder */
    /* Called after a missing folder `name` was created in `dir`; `path` is its whole path.  May be NULL. */
    enum err_code (*on_made)(void *arg, int dir, const char *name, const char *path, struct err *e);
    void *arg;
};
void unpack_path_init(struct unpack_path *p, int root);
void unpack_path_forget(struct unpack_path *p); /* closes the last folder; also the destructor */
/*
 * Cleans a name from outside into ret (4097 bytes): removes leading "/" and "./", and doubled or trailing
 * slashes. "" is the root itself.  ERR_INVALID: an element is ".." or longer than 255 bytes, or the result is
 * longer than 4096 bytes.
 */
enum err_code unpack_path_clean(const char *name, char *ret, struct err *e) MUST_CHECK;
/*
 * Returns the folder that holds the last element of a cleaned, non-empty path.  The descriptor is borrowed
 * and valid until the next call; *ret_leaf points into `path`.  With `make`, missing folders are created and
 * spent from that budget: root's and 0755, unless on_made() changes that; a folder in place of a whiteout is
 * opaque.  Without `make`, a missing folder is ERR_NOT_FOUND.  ERR_INVALID: an element of the path is not a
 * folder, or there are too many links.
 */
int unpack_path_parent(struct unpack_path *p, const char *path, struct unpack_budget *make,
                       const char **ret_leaf, struct err *e) MUST_CHECK;

struct archive;
struct archive_entry;
struct unpack_apply; /* the state of a tar that is being applied */
/* `lower` (may be NULL) is borrowed until the end. */
enum err_code unpack_apply_new(struct unpack_apply **ret, int root, enum unpack_kind kind,
                               const struct unpack_lower *lower, struct unpack_budget *budget,
                               struct err *e) MUST_CHECK;
/*
 * Applies one entry of the tar `a`.  Rules for layers, in addition to those of unpack_path:
 *   - a later entry replaces an earlier one of the same name, except that two folders are merged;
 *   - a folder that the tar needs but lacks gets the owner, mode and time it has in the layers below, else
 *     root and 0755, as in containerd;
 *   - owner, mode, times, user.* and security.capability are kept, setuid too, because other users of the
 *     host cannot enter the store; other attributes are dropped, so that no layer can set trusted.overlay.*;
 *   - ".wh.<name>" becomes a whiteout of overlayfs (device 0/0), ".wh..wh..opq" becomes
 *     trusted.overlay.opaque; other ".wh..wh." names are aufs' bookkeeping and skipped.  A whiteout never
 *     hides files of its own layer;
 *   - a hard link must point to an earlier entry of this layer that is not a folder or a whiteout;
 *   - symbolic links are stored unchanged;
 *   - device nodes: only those that the OCI runtime specification gives to every container (null, zero, full,
 *     random, urandom, tty) are created, for chroots inside images.  Others are skipped, so that no layer can
 *     leave a node of a disk on the host; no container may open them anyway.  (containerd creates them all
 *     and relies on the device cgroup.)  They are counted unless they are below /dev, where the container's
 *     tmpfs covers them.  A tar cannot hold sockets.
 */
enum err_code unpack_apply_entry(struct unpack_apply *u, struct archive *a, struct archive_entry *entry,
                                 struct err *e) MUST_CHECK;
/* Call after the last entry: sets the times of the folders. */
enum err_code unpack_apply_finish(struct unpack_apply *u, struct unpack_result *ret,
                                  struct err *e) MUST_CHECK;
void unpack_apply_free(struct unpack_apply *u); /* accepts NULL */
SCOPE_DEFINE(struct unpack_apply, unpack_apply_free)

/* Sets the error of a failed libarchive call: ERR_EXHAUSTED when memory ran out, else ERR_INVALID. */
enum err_code unpack_archive_error(struct archive *a, const char *what, struct err *e);

/* ---- layers into the store (unpack_store.c) -------------------------------------------------- */
#define UNPACK_CONFIG ".config" /* parts/<hex of the image's id>.config: the unchanged configuration */
struct unpack_store {
    int work, layers, parts; /* parts may be -1: then only layers are kept */
    unsigned n_done;         /* layers unpacked by this run */
    uint64_t skipped_devices;
};
/*
 * Makes sure that every layer of the image is in the store; adds "layers" and "sizeBytes" to image->record. A
 * layer's name is its diff id.  A layer that borrows folders from lower layers (unpack_result) depends on
 * them; unless it is the lowest, its name is its chain id, which the OCI image specification defines as the
 * SHA-256 of "<chain id below> <diff id>".  The list has the form that overlayfs needs: it ends at a layer
 * whose root is opaque, and holds no layer twice (overlayfs refuses that; the topmost occurrence remains).
 */
enum err_code unpack_store_image(struct unpack_store *st, const struct unpack_source *s,
                                 struct unpack_image *image, struct unpack_budget *budget,
                                 struct err *e) MUST_CHECK;

/* ---- an image as an archive (unpack_export.c) ------------------------------------------------- */
#define UNPACK_WHITEOUT ".wh." /* in a layer's tar: the prefix of the hidden name */
#define UNPACK_OPAQUE ".wh..wh..opq"
struct unpack_export_image {
    const char *id_hex;
    char **layers; /* names in the store, lowest first; both lists end with NULL */
    char **names;
};
/*
 * Writes an OCI archive (tar) into `out`.  Each layer is packed again from its tree, so the archive is a new
 * image with other digests and another id.
 */
enum err_code unpack_export(int out, const struct unpack_export_image *image, int layers, int parts,
                            struct err *e) MUST_CHECK;

/* ---- verification of the store (unpack_sum.c, unpack_store.c, unpack_verify.c) ---- */
/*
 * SHA-256 over a tree: paths, modes, owners, times, attributes, hard links, content.  Changes the working
 * folder of the process during the call.
 */
enum err_code unpack_sum(int root, char ret[UNPACK_DIGEST_SIZE], uint64_t *ret_bytes,
                         struct err *e) MUST_CHECK;
/*
 * ERR_DATA_LOSS: the layer has changed; ERR_PRECONDITION: it was unpacked by a version that recorded no sum.
 */
enum err_code unpack_check_layer(int layers, const char *hex, uint64_t *ret_bytes, struct err *e) MUST_CHECK;
enum err_code unpack_check_config(int parts, const char *hex, uint64_t *ret_bytes, struct err *e) MUST_CHECK;
/*
 * Checks the parts named by the lines of `in`, and with `all` lists any other files of both folders.  Fills
 * `ret` as --verify prints it.
 */
enum err_code unpack_verify(FILE *in, bool all, int layers, int parts, json_t *ret, struct err *e) MUST_CHECK;

/* ---- confinement (unpack_confine.c) ---------------------------------------------------------- */
/*
 * Drops every right that parsing does not need; call it once all descriptors are open.  Always: no_new_privs,
 * no core dumps, rlimits, and capabilities reduced to CHOWN DAC_OVERRIDE FOWNER FSETID MKNOD SETFCAP
 * SYS_ADMIN (the last one only for trusted.* attributes).  If the kernel supports them: Landlock (5.19: reads
 * `source` and `blobs`, writes `work`, `layers` and `parts`), and a seccomp filter that forbids sockets,
 * programs, processes, mounts, namespaces, modules and device numbers other than the few below.  Features
 * that an old kernel lacks are skipped; an error means that a step failed which cannot fail on a working
 * kernel.
 */
struct unpack_confine {
    int source, blobs, work, layers, parts; /* -1: none */
    uint64_t max_bytes;
};
enum err_code unpack_confine(const struct unpack_confine *c, struct err *e) MUST_CHECK;
/* The devices that unpack_apply_entry() creates and the filter allows. */
struct unpack_device {
    unsigned major, minor; /* of a character device */
};
extern const struct unpack_device unpack_devices[];
extern const size_t unpack_n_devices;
#endif
