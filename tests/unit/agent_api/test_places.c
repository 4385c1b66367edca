/* SPDX-License-Identifier: Apache-2.0 */
/* Line and column of problems. */
#include "helper.h"

#include "agent/api/places.h"
#include "agent/api/yaml/yaml.h"

/* Every problem of the text in the compilers' form, one a line, in order. */
static void texts_are(const char *text, const char *wanted)
{
    struct buf seen = BUF_INIT(1 << 20);
    struct decoded d;

    decode(&d, text);
    for (size_t i = 0; i < d.problems.n; i++) {
        api_problem_add_text(&d.problems.v[i], "", &seen);
        buf_addc(&seen, '\n');
    }
    assert_string_equal(seen.n > 0 ? seen.p : "", wanted);
    buf_done(&seen);
    decoded_done(&d);
}

static void place_is(struct api_places *p, int document, const char *path, unsigned line, unsigned column)
{
    struct api_place place = api_places_find(p, document, path);

    if (place.line != line || place.column != column)
        fail_msg("%s of document %d: %u:%u, wanted %u:%u", path, document, (unsigned)place.line,
                 (unsigned)place.column, line, column);
}

static void read_places(struct api_places *p, const char *text)
{
    struct err e = { 0 };
    int *numbers;
    json_t *docs;

    assert_int_equal(yaml_to_json(text, strlen(text), &docs, &numbers, p, &e), ERR_OK);
    json_decref(docs);
    free(numbers);
}

static void problems_have_line_and_column_and_come_in_their_order(void **state)
{
    (void)state;
    texts_are(
        "apiVersion: v1\n"
        "kind: Pod\n"
        "metadata:\n"
        "  name: web\n"
        "spec:\n"
        "  restartPolicy: Sometimes\n"
        "  containers:\n"
        "  - name: main\n"
        "    image: busybox:1\n"
        "    ports: [{containerPort: 70000}]\n",
        "f.yaml:6:3: spec.restartPolicy: \"Sometimes\" is not supported, allowed are Always, OnFailure and "
        "Never\n"
        "f.yaml:10:14: spec.containers[0].ports[0].containerPort: 70000 is out of range, allowed are 1 to "
        "65535\n");
}

static void a_field_that_is_missing_has_the_place_of_its_object(void **state)
{
    (void)state;
    texts_are("# a comment\n---\n# another one\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
              "spec:\n  containers:\n  - name: a\n    image: b:1\n  -   name: c\n",
              "f.yaml:11:7: spec.containers[1].image: required\n");
    texts_are("kind: Pod\n", "f.yaml:1:1: apiVersion: required\n"
                             "f.yaml:1:1: metadata.name: required\n"
                             "f.yaml:1:1: spec.containers: required\n");
}

static void documents_are_told_apart(void **state)
{
    (void)state;
    texts_are(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nimmutable: 3\n---\n"
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: B\n",
        "f.yaml:8:1: immutable: expected true or false, got a number\n"
        "f.yaml:16:5: items[0].metadata.name: \"B\" must be a DNS name: at most 253 characters of a-z, "
        "0-9, '-' and '.', each part beginning and ending with a letter or digit\n");
}

static void a_syntax_error_is_at_its_place_too(void **state)
{
    (void)state;
    texts_are("a: 1\n---\nb: [\n",
              "f.yaml:1:1: kind: required\n"
              "f.yaml:4:1: did not find expected node content (while parsing a flow node that "
              "began in line 4)\n");
    texts_are("{\"kind\": \"Pod\", \"kind\": \"Pod\"}",
              "f.yaml:1:22: not JSON: duplicate object key near '\"kind\"'\n");
}

static void keys_of_maps_may_have_any_letters(void **state)
{
    struct api_places p = { 0 };

    (void)state;
    read_places(&p, "metadata:\n"
                    "  annotations:\n"
                    "    a.b/c: x\n"
                    "    \"d]e[0].f\": y\n"
                    "    \"n\\nl\": z\n"
                    "  labels: {ä: 1, o: 2}\n");
    place_is(&p, 1, "metadata.annotations[a.b/c]", 3, 5);
    place_is(&p, 1, "metadata.annotations[d]e[0].f]", 4, 5);
    place_is(&p, 1, "metadata.annotations[n?l]", 5, 5);
    place_is(&p, 1, "metadata.annotations[other.key]", 2, 3);
    place_is(&p, 1, "metadata.labels.o", 6, 18);
    place_is(&p, 1, "metadata", 1, 1);
    place_is(&p, 1, "spec", 1, 1);
    place_is(&p, 1, "", 1, 1);
    place_is(&p, 2, "metadata", 0, 0);
    api_places_done(&p);
    place_is(&p, 1, "metadata", 0, 0);
}

static void what_comes_from_an_alias_or_a_merge_has_the_place_where_it_is_used(void **state)
{
    struct api_places p = { 0 };

    (void)state;
    read_places(&p, "a: &x {b: {c: 1}}\nlist:\n- 1\n- *x\nd: *x\ne:\n  <<: *x\n  f: 1\n");
    place_is(&p, 1, "a.b.c", 1, 12);
    place_is(&p, 1, "list[0]", 3, 3);
    place_is(&p, 1, "list[1].b.c", 4, 3);
    place_is(&p, 1, "d.b.c", 5, 1);
    place_is(&p, 1, "e.b.c", 6, 1);
    place_is(&p, 1, "e.f", 8, 3);
    api_places_done(&p);
}

