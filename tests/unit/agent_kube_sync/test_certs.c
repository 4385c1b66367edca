/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates: requests, approval, rotation. A small CA of the test signs what is asked for. */
#include "tests/unit/agent_kube_sync/script_kube.h"

#include "agent/kube/sync/certs.h"
#include "base/codec/base64.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define REQUESTS "/apis/certificates.k8s.io/v1/certificatesigningrequests"
#define DAY (86400 * SCRIPT_SECOND)

/* ---- the CA ---- */

static char *text_of(BIO *bio)
{
    char *data = NULL;
    size_t n = (size_t)BIO_get_mem_data(bio, &data);
    char *text = malloc(n + 1);

    assert_non_null(text);
    memcpy(text, data, n); /* no zero byte ends it */
    text[n] = '\0';
    return text;
}

static X509_REQ *request_of(const json_t *body)
{
    const char *encoded = json_str(json_object_get(body, "spec"), "request");
    unsigned char pem[8192];
    size_t n = 0;
    BIO *in;
    X509_REQ *r;

    assert_non_null(encoded);
    assert_true(base64_decode(encoded, strlen(encoded), pem, &n));
    in = BIO_new_mem_buf(pem, (int)n);
    r = PEM_read_bio_X509_REQ(in, NULL, NULL, NULL);
    BIO_free(in);
    assert_non_null(r);
    assert_int_equal(X509_REQ_verify(r, X509_REQ_get0_pubkey(r)), 1);
    return r;
}

/* PEM, valid from the scripted present on. */
static char *sign(const json_t *body, int64_t lifetime_ns)
{
    X509_REQ *r = request_of(body);
    X509 *c = X509_new();
    EVP_PKEY *ca = EVP_EC_gen("P-256");
    STACK_OF(X509_EXTENSION) *more = X509_REQ_get_extensions(r);
    BIO *out = BIO_new(BIO_s_mem());
    char *pem;

    X509_set_version(c, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c), 1);
    X509_set_subject_name(c, X509_REQ_get_subject_name(r));
    X509_set_issuer_name(c, X509_REQ_get_subject_name(r));
    ASN1_TIME_set(X509_getm_notBefore(c), (time_t)(clock_wall_ns() / SCRIPT_SECOND));
    ASN1_TIME_set(X509_getm_notAfter(c), (time_t)((clock_wall_ns() + lifetime_ns) / SCRIPT_SECOND));
    X509_set_pubkey(c, X509_REQ_get0_pubkey(r));
    for (int i = 0; i < sk_X509_EXTENSION_num(more); i++)
        X509_add_ext(c, sk_X509_EXTENSION_value(more, i), -1);
    X509_sign(c, ca, EVP_sha256());
    PEM_write_bio_X509(out, c);
    pem = text_of(out);
    BIO_free(out);
    sk_X509_EXTENSION_pop_free(more, X509_EXTENSION_free);
    EVP_PKEY_free(ca);
    X509_free(c);
    X509_REQ_free(r);
    return pem;
}

static json_t *approved(const json_t *body, const char *pem)
{
    buf_auto encoded = BUF_INIT(16384);

    base64_add(&encoded, pem, strlen(pem));
    return json_pack("{s:O, s:{s:s}}", "metadata", json_object_get(body, "metadata"), "status", "certificate",
                     encoded.p);
}

static void approve(const json_t *body, const char *pem)
{
    struct kube_reflector *r = watch_of(REQUESTS, NULL);
    json_t *request = approved(body, pem);

    assert_non_null(r);
    watch_synced(r);
    r->o.on_put(request, r->o.arg);
    json_decref(request);
    turn();
}

static void begin(const char *certificates)
{
    char text[8192];

    snprintf(text, sizeof(text), "{\"type\":\"config\",\"nodeName\":\"peer\",\"certificates\":{%s}}",
             certificates);
    tell(text);
}

static char *escaped(const char *pem)
{
    json_t *s = json_string(pem);
    char *text = json_dumps(s, JSON_ENCODE_ANY);

    json_decref(s);
    return text;
}

static void credentials(const char *pem)
{
    str_auto quoted = escaped(pem);
    str_auto text = str_printf("{\"type\":\"credentials\",\"certificate\":%s}", quoted);

    tell(text);
}

