/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/host/scaffold.h"

#include "base/scope.h"
#include "cni/host/rules.h"

#include <stdio.h>
#include <string.h>

#define GROUP_CHAINS 3

struct chain {
    const char *name;
    const char *targets[3]; /* of the scaffold's own rules */
};

static const struct group {
    const char *table;
    struct chain chains[GROUP_CHAINS];
} groups[] = {
    { "nat",
      { { "CNI-HOSTPORT-DNAT", { NULL } },
        { "CNI-HOSTPORT-SETMARK", { "MARK" } },
        { "CNI-HOSTPORT-MASQ", { "MASQUERADE" } } } },
    { "filter", { { "CNI-FORWARD", { "CNI-ADMIN" } }, { "CNI-ADMIN", { NULL } } } },
    { "filter",
      { { "CNI-ISOLATION-STAGE-1", { "CNI-ISOLATION-STAGE-2", "RETURN" } },
        { "CNI-ISOLATION-STAGE-2", { "DROP", "RETURN" } } } },
};

static const struct chain *find_chain(const struct group *g, const char *name)
{
    for (size_t i = 0; i < GROUP_CHAINS && g->chains[i].name != NULL; i++) {
        if (strcmp(g->chains[i].name, name) == 0)
            return &g->chains[i];
    }
    return NULL;
}

/* ---- the text ---- */

struct rule {
    char chain[CNI_RULES_WORD];                   /* its chain */
    char target[CNI_RULES_WORD];                  /* of -j or -g; "" for none */
    char in[CNI_RULES_WORD], out[CNI_RULES_WORD]; /* of -i and -o; "" for none */
};

static bool scaffold_parse_rule(const char *line, struct rule *ret)
{
    char word[CNI_RULES_WORD];

    *ret = (struct rule){ 0 };
    if (strncmp(line, "-A ", 3) != 0)
        return false;
    line += 3;
    if (!cni_rules_word(&line, ret->chain, sizeof(ret->chain)))
        return false;
    while (cni_rules_word(&line, word, sizeof(word))) {
        char *value = strcmp(word, "-j") == 0 || strcmp(word, "-g") == 0 ? ret->target
                      : strcmp(word, "-i") == 0                          ? ret->in
                      : strcmp(word, "-o") == 0                          ? ret->out
                                                                         : NULL;

        if (value != NULL)
            cni_rules_word(&line, value, CNI_RULES_WORD);
        else if (strcmp(word, "--comment") == 0) /* its text may have the form of an option */
            cni_rules_word(&line, word, sizeof(word));
    }
    return true;
}

/* ":CHAIN policy [0:0]" */
static bool parse_chain(const char *line, char ret[CNI_RULES_WORD])
{
    return line[0] == ':' && (line++, cni_rules_word(&line, ret, CNI_RULES_WORD));
}

/* ---- finding ---- */

struct find {
    struct strs *ret;
    bool ok;
};

static bool find_line(const char *table, const char *line, void *arg)
{
    struct find *f = arg;
    char name[CNI_RULES_WORD];

    if (!parse_chain(line, name))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(groups) && f->ok; i++) {
        if (strcmp(groups[i].table, table) == 0 && find_chain(&groups[i], name) != NULL)
            f->ok = strs_take(f->ret, str_printf("%s %s", table, name));
    }
    return f->ok;
}

enum err_code cni_scaffold_find(const char *save, struct strs *ret, struct err *e)
{
    struct find f = { .ret = ret, .ok = true };

    cni_rules_each(save, find_line, &f);
    return f.ok ? ERR_OK : err_nomem(e);
}

/* ---- removing ---- */

struct removal {
    const struct group *group;
    bool (*link_exists)(const char *name);
    bool present, used;
    struct buf *out;
};

static bool own_rule(const struct chain *c, const struct rule *r, bool (*link_exists)(const char *name))
{
    bool known = false;

    for (size_t i = 0; i < ARRAY_LEN(c->targets); i++)
        known = known || str_eq(c->targets[i], r->target);
    return known && (r->in[0] == '\0' || !link_exists(r->in)) && (r->out[0] == '\0' || !link_exists(r->out));
}

static bool scaffold_look(const char *table, const char *line, void *arg)
{
    struct removal *v = arg;
    char name[CNI_RULES_WORD];
    struct rule r;

    if (strcmp(table, v->group->table) != 0)
        return true;
    if (parse_chain(line, name)) {
        v->present = v->present || find_chain(v->group, name) != NULL;
    } else if (scaffold_parse_rule(line, &r)) {
        const struct chain *in = find_chain(v->group, r.chain);

        if (in != NULL ? !own_rule(in, &r, v->link_exists)
                       : find_chain(v->group, r.target) != NULL && !cni_rules_is_built_in(r.chain))
            v->used = true;
    }
    return !v->used;
}

static bool remove_rule(const char *table, const char *line, void *arg)
{
    struct removal *v = arg;
    struct rule r;

    if (strcmp(table, v->group->table) == 0 && scaffold_parse_rule(line, &r) &&
        (find_chain(v->group, r.chain) != NULL || find_chain(v->group, r.target) != NULL))
        buf_addf(v->out, "-D %.*s\n", (int)(strchrnul(line, '\n') - line - 3), line + 3);
    return true;
}

static bool remove_chain(const char *table, const char *line, void *arg)
{
    struct removal *v = arg;
    char name[CNI_RULES_WORD];

    if (strcmp(table, v->group->table) == 0 && parse_chain(line, name) && find_chain(v->group, name) != NULL)
        buf_addf(v->out, "-X %s\n", name);
    return true;
}

static bool was_there(const struct group *g, const struct strs *before)
{
    for (size_t i = 0; i < GROUP_CHAINS && g->chains[i].name != NULL; i++) {
        char name[2 * CNI_RULES_WORD];

        snprintf(name, sizeof(name), "%s %s", g->table, g->chains[i].name);
        if (strs_has(before, name))
            return true;
    }
    return false;
}

enum err_code cni_scaffold_removal(const char *save, const struct strs *before,
                                   bool (*link_exists)(const char *name), struct buf *ret, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        struct removal v = { .group = &groups[i], .link_exists = link_exists, .out = ret };

        if (was_there(v.group, before))
            continue;
        cni_rules_each(save, scaffold_look, &v);
        if (!v.present || v.used)
            continue;
        buf_addf(ret, "*%s\n", v.group->table);
        cni_rules_each(save, remove_rule, &v);
        cni_rules_each(save, remove_chain, &v);
        buf_adds(ret, "COMMIT\n");
    }
    return buf_check(ret, e);
}
