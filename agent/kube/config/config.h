/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config - kubeconfig files: which are read, their common content, and the part that a client uses. The
 * rules are those of k8s.io/client-go/tools/clientcmd (loader.go, client_config.go, validation.go):
 *
 *   files     --kubeconfig alone; else the list KUBECONFIG (empty elements, repeats and missing files are
 *             skipped); else $HOME/.kube/config. A file that cannot be read or decoded fails everything.
 *   merging   the first file with an entry of a name has it whole; the first current-context that is not
 *             empty counts. Relative paths are relative to their file.
 *   choosing  --context, else current-context; --cluster and --user, else those of the context. Flags for
 *             single values stand above the files.
 *
 * Unlike kubectl, a client of ours has no prompt and no localhost:8080: a cluster without a server, and a
 * user without credentials for an https server, are errors (kube_config_check()).
 *
 * Values are JSON objects with the fields' own names ("certificate-authority-data"); each was checked when
 * its file was read, fields that a kubeconfig does not have were left out, and so were empty values. Blocking
 * (reads files). Any thread, no globals. Texts of errors have no secrets.
 */
#ifndef AGENT_KUBE_CONFIG_CONFIG_H
#define AGENT_KUBE_CONFIG_CONFIG_H
#include "base/error.h"
#include "base/strs.h"

#include <jansson.h>
#include <stdbool.h>

#define KUBE_CONFIG_FILES_MAX 64 /* of KUBECONFIG */

/* ---- the question: NULL means not given ---- */
struct kube_flags {
    const char *kubeconfig, *context, *cluster, *user, *namespace_;
    const char *server, *tls_server_name, *ca; /* --certificate-authority */
    bool insecure, no_compression;
    const char *certificate, *key, *token, *username, *password; /* --client-certificate, --client-key */
    const char *as, *as_uid;
    const char *const *as_groups; /* NULL-terminated */
};

struct kube_ask {
    struct kube_flags flags;
    const char *list; /* KUBECONFIG */
    const char *home; /* HOME */
};

/* The part of an environment ("K=V", NULL-terminated) that counts. */
struct kube_ask kube_ask_of(const char *const *environment);
const char *kube_env(const char *const *environment, const char *name); /* NULL: not set */

/* ---- the common content of the files ---- */
struct kube_entry {
    char *name;
    const char *from; /* the file: an element of kube_config.files */
    json_t *value;
};
struct kube_entries {
    struct kube_entry *v; /* in the order of files, and in them */
    size_t n;
};
enum kube_kind { KUBE_CONTEXT, KUBE_CLUSTER, KUBE_USER, KUBE_KINDS };

struct kube_config { /* { 0 } is empty */
    struct kube_entries of[KUBE_KINDS];
    char *current; /* current-context; NULL: not set */
    const char *current_from;
    struct strs files, missing; /* read; skipped because they do not exist */
};

/* ERR_NOT_FOUND: the file of --kubeconfig does not exist; ERR_INVALID, ERR_PERMISSION...: one or more files
 * cannot be used; the text names each with entry and field. */
enum err_code kube_config_load(struct kube_config *ret, const struct kube_ask *ask, struct err *e) MUST_CHECK;
void kube_config_done(struct kube_config *c); /* wipes secrets */
/* One file's text, for kube_config_load() and the fuzzer. `path`: its name for people, and where relative
 * paths begin. Adds to *c the entries that it lacks. */
enum err_code kube_config_add(struct kube_config *c, const char *path, const char *text, size_t n,
                              struct err *e) MUST_CHECK;

/* ---- the choice of a client ---- */
struct kube_part {
    char *name;        /* NULL: none */
    const char *named; /* by a file, or a flag; NULL: by none */
    const char *from;  /* the file that has the entry; NULL: no file has it */
    json_t *value;     /* never NULL: {} where there is nothing */
    json_t *origin;    /* for each member of `value`: its file, or its flag */
};
struct kube_choice { /* { 0 } is empty; borrows `named` and `from` from the kube_config */
    struct kube_part of[KUBE_KINDS];
    char *server; /* normalised: "https://host:port/prefix", without a slash at the end; NULL: none, or not
                     valid */
    bool tls;     /* whether it is https: only then credentials are sent, but for those in the URL */
    char *url_user, *url_password; /* of the server's URL, decoded; NULL: none */
    char *proxy;                   /* NULL: none, or that of the environment */
};

/* ERR_NOT_FOUND: a flag names an entry that no file has. */
enum err_code kube_config_choose(struct kube_choice *ret, const struct kube_config *all,
                                 const struct kube_flags *flags, struct err *e) MUST_CHECK;
void kube_choice_done(struct kube_choice *c);
/* Whether a client of ours can use it. ERR_INVALID: all that is wrong, separated by "; ". Looks whether the
 * files of certificates and keys can be read. */
enum err_code kube_config_check(const struct kube_choice *c, const struct kube_config *all,
                                struct err *e) MUST_CHECK;

/* For users and programs (`coracle config kubeconfig`): the origin of each value; secrets only by their
 * length and a fingerprint. {"files", "missing", "context", "cluster", "user": {"name", "named", "from",
 * "values": {"server": {"value", "from"}, ...}}, "server", "proxy"}; a new reference, NULL: out of memory. */
json_t *kube_config_show(const struct kube_choice *c, const struct kube_config *all);
#endif
