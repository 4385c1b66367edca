/* SPDX-License-Identifier: Apache-2.0 */
/* helper - what the tests of agent/api share: cmocka, and decoding a text to compare problems with. */
#ifndef TESTS_UNIT_AGENT_API_HELPER_H
#define TESTS_UNIT_AGENT_API_HELPER_H
/* The order cmocka wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/api/manifest/decode.h"
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct decoded {
    struct api_objects objects;
    struct api_problems problems;
};

static inline void decode_n(struct decoded *d, const char *text, size_t n)
{
    struct err e = { 0 };

    memset(d, 0, sizeof(*d));
    assert_int_equal(api_decode_file("f.yaml", text, n, &d->objects, &d->problems, &e), ERR_OK);
}

static inline void decode(struct decoded *d, const char *text)
{
    decode_n(d, text, strlen(text));
}

static inline void decoded_done(struct decoded *d)
{
    api_objects_done(&d->objects);
    api_problems_done(&d->problems);
}

static inline void add_lines(struct buf *b, const char *indent, const char *lines)
{
    while (*lines != '\0') {
        size_t n = strcspn(lines, "\n");

        buf_addf(b, "%s%.*s\n", indent, (int)n, lines);
        lines += n + (lines[n] == '\n');
    }
}

/* A pod with one container "main"; more lines of that container and of the spec. */
static inline void decode_pod(struct decoded *d, const char *container, const char *spec)
{
    struct buf b = BUF_INIT(16 * 1024 * 1024);

    buf_adds(&b, "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
                 "  - name: main\n    image: busybox:1\n");
    add_lines(&b, "    ", container);
    add_lines(&b, "  ", spec);
    decode_n(d, b.p, b.n);
    buf_done(&b);
}

static inline void print_problems(const struct decoded *d)
{
    for (size_t i = 0; i < d->problems.n; i++) {
        struct buf text = BUF_INIT(1 << 20);

        api_problem_add_text(&d->problems.v[i], "", &text);
        print_message("got %s\n", text.p);
        buf_done(&text);
    }
}

static inline const struct api_pod *the_pod(const struct decoded *d)
{
    print_problems(d);
    assert_int_equal(d->problems.n, 0);
    assert_int_equal(d->objects.n, 1);
    assert_int_equal(d->objects.v[0].kind, API_KIND_POD);
    return d->objects.v[0].pod;
}

/* "field: message". */
static inline bool has_problem(const struct decoded *d, const char *wanted)
{
    for (size_t i = 0; i < d->problems.n; i++) {
        const struct api_problem *p = &d->problems.v[i];
        char text[2000];

        snprintf(text, sizeof(text), "%s%s%s", p->field, *p->field != '\0' ? ": " : "", p->message);
        if (strcmp(text, wanted) == 0)
            return true;
    }
    return false;
}

/* Exactly these problems (NULL-terminated), in any order. */
static inline void expect_problems_(const struct decoded *d, const char *const *wanted, const char *file,
                                    int line)
{
    size_t n = 0;
    bool ok = true;

    for (; wanted[n] != NULL; n++) {
        if (!has_problem(d, wanted[n])) {
            print_message("%s:%d: missing: %s\n", file, line, wanted[n]);
            ok = false;
        }
    }
    if (!ok || d->problems.n != n)
        print_problems(d);
    assert_true(ok);
    assert_int_equal(d->problems.n, n);
}
#define expect_problems(d, ...)                                                                              \
    expect_problems_((d), (const char *const[]){ __VA_ARGS__, NULL }, __FILE__, __LINE__)

/* A pod made of these lines has exactly these problems; or none. */
#define pod_is_bad(container, spec, ...)                                                                     \
    do {                                                                                                     \
        struct decoded d_;                                                                                   \
                                                                                                             \
        decode_pod(&d_, (container), (spec));                                                                \
        expect_problems(&d_, __VA_ARGS__);                                                                   \
        assert_int_equal(d_.objects.n, 0);                                                                   \
        decoded_done(&d_);                                                                                   \
    } while (0)

#define pod_is_good(container, spec)                                                                         \
    do {                                                                                                     \
        struct decoded d_;                                                                                   \
                                                                                                             \
        decode_pod(&d_, (container), (spec));                                                                \
        the_pod(&d_);                                                                                        \
        decoded_done(&d_);                                                                                   \
    } while (0)

#define text_is_bad(text, ...)                                                                               \
    do {                                                                                                     \
        struct decoded d_;                                                                                   \
                                                                                                             \
        decode(&d_, (text));                                                                                 \
        expect_problems(&d_, __VA_ARGS__);                                                                   \
        decoded_done(&d_);                                                                                   \
    } while (0)
#endif
