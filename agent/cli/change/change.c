/* SPDX-License-Identifier: Apache-2.0 */
/* One change of one object, as the local API makes it: the object is read from the daemon, changed here, and
 * given to the daemon, which makes a file of it, unless it was changed meanwhile. */
#include "agent/cli/change/internal.h"

#include "agent/api/manifest/decode.h"
#include "agent/api/patch/patch.h"
#include "agent/api/serve/stored.h"
#include "base/codec/json.h"
#include "base/codec/percent.h"

#include <string.h>

enum { TRIES = 32 }; /* of a change, while others change the same object */

void change_wipe(json_t *object)
{
    if (object != NULL && object->refcount == 1)
        api_json_wipe(object);
    json_decref(object);
}

static int print_and_free(struct cli *cli, json_t *status /* stolen */)
{
    const int code = cli_status_error(cli, status);

    json_decref(status);
    return code;
}

/* ---- the daemon ---- */

/* The body of the answer; *ret_http 0: an error was printed. */
static json_t *answer_of(struct cli *cli, const char *method, const char *url, const json_t *body,
                         int *ret_http, int *ret_code)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    json_t *answer = NULL;
    struct err e = { 0 };

    *ret_http = 0;
    *ret_code = EXIT_OK;
    if ((body != NULL ? cli_send(cli, method, url, body, &r, &e)
                      : cli_request(cli, method, url, false, NULL, NULL, &r, &e)) != ERR_OK ||
        json_parse(r.body.p, r.body.n, CLI_BODY_MAX, &answer, "answer", &e) != ERR_OK)
        *ret_code = cli_failed(cli, &e);
    else
        *ret_http = r.code;
    buf_wipe(&r.body);
    buf_done(&r.body);
    return answer;
}

/* A refusal by the daemon, with a hint. `object`: the one in the request, or NULL. */
static int refused(struct cli *cli, const struct cli_target *t, const json_t *object, int http,
                   const json_t *body)
{
    if (http == 403 && strstr(cli_text(body, "message"), "only root") != NULL) {
        cli_error(cli, "only root may change objects of the node");
        return EXIT_DENIED;
    }
    if (http == 404 && cli->ignore_not_found)
        return EXIT_OK;
    if (http == 501)
        return cli_error(cli,
                         "%s: use kubectl with the cluster; the pods of this node's manifest folder are "
                         "changed in their files, and end with coracle delete pod NAME --file",
                         cli_text(body, "message"));
    return print_and_free(cli, api_stored_refusal(t->kind, t->name, object, http, body));
}

/* Kinds that no manifest has. False: the error was printed. */
static bool is_written(struct cli *cli, const struct cli_target *t, int *ret_code)
{
    if (t->kind->id == API_KIND_NODE || (t->kind->id != API_KINDS && t->kind->held != API_HELD_NOT))
        return true;
    *ret_code = cli_error(cli, "%s are not written here: no manifest has them", t->kind->plural);
    return false;
}

json_t *change_look(struct cli *cli, const struct cli_target *t, char ret_mark[CHANGE_MARK_SIZE],
                    int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *answer = NULL;
    json_t *object;
    int http;

    if (!is_written(cli, t, ret_code))
        return NULL;
    buf_adds(&url, "/store/object?apiVersion=");
    percent_add(&url, t->kind->api_version);
    buf_addf(&url, "&kind=%s&name=", t->kind->kind);
    percent_add(&url, t->name);
    if (t->namespace_ != NULL) {
        buf_adds(&url, "&namespace=");
        percent_add(&url, t->namespace_);
    }
    answer = answer_of(cli, "GET", url.p, NULL, &http, ret_code);
    if (http == 0)
        return NULL;
    if (http != 200) {
        *ret_code = refused(cli, t, NULL, http, answer);
        return NULL;
    }
    snprintf(ret_mark, CHANGE_MARK_SIZE, "%s", cli_text(answer, "mark"));
    object = json_incref(json_object_get(answer, "object"));
    json_object_del(answer, "object");
    if (object == NULL)
        *ret_code = cli_error(cli, "the daemon's answer has no object");
    return object;
}

