/* SPDX-License-Identifier: Apache-2.0 */
/*
 * $(VAR) expansion: the input is the text, then names and values of variables, apart by NUL; the last
 * variable counts as a Secret's.  What comes out is compared with the rules written down once more, the plain
 * way.
 */
#include "agent/pod/env/env.h"
#include "tests/fuzz/text.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VARS_MAX 16

/* $$ is $; $(NAME) is its value, or stays; all else stays. */
static void expand_plainly(struct buf *out, const char *s, const struct env *env, bool *ret_missing)
{
    while (*s != '\0') {
        const char *close = s[0] == '$' && s[1] == '(' ? strchr(s, ')') : NULL;
        size_t n = close != NULL ? (size_t)(close - s) - 2 : 0;
        const char *value = NULL;

        if (s[0] == '$' && s[1] == '$') {
            buf_addc(out, '$');
            s += 2;
            continue;
        }
        if (close == NULL) {
            buf_addc(out, *s++);
            continue;
        }
        for (size_t i = 0; i < env->n; i++)
            if (strlen(env->v[i].name) == n && memcmp(env->v[i].name, s + 2, n) == 0)
                value = env->v[i].value;
        *ret_missing = *ret_missing || value == NULL || value[0] == '\0';
        if (value != NULL)
            buf_adds(out, value);
        else
            buf_add(out, s, n + 3);
        s = close + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = text_of(data, size), *end = copy + size, *at = copy;
    struct env_var vars[VARS_MAX];
    struct env env = { .v = vars };
    struct arena a = { 0 };
    buf_auto want = BUF_INIT(64 * 1024 * 1024);
    const char *missing = NULL;
    bool some_missing = false;
    char *got;

    if (copy == NULL)
        return 0;
    for (at += strlen(at) + 1; at < end && env.n < VARS_MAX; env.n++) {
        vars[env.n].name = at;
        at += strlen(at) + 1;
        if (at >= end)
            break;
        vars[env.n].value = at;
        at += strlen(at) + 1;
    }
    expand_plainly(&want, copy, &env, &some_missing);
    got = env_expand(copy, &env, &a, &missing);
    if (got == NULL || want.failed) {
        if (want.n < ENV_BYTES_MAX / 2 && !want.failed)
            abort(); /* refused though it is small */
    } else if (strlen(got) != want.n || (want.n > 0 && memcmp(got, want.p, want.n) != 0) ||
               (missing != NULL) != some_missing) {
        abort();
    } else if (env.n > 0) {
        env.secrets = &vars[env.n - 1].value;
        env.n_secrets = env.cap_secrets = 1;
        env_redact(&env, got);
        env_wipe(&env);
    }
    arena_done(&a);
    free(copy);
    return 0;
}
