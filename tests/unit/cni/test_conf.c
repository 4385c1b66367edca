/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "cni/plugin/conf.h"
#include "cni/plugin/names.h"

static enum err_code from_list(struct cni_list *l, const char *text, struct err *e)
{
    bool more = false;

    if (cni_list_parse(l, "10-net.conflist", text, strlen(text), &more, e) != ERR_OK)
        return e->code;
    return cni_list_check(l, NULL, e);
}

static void assert_refused(const char *text, const char *message)
{
    struct cni_list l = { 0 };
    struct err e = { 0 };

    assert_int_not_equal(from_list(&l, text, &e), ERR_OK);
    assert_string_equal(e.text, message);
    cni_list_done(&l);
}

static void a_list_keeps_what_only_its_plugins_know(void **state)
{
    struct cni_list l = { 0 };
    struct err e = { 0 };
    bool more = false;
    const char *text =
        "{\"cniVersion\": \"1.0.0\", \"name\": \"net\", \"disableCheck\": \"true\", \"x\": [1],"
        " \"plugins\": [{\"type\": \"bridge\", \"own\": {\"a\": 1}}]}";

    (void)state;
    assert_int_equal(cni_list_parse(&l, "f", text, strlen(text), &more, &e), ERR_OK);
    assert_true(more);
    assert_string_equal(l.name, "net");
    assert_int_equal(l.version, CNI_V(1, 0, 0));
    assert_int_equal(cni_list_size(&l), 1);
    assert_json_equal(l.conf, text);
    cni_list_done(&l);
}

static void load_only_inlined_plugins_takes_booleans_and_their_names(void **state)
{
    struct cni_list l = { 0 };
    struct err e = { 0 };
    bool more = true;
    const char *text =
        "{\"name\": \"net\", \"loadOnlyInlinedPlugins\": \"true\", \"plugins\": [{\"type\": \"a\"}]}";

    (void)state;
    assert_int_equal(cni_list_parse(&l, "f", text, strlen(text), &more, &e), ERR_OK);
    assert_false(more);
    cni_list_done(&l);
    assert_refused("{\"name\": \"net\", \"loadOnlyInlinedPlugins\": true}",
                   "plugins: missing, and loadOnlyInlinedPlugins is set");
    assert_refused("{\"name\": \"net\", \"disableGC\": 1, \"plugins\": []}", "disableGC: not true or false");
}

static void a_single_plugin_becomes_a_list(void **state)
{
    struct cni_list l = { 0 };
    struct err e = { 0 };
    const char *text = "{\"name\": \"one\", \"type\": \"ptp\", \"mtu\": 1400}";

    (void)state;
    assert_int_equal(cni_list_parse_single(&l, "f", text, strlen(text), &e), ERR_OK);
    assert_int_equal(cni_list_check(&l, NULL, &e), ERR_OK);
    assert_int_equal(l.version, CNI_V(0, 1, 0));
    assert_string_equal(cni_plugin_type(cni_list_plugin(&l, 0)), "ptp");
    assert_int_equal(json_int(cni_list_plugin(&l, 0), "mtu", 0), 1400);
    cni_list_done(&l);

    text = "{\"name\": \"one\", \"plugins\": [{\"type\": \"a\"}]}";
    assert_int_equal(cni_list_parse_single(&l, "f", text, strlen(text), &e), ERR_INVALID);
    assert_string_equal(e.text, "type: missing; a list of plugins belongs into a file named .conflist");
}

static void a_list_without_name_is_called_after_its_file(void **state)
{
    struct cni_list l = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(from_list(&l, "{\"plugins\": [{\"type\": \"a\"}]}", &e), ERR_OK);
    assert_string_equal(l.name, "10-net.conflist");
    cni_list_done(&l);
}

static void the_highest_known_version_is_chosen(void **state)
{
    struct cni_list l = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(
        from_list(&l,
                  "{\"cniVersion\": \"0.4.0\", \"cniVersions\": [\"1.0.0\", \"9.9.9\", \"0.3.1\"],"
                  " \"name\": \"n\", \"plugins\": [{\"type\": \"a\"}]}",
                  &e),
        ERR_OK);
    assert_int_equal(l.version, CNI_V(1, 0, 0));
    assert_string_equal(json_str(l.conf, "cniVersion"), "1.0.0");
    cni_list_done(&l);
    assert_refused("{\"cniVersion\": \"2.0.0\", \"name\": \"n\", \"plugins\": [{\"type\": \"a\"}]}",
                   "cniVersion \"2.0.0\" is not supported (0.1.0 to 1.1.0 are)");
    assert_refused("{\"cniVersions\": [\"2.0.0\"], \"name\": \"n\", \"plugins\": [{\"type\": \"a\"}]}",
                   "cniVersion \"\" is not supported (0.1.0 to 1.1.0 are)");
}

static void bad_lists_say_where(void **state)
{
    (void)state;
    assert_refused("[]", "CNI configuration: not a JSON object");
    assert_refused(
        "{\"name\": \"a/b\", \"plugins\": []}",
        "network name \"a/b\": must begin with a letter or digit, then letters, digits, \"_\", \".\", \"-\", "
        "at most 100");
    assert_refused("{\"name\": 5}", "name: not a string");
    assert_refused("{\"name\": \"n\", \"plugins\": {}}", "plugins: not a list");
    assert_refused("{\"name\": \"n\", \"plugins\": []}", "network \"n\": no plugins");
    assert_refused("{\"name\": \"n\", \"plugins\": [{\"type\": \"a\"}, {}]}",
                   "network \"n\": plugins[1].type: missing");
    assert_refused("{\"name\": \"n\", \"plugins\": [{\"type\": \"../a\"}]}",
                   "network \"n\": plugins[0].type: \"../a\" is not a file name");
    assert_refused("{\"name\": \"n\", \"plugins\": [{\"type\": \"a\", \"ipam\": {\"type\": \"x/y\"}}]}",
                   "network \"n\": plugins[0].ipam.type: \"x/y\" is not a file name");
    assert_refused("{\"name\": \"n\", \"plugins\": [{\"type\": \"a\", \"capabilities\": []}]}",
                   "network \"n\": plugins[0].capabilities: not an object");
}

