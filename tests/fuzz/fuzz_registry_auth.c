/* SPDX-License-Identifier: Apache-2.0 */
/* Pull secrets come with manifests: whatever is in one, each try is an auth file that skopeo can read. */
#include "agent/image/registry_auth.h"
#include "base/codec/json.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char key[SIPHASH_KEY_SIZE];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const repositories[] = { "docker.io/library/x", "r.io:5000/team/x", "[::1]/x" };
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < sizeof(repositories) / sizeof(repositories[0]); i++) {
        struct reg_tries t;
        struct err e = { 0 };

        if (reg_tries_plan(&t, text, i == 1 ? text : NULL, i == 2 ? text : NULL, repositories[i], key, &e) !=
            ERR_OK) {
            assert(e.text[0] != '\0' && t.n == 0);
            continue;
        }
        assert(t.n > 0 && t.n <= REG_AUTH_MAX_TRIES);
        for (size_t k = 0; k < t.n; k++) {
            json_t *file = t.v[k] == NULL ? NULL : json_loads(t.v[k], 0, NULL);

            assert(t.v[k] == NULL || json_is_object(json_object_get(file, "auths")));
            assert(t.whose[k] == NULL ||
                   (json_str(t.whose[k], "name") != NULL && strlen(json_str(t.whose[k], "hash")) == 16));
            json_decref(file);
        }
        reg_tries_done(&t);
    }
    free(text);
    return 0;
}
