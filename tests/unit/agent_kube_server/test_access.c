/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask the node's port, against an apiserver that plays the reviews. The connection is none: what is
 * answered is noted. */
#include "agent/kube/server/internal.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct {
    struct kube_server s;
    struct caller c;
    char answer[1200];          /* "served", or code and text */
    struct kube_request *asked; /* under way */
    op_done_fn done;
    char path[128];
    json_t *question;
    unsigned questions;
    bool cancelled;
} t;

/* ---- in place of the rest of the server, and of the client ---- */

void serve_request(struct caller *c)
{
    assert_ptr_equal(c, &t.c);
    snprintf(t.answer, sizeof(t.answer), "served");
}

void caller_text(struct caller *c, int http, const char *text)
{
    assert_ptr_equal(c, &t.c);
    c->source = NULL;
    snprintf(t.answer, sizeof(t.answer), "%d %s", http, text);
}

void kube_request_start(struct kube_request *r, struct kube_client *c, const struct kube_request_spec *spec,
                        op_done_fn done, void *owner)
{
    (void)c;
    assert_null(t.asked);
    assert_string_equal(spec->method, "POST");
    assert_true(spec->deadline_ms > 0);
    *r = (struct kube_request){ 0 };
    r->op.loop = t.s.o.loop;
    r->op.owner = owner;
    r->op.done = done;
    t.asked = r;
    t.done = done;
    snprintf(t.path, sizeof(t.path), "%s", spec->path);
    json_decref(t.question);
    t.question = json_deep_copy(spec->body);
    t.questions++;
}

void kube_request_cancel(struct kube_request *r)
{
    assert_ptr_equal(r, t.asked);
    t.cancelled = true;
}

/* The answer; NULL: there was none. */
static void reply(json_t *answer)
{
    struct kube_request *r = t.asked;
    struct err e = { 0 };

    assert_non_null(r);
    if (answer == NULL)
        err_set(&e, ERR_UNAVAILABLE, "nobody answers");
    t.asked = NULL;
    r->answer = answer;
    r->op.loop = NULL;
    t.done(&r->op, &e);
    json_decref(answer);
}

/* ---- requests ---- */

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof(t));
    t.s.o.loop = uv_default_loop();
    t.s.node_name = strdup("node-1");
    t.s.rules.token_webhook = true;
    t.s.rules.token_ms = t.s.rules.allowed_ms = t.s.rules.denied_ms = 60000;
    review_cache_init(&t.s.tokens);
    review_cache_init(&t.s.decisions);
    t.c.server = &t.s;
    http_parser_init(&t.c.parser);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(t.s.n_access, 0);
    http_parser_done(&t.c.parser);
    review_cache_done(&t.s.tokens);
    review_cache_done(&t.s.decisions);
    json_decref(t.question);
    free(t.s.node_name);
    return 0;
}

static const char *request(const char *method, const char *path, const char *token)
{
    char text[1024];

    http_parser_done(&t.c.parser);
    http_parser_init(&t.c.parser);
    snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, path);
    http_parser_feed(&t.c.parser, text, strlen(text));
    assert_int_equal(t.c.parser.state, PARSE_DONE);
    snprintf(t.c.token, sizeof(t.c.token), "%s", token);
    t.answer[0] = '\0';
    access_begin(&t.c);
    return t.answer;
}

static json_t *user(const char *name)
{
    return json_pack("{s:{s:b, s:{s:s, s:s, s:[s, s], s:{s:[s]}}}}", "status", "authenticated", 1, "user",
                     "username", name, "uid", "17", "groups", "team", "system:authenticated", "extra",
                     "scopes", "all");
}

static json_t *decision(bool allowed)
{
    return json_pack("{s:{s:b}}", "status", "allowed", allowed);
}

static const char *asked_for(const char *key)
{
    return json_str(json_object_get(json_object_get(t.question, "spec"), "resourceAttributes"), key);
}

/* ---- tests ---- */

static void nobody_is_refused_unless_everybody_may(void **state)
{
    (void)state;
    assert_string_equal(request("GET", "/pods", ""), "401 Unauthorized");
    assert_string_equal(request("GET", "/pods", "Basic x"), "401 Unauthorized");
    assert_int_equal(t.questions, 0);
    t.s.rules.anonymous = t.s.rules.always_allow = true;
    assert_string_equal(request("GET", "/pods", ""), "served");
    t.s.rules.always_allow = false;
    request("GET", "/metrics", "");
    assert_string_equal(json_str(json_object_get(t.question, "spec"), "user"), "system:anonymous");
    assert_true(
        json_has(json_object_get(json_object_get(t.question, "spec"), "groups"), "system:unauthenticated"));
    assert_false(
        json_has(json_object_get(json_object_get(t.question, "spec"), "groups"), "system:authenticated"));
    reply(decision(false));
    assert_string_equal(
        t.answer,
        "403 Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[metrics])\n");
}

