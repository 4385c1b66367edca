/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_auth - which credentials a repository is asked with, by kubelet's rules (pkg/credentialprovider).
 *
 * Sources are the pod's imagePullSecrets in their order, then the node's own auth file; each is a Docker
 * config.json.  An entry's key is a host or a host with the beginning of a path ("quay.io/team"), host parts
 * may be globs ("*.azurecr.io"); https:// and /v1/ or /v2/ count for nothing.  All entries that match are
 * tried, the longest path first; the node's after the secrets'.  The node's file may also name credential
 * helpers (credHelpers, credsStore), which skopeo runs.
 *
 * skopeo takes credentials from a file only: each try is the text of one.  Beside the entry that is tried it
 * holds those of other registries, for mirrors.  Pure: no files, no processes.
 *
 * A secret may come as {"namespace","name","uid","config":{...}}: then each try tells whose it is, in the
 * form in which an image's record keeps it (image_access.c): {"namespace","name","uid","hash"}, the hash
 * keyed.
 */
#ifndef AGENT_IMAGE_REGISTRY_AUTH_H
#define AGENT_IMAGE_REGISTRY_AUTH_H
#include "base/error.h"

#include "base/siphash.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define REG_AUTH_MAX (4u << 20) /* bytes of all that is given: a Secret may have 1 MiB */
#define REG_AUTH_MAX_TRIES 32   /* credentials for one image; more are passed over */
#define REG_AUTH_PLAN_MAX                                                                                    \
    (8u << 20) /* bytes of all files that are tried for one image: each holds all entries */

struct reg_tries { /* { 0 } before */
    char *v[REG_AUTH_MAX_TRIES];
    json_t *whose[REG_AUTH_MAX_TRIES]; /* NULL: the node's, anonymous, or of a secret without a name */
    size_t bytes;                      /* of all v */
    size_t n;                          /* never 0 after a success; v[0] may be NULL: without credentials */
    bool with_secrets;                 /* entries of secrets stand in all of them, whosesoever the try is */
};

/*
 * `secrets`: one config.json or a JSON array of such; `node`: one; NULL: none.  `repository`: normalised,
 * without tag and digest.  `key` is for the hashes.  ERR_INVALID names the source that is not JSON, or the
 * largest Secret where the tries hold more than REG_AUTH_PLAN_MAX.
 */
enum err_code reg_tries_plan(struct reg_tries *ret, const char *secrets, const char *node,
                             const char *repository, const unsigned char key[SIPHASH_KEY_SIZE],
                             struct err *e) MUST_CHECK;
void reg_tries_done(struct reg_tries *t); /* overwrites them */
#endif
