/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack - coracle-unpack, the helper that reads images from outside: archives, manifests and layers are
 * hostile input, so they are parsed in a process of its own that has given away what it does not need, and
 * never by the daemon.
 *
 *     coracle-unpack --source PATH --work DIR --layers DIR [--parts DIR] [--blobs DIR] [--name NAME]
 *                    [--platform OS/ARCH[/VARIANT]] [--max-bytes N] [--max-entries N] [--reserve-bytes N]
 *                    [--progress FD]
 *     coracle-unpack --verify some|all --layers DIR --parts DIR
 *     coracle-unpack --export ID --out FILE --layers DIR --parts DIR
 *     coracle-unpack --hash-name NAME
 *
 *     --source     an OCI layout folder, or an OCI archive or a docker archive (tar, tar+gzip, tar+zstd);
 *                  told apart by content: index.json makes it an OCI layout, else manifest.json a docker
 *                  archive.  What holds both (docker save since version 25) is read as OCI, because there
 *                  every part has a digest.
 *     --work       an empty folder for what is under way, on the file system of --layers; the caller
 *                  removes it afterwards
 *     --layers     the store's layers: <hex>/, complete as soon as the name is there; see
 * unpack_store_image()
 *     --parts      what is kept of an image beside its layers (UNPACK_CONFIG); without it nothing is
 *     --verify     reads lines "layer <hex>" and "config <hex>", compares each with the sum that was noted or
 *                  its name, and prints {"problems":[{"part","what"}],"bytes":N,"orphans":[]}; `all`: the
 *                  lines name all that should be there, and the rest is told as orphans
 *     --export     writes the image with this id (64 hex digits) as OCI archive into the existing file --out;
 *                  standard input has lines "layer <hex>", lowest first, and "name <name>"; prints {}
 *     --blobs      blobs of the layout, when they are not in <source>/blobs (skopeo --dest-shared-blob-dir)
 *     --name       what to call the image; ERR_INVALID when the source holds several
 *     --progress   the descriptor of a shared page to count into (unpack_progress.h)
 *     --platform   which image of a multi-platform index; default: this machine's
 *     --hash-name  only prints {"names":[{"name","ref"}]} for a name
 *
 * Success, exit status 0, one line on standard output:
 *     {"images":[{"id","digest","names":[{"name","ref"}],"layers":[their names, lowest first],"sizeBytes",
 *                 "created","env":[],"entrypoint":[],"cmd":[],"user","workingDir","stopSignal"}],
 *      "skippedDevices":N}
 * `names` are normalised (img_normalise), `ref` is the SHA-256 of the name (file name below refs/).  Failure,
 * exit status 1: {"error":text,"code":err_code_name()} and the same text on standard error.  Nothing is added
 * to --layers then, except whole, verified layers.
 *
 * What is checked: digest and size of every blob while it is read, the diff id of every layer (SHA-256 of its
 * uncompressed tar) before it gets its name.  What a layer may do, and how it lands on disk: see
 * unpack_apply() and unpack_path.
 *
 * Limits, each with its reason at the constant.  Confinement: unpack_confine().  One thread, blocking, one
 * run an image.
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

#define UNPACK_MAX_BYTES (16ull << 30) /* default; larger than any image that a node of ours should hold */
#define UNPACK_MAX_ENTRIES 1000000     /* default; a whole Debian desktop has 300,000 files */
#define UNPACK_RESERVE_BYTES                                                                                 \
    (64u << 20)                    /* default; what a full disk must leave the agent for its records         \
                                    */
#define UNPACK_MAX_LAYERS 128      /* Docker's limit is 127; overlayfs takes 500 */
#define UNPACK_MAX_IMAGES 64       /* of one archive; docker save takes a list */
#define UNPACK_MAX_NAMES 64        /* of one image */
#define UNPACK_MAX_VOLUMES 100     /* of one image; they have one or two */
#define UNPACK_MAX_JSON (4u << 20) /* index, manifest, config: registries refuse manifests over 4 MiB */
#define UNPACK_MAX_INDEX_DEPTH 4   /* index in an index: buildx nests once */
#define UNPACK_MAX_PARTS 20000     /* files in an archive: a blob each, and docker's old three a layer */
#define UNPACK_DIGEST_SIZE 72      /* "sha256:" + 64 + NUL */

