/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_auth - the credentials to try for a repository, by kubelet's rules (pkg/credentialprovider).
 *
 * Sources are the pod's imagePullSecrets in order, then the node's auth file, then the answers of image
 * credential providers (provider/provider.h); each is a Docker config.json. An entry's key is a host,
 * optionally with a path prefix ("quay.io/team"); host parts may be globs ("*.azurecr.io"); https:// and /v1/
 * or /v2/ are ignored. All matching entries are tried, source by source, longest path first. The node's file
 * may also name credential helpers (credHelpers, credsStore), which skopeo runs.
 *
 * skopeo only reads credentials from a file, so each try is the text of one. Besides the entry being tried,
 * the file has the entries of other registries, for mirrors. Pure: no files, no processes.
 *
 * A secret may have the form {"namespace","name","uid","config":{...}}: then each try names its secret in the
 * format of an image's record (image_access.c): {"namespace","name","uid","hash"}, with a keyed hash.
 */
#ifndef AGENT_IMAGE_REGISTRY_AUTH_H
#define AGENT_IMAGE_REGISTRY_AUTH_H
#include "base/error.h"

#include "base/siphash.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define REG_AUTH_MAX (4u << 20) /* bytes of all input: a Secret may have 1 MiB */
#define REG_AUTH_MAX_TRIES 32   /* tries per image; further credentials are ignored */
/* bytes of all files for one image: each has all entries */
#define REG_AUTH_PLAN_MAX (8u << 20)

struct reg_tries { /* initialize to { 0 } */
    char *v[REG_AUTH_MAX_TRIES];
    json_t *whose[REG_AUTH_MAX_TRIES]; /* NULL: the node's, anonymous, or of an unnamed secret */
    size_t bytes;                      /* of all v */
    size_t n;                          /* never 0 after a success; v[0] may be NULL: no credentials */
    bool with_secrets;                 /* all of them contain entries of secrets */
    /* The leading tries that have an entry for the repository: of a secret; of the node's file; of any
     * source. */
    size_t n_secrets, n_node, n_own;
};

/* `secrets` and `provided`: one config.json or a JSON array of them; `node`: one; all may be NULL.
 * `repository`: normalised, without tag and digest. `key`: for the hashes. ERR_INVALID names the source that
 * is not JSON, or the largest Secret if the tries exceed REG_AUTH_PLAN_MAX. */
enum err_code reg_tries_plan(struct reg_tries *ret, const char *secrets, const char *node,
                             const char *provided, const char *repository,
                             const unsigned char key[SIPHASH_KEY_SIZE], struct err *e) MUST_CHECK;
void reg_tries_done(struct reg_tries *t); /* overwrites them */
#endif
