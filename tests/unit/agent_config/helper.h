/* SPDX-License-Identifier: Apache-2.0 */
/* helper - files in a scratch folder, and what `coracle run` would make of them. */
#ifndef TESTS_UNIT_AGENT_CONFIG_HELPER_H
#define TESTS_UNIT_AGENT_CONFIG_HELPER_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/config/config.h"
#include "base/buf.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KUBELET "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
#define OWN "apiVersion: coracle.dev/v1\nkind: CoracleConfiguration\n"
#define ARGS_MAX 40

struct scratch {
    char dir[64];
    char file[96]; /* the --config of every parse */
    struct agent_config c;
    struct err e;
    bool help;
};

static inline void put(const struct scratch *s, const char *name, const char *text)
{
    str_auto path = str_printf("%s/%s", s->dir, name);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static inline int scratch_setup(void **state)
{
    struct scratch *s = calloc(1, sizeof(*s));

    snprintf(s->dir, sizeof(s->dir), "/tmp/test-config-XXXXXX");
    if (mkdtemp(s->dir) == NULL)
        return -1;
    snprintf(s->file, sizeof(s->file), "%s/config.yaml", s->dir);
    put(s, "config.yaml", KUBELET);
    *state = s;
    return 0;
}

static inline int scratch_teardown(void **state)
{
    struct scratch *s = *state;
    str_auto command = str_printf("rm -rf %s", s->dir);

    config_done(&s->c);
    free(s);
    return system(command);
}

/* Flags are separated by blanks. */
static inline enum err_code parse(struct scratch *s, const char *flags)
{
    str_auto copy = strdup(flags);
    char *rest = copy, *word, *argv[ARGS_MAX] = { (char *)"run", (char *)"--config", s->file };
    int argc = 3;

    while ((word = strsep(&rest, " ")) != NULL && argc < ARGS_MAX)
        if (word[0] != '\0')
            argv[argc++] = word;
    config_done(&s->c);
    s->e = (struct err){ 0 };
    return config_parse(&s->c, argc, argv, &s->help, &s->e);
}

static inline void parses(struct scratch *s, const char *flags)
{
    if (parse(s, flags) != ERR_OK)
        fail_msg("%s", s->e.text);
}

/* The file holds `text` below its head, and is refused with an error that ends so. */
static inline void refused(struct scratch *s, const char *text, const char *flags, const char *message)
{
    str_auto file = str_printf("%s%s", KUBELET, text);

    put(s, "config.yaml", file);
    if (parse(s, flags) == ERR_OK)
        fail_msg("taken: %s %s", text, flags);
    assert_int_equal(s->e.code, ERR_INVALID);
    if (!str_ends(s->e.text, message))
        fail_msg("\"%s\" does not end with \"%s\"", s->e.text, message);
}

/* Where a value comes from, without the scratch folder. */
static inline void expect_from(struct scratch *s, const char *key, const char *from)
{
    json_auto_t *all = config_json(&s->c);
    const char *text = json_string_value(json_object_get(json_object_get(all, "sources"), key));
    str_auto plain = strdup(text != NULL ? text : "");

    for (char *at; (at = strstr(plain, s->dir)) != NULL;)
        memmove(at, at + strlen(s->dir) + 1, strlen(at + strlen(s->dir)));
    assert_string_equal(plain, from);
}

static inline void setting_is(struct scratch *s, const char *key, const char *json)
{
    const json_t *v = config_value(&s->c, key);
    mem_auto char *text = v != NULL ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    if (!str_eq(text, json))
        fail_msg("%s: %s, not %s", key, text != NULL ? text : "none", json != NULL ? json : "none");
}

static inline void add_name(const struct config_warning *w, void *arg)
{
    buf_addf(arg, "%s\n", w->setting);
}

/* The settings that are warned about, a line each, in their order. */
static inline void expect_warnings(struct scratch *s, const char *names)
{
    buf_auto found = BUF_INIT(65536);

    config_warnings(&s->c, add_name, &found);
    assert_string_equal(found.p, names);
}
#endif
