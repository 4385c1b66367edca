/* SPDX-License-Identifier: Apache-2.0 */
/* A file of declarations: whatever its bytes, it is taken with all fields within their bounds, or refused
 * with a text and nothing of it is in force. */
#include "agent/declared/decl.h"
#include "base/scope.h"
#include "deviceplugin/resource_name.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t max)
{
    assert(text == NULL || (text[0] != '\0' && strlen(text) <= max));
}

static void check_match(const struct decl_match *m)
{
    check_text(m->subsystem, DECL_PATH_MAX);
    check_text(m->serial, DECL_PATH_MAX);
    check_text(m->port, DECL_PATH_MAX);
    assert(m->vendor == NULL || strlen(m->vendor) == 4);
    assert(m->product == NULL || strlen(m->product) == 4);
    assert(m->n_attributes <= DECL_ATTRIBUTES_MAX);
    for (size_t i = 0; i < m->n_attributes; i++)
        assert(m->attributes[i].name[0] != '/' && m->attributes[i].value[0] != '\0');
}

static void check_member(const struct decl_member *m)
{
    assert((m->path == NULL) == (m->type == DECL_USB));
    assert(m->path == NULL || (m->path[0] == '/' && strstr(m->path, "/../") == NULL));
    check_text(m->path, DECL_PATH_MAX);
    check_text(m->mount_path, DECL_PATH_MAX);
    check_text(m->env, DECL_PATH_MAX);
    assert(m->permissions[0] != '\0' && strspn(m->permissions, "rwm") == strlen(m->permissions));
    assert(m->limit >= 1 && m->limit <= DECL_COUNT_MAX);
    check_match(&m->match);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mem_auto char *text = malloc(size + 1);
    struct api_problems problems = { 0 };
    struct decl_file f;
    struct err e = { 0 };
    enum err_code code;

    assert(text != NULL);
    memcpy(text, data, size);
    code = decl_parse("fuzz", text, size, &f, &problems, &e);
    assert(code == ERR_OK);
    assert(problems.n == 0 || f.n == 0);
    assert(f.n <= DECL_RESOURCES_MAX);
    for (size_t i = 0; i < problems.n; i++)
        assert(problems.v[i].message[0] != '\0');
    for (size_t i = 0; i < f.n; i++) {
        assert(dp_resource_name_ok(f.v[i].name));
        assert(f.v[i].n_groups >= 1 && f.v[i].n_groups <= DECL_GROUPS_MAX);
        for (size_t g = 0; g < f.v[i].n_groups; g++) {
            assert(f.v[i].groups[g].n >= 1 && f.v[i].groups[g].n <= DECL_MEMBERS_MAX);
            assert(f.v[i].groups[g].count >= 1 && f.v[i].groups[g].count <= DECL_COUNT_MAX);
            for (size_t k = 0; k < f.v[i].groups[g].n; k++)
                check_member(&f.v[i].groups[g].v[k]);
        }
    }
    api_problems_done(&problems);
    decl_done(&f);
    return 0;
}
