/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/registry_names.h"

#include "base/array.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define SYSTEM_CONF "/etc/containers/registries.conf"
#define SYSTEM_CONF_DIR "/etc/containers/registries.conf.d"
enum { WORD_MAX = 512 };

/* ---- the necessary subset of TOML ---- */

struct toml {
    const char *at;
    unsigned line;
};

static void skip_blank(struct toml *t, bool lines)
{
    for (;; t->at++) {
        if (*t->at == '#')
            t->at += strcspn(t->at, "\n");
        if (*t->at == '\n' && lines)
            t->line++;
        else if (*t->at != ' ' && *t->at != '\t' && *t->at != '\r')
            return;
    }
}

static enum err_code registry_names_bad(const struct toml *t, struct err *e)
{
    return err_set(e, ERR_INVALID, "line %u cannot be read", t->line);
}

/* A key or a string, quoted or bare; escapes other than \" and \\, which no name contains, are kept as
 * written. */
static enum err_code registry_names_take_word(struct toml *t, char ret[WORD_MAX], struct err *e)
{
    const char quote = *t->at == '"' || *t->at == '\'' ? *t->at++ : '\0';
    size_t n = 0;

    for (; *t->at != '\0' && *t->at != '\n' && *t->at != quote; t->at++) {
        if (quote == '\0' && strchr(" \t\r=#,[]{}", *t->at) != NULL)
            break;
        if (quote == '"' && *t->at == '\\' && (t->at[1] == '"' || t->at[1] == '\\'))
            t->at++;
        if (n + 1 == WORD_MAX)
            return registry_names_bad(t, e);
        ret[n++] = *t->at;
    }
    ret[n] = '\0';
    if (quote != '\0' && *t->at++ != quote)
        return registry_names_bad(t, e);
    return quote == '\0' && n == 0 ? registry_names_bad(t, e) : ERR_OK;
}

/* [registry] or [[registry]]: only plain names are used. */
static enum err_code take_table(struct toml *t, char ret[WORD_MAX], struct err *e)
{
    const size_t n = strcspn(t->at, "\n#");
    const char *end = memchr(t->at, ']', n);

    if (end == NULL || n >= WORD_MAX)
        return registry_names_bad(t, e);
    snprintf(ret, WORD_MAX, "%.*s", (int)(end - t->at - 1), t->at + 1);
    t->at += n;
    return ERR_OK;
}

/* Calls fn for each string of a list, including nested lists and tables, which these settings never have. */
static enum err_code take_list(struct toml *t, void (*fn)(struct reg_names *r, const char *word),
                               struct reg_names *r, struct err *e)
{
    char word[WORD_MAX];
    unsigned depth = 0;

    do {
        skip_blank(t, true);
        if (*t->at == '[' || *t->at == '{') {
            depth++;
            t->at++;
        } else if (*t->at == ']' || *t->at == '}') {
            depth--;
            t->at++;
        } else if (*t->at == ',' || *t->at == '=') {
            t->at++;
        } else if (*t->at == '\0' || registry_names_take_word(t, word, e) != ERR_OK) {
            return registry_names_bad(t, e);
        } else if (fn != NULL) {
            fn(r, word);
        }
    } while (depth > 0);
    return ERR_OK;
}

/* ---- settings ---- */

static void forget_search(struct reg_names *r)
{
    while (r->n_search > 0)
        free(r->search[--r->n_search]);
}

static void add_search(struct reg_names *r, const char *registry)
{
    if (r->n_search < REG_SEARCH_MAX && registry[0] != '\0' &&
        (r->search[r->n_search] = strdup(registry)) != NULL)
        r->n_search++;
}

static const char *find_alias(const struct reg_names *r, const char *name)
{
    for (size_t i = r->n_aliases; i-- > 0;)
        if (strcmp(r->aliases[i].name, name) == 0)
            return r->aliases[i].target; /* the last definition; "" removes it */
    return NULL;
}

static enum err_code add_alias(struct reg_names *r, const char *name, const char *target, struct err *e)
{
    struct reg_alias *more;

    if (r->n_aliases == REG_ALIASES_MAX)
        return err_set(e, ERR_INVALID, "there are more than %d aliases", REG_ALIASES_MAX);
    if (!array_room(r->aliases, r->n_aliases))
        return err_nomem(e);
    more = &r->aliases[r->n_aliases];
    *more = (struct reg_alias){ strdup(name), strdup(target) };
    if (more->name == NULL || more->target == NULL) {
        free(more->name);
        free(more->target);
        return err_nomem(e);
    }
    r->n_aliases++;
    return ERR_OK;
}

static enum err_code take_value(struct reg_names *r, struct toml *t, const char *table, const char *key,
                                struct err *e)
{
    const bool search = (table[0] == '\0' && strcmp(key, "unqualified-search-registries") == 0) ||
                        (strcmp(table, "registries.search") == 0 && strcmp(key, "registries") == 0);
    char word[WORD_MAX];

    if (*t->at == '[' || *t->at == '{') {
        if (search)
            forget_search(r);
        return take_list(t, search ? add_search : NULL, r, e);
    }
    if (registry_names_take_word(t, word, e) != ERR_OK)
        return e->code;
    return strcmp(table, "aliases") == 0 ? add_alias(r, key, word, e) : ERR_OK;
}

