/* SPDX-License-Identifier: Apache-2.0 */
/* Paths for images. */
#include "agent/status/internal.h"

#include <string.h>

static void routes_images_add_image(struct conn *c)
{
    struct status_server *s = c->server;
    const char *source = http_param(&c->parser.request, "source");
    const char *name = http_param(&c->parser.request, "name");
    struct err e = { 0 };
    bool progress = false;

    if (http_param_flag(&c->parser.request, "progress", &progress, &e) != ERR_OK) {
        conn_err(c, &e);
        return;
    }
    if (source == NULL || source[0] == '\0') {
        conn_status(c, 400, "BadRequest", NULL, NULL,
                    "source: required, docker://NAME or the path of an archive or layout");
        return;
    }
    if (reply_owe(c) == NULL)
        return;
    s->provider.image_add(s->provider.arg, source, name != NULL && name[0] != '\0' ? name : NULL, c->reply);
    if (progress && c->reply != NULL) /* otherwise the request was answered immediately */
        progress_begin(c);
}

static void routes_images_remove_image(struct conn *c)
{
    struct status_server *s = c->server;
    const char *name = http_param(&c->parser.request, "name");
    struct err e = { 0 };

    if (name == NULL || name[0] == '\0')
        conn_status(c, 400, "BadRequest", NULL, NULL, "name: required");
    else if (s->provider.image_remove(s->provider.arg, name, &e) == ERR_OK)
        conn_status(c, 200, "", "images", name, "removed");
    else if (e.code == ERR_NOT_FOUND)
        conn_status(c, 404, "NotFound", "images", name, e.text);
    else
        conn_err(c, &e);
}

/* Lists all images, or the image of ?name=. */
static void list_images(struct conn *c)
{
    const struct status_provider *p = &c->server->provider;
    const char *name = http_param(&c->parser.request, "name");
    struct err e = { 0 };
    json_t *found = p->objects(p->arg, KIND_IMAGE, NULL, name, &e);
    char message[400];

    if (found == NULL && e.code == ERR_NOT_FOUND) {
        snprintf(message, sizeof(message), "no such image: \"%.300s\"", name);
        conn_status(c, 404, "NotFound", "images", name, message);
        return;
    }
    if (found != NULL)
        found = name != NULL ? json_pack("{s:[o]}", "items", found) : json_pack("{s:o}", "items", found);
    conn_value(c, found, &e);
}

void route_images(struct conn *c, const struct status_match *m)
{
    (void)m;
    if (c->parser.request.method == METHOD_POST)
        routes_images_add_image(c);
    else if (c->parser.request.method == METHOD_DELETE)
        routes_images_remove_image(c);
    else
        list_images(c);
}

void route_image_task(struct conn *c, const struct status_match *m)
{
    static const struct {
        const char *word;
        enum status_image_verb verb;
        bool wants_name;
    } verbs[] = {
        { "verify", IMAGE_VERIFY, false },  { "pin", IMAGE_PIN, true },       { "unpin", IMAGE_UNPIN, true },
        { "prune", IMAGE_PRUNE, false },    { "export", IMAGE_EXPORT, true }, { "tag", IMAGE_TAG, true },
        { "history", IMAGE_HISTORY, true },
    };
    const struct http_request *r = &c->parser.request;
    struct status_image_task task = { .name = http_param(r, "name"),
                                      .file = http_param(r, "file"),
                                      .as = http_param(r, "as") };
    struct err e = { 0 };
    size_t i = 0;

    if (task.name != NULL && task.name[0] == '\0')
        task.name = NULL;
    while (i < ARRAY_LEN(verbs) && strcmp(verbs[i].word, m->name) != 0)
        i++;
    if (i == ARRAY_LEN(verbs)) {
        conn_status(c, 404, "NotFound", NULL, NULL, "the server could not find the requested resource");
        return;
    }
    task.verb = verbs[i].verb;
    if (verbs[i].wants_name && task.name == NULL)
        conn_status(c, 400, "BadRequest", NULL, NULL, "name: required");
    else if (task.verb == IMAGE_EXPORT && (task.file == NULL || task.file[0] != '/'))
        conn_status(c, 400, "BadRequest", NULL, NULL, "file: required, an absolute path");
    else if (task.verb == IMAGE_TAG && (task.as == NULL || task.as[0] == '\0'))
        conn_status(c, 400, "BadRequest", NULL, NULL, "as: required, the new name");
    else if (http_param_flag(r, "all", &task.all, &e) != ERR_OK)
        conn_err(c, &e);
    else if (reply_owe(c) != NULL)
        c->server->provider.image_task(c->server->provider.arg, &task, c->reply);
}