static void host_local_gets_the_data_folder_unless_it_has_one(void **state)
{
    const char *text = "{\"name\": \"n\", \"plugins\": ["
                       "{\"type\": \"bridge\", \"ipam\": {\"type\": \"host-local\"}},"
                       "{\"type\": \"bridge\", \"ipam\": {\"type\": \"host-local\", \"dataDir\": \"/mine\"}},"
                       "{\"type\": \"bridge\", \"ipam\": {\"type\": \"dhcp\"}}]}";
    struct cni_list l = { 0 };
    struct err e = { 0 };
    bool more;

    (void)state;
    assert_int_equal(cni_list_parse(&l, "f", text, strlen(text), &more, &e), ERR_OK);
    assert_int_equal(cni_list_check(&l, "/data", &e), ERR_OK);
    assert_string_equal(json_str(json_object_get(cni_list_plugin(&l, 0), "ipam"), "dataDir"), "/data");
    assert_string_equal(json_str(json_object_get(cni_list_plugin(&l, 1), "ipam"), "dataDir"), "/mine");
    assert_null(json_str(json_object_get(cni_list_plugin(&l, 2), "ipam"), "dataDir"));
    cni_list_done(&l);
}

static void a_plugin_reads_its_object_and_only_declared_capabilities(void **state)
{
    json_auto_t *supplied = parse("{\"portMappings\": [1], \"bandwidth\": {\"a\": 1}, \"mac\": \"m\"}");
    json_auto_t *prev = parse("{\"ips\": []}");
    json_auto_t *first = NULL, *second = NULL;
    struct cni_list l = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(
        from_list(&l,
                  "{\"cniVersion\": \"0.4.0\", \"name\": \"n\", \"plugins\": [{\"type\": \"a\", \"k\": 1,"
                  " \"capabilities\": {\"mac\": false}},"
                  "{\"type\": \"b\", \"capabilities\": {\"portMappings\": true, \"ips\": true}}]}",
                  &e),
        ERR_OK);
    first = cni_plugin_stdin(&l, 0, supplied, NULL);
    assert_json_equal(first, "{\"type\": \"a\", \"k\": 1, \"name\": \"n\", \"cniVersion\": \"0.4.0\"}");
    second = cni_plugin_stdin(&l, 1, supplied, prev);
    assert_json_equal(
        second, "{\"type\": \"b\", \"name\": \"n\", \"cniVersion\": \"0.4.0\", \"prevResult\": {\"ips\": []},"
                " \"runtimeConfig\": {\"portMappings\": [1]}}");
    assert_non_null(json_object_get(cni_list_plugin(&l, 1), "capabilities")); /* the list is as it was */
    cni_list_done(&l);
}

static void the_bridge_of_a_bridge_plugin_is_known(void **state)
{
    json_auto_t *named = parse("{\"type\": \"bridge\", \"bridge\": \"br9\"}");
    json_auto_t *unnamed = parse("{\"type\": \"bridge\"}");
    json_auto_t *hostile = parse("{\"type\": \"bridge\", \"bridge\": \"../../x\"}");
    json_auto_t *other = parse("{\"type\": \"ptp\", \"bridge\": \"br9\"}");

    (void)state;
    assert_string_equal(cni_plugin_bridge(named), "br9");
    assert_string_equal(cni_plugin_bridge(unnamed), "cni0");
    assert_null(cni_plugin_bridge(hostile));
    assert_null(cni_plugin_bridge(other));
}

static void a_stored_list_is_checked_again(void **state)
{
    json_auto_t *good =
        parse("{\"name\": \"n\", \"cniVersion\": \"1.0.0\", \"plugins\": [{\"type\": \"a\"}]}");
    json_auto_t *bad =
        parse("{\"name\": \"n\", \"cniVersion\": \"1.0.0\", \"plugins\": [{\"type\": \"/a\"}]}");
    struct cni_list l = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_list_from_json(&l, good, &e), ERR_OK);
    assert_string_equal(l.name, "n");
    cni_list_done(&l);
    assert_int_equal(cni_list_from_json(&l, bad, &e), ERR_INVALID);
    assert_int_equal(cni_list_from_json(&l, NULL, &e), ERR_DATA_LOSS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_keeps_what_only_its_plugins_know),
        cmocka_unit_test(load_only_inlined_plugins_takes_booleans_and_their_names),
        cmocka_unit_test(a_single_plugin_becomes_a_list),
        cmocka_unit_test(a_list_without_name_is_called_after_its_file),
        cmocka_unit_test(the_highest_known_version_is_chosen),
        cmocka_unit_test(bad_lists_say_where),
        cmocka_unit_test(host_local_gets_the_data_folder_unless_it_has_one),
        cmocka_unit_test(a_plugin_reads_its_object_and_only_declared_capabilities),
        cmocka_unit_test(the_bridge_of_a_bridge_plugin_is_known),
        cmocka_unit_test(a_stored_list_is_checked_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