static void told_of_certificates(const char *text)
{
    json_t *last = NULL;

    for (json_t *m = told("parts"); m != NULL; m = told("parts")) {
        json_decref(last);
        last = m;
    }
    assert_non_null(last);
    assert_json(json_object_get(last, "certificates"), text);
    json_decref(last);
}

/* ---- bootstrap ---- */

static void a_bootstrap_asks_for_a_client_certificate_and_nothing_else(void **state)
{
    struct asked *a;
    json_t *body, *m;
    str_auto pem = NULL;
    char subject[200];
    X509_REQ *r;

    (void)state;
    begin("\"bootstrap\":true,\"rotateClient\":true");
    tell("{\"type\":\"credentials\",\"bootstrap\":true}");
    m = told("certificate"); /* the key, before it is used */
    assert_string_equal(json_str(m, "usage"), "client");
    assert_null(json_str(m, "certificate"));
    assert_memory_equal(json_str(m, "key"), "-----BEGIN EC PRIVATE KEY-----", 30);
    json_decref(m);
    a = expect("POST", REQUESTS);
    body = json_incref(a->body);
    assert_string_equal(json_str(json_object_get(body, "spec"), "signerName"),
                        "kubernetes.io/kube-apiserver-client-kubelet");
    assert_json(json_object_get(json_object_get(body, "spec"), "usages"),
                "[\"digital signature\",\"client auth\"]");
    assert_memory_equal(json_str(json_object_get(body, "metadata"), "name"), "node-csr-", 9);
    assert_int_equal(strlen(json_str(json_object_get(body, "metadata"), "name")), 9 + 43);
    r = request_of(body);
    X509_NAME_oneline(X509_REQ_get_subject_name(r), subject, sizeof(subject));
    assert_string_equal(subject, "/O=system:nodes/CN=system:node:peer");
    X509_REQ_free(r);
    assert_null(watch_of("/api/v1/nodes", NULL));
    answer(a, 201, NULL);
    pem = sign(body, DAY);
    approve(body, pem);
    m = told("certificate");
    assert_string_equal(json_str(m, "certificate"), pem);
    assert_non_null(json_str(m, "key"));
    json_decref(m);
    assert_null(watch_of(REQUESTS, NULL));
    credentials(pem);
    assert_non_null(watch_of("/api/v1/nodes", NULL));
    expect_none();
    json_decref(body);
}

static void a_request_of_before_a_restart_is_found_again(void **state)
{
    EVP_PKEY *key = NULL;
    struct err e = { 0 };
    struct asked *a;
    json_t *body, *m;

    (void)state;
    assert_int_equal(x509_key_make(&key, &e), ERR_OK);
    str_auto saved = x509_key_pem(key);
    str_auto quoted = escaped(saved);
    str_auto pem = NULL;
    str_auto start = str_printf("{\"type\":\"credentials\",\"bootstrap\":true,\"waitingKey\":%s}", quoted);
    EVP_PKEY_free(key);
    begin("");
    tell(start);
    assert_null(told("certificate")); /* the daemon has the key */
    a = expect("POST", REQUESTS);
    body = json_incref(a->body);
    answer(a, 409, "AlreadyExists");
    pem = sign(body, DAY);
    approve(body, pem);
    m = told("certificate");
    assert_string_equal(json_str(m, "key"), saved);
    json_decref(m);
    json_decref(body);
}

static void a_denied_request_is_made_again_with_another_key(void **state)
{
    struct kube_reflector *r;
    struct asked *a;
    json_t *first, *request;

    (void)state;
    begin("");
    tell("{\"type\":\"credentials\",\"bootstrap\":true}");
    a = expect("POST", REQUESTS);
    first = json_incref(a->body);
    answer(a, 201, NULL);
    r = watch_of(REQUESTS, NULL);
    request = json_pack("{s:O, s:{s:[{s:s, s:s}]}}", "metadata", json_object_get(first, "metadata"), "status",
                        "conditions", "type", "Denied", "message", "no");
    r->o.on_put(request, r->o.arg);
    json_decref(request);
    turn();
    assert_null(watch_of(REQUESTS, NULL));
    pass_ms(299000);
    expect_none();
    pass_ms(32000);
    a = expect("POST", REQUESTS);
    assert_string_not_equal(json_str(json_object_get(a->body, "metadata"), "name"),
                            json_str(json_object_get(first, "metadata"), "name"));
    json_decref(first);
}

