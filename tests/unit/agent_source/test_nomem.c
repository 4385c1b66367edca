/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of store and claims can fail: an error comes back, nothing leaks, and what was there
 * stays. */
#include "agent/source/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/base/nomem.h"

#define POD(name, image)                                                                                     \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name "}\nspec: {containers: [{name: c, image: " image     \
    "}]}\n"

static struct api_objects decode(const char *yaml)
{
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };
    struct err e = { 0 };

    assert_int_equal(api_decode_file("x.yaml", yaml, strlen(yaml), &objects, &problems, &e), ERR_OK);
    assert_int_equal(problems.n, 0);
    api_problems_done(&problems);
    return objects;
}

/* A copy that can be given away. */
static struct api_objects share(const struct api_objects *from, struct api_object *room)
{
    for (size_t i = 0; i < from->n; i++)
        room[i] = api_object_ref(&from->v[i]);
    return (struct api_objects){ .v = room, .n = from->n };
}

static void an_object_is_put_or_not(void **state)
{
    struct api_objects one, two;
    bool ok = false;

    (void)state;
    one = decode(POD("a", "x:1"));
    two = decode(POD("a", "x:2"));
    NOMEM_EACH(ok, {
        struct src_store *s = src_store_new();
        struct err e = { 0 };

        ok = s != NULL;
        if (s != NULL) {
            ok = src_store_put(s, &one.v[0], &e) == ERR_OK;
            if (!ok && (e.code != ERR_EXHAUSTED || src_store_pod(s, API_FROM_FOLDER, "default", "a") != NULL))
                abort();
            e = (struct err){ 0 };
            ok = src_store_put(s, &two.v[0], &e) == ERR_OK && ok;
            src_store_remove(s, API_FROM_FOLDER, API_KIND_POD, "default", "a");
        }
        src_store_free(s);
    });
    api_objects_done(&one);
    api_objects_done(&two);
}

static void a_file_is_in_force_or_blocked(void **state)
{
    struct api_objects objects;
    bool ok = false;

    (void)state;
    objects = decode(POD("a", "x:1") "---\n" POD("b", "x:1"));
    NOMEM_EACH(ok, {
        struct src_store *s = src_store_new();
        struct object_claims c = { .store = s };
        struct holder h = { .name = "a.yaml" };
        struct api_object *room = calloc(2, sizeof(*room));

        ok = s != NULL && room != NULL;
        if (ok) {
            struct api_objects mine = share(&objects, room);

            room = NULL;
            ok = object_claims_adopt(&c, &h, &mine, true, 1);
            if (ok != !h.blocked || (h.blocked && h.problems.n == 0 && h.problems.dropped == 0))
                abort();
            object_claims_release(&c, &h, 1);
            object_claims_flush(&c, 2);
            if (src_store_pod(s, API_FROM_FOLDER, "default", "a") != NULL ||
                src_store_pod(s, API_FROM_FOLDER, "default", "b") != NULL)
                abort(); /* half of a file must not stay behind */
        }
        api_problems_done(&h.problems);
        object_claims_done(&c);
        src_store_free(s);
        free(room);
    });
    api_objects_done(&objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_put_or_not),
        cmocka_unit_test(a_file_is_in_force_or_blocked),
    };

    return NOMEM_RUN(tests);
}
