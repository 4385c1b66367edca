/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of podresources.  The bytes are those of python3-protobuf for the same content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "deviceplugin/message/podresources.h"
#include "deviceplugin/proto/podresources.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEV "example.com/dev"

static void assert_bytes(const struct buf *b, const char *hex)
{
    char *text = calloc(2, b->n + 1);

    assert_non_null(text);
    for (size_t i = 0; i < b->n; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)b->p[i]);
    assert_string_equal(text, hex);
    free(text);
}

static void answers_have_the_bytes_of_the_public_definition(void **state)
{
    static const int64_t one[] = { 1 }, zero[] = { 0 }, two[] = { 0, 300 };
    struct dp_podres a;
    struct err e = { 0 };

    (void)state;
    dp_podres_begin(&a);
    dp_podres_pod(&a, "a", "default");
    dp_podres_container(&a, "sidecar");
    dp_podres_device(&a, DEV, "dev-3", one, 1);
    dp_podres_container(&a, "main");
    dp_podres_device(&a, DEV, "dev-1", zero, 1);
    dp_podres_device(&a, DEV, "dev-2", two, 2);
    dp_podres_pod(&a, "b", "x");
    dp_podres_container(&a, "main");
    assert_int_equal(dp_podres_end(&a, &e), ERR_OK);
    assert_bytes(&a.out,
                 "0a80010a0161120764656661756c741a290a0773696465636172121e0a0f6578616d706c652e636f6d2f646576"
                 "12056465762d331a040a0208011a470a046d61696e121c0a0f6578616d706c652e636f6d2f6465761205646576"
                 "2d311a020a0012210a0f6578616d706c652e636f6d2f64657612056465762d321a070a000a0308ac020a0e0a01"
                 "621201781a060a046d61696e");
    dp_podres_done(&a);

    dp_podres_begin(&a);
    dp_podres_device(&a, DEV, "dev-0", NULL, 0);
    dp_podres_device(&a, DEV, "dev-1", one, 1);
    assert_int_equal(dp_podres_end(&a, &e), ERR_OK);
    assert_bytes(&a.out,
                 "0a180a0f6578616d706c652e636f6d2f64657612056465762d300a1e0a0f6578616d706c652e636f6d2f646576"
                 "12056465762d311a040a020801");
    dp_podres_done(&a);

    dp_podres_begin(&a);
    assert_int_equal(dp_podres_end(&a, &e), ERR_OK);
    assert_int_equal(a.out.n, 0);
    dp_podres_done(&a);
}

static void processors_and_memory_have_the_bytes_of_the_public_definition(void **state)
{
    static const int64_t zero[] = { 0 }, cpus[] = { 1, 2, 300 };
    struct dp_podres a;
    struct err e = { 0 };

    (void)state;
    dp_podres_begin(&a);
    dp_podres_pod(&a, "a", "default");
    dp_podres_container(&a, "main");
    dp_podres_device(&a, DEV, "dev-1", zero, 1);
    dp_podres_cpus(&a, cpus, 3);
    dp_podres_memory(&a, "memory", 1ull << 30, 1 | 1ull << 63);
    dp_podres_memory(&a, "hugepages-2Mi", 0, 2);
    assert_int_equal(dp_podres_end(&a, &e), ERR_OK);
    assert_bytes(&a.out,
                 "0a670a0161120764656661756c741a590a046d61696e121c0a0f6578616d706c652e636f6d2f64657612056465"
                 "762d311a020a001a040102ac0222160a066d656d6f72791080808080041a060a000a02083f22150a0d68756765"
                 "70616765732d324d691a040a020801");
    dp_podres_done(&a);

    dp_podres_begin(&a);
    dp_podres_device(&a, DEV, "dev-0", NULL, 0);
    dp_podres_cpus(&a, cpus, 2);
    dp_podres_memory(&a, "memory", 4096, 2);
    assert_int_equal(dp_podres_end(&a, &e), ERR_OK);
    assert_bytes(&a.out,
                 "0a180a0f6578616d706c652e636f6d2f64657612056465762d30120201021a110a066d656d6f72791080201a04"
                 "0a020801");
    dp_podres_done(&a);
}