struct unpack_progress;

/* ---- what one run may use up, all layers and the archive around them together ---------------- */
struct unpack_budget {
    uint64_t bytes, entries;          /* left */
    uint64_t reserve;                 /* free bytes that must remain on the file system */
    uint64_t until_check;             /* bytes that may be written before free space is looked at again */
    struct unpack_progress *progress; /* counts what is spent; NULL: nobody wants to know */
};
/* About to write n more bytes on fd's file system. ERR_EXHAUSTED: over the limit, or too little space left.
 */
enum err_code unpack_spend_bytes(struct unpack_budget *b, int fd, uint64_t n, struct err *e) MUST_CHECK;
enum err_code unpack_spend_entry(struct unpack_budget *b, struct err *e) MUST_CHECK;

/* ---- digests (unpack_digest.c) --------------------------------------------------------------- */
struct unpack_hash; /* SHA-256 under way */
enum err_code unpack_hash_new(struct unpack_hash **ret, struct err *e) MUST_CHECK;
enum err_code unpack_hash_add(struct unpack_hash *h, const void *data, size_t n, struct err *e) MUST_CHECK;
enum err_code unpack_hash_end(struct unpack_hash *h, char ret[UNPACK_DIGEST_SIZE], struct err *e) MUST_CHECK;
void unpack_hash_free(struct unpack_hash *h); /* NULL is fine */
SCOPE_DEFINE(struct unpack_hash, unpack_hash_free)
enum err_code unpack_hash_text(const void *data, size_t n, char ret[UNPACK_DIGEST_SIZE],
                               struct err *e) MUST_CHECK;
/* "sha256:" and 64 lower-case hex digits: the one algorithm that registries and layouts use for blobs. */
bool unpack_digest_is_valid(const char *digest);
static inline const char *unpack_digest_hex(const char *digest) /* of a valid one */
{
    return digest + 7;
}

/* ---- the source: a folder with the image's parts (unpack_source.c) --------------------------- */
struct unpack_source {
    int root;        /* holds index.json or manifest.json */
    int blobs;       /* holds sha256/<hex>; -1: a docker archive without */
    bool is_archive; /* root is our own copy, below the work folder */
};
/*
 * Takes nothing: `source` is an open file or folder, `work` the work folder, `blobs` the other blob folder or
 * -1.  An archive is first taken apart into <work>/source, by the rules for layers but plain files, folders
 * and links only.
 */
enum err_code unpack_source_open(struct unpack_source *ret, int source, int work, int blobs,
                                 struct unpack_budget *budget, struct err *e) MUST_CHECK;
void unpack_source_close(struct unpack_source *s);
/* A regular file of the source, never following a path out of it. */
int unpack_source_file(const struct unpack_source *s, const char *path, struct err *e) MUST_CHECK;
int unpack_source_blob(const struct unpack_source *s, const char *digest, struct err *e) MUST_CHECK;
/* A JSON blob with its digest and size (-1: unknown) verified; its bytes, too, when ret_text is not NULL. */
enum err_code unpack_source_json(const struct unpack_source *s, const char *digest, int64_t size,
                                 const char *what, json_t **ret, char **ret_text, size_t *ret_n,
                                 struct err *e) MUST_CHECK;

/* ---- images of a source (unpack_layout.c, unpack_docker.c, unpack_config.c) ------------------ */
struct unpack_layer {
    char diff_id[UNPACK_DIGEST_SIZE]; /* of the uncompressed tar */
    char digest[UNPACK_DIGEST_SIZE];  /* of the blob; "": a docker archive's file, which has none */
    int64_t size;                     /* of the blob; -1: not said */
    char *path;                       /* docker archive: file in the source */
    bool foreign;                     /* its descriptor leads to some other server */
    char name[UNPACK_DIGEST_SIZE];    /* in the store; "" before unpack_store_image() has settled it */
};

