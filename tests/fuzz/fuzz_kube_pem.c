/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate as an apiserver hands it over, and a key that comes back from the disk. */
#include "agent/kube/decide/x509.h"
#include "tests/fuzz/text.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *pem = text_of(data, size);
    json_t *addresses = json_pack("[{s:s, s:s}]", "type", "InternalIP", "address", "10.0.0.1");
    struct x509_times t;
    struct err e = { 0 };
    EVP_PKEY *key = NULL;

    if (pem != NULL) {
        if (x509_certificate(pem, NULL, &t, &e) != ERR_OK && e.text[0] == '\0')
            abort();
        x509_names_are(pem, addresses);
        if (x509_key_read(pem, &key, &(struct err){ 0 }) == ERR_OK)
            EVP_PKEY_free(key);
    }
    json_decref(addresses);
    free(pem);
    return 0;
}