/* [[registry]], as a table or inline, and [[registry.mirror]]. */
static void note_redirect(struct reg_names *r, const char *table, const char *key)
{
    /* otherwise an alias: Docker's image of that name */
    if ((table[0] == '\0' && strcmp(key, "registry") == 0) ||
        (strstr(table, "registry") != NULL &&
         (strcmp(key, "prefix") == 0 || strcmp(key, "mirror") == 0 || strchr(table, '.') != NULL)))
        r->redirects = true;
}

enum err_code reg_names_parse(struct reg_names *r, const char *text, struct err *e)
{
    struct toml t = { text, 1 };
    char table[WORD_MAX] = "", key[WORD_MAX];

    for (skip_blank(&t, true); *t.at != '\0'; skip_blank(&t, true)) {
        if (*t.at == '[') {
            if (take_table(&t, table, e) != ERR_OK)
                return e->code;
            continue;
        }
        if (registry_names_take_word(&t, key, e) != ERR_OK)
            return e->code;
        note_redirect(r, table, key);
        skip_blank(&t, false);
        if (*t.at++ != '=')
            return registry_names_bad(&t, e);
        skip_blank(&t, false);
        if (take_value(r, &t, table, key, e) != ERR_OK)
            return e->code;
        skip_blank(&t, false);
        if (*t.at != '\n' && *t.at != '\0')
            return registry_names_bad(&t, e);
    }
    return ERR_OK;
}

void reg_names_done(struct reg_names *r)
{
    forget_search(r);
    for (size_t i = 0; i < r->n_aliases; i++) {
        free(r->aliases[i].name);
        free(r->aliases[i].target);
    }
    free(r->aliases);
    *r = (struct reg_names){ 0 };
}

/* ---- files ---- */

/* A file with a syntax error is used up to the error. ERR_OK unless something could not be read. */
static enum err_code registry_names_load_file(struct reg_names *r, int dir, const char *name, struct err *e)
{
    struct err bad = { 0 };
    str_auto text = NULL;

    if (fs_read_at(dir, name, REG_CONF_MAX, &text, NULL, &bad) == ERR_OK)
        ERR_IGNORE(reg_names_parse(r, text, &bad));
    if (bad.code == ERR_OK || bad.sys == ENOENT || bad.sys == ENOTDIR)
        return ERR_OK;
    r->redirects = true; /* the part that cannot be parsed may have a redirect */
    log_warn("image short names: ignoring a part of a file", F_STR("file", name), F_ERR(&bad));
    if (bad.sys != 0 && bad.sys != EISDIR)
        *e = bad;
    return e->code;
}

static int is_conf(const struct dirent *d)
{
    return d->d_name[0] != '.' && str_ends(d->d_name, ".conf");
}

enum err_code reg_names_load(struct reg_names *r, const char *conf, struct err *e)
{
    fd_auto dir = open(SYSTEM_CONF_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirent **files = NULL;
    int n = 0;

    if (dir >= 0)
        n = scandirat(dir, ".", &files, is_conf, alphasort);
    if ((dir < 0 && errno != ENOENT && errno != ENOTDIR) || n < 0)
        err_sys(e, errno, "list %s", SYSTEM_CONF_DIR);
    ERR_IGNORE(registry_names_load_file(r, AT_FDCWD, conf != NULL ? conf : SYSTEM_CONF, e));
    for (int i = 0; i < n; i++) {
        ERR_IGNORE(registry_names_load_file(r, dir, files[i]->d_name, e));
        free(files[i]);
    }
    free(files);
    return e->code == ERR_OK ? ERR_OK : err_wrap(e, "short names of images");
}

/* ---- names ---- */

bool reg_names_is_short(const char *reference)
{
    const char *slash = strchr(reference, '/');
    const size_t n = slash == NULL ? 0 : (size_t)(slash - reference);

    if (slash == NULL)
        return true;
    return memchr(reference, '.', n) == NULL && memchr(reference, ':', n) == NULL &&
           !(n == 9 && memcmp(reference, "localhost", 9) == 0);
}

/* "team/web:1@sha256:..." -> the length of the repository. */
static size_t repository_length(const char *reference)
{
    const size_t n = strcspn(reference, "@");
    const char *colon = memrchr(reference, ':', n), *slash = memrchr(reference, '/', n);

    return colon != NULL && (slash == NULL || colon > slash) ? (size_t)(colon - reference) : n;
}

bool reg_names_candidate(const struct reg_names *r, const char *reference, size_t k, char ret[IMG_NAME_MAX])
{
    str_auto repository = NULL;
    str_auto whole = NULL;
    const char *target;

    if (!reg_names_is_short(reference))
        return k == 0 && img_normalise(reference, ret, ERR_IGNORED) == ERR_OK;
    repository = strndup(reference, repository_length(reference));
    target = repository == NULL ? NULL : find_alias(r, repository);
    if (target != NULL && target[0] != '\0')
        whole = k > 0 ? NULL : str_printf("%s%s", target, reference + strlen(repository));
    else if (r->n_search > 0)
        whole = k >= r->n_search ? NULL : str_printf("%s/%s", r->search[k], reference);
    else
        whole = k > 0 ? NULL : strdup(reference);
    return whole != NULL && img_normalise(whole, ret, ERR_IGNORED) == ERR_OK;
}
