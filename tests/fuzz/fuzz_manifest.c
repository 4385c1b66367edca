/* SPDX-License-Identifier: Apache-2.0 */
/* Whole manifests: whatever the bytes, either objects or problems come out, and an object reads back from its
 * own JSON. */
#include "agent/api/manifest/decode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pod(const struct api_pod *pod)
{
    struct api_problems problems = { 0 };
    struct api_pod *again = NULL;
    struct err e = { 0 };
    json_t *json = json_loads(pod->json, 0, NULL);
    char why[100];

    assert(json != NULL);
    assert(api_decode_pod(json, &again, &problems, &e) == ERR_OK);
    assert(again != NULL && problems.n == 0);
    assert(strcmp(again->json, pod->json) == 0);
    assert(again->qos == pod->qos);
    assert(!api_pod_edit_needs_restart(pod, again, why, sizeof(why)));
    json_decref(json);
    api_pod_unref(again);
    api_problems_done(&problems);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct api_problems problems = { 0 };
    struct api_objects objects = { 0 };
    struct err e = { 0 };

    assert(api_decode_file("f", (const char *)data, size, &objects, &problems, &e) == ERR_OK);
    assert(problems.n <= API_PROBLEMS_MAX);
    for (size_t i = 0; i < problems.n; i++)
        assert(problems.v[i].message[0] != '\0' && problems.v[i].place.line <= size + 1);
    for (size_t i = 0; i < objects.n; i++) {
        if (objects.v[i].kind == API_KIND_POD)
            check_pod(objects.v[i].pod);
    }
    api_objects_done(&objects);
    api_problems_done(&problems);
    return 0;
}