struct unpack_image {
    char id[UNPACK_DIGEST_SIZE];     /* of the configuration */
    char digest[UNPACK_DIGEST_SIZE]; /* of the manifest; a docker archive has none: the id */
    char **names;
    size_t n_names;
    struct unpack_layer *layers; /* lowest first */
    size_t n_layers;
    json_t *record; /* what the configuration says: env, entrypoint, ... as printed */
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

/* Reads the tables of contents, and picks the platform's image wherever there is a choice. */
enum err_code unpack_images_read(const struct unpack_source *s, const struct unpack_platform *p,
                                 struct unpack_images *ret, struct err *e) MUST_CHECK;
void unpack_images_done(struct unpack_images *images);
void unpack_image_done(struct unpack_image *image); /* its parts; not itself */
/* Room for one more; NULL and *e when there are too many. */
struct unpack_image *unpack_images_add(struct unpack_images *images, struct err *e) MUST_CHECK;
/* Adds a name, normalised, unless it is there already. */
enum err_code unpack_image_add_name(struct unpack_image *image, const char *name, struct err *e) MUST_CHECK;
/* Parts of unpack_images_read(). */
enum err_code unpack_layout_read(const struct unpack_source *s, const struct unpack_platform *p,
                                 struct unpack_images *ret, struct err *e) MUST_CHECK;
enum err_code unpack_docker_read(const struct unpack_source *s, const struct unpack_platform *p,
                                 struct unpack_images *ret, struct err *e) MUST_CHECK;
/* From the configuration: record, and layers[] with their diff ids (allocated here). */
enum err_code unpack_config_read(const json_t *config, const struct unpack_platform *p,
                                 struct unpack_image *image, struct err *e) MUST_CHECK;

/* ---- one tar stream onto the disk (unpack_stream.c, unpack_apply.c, unpack_path.c) ----------- */
enum unpack_kind {
    UNPACK_LAYER,   /* owners, modes, times, xattrs, whiteouts */
    UNPACK_ARCHIVE, /* the archive around an image: plain files (0600), folders (0700), links; no more is kept
                     */
};

struct unpack_result {
    uint64_t bytes;            /* of regular files */
    uint64_t skipped_devices;  /* device nodes that were left out: see unpack_apply() */
    uint64_t borrowed_folders; /* that the tar needs and does not bring: they depend on the layers below */
};

/* The layers below one, topmost first (unpack_lower.c). */
struct unpack_lower {
    int fds[UNPACK_MAX_LAYERS];
    size_t n;
};
/*
 * The folder `path` of the topmost layer that has it, links within that layer followed as in a chroot; false:
 * none has, or a layer above has something else there.
 */
bool unpack_lower_find(const struct unpack_lower *lower, const char *path, struct stat *ret);
void unpack_lower_close(struct unpack_lower *lower);

/*
 * Reads a tar (plain, gzip or zstd by its first bytes) from fd to its end and applies it to the empty folder
 * `root`. `digest`/`size`: what the bytes of fd must be ("" / -1: not checked); `diff_id`: what the
 * uncompressed stream must be (NULL: not checked); `lower`: see unpack_path_parent() (NULL: no layer below);
 * ERR_DATA_LOSS: a digest or size is wrong; ERR_INVALID: the tar is broken or breaks a rule; ERR_EXHAUSTED: a
 * limit.
 */
enum err_code unpack_stream(int fd, const char *digest, int64_t size, const char *diff_id, int root,
                            enum unpack_kind kind, const struct unpack_lower *lower,
                            struct unpack_budget *budget, struct unpack_result *ret,
                            struct err *e) MUST_CHECK;

/*
 * unpack_path - resolves the names in a tar below `root`, one element at a time.  A symbolic link on the way
 * is followed as if `root` were "/", at most 40 of them: images rely on it (a layer that brings the link "bin
 * -> usr/bin" may ship "bin/sh"), and containerd does the same (continuity's fs.RootPath).  Every step is
 * taken by us on a descriptor, never by the kernel along a path, so nothing leads out; links of other layers
 * are not seen: a layer is unpacked into a folder of its own.
 */
struct unpack_path {
    int root;
    int dir;           /* folder of the last path, may equal root */
    char parent[4097]; /* its path, "" for the root: tars come sorted, so the next one is mostly the same */
    /* A folder `name` was made in `dir` because something is to stand below it; `path`: all of its way. NULL:
     * nobody wants to know. */
    enum err_code (*on_made)(void *arg, int dir, const char *name, const char *path, struct err *e);
    void *arg;
};
void unpack_path_init(struct unpack_path *p, int root);
void unpack_path_forget(struct unpack_path *p); /* the last folder; also the destructor */
/*
 * Cleans a name from outside into ret (4097 bytes): leading "/" and "./" and doubled or trailing slashes go.
 * ERR_INVALID: a ".." element, an element over 255 bytes, over 4096 in all.  "" is the root itself.
 */
enum err_code unpack_path_clean(const char *name, char *ret, struct err *e) MUST_CHECK;
/*
 * The folder that holds the last element of a cleaned, non-empty path: a borrowed descriptor, valid until the
 * next call; *ret_leaf points into `path`.  Missing folders are made when `make` is given, which is asked for
 * each: 0755 and root's, or as on_made() sets it; in the place of a whiteout an opaque one.  NULL: then
 * ERR_NOT_FOUND.  ERR_INVALID when the path goes through something that is no folder, or through too many
 * links.
 */
int unpack_path_parent(struct unpack_path *p, const char *path, struct unpack_budget *make,
                       const char **ret_leaf, struct err *e) MUST_CHECK;

struct archive;
struct archive_entry;
struct unpack_apply; /* state of one tar being applied */
/* `lower` (may be NULL) is borrowed until the end. */
enum err_code unpack_apply_new(struct unpack_apply **ret, int root, enum unpack_kind kind,
                               const struct unpack_lower *lower, struct unpack_budget *budget,
                               struct err *e) MUST_CHECK;
/*
 * One entry of the tar `a`.  Rules for layers (beside those of unpack_path):
 *   - a later entry replaces an earlier one of that name, folder onto folder merges;
 *   - a folder that is needed and not brought gets owner, mode and time that it has in the layers below, else
 *     0755 and root's, as containerd does it;
 *   - owner, mode (with setuid: the store is closed to other users of the host), times, user.* and
 *     security.capability are kept; other attributes are dropped, so no layer can say trusted.overlay.*;
 *   - ".wh.<name>" becomes overlayfs' whiteout (device 0/0), ".wh..wh..opq" trusted.overlay.opaque; other
 *     ".wh..wh." names are aufs' bookkeeping and left out.  A whiteout never hides what its own layer brings;
 *   - hard links only to what this layer brought before, never to a folder or a whiteout;
 *   - symbolic links are stored as they are;
 *   - device nodes: containerd makes them all and trusts the device cgroup; here only those that every
 *     container gets by the OCI runtime specification (null, zero, full, random, urandom, tty) are made, for
 *     chroots inside images.  Others are left out, and counted unless they are below /dev, where the
 *     container's own tmpfs covers them: no container may open them anyway, and so no layer plants a node for
 *     a disk on the host.  Sockets cannot stand in a tar.
 */
enum err_code unpack_apply_entry(struct unpack_apply *u, struct archive *a, struct archive_entry *entry,
                                 struct err *e) MUST_CHECK;
/* After the last one: times of the folders. */
enum err_code unpack_apply_finish(struct unpack_apply *u, struct unpack_result *ret,
                                  struct err *e) MUST_CHECK;
void unpack_apply_free(struct unpack_apply *u); /* NULL is fine */
SCOPE_DEFINE(struct unpack_apply, unpack_apply_free)

/* Error text of a libarchive call that failed: ERR_INVALID, or ERR_EXHAUSTED when memory ended. */
enum err_code unpack_archive_error(struct archive *a, const char *what, struct err *e);

/* ---- layers into the store (unpack_store.c) -------------------------------------------------- */
#define UNPACK_CONFIG ".config" /* parts/<hex of the image's id>.config: the configuration as it came */
struct unpack_store {
    int work, layers, parts; /* parts -1: nothing is kept beside the layers */
    unsigned n_done;         /* layers unpacked by this run */
    uint64_t skipped_devices;
};
/*
 * Makes sure that every layer of the image is in the store; adds "layers" and "sizeBytes" to image->record.
 * A layer's name is its diff id.  One that borrows folders from the layers below (unpack_result) depends on
 * them: unless it is the lowest its name is its chain id, by the OCI image specification the SHA-256 of
 * "<chain id below> <diff id>".  The list is what overlayfs needs: nothing below a layer whose root is
 * opaque, no layer twice (overlayfs refuses that; the topmost one decides).
 */
enum err_code unpack_store_image(struct unpack_store *st, const struct unpack_source *s,
                                 struct unpack_image *image, struct unpack_budget *budget,
                                 struct err *e) MUST_CHECK;

/* ---- an image as an archive (unpack_export.c) ------------------------------------------------- */
#define UNPACK_WHITEOUT ".wh." /* in a layer's tar: before the name of what it hides */
#define UNPACK_OPAQUE ".wh..wh..opq"
struct unpack_export_image {
    const char *id_hex;
    char **layers; /* their names in the store, lowest first; NULL-terminated, as is the next */
    char **names;
};
/*
 * Writes an OCI archive (tar) into `out`.  Each layer is packed again from its tree, so the archive is a new
 * image with digests and an id of its own.
 */
enum err_code unpack_export(int out, const struct unpack_export_image *image, int layers, int parts,
                            struct err *e) MUST_CHECK;

/* ---- is the store still what was unpacked? (unpack_sum.c, unpack_store.c, unpack_verify.c) ---- */
/*
 * SHA-256 over a tree: paths, modes, owners, times, attributes, hard links, content.  The process' working
 * folder is elsewhere meanwhile.
 */
enum err_code unpack_sum(int root, char ret[UNPACK_DIGEST_SIZE], uint64_t *ret_bytes,
                         struct err *e) MUST_CHECK;
/* ERR_DATA_LOSS: it has changed; ERR_PRECONDITION: brought by a version that noted no sum. */
enum err_code unpack_check_layer(int layers, const char *hex, uint64_t *ret_bytes, struct err *e) MUST_CHECK;
enum err_code unpack_check_config(int parts, const char *hex, uint64_t *ret_bytes, struct err *e) MUST_CHECK;
/* The lines of `in` one by one, and with `all` what else lies in both folders; the answer is --verify's. */
enum err_code unpack_verify(FILE *in, bool all, int layers, int parts, json_t *ret, struct err *e) MUST_CHECK;

/* ---- confinement (unpack_confine.c) ---------------------------------------------------------- */
/*
 * Gives away what parsing does not need; called once everything outside is open.  Always: no_new_privs, no
 * core, rlimits, capabilities down to CHOWN DAC_OVERRIDE FOWNER FSETID MKNOD SETFCAP SYS_ADMIN (the last for
 * trusted.* attributes alone).  Where the kernel has it: Landlock (5.19: reads `source` and `blobs`, writes
 * `work`, `layers` and `parts`) and a seccomp filter that forbids sockets, programs, processes, mounts,
 * namespaces, modules and every device number but the few above.  ERR_*: only what cannot fail on a working
 * kernel; what an old one lacks is left out.
 */
struct unpack_confine {
    int source, blobs, work, layers, parts; /* -1: none */
    uint64_t max_bytes;
};
enum err_code unpack_confine(const struct unpack_confine *c, struct err *e) MUST_CHECK;
/* The device numbers that unpack_apply() makes and the filter lets through. */
struct unpack_device {
    unsigned major, minor; /* of a character device */
};
extern const struct unpack_device unpack_devices[];
extern const size_t unpack_n_devices;
#endif