static void a_request_that_fails_is_tried_again(void **state)
{
    str_auto name = NULL;

    (void)state;
    begin("");
    tell("{\"type\":\"credentials\",\"bootstrap\":true}");
    name = strdup(json_str(json_object_get(TAILQ_FIRST(&kube.asked)->body, "metadata"), "name"));
    no_answer(expect("POST", REQUESTS));
    expect_none();
    pass_ms(2201);
    assert_string_equal(json_str(json_object_get(TAILQ_FIRST(&kube.asked)->body, "metadata"), "name"), name);
}

/* ---- rotation ---- */

static void the_moment_of_rotation_is_chosen_between_70_and_90_percent(void **state)
{
    struct x509_times t = { SCRIPT_WALL_NS, SCRIPT_WALL_NS + 100 * SCRIPT_SECOND };

    (void)state;
    assert_int_equal(certs_rotate_at_ns(&t, 0), SCRIPT_WALL_NS + 70 * SCRIPT_SECOND);
    assert_int_equal(certs_rotate_at_ns(&t, 0.5), SCRIPT_WALL_NS + 80 * SCRIPT_SECOND);
}

static void an_expired_lifetime_leads_to_a_new_request(void **state)
{
    struct asked *a;
    json_t *body;

    (void)state;
    begin("\"rotateClient\":true");
    tell("{\"type\":\"credentials\",\"bootstrap\":true}");
    a = expect("POST", REQUESTS);
    body = json_incref(a->body);
    answer(a, 201, NULL);
    str_auto pem = sign(body, DAY);
    approve(body, pem);
    json_decref(body);
    credentials(pem);
    pass_ms(86400000ULL * 69 / 100);
    while (!TAILQ_EMPTY(&kube.asked))
        asked_drop(TAILQ_FIRST(&kube.asked));
    expect_none();
    pass_ms(86400000ULL * 22 / 100);
    expect("POST", REQUESTS);
}

static void the_end_of_a_certificate_and_failed_renewals_are_told(void **state)
{
    struct asked *a;

    (void)state;
    begin("\"rotateClient\":true");
    tell("{\"type\":\"credentials\",\"bootstrap\":true}");
    no_answer(expect("POST", REQUESTS));
    pass_ms(1001);
    told_of_certificates("{\"client\":{\"errors\":1}}");
    pass_ms(2201);
    a = expect("POST", REQUESTS);
    str_auto pem = sign(a->body, DAY);
    answer(a, 201, NULL);
    pass_ms(CERTS_WAIT_MS + 2); /* nobody approves it */
    pass_ms(1001);
    told_of_certificates("{\"client\":{\"errors\":2}}");
    kube_end(NULL);
    kube_begin(NULL);
    begin("\"rotateClient\":true");
    credentials(pem);
    pass_ms(1001);
    json_t *m = told("parts");
    const json_t *one = json_object_get(json_object_get(m, "certificates"), "client");
    assert_int_equal(json_int(one, "errors", -1), 0);
    assert_int_equal(json_int(one, "notAfter", 0), SCRIPT_WALL_NS / SCRIPT_SECOND + 3 + 86400);
    json_decref(m);
}