static void json_has_places_like_yaml(void **state)
{
    struct api_places p = { 0 };

    (void)state;
    read_places(&p, "\xef\xbb\xbf{ \"a\": {},\n"
                    "\t\"b\" : [1, [ ], {\"c\\\"\": \"}]\\\\\"}, [true,null]] , \"ä\": -1.5e3,\r\n"
                    "  \"d\": {\"e\": {\"f\": \"x\"}}}\n"
                    "---\n"
                    " {\"a\": 1} {\"z\": 2}");
    place_is(&p, 1, "", 1, 1);
    place_is(&p, 1, "a", 1, 3);
    place_is(&p, 1, "b", 2, 2);
    place_is(&p, 1, "b[0]", 2, 9);
    place_is(&p, 1, "b[1]", 2, 12);
    place_is(&p, 1, "b[2]", 2, 17);
    place_is(&p, 1, "b[2].x", 2, 17);
    place_is(&p, 1, "b[3][1]", 2, 40);
    place_is(&p, 1, "ä", 2, 49);
    place_is(&p, 1, "d.e.f", 3, 15);
    place_is(&p, 2, "a", 5, 3);
    place_is(&p, 3, "z", 5, 12);
    api_places_done(&p);
}

/* Quoted keys in flow style: tried as JSON first. */
static void flow_style_that_is_not_json_has_the_places_of_yaml(void **state)
{
    struct api_places p = { 0 };

    (void)state;
    read_places(&p, "{\"a\": 1,\n \"b\": yes, # not JSON\n \"c\": {d: 1}}\n");
    place_is(&p, 1, "b", 2, 2);
    place_is(&p, 1, "c.d", 3, 8);
    assert_int_equal(p.n, 5);
    api_places_done(&p);
}

/* An escape that is repaired makes the text be read again. */
static void a_text_that_is_read_twice_has_each_place_once(void **state)
{
    struct api_places p = { 0 };

    (void)state;
    read_places(&p, "a: \"it\\'s\"\nb:\n  c: 1\n");
    place_is(&p, 1, "b.c", 3, 3);
    assert_int_equal(p.n, 4);
    api_places_done(&p);
}

static void objects_know_the_place_of_their_name(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d,
           "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {a: b}\n  name: a\n---\n"
           "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]}\n");
    assert_int_equal(d.objects.n, 2);
    assert_int_equal(d.objects.v[0].place.line, 5);
    assert_int_equal(d.objects.v[0].place.column, 3);
    assert_int_equal(d.objects.v[1].place.line, 7);
    assert_int_equal(d.objects.v[1].place.column, 83);
    decoded_done(&d);
}

static void a_problem_as_json_has_all_parts_that_are_known(void **state)
{
    const struct api_problem all = { .file = "a.yaml",
                                     .document = 2,
                                     .place = { 3, 4 },
                                     .field = "spec",
                                     .message = "required" },
                             whole = { .file = "a.yaml", .field = "", .message = "is a FIFO, not a file" };
    json_t *one = api_problem_json(&all), *other = api_problem_json(&whole);
    char *text = json_dumps(one, JSON_COMPACT), *short_text = json_dumps(other, JSON_COMPACT);
    struct buf line = BUF_INIT(1000);

    (void)state;
    assert_string_equal(text,
                        "{\"file\":\"a.yaml\",\"line\":3,\"column\":4,\"document\":2,\"field\":\"spec\","
                        "\"message\":\"required\"}");
    assert_string_equal(short_text, "{\"file\":\"a.yaml\",\"message\":\"is a FIFO, not a file\"}");
    api_problem_add_text(&all, "warning: ", &line);
    buf_addc(&line, '\n');
    api_problem_add_text(&whole, "warning: ", &line);
    assert_string_equal(line.p,
                        "a.yaml:3:4: warning: spec: required\na.yaml: warning: is a FIFO, not a file");
    buf_done(&line);
    free(text);
    free(short_text);
    json_decref(one);
    json_decref(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(problems_have_line_and_column_and_come_in_their_order),
        cmocka_unit_test(a_field_that_is_missing_has_the_place_of_its_object),
        cmocka_unit_test(documents_are_told_apart),
        cmocka_unit_test(a_syntax_error_is_at_its_place_too),
        cmocka_unit_test(keys_of_maps_may_have_any_letters),
        cmocka_unit_test(what_comes_from_an_alias_or_a_merge_has_the_place_where_it_is_used),
        cmocka_unit_test(json_has_places_like_yaml),
        cmocka_unit_test(flow_style_that_is_not_json_has_the_places_of_yaml),
        cmocka_unit_test(a_text_that_is_read_twice_has_each_place_once),
        cmocka_unit_test(objects_know_the_place_of_their_name),
        cmocka_unit_test(a_problem_as_json_has_all_parts_that_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
