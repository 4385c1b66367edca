/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/declared/look.h"
#include "agent/declared/look_internal.h"
#include "base/codec/json.h"
#include "base/utf8.h"
#include "deviceplugin/device_id.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

size_t look_count(const struct look_job *j)
{
    size_t n = 0;

    for (size_t i = 0; i < j->n; i++)
        for (size_t g = 0; g < j->v[i]->n_groups; g++)
            n += j->v[i]->groups[g].n;
    return n;
}

void look_problem(struct looker *l, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    if (json_array_size(l->problems) >= LOOK_PROBLEMS_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    json_array_append_new(l->problems, json_string_of(text));
}

void look_watch(struct looker *l, const char *dir, const char *name)
{
    json_t *names = json_object_get(l->watch, dir);

    if (names == NULL) {
        if (json_object_size(l->watch) >= LOOK_WATCH_MAX || !utf8_is_valid(dir, strlen(dir))) {
            look_problem(l, "%s is not watched: the limit is %d folders", dir, LOOK_WATCH_MAX);
            return;
        }
        if (json_object_set_new(l->watch, dir, names = json_array()) != 0) {
            l->no_memory = true;
            return;
        }
    }
    if (json_array_size(names) >= LOOK_NAMES_MAX) {
        json_array_clear(names);
        name = "*";
    }
    if (!json_has(names, "*") && !json_has(names, name) &&
        json_array_append_new(names, json_string(name)) != 0)
        l->no_memory = true;
}

/* A device's id is printable, and has ',' between its parts and '#' before its number. */
static void add_id(struct buf *b, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c <= ' ' || c >= 0x7f || c == ',' || c == '#' || c == '%')
            buf_addf(b, "%%%02X", c);
        else
            buf_addc(b, (char)c);
    }
}

static bool add_inside(json_t *m, const struct strs *inside)
{
    json_t *names = json_array();

    for (size_t i = 0; i < inside->n; i++)
        if (utf8_is_valid(inside->v[i], strlen(inside->v[i])) &&
            json_array_append_new(names, json_string(inside->v[i])) != 0) {
            json_decref(names);
            return false;
        }
    return json_object_set_new(m, "inside", names) == 0;
}

static void put_match(struct looker *l, const char *path, const char *id, const char *node, int64_t numa,
                      const struct strs *inside)
{
    json_t *m;

    if (json_array_size(l->matches) >= LOOK_MATCHES_MAX) {
        look_problem(l, "more than %d matches; the rest is ignored", LOOK_MATCHES_MAX);
        return;
    }
    m = json_object();
    if (m == NULL || !json_put_str(m, "path", path) || !json_put_str(m, "id", id) ||
        !json_put_str(m, "node", node) || json_object_set_new(m, "numa", json_integer(numa)) != 0 ||
        (inside != NULL && !add_inside(m, inside)))
        l->no_memory = true;
    if (json_array_append_new(l->matches, m) != 0)
        l->no_memory = true;
}

static enum err_code put_folder(struct looker *l, const char *path, const char *id, struct err *e)
{
    struct strs inside = { 0 };

    if (l->member->has_match)
        return ERR_OK; /* a folder has no device to compare */
    if (look_inside(l, path, &inside, e) == ERR_OK)
        put_match(l, path, id, "", -1, &inside);
    strs_done(&inside);
    return e->code;
}

static enum err_code put_node(struct looker *l, const char *path, const char *id, const struct stat *st,
                              struct err *e)
{
    bool fits = false;
    int64_t numa = -1;
    char node[32];

    if (look_node(l->job->sys_dir, st, &l->member->match, &fits, &numa, e) != ERR_OK || !fits)
        return e->code;
    snprintf(node, sizeof(node), "%c%u:%u", S_ISBLK(st->st_mode) ? 'b' : 'c', major(st->st_rdev),
             minor(st->st_rdev));
    put_match(l, path, id, node, numa, NULL);
    return ERR_OK;
}

