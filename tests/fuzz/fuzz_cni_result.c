/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a CNI plugin: any program's output.  What is accepted must survive every conversion with the
 * pod's addresses intact (0.1 and 0.2 have place for one of each family). */
#include "cni/plugin/names.h"
#include "cni/plugin/result.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_addresses(const struct cni_result *r)
{
    unsigned char raw[16];

    assert(r->n_ips <= CNI_IPS_MAX);
    for (size_t i = 0; i < r->n_ips; i++) {
        assert(memchr(r->ips[i], '\0', sizeof(r->ips[i])) != NULL);
        assert(inet_pton(AF_INET, r->ips[i], raw) == 1 || inet_pton(AF_INET6, r->ips[i], raw) == 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int versions[] = { CNI_V(0, 1, 0), CNI_V(0, 2, 0), CNI_V(0, 3, 0), CNI_V(0, 3, 1),
                                    CNI_V(0, 4, 0), CNI_V(1, 0, 0), CNI_V(1, 1, 0) };
    struct cni_result original = { 0 };
    struct err e = { 0 };
    json_t *v = NULL;

    if (cni_result_parse(&v, (const char *)data, size, CNI_V(1, 0, 0), &e) != ERR_OK) {
        assert(e.code != ERR_OK && v == NULL);
        return 0;
    }
    assert(cni_result_addresses(&original, v, CNI_V(1, 0, 0), "eth0", &e) == ERR_OK);
    check_addresses(&original);
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct cni_result again = { 0 };
        json_t *other = NULL;

        assert(cni_result_convert(&other, v, CNI_V(1, 0, 0), versions[i], &e) == ERR_OK);
        assert(cni_version_number(json_string_value(json_object_get(other, "cniVersion"))) == versions[i]);
        assert(cni_result_addresses(&again, other, versions[i], "eth0", &e) == ERR_OK);
        check_addresses(&again);
        if (versions[i] >= CNI_V(0, 3, 0))
            assert(memcmp(&again, &original, sizeof(again)) == 0);
        else
            assert((again.n_ips == 0) == (original.n_ips == 0));
        json_decref(other);
    }
    json_decref(v);
    return 0;
}
