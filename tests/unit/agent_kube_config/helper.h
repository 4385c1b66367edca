/* SPDX-License-Identifier: Apache-2.0 */
/* helper - a scratch folder with kubeconfig files, and what they give. */
#ifndef TESTS_UNIT_AGENT_KUBE_CONFIG_HELPER_H
#define TESTS_UNIT_AGENT_KUBE_CONFIG_HELPER_H
/* The order cmocka wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kube/config/message.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define CERTIFICATE "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
#define CERTIFICATE64 "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
#define KEY "-----BEGIN EC PRIVATE KEY-----\nBBBB\n-----END EC PRIVATE KEY-----\n"

struct place {
    char dir[40];
    char *list;         /* KUBECONFIG, with "@" for the folder's path and a slash */
    const char *env[4]; /* for proxies and plugins */
    struct kube_flags flags;
    struct kube_config all;
    struct kube_choice choice;
    struct kube_message message;
    struct err e;
};

static inline char *at_place(const struct place *p, const char *text)
{
    buf_auto out = BUF_INIT(1 << 20);

    for (; *text != '\0'; text++) {
        if (*text == '@')
            buf_addf(&out, "%s/", p->dir);
        else
            buf_addc(&out, *text);
    }
    return buf_detach(&out);
}

static inline int place_setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    strcpy(p->dir, "/tmp/test-kubeconfig.XXXXXX");
    *state = p;
    return mkdtemp(p->dir) != NULL ? 0 : -1;
}

static inline void place_reset(struct place *p)
{
    kube_message_done(&p->message);
    kube_choice_done(&p->choice);
    kube_config_done(&p->all);
    p->e = (struct err){ 0 };
}

static inline int place_teardown(void **state)
{
    struct place *p = *state;
    struct err e = { 0 };

    place_reset(p);
    free(p->list);
    if (fs_remove_tree(AT_FDCWD, p->dir, &e) != ERR_OK)
        return -1;
    free(p);
    return 0;
}

static inline void put(struct place *p, const char *name, const char *text)
{
    str_auto path = str_printf("%s/%s", p->dir, name);
    str_auto folder = strndup(path, (size_t)(strrchr(path, '/') - path));
    struct err e = { 0 };

    assert_int_equal(fs_mkdirs(folder, 0700, &e), ERR_OK);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, false, &e), ERR_OK);
}

static inline void use_list(struct place *p, const char *list)
{
    free(p->list);
    p->list = at_place(p, list);
}

/* Everything up to the message. */
static inline enum err_code take(struct place *p)
{
    struct kube_ask ask = { .flags = p->flags, .list = p->list, .home = p->dir };

    place_reset(p);
    if (kube_config_load(&p->all, &ask, &p->e) == ERR_OK &&
        kube_config_choose(&p->choice, &p->all, &p->flags, &p->e) == ERR_OK &&
        kube_config_check(&p->choice, &p->all, &p->e) == ERR_OK)
        ERR_IGNORE(kube_message_make(&p->message, &p->choice, p->env, &p->e));
    return p->e.code;
}

/* The message as text, sorted; "@" in `expected` is the folder. */
static inline void gives(struct place *p, const char *expected)
{
    str_auto wanted = at_place(p, expected);
    mem_auto char *text = NULL;

    if (take(p) != ERR_OK)
        fail_msg("%s", p->e.text);
    text = json_dumps(p->message.json, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, wanted);
}

static inline void is_refused(struct place *p, const char *expected)
{
    str_auto wanted = at_place(p, expected);

    if (take(p) == ERR_OK)
        fail_msg("accepted, instead of: %s", wanted);
    assert_string_equal(p->e.text, wanted);
}

/* One file "a" with this cluster and this user. */
static inline void put_one(struct place *p, const char *cluster, const char *user)
{
    str_auto text = str_printf("clusters: [{name: c, cluster: %s}]\nusers: [{name: u, user: %s}]\n"
                               "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
                               cluster, user);

    put(p, "a", text);
    use_list(p, "@a");
}
#define SERVER "{server: 'https://h.test'}"
#endif