static void a_serving_certificate_follows_the_addresses(void **state)
{
    struct asked *a;
    json_t *body, *m;

    (void)state;
    begin("\"rotateServer\":true");
    tell("{\"type\":\"credentials\"}");
    expect_none();
    tell("{\"type\":\"node\",\"object\":{\"status\":{\"addresses\":[{\"type\":\"Hostname\",\"address\":"
         "\"peer\"},{\"type\":"
         "\"InternalIP\",\"address\":\"10.0.0.1\"}]}}}");
    expect_none();
    pass_ms(2001); /* none was told that the cluster signed before */
    a = expect("POST", REQUESTS);
    body = json_incref(a->body);
    assert_string_equal(json_str(json_object_get(body, "spec"), "signerName"),
                        "kubernetes.io/kubelet-serving");
    assert_json(json_object_get(json_object_get(body, "spec"), "usages"),
                "[\"digital signature\",\"server auth\"]");
    answer(a, 201, NULL);
    str_auto pem = sign(body, DAY);
    approve(body, pem);
    json_decref(body);
    m = told("certificate");
    assert_string_equal(json_str(m, "usage"), "server");
    assert_string_equal(json_str(m, "certificate"), pem);
    json_decref(m);
    expect_none();
    tell("{\"type\":\"node\",\"object\":{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":"
         "\"10.0.0.1\"},{\"type\":"
         "\"Hostname\",\"address\":\"peer\"}]}}}");
    expect_none();
    tell("{\"type\":\"node\",\"object\":{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":"
         "\"10.0.0.2\"}]}}}");
    expect("POST", REQUESTS);
}

static void a_serving_certificate_of_before_is_kept(void **state)
{
    struct asked *a;

    (void)state;
    begin("\"rotateServer\":true");
    tell("{\"type\":\"credentials\"}");
    tell("{\"type\":\"node\",\"object\":{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":"
         "\"10.0.0.1\"}]}}}");
    pass_ms(2001);
    a = expect("POST", REQUESTS);
    str_auto pem = sign(a->body, DAY);
    str_auto quoted = escaped(pem);
    str_auto serving = str_printf("{\"type\":\"serving\",\"certificate\":%s}", quoted);
    assert_true(x509_is_of_node(pem, "peer"));
    assert_false(x509_is_of_node(pem, "other"));
    kube_end(NULL);
    kube_begin(NULL);
    begin("\"rotateServer\":true");
    tell("{\"type\":\"credentials\"}");
    tell(serving);
    tell("{\"type\":\"node\",\"object\":{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":"
         "\"10.0.0.1\"}]}}}");
    pass_ms(5000);
    expect_none();
}

static void a_certificate_for_another_key_is_refused(void **state)
{
    struct asked *a;
    json_t *body, *other;
    EVP_PKEY *key = NULL;
    struct err e = { 0 };
    char name[X509_NAME_SIZE];

    (void)state;
    begin("");
    tell("{\"type\":\"credentials\",\"bootstrap\":true}");
    a = expect("POST", REQUESTS);
    body = json_incref(a->body);
    answer(a, 201, NULL);
    json_decref(told("certificate"));
    assert_int_equal(x509_key_make(&key, &e), ERR_OK);
    assert_int_equal(
        x509_request(&(struct x509_request_spec){ .key = key, .node = "peer" }, &other, name, &e), ERR_OK);
    str_auto pem = sign(other, DAY);
    approve(body, pem);
    assert_null(told("certificate"));
    EVP_PKEY_free(key);
    json_decref(other);
    json_decref(body);
}

static void garbage_is_no_certificate(void **state)
{
    struct x509_times t;
    struct err e = { 0 };
    EVP_PKEY *key = NULL;

    (void)state;
    assert_int_equal(
        x509_certificate("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", NULL, &t, &e),
        ERR_INVALID);
    assert_string_equal(e.text, "no certificate in PEM format");
    assert_int_equal(x509_key_read("", &key, &e), ERR_INVALID);
    assert_string_equal(e.text, "no private key in PEM format");
    assert_false(x509_names_are("", NULL));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, kube_begin, kube_end)
    const struct CMUnitTest tests[] = {
        T(a_bootstrap_asks_for_a_client_certificate_and_nothing_else),
        T(a_request_of_before_a_restart_is_found_again),
        T(a_denied_request_is_made_again_with_another_key),
        T(a_request_that_fails_is_tried_again),
        cmocka_unit_test(the_moment_of_rotation_is_chosen_between_70_and_90_percent),
        T(an_expired_lifetime_leads_to_a_new_request),
        T(the_end_of_a_certificate_and_failed_renewals_are_told),
        T(a_serving_certificate_follows_the_addresses),
        T(a_serving_certificate_of_before_is_kept),
        T(a_certificate_for_another_key_is_refused),
        cmocka_unit_test(garbage_is_no_certificate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