static enum err_code on_path(struct looker *l, const char *path, struct err *e)
{
    buf_auto id = BUF_INIT(3 * PATH_MAX);
    struct stat st;

    if (stat(path, &st) != 0) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) /* removed again, or a dangling link */
            return ERR_OK;
        return err_sys(e, errno, "stat %s", path);
    }
    add_id(&id, path);
    if (id.failed)
        return err_nomem(e);
    if (!utf8_is_valid(path, strlen(path)) || id.n > DP_ID_MAX) {
        look_problem(l, "%s: a name that is too long or not UTF-8 is ignored", path);
        return ERR_OK;
    }
    if (l->member->type == DECL_MOUNT) {
        put_match(l, path, id.p, "", -1, NULL);
        return ERR_OK;
    }
    if (S_ISDIR(st.st_mode))
        return put_folder(l, path, id.p, e);
    if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
        return put_node(l, path, id.p, &st, e);
    look_problem(l, "%s is not a device node; type: Mount binds files", path);
    return ERR_OK;
}

/* Names the device by its serial number, if it has one and the declaration does not specify a port. */
static void on_usb(const struct look_usb *u, void *arg)
{
    struct looker *l = arg;
    str_auto path = str_printf("%s/bus/usb/%03u/%03u", l->job->dev_dir, u->bus, u->number);
    buf_auto id = BUF_INIT(DP_ID_MAX);
    struct stat st;
    char node[32];

    if (path == NULL)
        l->no_memory = true;
    if (path == NULL || !look_usb_matches(u, &l->member->match))
        return;
    if (stat(path, &st) != 0 || !S_ISCHR(st.st_mode)) {
        look_problem(l, "%s of the device at USB port %s is missing", path, u->port);
        return;
    }
    buf_addf(&id, "usb:%s:%s", u->vendor, u->product);
    if (u->serial[0] != '\0' && l->member->match.port == NULL) {
        buf_addc(&id, ':');
        add_id(&id, u->serial);
    } else {
        buf_addf(&id, "@%s", u->port);
    }
    l->no_memory = l->no_memory || id.failed;
    snprintf(node, sizeof(node), "c%u:%u", major(st.st_rdev), minor(st.st_rdev));
    put_match(l, path, id.p, node, u->numa, NULL);
}

/* Takes ownership of the value, also when out of memory. */
static void put(struct looker *l, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        l->no_memory = true;
}

static json_t *look_at(struct looker *l, const struct decl_member *m)
{
    struct err e = { 0 };
    json_t *answer = json_object();

    l->member = m;
    l->matches = json_array();
    l->problems = json_array();
    if (m->type == DECL_USB)
        ERR_IGNORE(look_usb(l->job->sys_dir, on_usb, l, &e));
    else
        ERR_IGNORE(look_glob(l, m->path, on_path, &e));
    if (e.code != ERR_OK)
        put(l, answer, "unknown", json_string_of(e.text));
    put(l, answer, "v", l->matches);
    put(l, answer, "problems", l->problems);
    return answer;
}

enum err_code look_run(const void *job, struct buf *out, struct err *e)
{
    struct looker l = { .job = job, .watch = json_object() };
    json_t *members = json_array();
    json_auto_t *answer = json_object();

    for (size_t i = 0; i < l.job->n; i++)
        for (size_t g = 0; g < l.job->v[i]->n_groups; g++)
            for (size_t k = 0; k < l.job->v[i]->groups[g].n; k++)
                if (json_array_append_new(members, look_at(&l, &l.job->v[i]->groups[g].v[k])) != 0)
                    l.no_memory = true;
    put(&l, answer, "members", members);
    put(&l, answer, "watch", l.watch);
    if (l.no_memory)
        return err_nomem(e);
    json_add_text(out, answer, false, 0);
    return buf_check(out, e);
}
