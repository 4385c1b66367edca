/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/seal/seal.h"

#include "base/scope.h"

#include <limits.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

SCOPE_DEFINE(EVP_CIPHER_CTX, EVP_CIPHER_CTX_free)

static enum err_code seal_fault(struct err *e)
{
    return err_set(e, ERR_INTERNAL, "OpenSSL does not support AES-256-GCM");
}

static bool seal_fits(struct str head, struct str text)
{
    return head.n <= INT_MAX && text.n <= INT_MAX - SEAL_TAG_SIZE;
}

/* Sets the key, the nonce and the head. */
static bool seal_begin(EVP_CIPHER_CTX *c, const unsigned char *key, const unsigned char *nonce,
                       struct str head, int encrypt)
{
    int n = 0;

    return EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, NULL, NULL, encrypt) == 1 &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, SEAL_NONCE_SIZE, NULL) == 1 &&
           EVP_CipherInit_ex(c, NULL, NULL, key, nonce, encrypt) == 1 &&
           EVP_CipherUpdate(c, NULL, &n, (const unsigned char *)head.p, (int)head.n) == 1;
}

enum err_code seal_text(const unsigned char key[SEAL_KEY_SIZE], struct str head, struct str text,
                        struct buf *ret, struct err *e)
{
    scoped(EVP_CIPHER_CTX_free) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    unsigned char *at;
    int n = 0, last = 0;

    if (!seal_fits(head, text))
        return err_set(e, ERR_EXHAUSTED, "it is too large to be sealed");
    at = (unsigned char *)buf_room(ret, SEAL_NONCE_SIZE + text.n + SEAL_TAG_SIZE);
    if (c == NULL || at == NULL)
        return err_nomem(e);
    if (RAND_bytes(at, SEAL_NONCE_SIZE) != 1 || !seal_begin(c, key, at, head, 1) ||
        EVP_CipherUpdate(c, at + SEAL_NONCE_SIZE, &n, (const unsigned char *)text.p, (int)text.n) != 1 ||
        EVP_CipherFinal_ex(c, at + SEAL_NONCE_SIZE + n, &last) != 1 || (size_t)n + (size_t)last != text.n ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG_SIZE, at + SEAL_NONCE_SIZE + text.n) != 1) {
        ret->p[ret->n] = '\0';
        return seal_fault(e);
    }
    ret->n += SEAL_NONCE_SIZE + text.n + SEAL_TAG_SIZE;
    ret->p[ret->n] = '\0';
    return ERR_OK;
}

enum err_code seal_open(const unsigned char key[SEAL_KEY_SIZE], struct str head, struct str sealed,
                        struct buf *ret, struct err *e)
{
    scoped(EVP_CIPHER_CTX_free) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    const unsigned char *data = (const unsigned char *)sealed.p;
    unsigned char tag[SEAL_TAG_SIZE], *at;
    size_t size;
    int n = 0, last = 0;

    if (sealed.n < SEAL_NONCE_SIZE + SEAL_TAG_SIZE || !seal_fits(head, sealed))
        return err_set(e, ERR_DATA_LOSS, "the sealed data is truncated");
    size = sealed.n - SEAL_NONCE_SIZE - SEAL_TAG_SIZE;
    at = (unsigned char *)buf_room(ret, size);
    if (c == NULL || at == NULL)
        return err_nomem(e);
    memcpy(tag, data + SEAL_NONCE_SIZE + size, sizeof(tag));
    if (!seal_begin(c, key, data, head, 0))
        return seal_fault(e);
    if (EVP_CipherUpdate(c, at, &n, data + SEAL_NONCE_SIZE, (int)size) != 1 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, sizeof(tag), tag) != 1 ||
        EVP_CipherFinal_ex(c, at + n, &last) != 1) {
        explicit_bzero(at, size); /* unauthenticated data must not be used */
        ret->p[ret->n] = '\0';
        return err_set(e, ERR_DATA_LOSS, "it was sealed with another key, under another name, or is damaged");
    }
    ret->n += size;
    ret->p[ret->n] = '\0';
    return ERR_OK;
}
