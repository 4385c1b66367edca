/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "agent/image/image_internal.h"
#include "base/codec/json.h"

#include "tests/unit/base/nomem.h"

#define A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static const char whole[] =
    "{\"id\":\"" A "\",\"digest\":\"" B "\",\"layers\":[\"" B "\",\"" C
    "\"],\"layerBytes\":[7,0],\"sizeBytes\":4711,\"pinned\":true,"
    "\"created\":\"2026-01-02T03:04:05Z\",\"env\":[\"PATH=/bin\",\"E=\"],\"entrypoint\":[\"/e\"],"
    "\"cmd\":[\"-c\",\"\"],\"volumes\":[\"/data\",\"/a/b\"],\"user\":\"1:2\",\"workingDir\":\"/"
    "w\",\"stopSignal\":\"SIGQUIT\","
    "\"pulledFor\":{\"r.io/x\":true,\"r.io/y\":[],\"r.io/z\":[{\"namespace\":\"a\",\"name\":\"b\","
    "\"hash\":\"0123456789abcdef\"}]}}";

static json_t *parse(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);

    assert_non_null(v);
    return v;
}

static void a_record_becomes_an_image_and_a_record_again(void **state)
{
    json_t *record = parse(whole), *again;
    struct img_image *i = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(img_record_decode(record, "/store", &i, &e), ERR_OK);
    assert_string_equal(i->id, A);
    assert_string_equal(i->digest, B);
    assert_int_equal(i->layer_dirs.n, 2);
    assert_string_equal(i->layer_dirs.v[0],
                        "/store/layers/"
                        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    assert_string_equal(img_layer_name(i, 1), &C[7]);
    assert_int_equal(i->env.n, 2);
    assert_string_equal(i->env.v[1], "E=");
    assert_null(i->env.v[2]);
    assert_string_equal(i->entrypoint.v[0], "/e");
    assert_string_equal(i->cmd.v[1], "");
    assert_int_equal(i->volumes.n, 2);
    assert_string_equal(i->volumes.v[1], "/a/b");
    assert_string_equal(i->user, "1:2");
    assert_string_equal(i->working_dir, "/w");
    assert_string_equal(i->stop_signal, "SIGQUIT");
    assert_string_equal(i->created, "2026-01-02T03:04:05Z");
    assert_int_equal(i->size_bytes, 4711);
    assert_int_equal(i->layer_bytes[0], 7);
    assert_true(i->pinned);

    again = img_record_encode(i);
    assert_int_equal(json_object_set_new(record, "version", json_integer(1)), 0);
    assert_true(json_equal(record, again));
    json_decref(again);
    json_decref(record);
    assert_ptr_equal(img_ref(i), i);
    img_unref(i);
    img_unref(i);
    img_unref(NULL);
}

static void what_an_image_leaves_out_is_null_or_empty(void **state)
{
    json_t *record =
        parse("{\"id\":\"" A "\",\"digest\":\"" A "\",\"layers\":[\"" B "\"],\"sizeBytes\":0,\"user\":\"\"}");
    struct img_image *i = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(img_record_decode(record, "/s", &i, &e), ERR_OK);
    assert_null(i->user);
    assert_null(i->working_dir);
    assert_null(i->stop_signal);
    assert_null(i->created);
    assert_int_equal(i->env.n + i->entrypoint.n + i->cmd.n + i->volumes.n, 0);
    img_unref(i);
    json_decref(record);
}

static void a_record_that_lies_is_refused(void **state)
{
    static const struct {
        const char *key, *value, *why;
    } cases[] = {
        { "id", "\"sha256:00\"", "image record: id is not a SHA-256 digest" },
        { "id", "\"" B "/../../x\"", "image record: id is not a SHA-256 digest" },
        { "digest", "null", "image record: digest is not a SHA-256 digest" },
        { "layers", "[]", "image record: it has 0 layers where 1 to 128 may be" },
        { "layers", "\"" B "\"", "image record: it has 0 layers where 1 to 128 may be" },
        { "layers", "[\"../../etc\"]", "image record: layers[0] is not a SHA-256 digest" },
        { "layers", "[\"" B "\",7]", "image record: layers[1] is not a SHA-256 digest" },
        { "sizeBytes", "-1", "image record: sizeBytes is not a size" },
        { "sizeBytes", "\"1\"", "image record: sizeBytes is not a size" },
        { "env", "{}", "image record: env is not a list" },
        { "cmd", "[null]", "image record: cmd[0] is not a string" },
        { "volumes", "{}", "image record: volumes is not a list" },
        { "volumes", "[\"/a\",7]", "image record: volumes[1] is not a string" },
        { "volumes", "[\"/a\",\"b\"]", "image record: volumes[1] is not an absolute path" },
        { "volumes", "[\"\"]", "image record: volumes[0] is not an absolute path" },
        { "user", "0", "image record: user is not a string" },
        { "pulledFor", "true", "image record: pulledFor is not a valid list of pods" },
        { "pulledFor", "{\"r.io/x\":false}", "image record: pulledFor is not a valid list of pods" },
        { "pulledFor", "{\"r.io/x\":[{\"name\":\"a\",\"namespace\":\"b\",\"hash\":\"\"}]}",
          "image record: pulledFor is not a valid list of pods" },
    };

    (void)state;
    for (size_t n = 0; n < ARRAY_LEN(cases); n++) {
        struct img_image *i = NULL;
        json_t *record = parse(whole);
        struct err e = { 0 };

        json_object_set_new(record, cases[n].key, json_loads(cases[n].value, JSON_DECODE_ANY, NULL));
        assert_int_equal(img_record_decode(record, "/s", &i, &e), ERR_INVALID);
        assert_string_equal(e.text, cases[n].why);
        assert_null(i);
        json_decref(record);
    }
}

static void more_layers_than_overlayfs_takes_are_refused(void **state)
{
    json_t *record = parse(whole), *layers = json_array();
    struct img_image *i = NULL;
    struct err e = { 0 };

    (void)state;
    for (int n = 0; n < 129; n++)
        json_array_append_new(layers, json_string(B));
    json_object_set_new(record, "layers", layers);
    assert_int_equal(img_record_decode(record, "/s", &i, &e), ERR_INVALID);
    assert_string_equal(e.text, "image record: it has 129 layers where 1 to 128 may be");
    json_decref(record);
}

static void more_volumes_than_an_image_may_have_are_refused(void **state)
{
    json_t *record = parse(whole), *volumes = json_array();
    struct img_image *i = NULL;
    struct err e = { 0 };

    (void)state;
    for (int n = 0; n < 101; n++)
        json_array_append_new(volumes, json_string("/v"));
    json_object_set_new(record, "volumes", volumes);
    assert_int_equal(img_record_decode(record, "/s", &i, &e), ERR_INVALID);
    assert_string_equal(e.text, "image record: it has more than 100 volumes");
    json_decref(record);
}

static void every_allocation_may_fail(void **state)
{
    json_t *record;
    bool ok = false;

    (void)state;
    record = parse(whole);
    NOMEM_EACH(ok, {
        struct img_image *i = NULL;
        struct err e = { 0 };
        json_t *again = NULL;

        ok = img_record_decode(record, "/store", &i, &e) == ERR_OK;
        if (!ok && e.code != ERR_EXHAUSTED)
            abort();
        if (ok)
            again = img_record_encode(i);
        ok = ok && again != NULL;
        json_decref(again);
        img_unref(i);
    });
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_becomes_an_image_and_a_record_again),
        cmocka_unit_test(what_an_image_leaves_out_is_null_or_empty),
        cmocka_unit_test(a_record_that_lies_is_refused),
        cmocka_unit_test(more_layers_than_overlayfs_takes_are_refused),
        cmocka_unit_test(more_volumes_than_an_image_may_have_are_refused),
    };
    const struct CMUnitTest nomem[] = { cmocka_unit_test(every_allocation_may_fail) };

    return cmocka_run_group_tests(tests, NULL, NULL) + NOMEM_RUN(nomem);
}
