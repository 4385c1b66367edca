/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a write in Kubernetes' protobuf: an error with a text, or an object with its type. */
#include "agent/kube/apiserver/proto.h"
#include "base/codec/json.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *object = NULL;
    struct err e = { 0 };

    if (proto_to_json(data, size, &object, &e) == ERR_OK) {
        assert(json_str(object, "kind") != NULL && json_str(object, "apiVersion") != NULL);
        json_decref(object);
    } else {
        assert(object == NULL && e.text[0] != '\0');
    }
    return 0;
}
