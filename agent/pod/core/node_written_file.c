/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/node_written_file.h"

#include "agent/pod/core/node_written.h"
#include "base/codec/json.h"
#include "base/files/damaged_file.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "node.json"

enum err_code node_written_save(const struct node *n, const json_t *kept, struct err *e)
{
    str_auto path = str_printf("%s/" FILE_NAME, n->o.state_dir);
    str_auto text = json_dumps(kept, JSON_INDENT(1) | JSON_SORT_KEYS);

    if (path == NULL || text == NULL)
        return err_nomem(e);
    if (strlen(text) > NODE_WRITTEN_MAX)
        return err_set(e, ERR_INVALID, "labels and annotations of the node have more than %d bytes",
                       NODE_WRITTEN_MAX);
    return fs_replace_at(AT_FDCWD, path, text, strlen(text), 0600, true, e);
}

void node_written_remove(const struct node *n)
{
    str_auto path = str_printf("%s/" FILE_NAME, n->o.state_dir);

    if (path == NULL || (unlink(path) != 0 && errno != ENOENT))
        log_warn("cannot remove the file of the node", F_STR("path", path));
}

static void set_aside(const struct node *n, const struct err *why)
{
    char kept[DAMAGED_FILE_NAME_SIZE] = "";
    struct err e = { 0 };
    fd_auto dir = open(n->o.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir >= 0 && damaged_file_set_aside(dir, FILE_NAME, kept, &e) != ERR_OK)
        log_error("cannot set a damaged file aside", F_STR("file", FILE_NAME), F_ERR(&e));
    log_error("the stored Node object is damaged; using the configuration", F_STR("file", FILE_NAME),
              F_STR("kept", kept), F_ERR(why));
}

/* Of the types that they are written with; what has another one is damage. */
static bool is_sound(const json_t *o)
{
    static const struct {
        const char *name;
        json_type type;
    } members[] = { { "labels", JSON_OBJECT },     { "annotations", JSON_OBJECT },  { "taints", JSON_ARRAY },
                    { "configured", JSON_ARRAY },  { "managedFields", JSON_ARRAY }, { "uid", JSON_STRING },
                    { "providerID", JSON_STRING }, { "created", JSON_INTEGER } };

    if (!json_is_object(o) || json_int(o, "version", 0) != 1 || json_str(o, "uid") == NULL)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const json_t *v = json_object_get(o, members[i].name);

        if (v != NULL && json_typeof(v) != members[i].type)
            return false;
    }
    return true;
}

json_t *node_written_load(const struct node *n, bool *ret_unknown)
{
    str_auto path = str_printf("%s/" FILE_NAME, n->o.state_dir);
    str_auto text = NULL;
    struct err e = { 0 };
    json_t *o = NULL;
    size_t size = 0;

    if (path == NULL)
        return NULL;
    switch (presence_of(fs_read_if_there(AT_FDCWD, path, NODE_WRITTEN_MAX, &text, &size, &e))) {
    case PRESENCE_UNKNOWN:
        log_error("cannot read the stored Node object; using the configuration", F_STR("file", path),
                  F_ERR(&e));
        *ret_unknown = true;
        return NULL;
    case PRESENCE_ABSENT:
        return NULL;
    case PRESENCE_PRESENT:
        break;
    }
    if (json_parse(text, size, NODE_WRITTEN_MAX, &o, FILE_NAME, &e) == ERR_OK && is_sound(o))
        return o;
    if (e.code == ERR_OK)
        err_set(&e, ERR_INVALID, "its version is not supported");
    set_aside(n, &e);
    json_decref(o);
    return NULL;
}