/* ---- a change ---- */

/* The object to store, a new reference; NULL: *ret_code has it, or *ret_same. What is right is the daemon's
 * question; the tables of an apiserver's writes (agent/api/patch) stay out of this program, which is also the
 * daemon: they would cost each node 130 KiB. */
static json_t *compute(struct cli *cli, const struct change *c, json_t *live, bool *ret_same, int *ret_code)
{
    json_t *patch = NULL, *made = NULL, *status = NULL;
    struct err e = { 0 };

    *ret_code = c->make(cli, c, live, &patch);
    if (*ret_code == EXIT_OK && patch != NULL && c->whole)
        made = json_incref(patch);
    else if (*ret_code == EXIT_OK && patch != NULL &&
             api_patch_merge(live, patch, &made, &status, &e) != ERR_OK)
        *ret_code = status != NULL ? print_and_free(cli, status) : cli_failed(cli, &e);
    change_wipe(patch);
    *ret_same = *ret_code == EXIT_OK && (made == NULL || json_equal(made, live));
    if (*ret_code == EXIT_OK && !*ret_same) {
        api_stored_strip(c->target->kind, made, false);
        return made;
    }
    change_wipe(made);
    return NULL;
}

static int store(struct cli *cli, const struct change *c, const char *mark, json_t *made, bool *ret_again,
                 char *ret_file)
{
    json_auto_t *request = json_pack("{s:O, s:b, s:s}", "object", made, "dryRun", (int)c->dry, "mark", mark);
    json_auto_t *answer = NULL;
    int http, code;

    if (request == NULL)
        return cli_error(cli, "out of memory");
    answer = answer_of(cli, "PUT", "/store/object", request, &http, &code);
    *ret_again = (http == 409 || http == 404) && *ret_again;
    if (http == 0 || *ret_again)
        return code;
    if (http != 200 && http != 201)
        return refused(cli, c->target, json_object_get(request, "object"), http, answer);
    if (ret_file != NULL)
        snprintf(ret_file, 256, "%s", cli_text(answer, "file"));
    return EXIT_OK;
}

int change_object(struct cli *cli, const struct change *c, bool *ret_same, char ret_file[256])
{
    int code = EXIT_OK;
    bool again = true, same = false;

    for (unsigned i = 1; again && code == EXIT_OK; i++) {
        char mark[CHANGE_MARK_SIZE];
        json_t *live = change_look(cli, c->target, mark, &code), *made;

        again = false;
        if (live == NULL)
            break;
        made = compute(cli, c, live, &same, &code);
        again = i < TRIES;
        if (made != NULL)
            code = store(cli, c, mark, made, &again, ret_file);
        else
            again = false;
        change_wipe(made);
        change_wipe(live);
    }
    if (ret_same != NULL)
        *ret_same = same;
    return code;
}

json_t *change_remove(struct cli *cli, const struct cli_target *t, bool dry, int64_t grace_s,
                      char ret_file[256], int *ret_code)
{
    json_auto_t *request = NULL, *answer = NULL;
    int http;

    ret_file[0] = '\0';
    if (!is_written(cli, t, ret_code))
        return NULL;
    request = json_pack("{s:{s:s, s:s, s:{s:s, s:s*}}, s:b}", "object", "apiVersion", t->kind->api_version,
                        "kind", t->kind->kind, "metadata", "name", t->name, "namespace",
                        t->kind->namespaced ? t->namespace_ : NULL, "dryRun", (int)dry);
    if (request == NULL ||
        (grace_s >= 0 && json_object_set_new(request, "graceSeconds", json_integer(grace_s)) != 0)) {
        *ret_code = cli_error(cli, "out of memory");
        return NULL;
    }
    answer = answer_of(cli, "DELETE", "/store/object", request, &http, ret_code);
    if (http == 200 || http == 201) {
        snprintf(ret_file, 256, "%s", cli_text(answer, "file"));
        return json_incref(json_object_get(answer, "object"));
    }
    if (http != 0)
        *ret_code = refused(cli, t, NULL, http, answer);
    return NULL;
}
