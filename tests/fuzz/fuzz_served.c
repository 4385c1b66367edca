/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of an apiserver: whatever it sends, either an object or an error comes out; a pod has a name and at
 * most a reason why it cannot run, and reads back from its own JSON, as its record does. */
#include "agent/api/manifest/decode.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pod(const struct api_pod *pod)
{
    struct api_problems problems = { 0 };
    struct api_pod *again = NULL;
    struct err e = { 0 };
    json_t *json = json_loads(pod->json, 0, NULL);

    assert(pod->meta.name != NULL && pod->meta.namespace != NULL);
    assert(pod->spec.n_containers > 0);
    assert(pod->served.deletion_grace_seconds >= 0);
    assert(json != NULL);
    assert(api_decode_pod(json, &again, &problems, &e) == ERR_OK);
    assert(again != NULL && problems.n == 0);
    assert(strcmp(again->json, pod->json) == 0);
    assert(api_pod_serve(again, &pod->served, &e) == ERR_OK);
    assert(again->origin == API_FROM_SERVER);
    json_decref(json);
    api_pod_unref(again);
    api_problems_done(&problems);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *object = json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    struct api_object made;
    struct err e = { 0 };

    if (object == NULL)
        return 0;
    if (api_decode_served(object, &made, &e) == ERR_OK) {
        assert(api_object_origin(&made) == API_FROM_SERVER);
        if (made.kind == API_KIND_POD)
            check_pod(made.pod);
        api_object_unref(&made);
    } else {
        assert(e.text[0] != '\0');
    }
    json_decref(object);
    return 0;
}