/* 110 pods share all devices that a resource may have. */
static void a_large_node_is_written_in_one_pass(void **state)
{
    enum { PODS = 110, EACH = 595 };
    static const int64_t numa[] = { 1 };
    V1__ListPodResourcesResponse *all;
    struct dp_podres a;
    struct err e = { 0 };
    char id[32];

    (void)state;
    dp_podres_begin(&a);
    for (int p = 0; p < PODS; p++) {
        dp_podres_pod(&a, "a-pod-with-a-name-of-usual-length-5d8f7", "default");
        dp_podres_container(&a, "main");
        for (int d = 0; d < EACH; d++) {
            snprintf(id, sizeof(id), "GPU-3fe1a5b2-%05d", p * EACH + d);
            dp_podres_device(&a, "example.com/gpu-of-usual-length", id, numa, 1);
        }
    }
    assert_int_equal(dp_podres_end(&a, &e), ERR_OK);
    all = v1__list_pod_resources_response__unpack(NULL, a.out.n, (const uint8_t *)a.out.p);
    assert_non_null(all);
    assert_int_equal(all->n_pod_resources, PODS);
    assert_int_equal(all->pod_resources[PODS - 1]->containers[0]->n_devices, EACH);
    assert_string_equal(all->pod_resources[0]->containers[0]->devices[7]->device_ids[0],
                        "GPU-3fe1a5b2-00007");
    assert_int_equal(all->pod_resources[0]->containers[0]->devices[7]->topology->nodes[0]->id, 1);
    v1__list_pod_resources_response__free_unpacked(all, NULL);
    dp_podres_done(&a);
}

static void an_answer_that_no_client_takes_is_an_error(void **state)
{
    struct dp_podres a;
    struct err e = { 0 };
    char *id = calloc(1, (1 << 20) + 1);

    (void)state;
    assert_non_null(id);
    memset(id, 'x', 1 << 20);
    dp_podres_begin(&a);
    dp_podres_pod(&a, "a", "default");
    dp_podres_container(&a, "main");
    for (int i = 0; i < 17; i++)
        dp_podres_device(&a, DEV, id, NULL, 0);
    assert_int_equal(dp_podres_end(&a, &e), ERR_EXHAUSTED);
    assert_string_equal(e.text, "the answer is larger than 16 MiB, or there is no memory for it");
    dp_podres_done(&a);
    free(id);
}

static void a_request_names_a_pod(void **state)
{
    static const uint8_t full[] = "\x0a\x01"
                                  "a\x12\x07"
                                  "default",
                         broken[] = "\x0a\x09"
                                    "a";
    struct dp_podres_request asked;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(dp_podres_request_unpack(&asked, full, sizeof(full) - 1, &e), ERR_OK);
    assert_string_equal(asked.name, "a");
    assert_string_equal(asked.namespace_, "default");
    dp_podres_request_done(&asked);
    assert_int_equal(dp_podres_request_unpack(&asked, full, 0, &e), ERR_OK);
    assert_string_equal(asked.name, "");
    assert_string_equal(asked.namespace_, "");
    dp_podres_request_done(&asked);
    assert_int_equal(dp_podres_request_unpack(&asked, broken, sizeof(broken) - 1, &e), ERR_INVALID);
    dp_podres_request_done(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_have_the_bytes_of_the_public_definition),
        cmocka_unit_test(processors_and_memory_have_the_bytes_of_the_public_definition),
        cmocka_unit_test(a_large_node_is_written_in_one_pass),
        cmocka_unit_test(an_answer_that_no_client_takes_is_an_error),
        cmocka_unit_test(a_request_names_a_pod),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