static void a_token_is_reviewed_once_and_then_known(void **state)
{
    (void)state;
    t.s.rules.always_allow = true;
    assert_string_equal(request("GET", "/pods", "Bearer abc"), "");
    assert_string_equal(t.path, "/apis/authentication.k8s.io/v1/tokenreviews");
    assert_string_equal(json_str(json_object_get(t.question, "spec"), "token"), "abc");
    reply(user("jane"));
    assert_string_equal(t.answer, "served");
    assert_string_equal(request("GET", "/pods", "bearer  abc"), "served");
    assert_int_equal(t.questions, 1);
    assert_string_equal(request("GET", "/pods", "Bearer other"), "");
    reply(json_pack("{s:{s:b}}", "status", "authenticated", 0));
    assert_string_equal(t.answer, "401 Unauthorized");
    assert_string_equal(request("GET", "/pods", "Bearer other"), "401 Unauthorized");
    assert_int_equal(t.questions, 2);
    t.s.rules.token_webhook = false;
    assert_string_equal(request("GET", "/pods", "Bearer third"), "401 Unauthorized");
}

static void a_review_that_fails_is_not_kept(void **state)
{
    (void)state;
    t.s.rules.always_allow = true;
    request("GET", "/pods", "Bearer abc");
    reply(NULL);
    assert_string_equal(t.answer, "401 Unauthorized");
    request("GET", "/pods", "Bearer abc");
    reply(user("jane"));
    assert_string_equal(t.answer, "served");
}

static void rights_are_asked_for_in_order_and_kept(void **state)
{
    json_t *spec;

    (void)state;
    request("GET", "/pods", "Bearer abc");
    reply(user("jane"));
    assert_string_equal(t.path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
    spec = json_object_get(t.question, "spec");
    assert_string_equal(json_str(spec, "user"), "jane");
    assert_string_equal(json_str(spec, "uid"), "17");
    assert_int_equal(json_array_size(json_object_get(spec, "groups")), 2); /* none twice */
    assert_int_equal(json_array_size(json_object_get(json_object_get(spec, "extra"), "scopes")), 1);
    assert_string_equal(asked_for("verb"), "get");
    assert_string_equal(asked_for("resource"), "nodes");
    assert_string_equal(asked_for("name"), "node-1");
    assert_string_equal(asked_for("version"), "v1");
    assert_string_equal(asked_for("subresource"), "pods");
    reply(decision(false));
    assert_string_equal(asked_for("subresource"), "proxy");
    reply(decision(true));
    assert_string_equal(t.answer, "served");
    assert_string_equal(request("GET", "/pods", "Bearer abc"), "served");
    assert_int_equal(t.questions, 3);
    request("POST", "/exec/a/b/c", "Bearer abc");
    assert_string_equal(asked_for("verb"), "create");
    reply(decision(false));
    assert_string_equal(t.answer,
                        "403 Forbidden (user=jane, verb=create, resource=nodes, subresource(s)=[proxy])\n");
    assert_string_equal(request("POST", "/run/a/b/c", "Bearer abc"), t.answer); /* the same question */
    assert_int_equal(t.questions, 4);
}

static void no_decision_is_an_error_and_asked_again(void **state)
{
    (void)state;
    request("GET", "/stats/summary", "Bearer abc");
    reply(user("jane"));
    reply(NULL);
    assert_string_equal(t.answer,
                        "500 Authorization error (user=jane, verb=get, resource=nodes, subresource=stats)");
    request("GET", "/stats/summary", "Bearer abc");
    reply(decision(true));
    assert_string_equal(t.answer, "served");
}

static void a_client_that_goes_is_forgotten(void **state)
{
    (void)state;
    request("GET", "/pods", "Bearer abc");
    t.c.source->gone(&t.c);
    assert_true(t.cancelled);
    reply(NULL);
    assert_string_equal(t.answer, "");
}

static void the_port_without_rights_asks_nobody(void **state)
{
    (void)state;
    t.c.read_only = true;
    assert_string_equal(request("GET", "/pods", ""), "served");
    assert_int_equal(t.questions, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(nobody_is_refused_unless_everybody_may),  T(a_token_is_reviewed_once_and_then_known),
        T(a_review_that_fails_is_not_kept),         T(rights_are_asked_for_in_order_and_kept),
        T(no_decision_is_an_error_and_asked_again), T(a_client_that_goes_is_forgotten),
        T(the_port_without_rights_asks_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
