/* SPDX-License-Identifier: Apache-2.0 */
/* streams - maps a pod's subresources log, exec, attach and portforward to the status socket, with the same
 * paths and parameters; the room of the node's port implements the protocols. */
#include "agent/kube/apiserver/internal.h"

#include "base/codec/percent.h"
#include "base/scope.h"

#include <string.h>
#include <strings.h>

static void target_path(const struct api_target *t, struct buf *b)
{
    buf_adds(b, "/api/v1/namespaces/");
    percent_add(b, t->namespace);
    buf_adds(b, "/pods/");
    percent_add(b, t->name);
    buf_addf(b, "/%s", t->sub->name);
}

/* Flags are passed as "true", as the SPDY side expects. */
static void target_params(const struct http_request *r, const char *const *flags, const char *const *texts,
                          struct buf *b)
{
    char mark = '?';

    for (size_t i = 0; texts[i] != NULL; i++)
        for (size_t k = 0; k < r->n_params; k++)
            if (strcmp(r->params[k].key, texts[i]) == 0 && r->params[k].value[0] != '\0') {
                buf_addf(b, "%c%s=", mark, texts[i]);
                percent_add(b, r->params[k].value);
                mark = '&';
            }
    for (size_t i = 0; flags[i] != NULL; i++) {
        bool on = false;

        if (http_param_flag(r, flags[i], &on, ERR_IGNORED) == ERR_OK && on) {
            buf_addf(b, "%c%s=true", mark, flags[i]);
            mark = '&';
        }
    }
}

static const char *const log_flags[] = { "follow", "previous", "timestamps", NULL };
static const char *const log_texts[] = { "container", "tailLines", "limitBytes", "sinceSeconds",
                                         "sinceTime", "stream",    NULL };
static const char *const exec_flags[] = { "stdin", "stdout", "stderr", "tty", NULL };
static const char *const exec_texts[] = { "container", "command", NULL };
static const char *const no_flags[] = { NULL };

static void streams_exec(struct caller *c, const char *target)
{
    const struct http_upgrade *u = &c->parser.request.upgrade;

    if (u->asked && strcasecmp(u->protocol, "websocket") == 0)
        tunnel_begin(c, target);
    else
        remote_begin(c, target);
}

static void streams_forward(struct caller *c, const char *target)
{
    if (forward_ws_is_asked(c))
        forward_ws_begin(c, target);
    else
        forward_begin(c, target);
}

bool api_streams(const struct api_request *r)
{
    static const struct {
        const char *name;
        const char *const *flags, *const *texts;
        void (*begin)(struct caller *c, const char *target);
    } streams[] = { { "log", log_flags, log_texts, relay_begin },
                    { "exec", exec_flags, exec_texts, streams_exec },
                    { "attach", exec_flags, exec_texts, streams_exec },
                    { "portforward", no_flags, no_flags, streams_forward } };
    struct caller *c = r->caller;
    struct buf target = BUF_INIT(HTTP_URL_MAX);

    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        if (strcmp(streams[i].name, r->target.sub->name) != 0 || strcmp(r->target.kind->plural, "pods") != 0)
            continue;
        if (stock_find(&r->api->stock, r->target.kind, r->target.namespace, r->target.name) == NULL) {
            api_not_found(r);
            return true;
        }
        target_path(&r->target, &target);
        target_params(&c->parser.request, streams[i].flags, streams[i].texts, &target);
        if (target.failed)
            api_answer_status(c, api_status(414, "RequestURITooLong", NULL, "the URL is too long"));
        else
            streams[i].begin(c, target.p);
        buf_done(&target);
        return true;
    }
    return false;
}
