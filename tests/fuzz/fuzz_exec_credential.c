/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of an exec credential plugin: it has a token or a whole pair, or it is refused. */
#include "agent/kube/config/exec.h"
#include "agent/kube/config/pem.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as(const char *version, const uint8_t *data, size_t size)
{
    struct kube_exec_answer a = { 0 };
    struct err e = { 0 };

    if (kube_exec_read(&a, (const char *)data, size, version, &e) == ERR_OK) {
        assert(a.token != NULL || a.certificate != NULL);
        assert((a.certificate == NULL) == (a.key == NULL));
        assert(a.token == NULL || a.token[0] != '\0');
        assert(a.certificate == NULL || (pem_has_certificate(a.certificate) && pem_has_key(a.key)));
    } else {
        assert(e.code == ERR_INVALID && e.text[0] != '\0');
        assert(a.token == NULL && a.certificate == NULL && a.key == NULL);
    }
    kube_exec_answer_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_as(KUBE_EXEC_V1, data, size);
    read_as(KUBE_EXEC_V1BETA1, data, size);
    return 0;
}
