/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/write_node.h"

#include "agent/api/manifest/decode.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/node_written.h"
#include "agent/pod/show/provider.h"
#include "agent/pod/show/write_audit.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <string.h>

static json_t *node_now(struct node *n, struct err *e)
{
    json_t *o = provider_whole(n, KIND_NODE, "", n->o.node_name, e);

    if (o == NULL && e->code == ERR_OK)
        err_nomem(e);
    return o;
}

json_t *write_node_stored(struct node *n, const char *name, struct err *e)
{
    char mark[WRITE_MARK_SIZE];
    json_t *o;

    if (n->written == NULL || strcmp(name, n->o.node_name) != 0) {
        err_set(e, ERR_NOT_FOUND, "\"%.253s\" not found", name);
        return NULL;
    }
    o = node_now(n, e);
    if (o == NULL)
        return NULL;
    write_mark_of(o, mark);
    o = json_pack("{s:o, s:s}", "object", write_versioned(n, KIND_NODE, o), "mark", mark);
    if (o == NULL)
        err_nomem(e);
    return o;
}

/* ERR_RANGE: it is not valid, *ret_causes has the reasons. */
static enum err_code check(struct node *n, const json_t *request, json_t **ret_causes, struct err *e)
{
    const json_t *object = json_object_get(request, "object");
    const char *mark = json_str(request, "mark"),
               *name = json_str(json_object_get(object, "metadata"), "name");
    struct api_problems problems = { 0 };
    json_auto_t *now = NULL;
    char current[WRITE_MARK_SIZE];

    if (n->written == NULL)
        return err_set(e, ERR_UNIMPLEMENTED, "on a node of a cluster, change objects in the cluster");
    if (!str_eq(name, n->o.node_name))
        return err_set(e, ERR_NOT_FOUND, "\"%.253s\" not found", name != NULL ? name : "");
    now = node_now(n, e);
    if (now == NULL)
        return e->code;
    write_mark_of(now, current);
    if (mark == NULL)
        return err_set(e, ERR_EXISTS, "\"%.253s\" already exists", name);
    if (strcmp(mark, current) != 0)
        return err_set(e, ERR_ABORTED, "the object has been modified");
    if (api_check_node(object, &problems, e) == ERR_OK && problems.n > 0) {
        *ret_causes = json_array();
        err_set(e, ERR_RANGE, "%s: %s", problems.v[0].field, problems.v[0].message);
        for (size_t i = 0; i < problems.n; i++)
            json_array_append_new(*ret_causes, api_problem_json(&problems.v[i]));
    }
    api_problems_done(&problems);
    return e->code;
}

/* Watchers hear of it, pods that wait for the node may fit now, and those of workloads may have to go. */
static void tell(struct node *n, bool was_unschedulable)
{
    json_auto_t *now = provider_whole(n, KIND_NODE, "", n->o.node_name, ERR_IGNORED);

    if (n->server != NULL && now != NULL)
        status_server_object_event(n->server, KIND_NODE, "MODIFIED", now);
    if (was_unschedulable != node_is_unschedulable(n))
        node_event_status(n, was_unschedulable ? "NodeSchedulable" : "NodeNotSchedulable");
    pods_wake_pending(n, "the Node was written");
    if (n->workloads != NULL)
        n->workloads->node_changed(n->workloads->arg);
}

static void refuse(const json_t *request, struct status_reply *r, const struct err *e, json_t *causes)
{
    const struct write_said said = { .request = request,
                                     .code = e->code == ERR_RANGE ? 422 : status_http_code(e->code) };

    write_audit(&said);
    if (e->code != ERR_RANGE) {
        status_reply_err(r, e);
        return;
    }
    status_reply_json(r, 422,
                      json_pack("{s:s, s:s, s:s, s:{s:O*}, s:s, s:s, s:i}", "kind", "Status", "apiVersion",
                                "v1", "status", "Failure", "details", "causes", causes, "message", e->text,
                                "reason", "Invalid", "code", 422));
}

void write_node(struct node *n, json_t *request, struct status_reply *r)
{
    const json_t *object = json_object_get(request, "object");
    const bool was_unschedulable = node_is_unschedulable(n);
    json_auto_t *taken = request, *causes = NULL;
    const struct write_said said = { .request = request, .file = "node.json", .code = 200 };
    struct err e = { 0 };
    json_t *now;

    (void)taken; /* until the end of the function */
    if (check(n, request, &causes, &e) != ERR_OK ||
        (!json_flag(request, "dryRun") && node_written_take(n, object, &e) != ERR_OK)) {
        refuse(request, r, &e, causes);
        return;
    }
    write_audit(&said);
    if (json_flag(request, "dryRun")) {
        status_reply_json(r, 200, json_pack("{s:O}", "object", object));
        return;
    }
    tell(n, was_unschedulable);
    now = node_now(n, &e);
    if (now == NULL)
        status_reply_err(r, &e);
    else
        status_reply_json(
            r, 200,
            json_pack("{s:o, s:s}", "object", write_versioned(n, KIND_NODE, now), "file", "node.json"));
}
