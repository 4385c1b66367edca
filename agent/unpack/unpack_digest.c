/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"

#include <openssl/evp.h>
#include <string.h>

struct unpack_hash {
    EVP_MD_CTX *ctx;
};

enum err_code unpack_hash_new(struct unpack_hash **ret, struct err *e)
{
    struct unpack_hash *h = calloc(1, sizeof(*h));

    if (h != NULL)
        h->ctx = EVP_MD_CTX_new();
    if (h == NULL || h->ctx == NULL || EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1) {
        unpack_hash_free(h);
        return err_nomem(e); /* SHA-256 is always available, so this is a failed allocation */
    }
    *ret = h;
    return ERR_OK;
}

enum err_code unpack_hash_add(struct unpack_hash *h, const void *data, size_t n, struct err *e)
{
    if (EVP_DigestUpdate(h->ctx, data, n) != 1)
        return err_set(e, ERR_INTERNAL, "SHA-256 failed");
    return ERR_OK;
}

enum err_code unpack_hash_end(struct unpack_hash *h, char ret[UNPACK_DIGEST_SIZE], struct err *e)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    char *out = ret + 7;

    if (EVP_DigestFinal_ex(h->ctx, sum, &n) != 1 || n != 32)
        return err_set(e, ERR_INTERNAL, "SHA-256 failed");
    memcpy(ret, "sha256:", 7);
    for (unsigned i = 0; i < n; i++) {
        *out++ = hex[sum[i] >> 4];
        *out++ = hex[sum[i] & 15];
    }
    *out = '\0';
    return ERR_OK;
}

void unpack_hash_free(struct unpack_hash *h)
{
    if (h == NULL)
        return;
    EVP_MD_CTX_free(h->ctx);
    free(h);
}

enum err_code unpack_hash_text(const void *data, size_t n, char ret[UNPACK_DIGEST_SIZE], struct err *e)
{
    scoped(unpack_hash_free) struct unpack_hash *h = NULL;

    if (unpack_hash_new(&h, e) != ERR_OK || unpack_hash_add(h, data, n, e) != ERR_OK)
        return e->code;
    return unpack_hash_end(h, ret, e);
}

bool unpack_digest_is_valid(const char *digest)
{
    return digest != NULL && strlen(digest) == 7 + 64 && memcmp(digest, "sha256:", 7) == 0 &&
           strspn(digest + 7, "0123456789abcdef") == 64;
}
