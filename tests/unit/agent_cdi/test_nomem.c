/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a read and of a resolution can fail: an error comes back, and nothing leaks. */
#include "agent/cdi/internal.h"
#include "base/files/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/base/nomem.h"

/* YAML: jansson's reader asserts where it has no memory. */
#define SPEC                                                                                                 \
    "cdiVersion: 0.7.0\nkind: x.com/a\ncontainerEdits: {env: [A=1]}\ndevices:\n- name: 1a\n"                 \
    "  containerEdits: {deviceNodes: [{path: /dev/x}], mounts: [{hostPath: /a, containerPath: /b}], "        \
    "hooks: [{hookName: prestart, path: /h, args: [a]}], additionalGids: [5], intelRdt: {closID: c}}\n"      \
    "- {name: 2a, containerEdits: {env: [B=2]}}\n"

static void a_folder_is_read_and_resolved_or_not(void **state)
{
    const char *const names[] = { "x.com/a=1a", "x.com/a=2a" };
    char dir[] = "/tmp/test-cdi.XXXXXX", path[64];
    struct err e = { 0 };
    bool ok = false;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/a.yaml", dir);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, SPEC, strlen(SPEC), 0644, false, &e), ERR_OK);
    const char *const dirs[] = { dir, NULL };
    json_object_seed(1); /* before allocations are counted */
    NOMEM_EACH(ok, {
        struct cdi_content *content = NULL;
        struct cdi_resolved r = { 0 };
        struct err why = { 0 };

        ok = cdi_content_read(dirs, &content, &why) == ERR_OK;
        if (!ok && why.code == ERR_OK)
            abort();
        if (ok && content->problems.dropped == 0) {
            if (content->n_entries != 2)
                abort();
            ok = cdi_content_resolve(content, names, 2, &r, &why) == ERR_OK;
            if (ok && (r.edits.n_env != 2 || r.edits.n_nodes != 1 || r.edits.rdt == NULL))
                abort();
        }
        cdi_resolved_done(&r);
        cdi_content_unref(content);
    });
    assert_int_equal(fs_remove_tree(AT_FDCWD, dir, &e), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_read_and_resolved_or_not),
    };

    return NOMEM_RUN(tests);
}
