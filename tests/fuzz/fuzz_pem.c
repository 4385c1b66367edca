/* SPDX-License-Identifier: Apache-2.0 */
/* PEM texts of the node's port: its certificate and key, and the CAs of clients.  The first byte says which.
 */
#include "agent/kube/server/tls.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *certificate, *key;
    struct tls_settings o = { 0 };
    SSL_CTX *context;
    struct err e = { 0 };
    struct tls t;
    char *text;

    if (size == 0)
        return 0;
    text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 2 == 0)
        o.certificate = text;
    else
        o.client_ca = text;
    if (certificate == NULL && tls_self_signed("node", &certificate, &key, &e) != ERR_OK)
        abort();
    if (o.certificate == NULL) {
        o.certificate = certificate;
        o.key = key;
    }
    if (tls_context_new(&context, &o, &e) == ERR_OK) {
        if (tls_init(&t, context, &e) == ERR_OK)
            tls_done(&t);
        SSL_CTX_free(context);
    }
    free(text);
    return 0;
}
