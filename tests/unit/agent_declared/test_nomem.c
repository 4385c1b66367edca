/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation can fail: an ordinary error comes back, nothing is lost of what is there, nothing leaks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/declared/list.h"
#include "base/scope.h"

#include "tests/unit/base/nomem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* JSON, because libyaml takes a lack of memory for an error of the text. */
static const char text[] =
    "{\"domain\": \"example.com\", \"devices\": [{\"name\": \"x\", \"groups\": ["
    "{\"count\": 2, \"paths\": [{\"path\": \"/dev/nul[l]\", \"env\": \"X\", \"mountPath\": \"/dev/\", "
    "\"match\": {\"attributes\": {\"dev\": \"1:*\"}}}, {\"path\": \"/dev/zer?\", \"optional\": true, "
    "\"limit\": 2}]}, {\"paths\": [{\"path\": \"/dev/full\"}]}, "
    "{\"usb\": [{\"vendor\": \"1\", \"product\": \"2\"}]}]}]}";

static enum err_code parse(struct decl_file *f, struct err *e)
{
    struct api_problems problems = { 0 };
    enum err_code code = decl_parse("x", text, sizeof(text) - 1, f, &problems, e);

    if (code == ERR_OK && (f->n != 1 || problems.n > 0))
        abort();
    api_problems_done(&problems);
    return code;
}

static void a_file_is_read_whole_or_not_at_all(void **state)
{
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct decl_file f = { 0 };
        struct err e = { 0 };
        enum err_code code = parse(&f, &e);

        if (code != ERR_OK && code != ERR_EXHAUSTED)
            abort();
        ok = code == ERR_OK;
        decl_done(&f);
    });
}

/* A match that memory lacks for is not one that is gone. */
static void a_look_is_whole_or_unknown(void **state)
{
    struct decl_file f = { 0 };
    struct err before = { 0 };
    bool ok = false;

    (void)state;
    assert_int_equal(parse(&f, &before), ERR_OK);
    NOMEM_EACH(ok, {
        const struct decl_resource *r = &f.v[0];
        const struct look_job job = { .v = &r, .n = 1, .sys_dir = "/sys", .dev_dir = "/dev" };
        buf_auto out = BUF_INIT(1 << 20);
        struct look l = { 0 };
        struct err e = { 0 };

        ok = look_run(&job, &out, &e) == ERR_OK;
        if (!ok && e.code != ERR_EXHAUSTED)
            abort();
        /* jansson may take a lack of memory for an error of the text. */
        ok = ok && look_read(out.p, out.n, look_count(&job), &l, &e) == ERR_OK;
        for (size_t i = 0; ok && i < 3; i++) {
            if (l.members[i].unknown == NULL && l.members[i].n != 1)
                abort();
            ok = ok && l.members[i].unknown == NULL;
        }
        look_done(&l);
    });
    decl_done(&f);
}

static void a_list_is_made_whole_or_not_at_all(void **state)
{
    const struct look_match matches[] = { { .path = "/dev/null", .id = "/dev/null", .node = "c1:3" },
                                          { .path = "/dev/zero", .id = "/dev/zero", .node = "c1:5" },
                                          { .path = "/dev/full", .id = "/dev/full", .node = "c1:7" } };
    const struct look_member found[] = {
        { .v = &matches[0], .n = 1 }, { .v = &matches[1], .n = 1 }, { .v = &matches[2], .n = 1 }, { 0 }
    };
    static const char *const ids[] = { "/dev/full", "/dev/null", "/dev/null#2" };
    struct decl_file f = { 0 };
    struct err before = { 0 };
    bool ok = false;

    (void)state;
    assert_int_equal(parse(&f, &before), ERR_OK);
    NOMEM_EACH(ok, {
        struct decl_list l = { 0 };
        struct dp_answer *a = NULL;
        struct err e = { 0 };

        ok = decl_list_make(&l, &f.v[0], found, &(struct decl_list){ 0 }, &e) == ERR_OK;
        if (ok && l.n != 3)
            abort();
        ok = ok && decl_list_answer(&l, ids, 3, &a, &e) == ERR_OK;
        if (!ok && e.code != ERR_EXHAUSTED)
            abort();
        if (ok && (a->n_nodes != 3 || a->n_envs != 1))
            abort();
        free(a);
        decl_list_done(&l);
    });
    decl_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole_or_not_at_all),
        cmocka_unit_test(a_look_is_whole_or_unknown),
        cmocka_unit_test(a_list_is_made_whole_or_not_at_all),
    };

    return NOMEM_RUN(tests);
}
