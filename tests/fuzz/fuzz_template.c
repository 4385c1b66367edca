/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of `coracle get`: jsonpath, Go templates, custom columns. The first byte chooses the language. */
#include "agent/cli/template/template.h"
#include "tests/fuzz/text.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char document[] =
    "{\"kind\":\"List\",\"n\":3,\"f\":0.5,\"t\":true,\"z\":null,\"l\":{\"a.b/"
    "c\":\"d\",\"x\":\"y\"},\"s\":\"aGk=\","
    "\"items\":[{\"name\":\"one\",\"ips\":[{\"ip\":\"10.0.0.1\"},{\"ip\":\"fd00::1\"}]},{\"name\":\"two\"}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static json_t *value;
    struct buf out = BUF_INIT(64 * 1024), spec = BUF_INIT(64 * 1024);
    struct err e = { 0 };
    char *text;

    if (value == NULL)
        value = json_loads(document, 0, NULL);
    if (size == 0 || (text = text_of(data + 1, size - 1)) == NULL)
        return 0;
    switch (data[0]) {
    case 'j':
        (void)!cli_jsonpath(text, value, &out, &e);
        break;
    case 'g':
        (void)!cli_go_template(text, value, &out, &e);
        break;
    case 'f':
        if (cli_columns_of_file(text, &spec, &e) == ERR_OK)
            (void)!cli_columns(spec.p, json_object_get(value, "items"), true, &out, &e);
        break;
    default:
        (void)!cli_columns(text, json_object_get(value, "items"), true, &out, &e);
    }
    assert((e.code == ERR_OK) == (e.text[0] == '\0'));
    buf_done(&out);
    buf_done(&spec);
    free(text);
    return 0;
}
