/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/list.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/*
 * Only the caller knows the store's images: it names the parts that should exist, and gets a list of those
 * that changed.
 */

struct part {
    char name[80]; /* the name of its file or folder */
    UT_hash_handle hh;
};

struct verifying {
    int layers, parts;
    struct part *expected;
    uint64_t bytes;
    json_t *problems, *orphans;
};

static enum err_code expect(struct verifying *v, const char *name, struct err *e)
{
    struct part *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return err_nomem(e);
    snprintf(p->name, sizeof(p->name), "%s", name);
    HASH_ADD_STR(v->expected, name, p);
    if (p->hh.tbl != NULL)
        return ERR_OK;
    free(p);
    return err_nomem(e);
}

/* True for a part that is wrong or missing.  Any other error means that the part could not be examined. */
static bool unpack_verify_is_damage(const struct err *why)
{
    return why->sys == 0 || why->sys == ENOENT || why->sys == ENOTDIR || why->sys == EISDIR ||
           why->sys == ELOOP;
}

static enum err_code unpack_verify_add_problem(struct verifying *v, const char *part, const struct err *why,
                                               struct err *e)
{
    json_t *one = json_object();

    if (json_array_append_new(v->problems, one) != 0 || !json_put_str(one, "part", part) ||
        !json_put_str(one, "what", why->text) || /* its text may hold a file's name, of any bytes */
        (!unpack_verify_is_damage(why) && json_object_set_new(one, "unknown", json_true()) != 0))
        return err_nomem(e);
    return ERR_OK;
}

/* "layer <hex>" or "config <hex>" */
static enum err_code unpack_verify_check_line(struct verifying *v, const char *line, struct err *e)
{
    const bool is_layer = str_starts(line, "layer ");
    const char *hex = strchr(line, ' ') != NULL ? strchr(line, ' ') + 1 : "";
    struct err why = { 0 };
    uint64_t bytes = 0;
    char file[80];

    if ((!is_layer && !str_starts(line, "config ")) || strlen(hex) != 64 ||
        strspn(hex, "0123456789abcdef") != 64)
        return err_set(e, ERR_INVALID, "line \"%.100s\" is neither a layer nor a configuration", line);
    snprintf(file, sizeof(file), "%s%s", hex, is_layer ? "" : UNPACK_CONFIG);
    if (expect(v, file, e) != ERR_OK)
        return e->code;
    if ((is_layer ? unpack_check_layer(v->layers, hex, &bytes, &why)
                  : unpack_check_config(v->parts, hex, &bytes, &why)) == ERR_OK)
        v->bytes += bytes;
    if (err_is_shortage(&why)) {
        *e = why;
        return err_wrap(e, "%s", line);
    }
    return why.code == ERR_OK ? ERR_OK : unpack_verify_add_problem(v, line, &why, e);
}

static enum err_code find_orphans(struct verifying *v, int folder, const char *label, struct err *e)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    char text[300];
    struct dirent *entry;
    struct part *known;

    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return err_sys(e, errno, "read the folder of %s", label);
    }
    while (e->code == ERR_OK && (errno = 0, entry = readdir(d)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        HASH_FIND_STR(v->expected, entry->d_name, known);
        if (known != NULL)
            continue;
        snprintf(text, sizeof(text), "%s/%s", label, entry->d_name);
        text_printable(text); /* jansson accepts valid UTF-8 only */
        if (json_array_append_new(v->orphans, json_string(text)) != 0)
            err_nomem(e);
    }
    if (e->code == ERR_OK && errno != 0)
        err_sys(e, errno, "read the folder of %s", label);
    closedir(d);
    return e->code;
}

static enum err_code unpack_verify_verify(struct verifying *v, FILE *in, bool all, struct err *e)
{
    char line[128];

    while (e->code == ERR_OK && fgets(line, sizeof(line), in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        unpack_verify_check_line(v, line, e);
    }
    if (e->code != ERR_OK || !all)
        return e->code;
    return find_orphans(v, v->layers, "layers", e) == ERR_OK ? find_orphans(v, v->parts, "parts", e)
                                                             : e->code;
}

enum err_code unpack_verify(FILE *in, bool all, int layers, int parts, json_t *ret, struct err *e)
{
    struct verifying v = {
        .layers = layers, .parts = parts, .problems = json_array(), .orphans = json_array()
    };
    struct part *p, *next;

    if (json_object_set_new(ret, "problems", v.problems) != 0 ||
        json_object_set_new(ret, "orphans", v.orphans) != 0)
        err_nomem(e);
    else if (unpack_verify_verify(&v, in, all, e) == ERR_OK &&
             json_object_set_new(ret, "bytes", json_integer((json_int_t)v.bytes)) != 0)
        err_nomem(e);
    HASH_ITER (hh, v.expected, p, next) {
        HASH_DEL(v.expected, p);
        free(p);
    }
    return e->code;
}
