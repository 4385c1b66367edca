/* SPDX-License-Identifier: Apache-2.0 */
/* data/checkpoint-* are files of a real kubelet.  CHECKPOINTS=DIR reads all files of another folder, too. */
#include "tests/unit/deviceplugin/helper.h"

#include "tests/unit/base/nomem.h"

#include "deviceplugin/checkpoint/checkpoint_data.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>

#define WITH_SUM(data, sum) "{\"Data\":" data ",\"Checksum\":" sum "}"
#define NOTHING WITH_SUM("{\"PodDeviceEntries\":null,\"RegisteredDevices\":{}}", "3467439661")

static char *read_file(const char *dir, const char *name, size_t *ret_n)
{
    fd_auto at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct err e = { 0 };
    char *text = NULL;

    if (at < 0 || fs_read_at(at, name, DP_CHECKPOINT_MAX, &text, ret_n, &e) != ERR_OK)
        fail_msg("%s/%s: %s", dir, name, e.text);
    return text;
}

static const char *data_folder(void)
{
    static char here[300], path[400];

    snprintf(here, sizeof(here), "%s", __FILE__);
    snprintf(path, sizeof(path), "%s/data", dirname(here));
    return path;
}

/* "pod/container resource: devices;" in the order of holdings. */
static const char *all(const struct dp_holdings *h)
{
    static char text[8192];
    size_t at = 0;

    text[0] = '\0';
    for (const struct dp_holding *x = dp_holdings_next(h, NULL); x != NULL; x = dp_holdings_next(h, x))
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s/%s %s: %s;", x->pod_uid, x->container,
                               x->resource, help_text(x->devices, x->n_devices));
    return text;
}

static const char *list(const struct strs *s)
{
    static char text[8192];
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < s->n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i > 0 ? "; " : "", s->v[i]);
    return text;
}

/* ---- kubelet's files ---- */

static void is_written_again(const char *dir, const char *name)
{
    buf_auto again = BUF_INIT(DP_CHECKPOINT_MAX);
    struct dp_ck_data d;
    struct err e = { 0 };
    uint64_t sum = 0;
    size_t n = 0;
    str_auto text = read_file(dir, name, &n);

    if (dp_ck_parse(text, n, &d, &sum, &e) != ERR_OK)
        fail_msg("%s: %s", name, e.text);
    if (sum != dp_ck_sum(&d))
        fail_msg("%s: checksum %llu, computed %u", name, (unsigned long long)sum, dp_ck_sum(&d));
    dp_ck_text(&d, &again);
    assert_string_equal(again.p, text);
    dp_ck_done(&d);
}

static size_t are_written_again(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    size_t n = 0;

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL)
        if (strncmp(entry->d_name, "checkpoint-", 11) == 0) {
            is_written_again(dir, entry->d_name);
            n++;
        }
    closedir(d);
    return n;
}

static void recorded_files_have_our_checksum_and_our_bytes(void **state)
{
    (void)state;
    assert_int_equal(are_written_again(data_folder()), 7);
    if (getenv("CHECKPOINTS") != NULL)
        print_message("%zu files\n", are_written_again(getenv("CHECKPOINTS")));
}

static void assert_holds(const char *name, const char *holdings, const char *resources)
{
    struct dp_holdings *h = help_new();
    struct strs names = { 0 }, ignored = { 0 };
    struct err e = { 0 };
    size_t n = 0;
    str_auto text = read_file(data_folder(), name, &n);

    if (dp_checkpoint_read(text, n, h, &names, &ignored, &e) != ERR_OK)
        fail_msg("%s: %s", name, e.text);
    assert_string_equal(all(h), holdings);
    assert_string_equal(list(&names), resources);
    assert_int_equal(ignored.n, 0);
    strs_done(&names);
    dp_holdings_free(h);
}

static void recorded_files_become_holdings(void **state)
{
    (void)state;
    assert_holds("checkpoint-01-registered", "", "example.com/dev");
    assert_holds("checkpoint-03-none-left",
                 "73830381-314c-4907-bbd2-0ee28eef067f/main example.com/dev: dev-0;"
                 "eb5976c3-5eb1-4e90-961e-8dd3ce207ba5/init-one example.com/dev: dev-2 dev-3;"
                 "eb5976c3-5eb1-4e90-961e-8dd3ce207ba5/init-two example.com/dev: dev-2;"
                 "eb5976c3-5eb1-4e90-961e-8dd3ce207ba5/main example.com/dev: dev-2 dev-3;"
                 "eb5976c3-5eb1-4e90-961e-8dd3ce207ba5/side example.com/dev: dev-1;",
                 "example.com/dev");
    assert_holds("checkpoint-26-after-five-minutes",
                 "c1249fea-a3ce-4204-abed-244e770f9883/main example.com/dev: dev-1;", "");
    assert_holds("checkpoint-33-without-topology",
                 "1da0768e-169c-4102-ba50-a0b8e84c3001/main example.com/dev: dev-0@0 dev-2@0;"
                 "1da0768e-169c-4102-ba50-a0b8e84c3001/main vendor.test/gpu: gpu0 gpu1;"
                 "ddd568cf-e0bd-48d1-8ef2-e27ecda097db/main example.com/dev: dev-3@1;"
                 "ddd568cf-e0bd-48d1-8ef2-e27ecda097db/main example.com/net: net-1@1;",
                 "example.com/dev; example.com/net; vendor.test/gpu");
    assert_holds("checkpoint-42-asked", "", "example.com/dev");
}

static void holdings_become_kubelets_file(void **state)
{
    const struct dp_registered registered[] = {
        { DEV, (const char *[]){ "dev-0", "dev-1", "dev-2" }, 3 },
    };
    struct dp_holdings *h = help_new();
    struct err e = { 0 };
    str_auto text = NULL;
    size_t n = 0, n_recorded = 0;
    str_auto recorded = read_file(data_folder(), "checkpoint-35-two", &n_recorded);

    (void)state;
    assert_int_equal(dp_checkpoint_read(recorded, n_recorded, h, NULL, NULL, &e), ERR_OK);
    assert_int_equal(dp_checkpoint_write(h, registered, 1, &text, &n, &e), ERR_OK);
    assert_string_equal(text, recorded);
    assert_int_equal(n, n_recorded);
    dp_holdings_free(h);
}

/* ---- the text ---- */

static char *written(const struct dp_holdings *h, const struct dp_registered *v, size_t n)
{
    struct err e = { 0 };
    char *text = NULL;
    size_t size = 0;

    if (dp_checkpoint_write(h, v, n, &text, &size, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(size, strlen(text));
    return text;
}

/* The checksums were computed by another program, from the description in checkpoint_sum.c. */
static void nothing_has_a_text_too(void **state)
{
    struct dp_holdings *h = help_new();
    str_auto text = written(h, NULL, 0);

    (void)state;
    assert_string_equal(text, NOTHING);
    dp_holdings_free(h);
}

static void the_order_is_that_of_go_and_of_our_holdings(void **state)
{
    const struct dp_registered registered[] = {
        { "example.com/net", NULL, 0 },
        { "example.com/Net", (const char *[]){ "n-2", "n-10" }, 2 },
    };
    struct dp_holdings *h = help_new();
    str_auto text = NULL;

    (void)state;
    help_holds(h, "b", "main", "d10@10,2 d9@2 d1 d2@-3");
    help_holds(h, "a", "main", "d0");
    text = written(h, registered, 2);
    assert_string_equal(
        text,
        WITH_SUM("{\"PodDeviceEntries\":["
                 "{\"PodUID\":\"a\",\"ContainerName\":\"main\",\"ResourceName\":\"example.com/dev\","
                 "\"DeviceIDs\":{\"-1\":[\"d0\"]},\"AllocResp\":\"YW5zd2Vy\"},"
                 "{\"PodUID\":\"b\",\"ContainerName\":\"main\",\"ResourceName\":\"example.com/dev\","
                 "\"DeviceIDs\":{\"-1\":[\"d1\"],\"-3\":[\"d2\"],\"10\":[\"d10\"],\"2\":[\"d9\",\"d10\"]},"
                 "\"AllocResp\":\"YW5zd2Vy\"}],"
                 "\"RegisteredDevices\":{\"example.com/Net\":[\"n-2\",\"n-10\"],\"example.com/net\":[]}}",
                 "2575242181"));
    dp_holdings_free(h);
}

static void characters_are_escaped_as_go_does(void **state)
{
    static const char odd[] =
        "\"\\/\b\f\n\r\t\x01\x1f\x7f<>&'\xc3\xa4\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xf0\x9f\x98\x80";
    struct dp_holding x = { .pod_uid = "a", .container = "main", .resource = DEV };
    const struct dp_held held = { .id = odd };
    struct dp_holdings *h = help_new(), *again = help_new();
    struct err e = { 0 };
    str_auto text = NULL;

    (void)state;
    x.devices = &held;
    x.n_devices = 1;
    x.answer = (const uint8_t *)"";
    assert_int_equal(dp_holdings_put(h, &x, &e), ERR_OK);
    text = written(h, NULL, 0);
    assert_string_equal(
        text, WITH_SUM("{\"PodDeviceEntries\":[{\"PodUID\":\"a\",\"ContainerName\":\"main\",\"ResourceName\":"
                       "\"example.com/dev\",\"DeviceIDs\":{\"-1\":[\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f"
                       "\x7f\\u003c\\u003e\\u0026'\xc3\xa4\\u2028\\u2029\xe2\x80\xaa\xf0\x9f\x98\x80\"]},"
                       "\"AllocResp\":\"\"}],\"RegisteredDevices\":{}}",
                       "422520051"));
    assert_int_equal(dp_checkpoint_read(text, strlen(text), again, NULL, NULL, &e), ERR_OK);
    assert_string_equal(dp_holdings_next(again, NULL)->devices[0].id, odd);
    assert_non_null(dp_holdings_next(again, NULL)->answer);
    dp_holdings_free(again);
    dp_holdings_free(h);
}

static void reserved_devices_are_not_in_the_file(void **state)
{
    struct dp_holding x = { .pod_uid = "a", .container = "main", .resource = DEV };
    const struct dp_held held = { .id = "dev-0" };
    struct dp_holdings *h = help_new();
    struct err e = { 0 };
    str_auto text = NULL;

    (void)state;
    x.devices = &held;
    x.n_devices = 1;
    assert_int_equal(dp_holdings_put(h, &x, &e), ERR_OK);
    text = written(h, NULL, 0);
    assert_string_equal(text, NOTHING);
    dp_holdings_free(h);
}

static void a_resource_is_registered_once(void **state)
{
    const struct dp_registered twice[] = { { DEV, NULL, 0 }, { "a.b/c", NULL, 0 }, { DEV, NULL, 0 } };
    struct dp_holdings *h = help_new();
    struct err e = { 0 };
    char *text = NULL;
    size_t n = 0;

    (void)state;
    assert_int_equal(dp_checkpoint_write(h, twice, 3, &text, &n, &e), ERR_INVALID);
    assert_string_equal(e.text, "checkpoint of devices: example.com/dev is registered twice");
    assert_null(text);
    dp_holdings_free(h);
}

/* ---- damage ---- */

static void damage_is_named_with_its_place(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        { "", "it is empty" },
        { " ", "byte 1: '{' is expected" },
        { "null", "byte 0: '{' is expected" },
        { "{}", "byte 1: a string is expected" },
        { "{\"Data\":{", "byte 9: a string is expected" },
        { "{\"Checksum\":1}", "byte 13: the key \"Data\" is missing" },
        { "{\"Checksum\":1,\"Checksum\":2}", "byte 25: the key \"Checksum\" appears twice" },
        { "{\"checksum\":1}", "byte 12: unknown key \"checksum\"" },
        { "{\"\x1b[2J\":1}", "byte 2: a control character in a string" },
        { "{\"\\u001b[2J\":1}", "byte 13: unknown key \"?[2J\"" },
        { "{\"Data\":[]}", "byte 8: '{' is expected" },
        { "{\"Checksum\":-1}", "byte 12: a number is expected" },
        { "{\"Checksum\":1.5}", "byte 13: the key \"Data\" is missing" },
        { "{\"Checksum\":99999999999999999999}", "byte 31: the number is too large" },
        { NOTHING "x", "byte 79: text after the end" },
        { WITH_SUM("{\"PodDeviceEntries\":null,\"RegisteredDevices\":{}}", "1"),
          "its checksum is 1, but the data have 3467439661" },
        /* As uint64, which kubelet reads it into, another number. */
        { WITH_SUM("{\"PodDeviceEntries\":null,\"RegisteredDevices\":{}}", "7762406957"),
          "its checksum is 7762406957, but the data have 3467439661" },
        { "{\"Data\":{\"PodDeviceEntries\":nul", "byte 28: '[' is expected" },
        { "{\"Data\":{\"PodDeviceEntries\":[[[[[[[[", "byte 29: '{' is expected" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":7", "byte 39: a string is expected" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"\xff", "byte 40: not UTF-8" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"\\u0000", "byte 46: a NUL in a string" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"\\ud800x",
          "byte 46: half of a surrogate pair (\\ud800)" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"\\ud800\\u0041x",
          "byte 52: half of a surrogate pair (\\ud800)" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"\\udc00x",
          "byte 46: half of a surrogate pair (\\udc00)" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"\\u00g0",
          "byte 44: four hexadecimal digits are expected after \\u" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"\\x", "byte 41: not an escape of JSON" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{\"x\":[]", "byte 47: \"x\" is not a NUMA node" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{\"9223372036854775808\":[]",
          "byte 65: \"9223372036854775808\" is not a NUMA node" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{\"0\":[],\"0\":[]}",
          "byte 57: the NUMA node 0 appears twice" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"AllocResp\":\"Zg=\"", "byte 47: AllocResp is not base64" },
        { "{\"Data\":{\"PodDeviceEntries\":[{\"AllocResp\":\"Zg!=\"", "byte 48: AllocResp is not base64" },
        { "{\"Data\":{\"RegisteredDevices\":{\"a\":[],\"a\":[]}",
          "byte 44: the resource \"a\" appears twice" },
        { "{\"Data\":{\"RegisteredDevices\":{\"a\":[\"x\" \"y\"]", "byte 39: ',' or ']' is expected" },
        { "{\"Data\":{\"RegisteredDevices\":{\"a\":[\"x\",]", "byte 39: a string is expected" },
    };
    struct dp_holdings *h = help_new();
    struct strs names = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = { 0 };
        char expected[200];

        snprintf(expected, sizeof(expected), "checkpoint of devices: %s", rows[i].error);
        assert_int_equal(dp_checkpoint_read(rows[i].text, strlen(rows[i].text), h, &names, NULL, &e),
                         ERR_DATA_LOSS);
        assert_string_equal(e.text, expected);
    }
    assert_null(dp_holdings_next(h, NULL));
    assert_int_equal(names.n, 0);
    dp_holdings_free(h);
}

static void blanks_and_the_order_of_keys_mean_nothing(void **state)
{
    static const char text[] = " {\n\"Checksum\" : 3467439661 ,\t\"Data\":\r{ \"RegisteredDevices\" : { } , "
                               "\"PodDeviceEntries\" : null } } \n";
    struct err e = { 0 };

    (void)state;
    assert_int_equal(dp_checkpoint_read(text, strlen(text), NULL, NULL, NULL, &e), ERR_OK);
}

static void a_torn_file_is_damaged_and_adds_nothing(void **state)
{
    struct dp_holdings *h = help_new();
    struct strs names = { 0 };
    size_t n = 0;
    str_auto text = read_file(data_folder(), "checkpoint-33-without-topology", &n);

    (void)state;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(dp_checkpoint_read(text, i, h, &names, NULL, ERR_IGNORED), ERR_DATA_LOSS);
    for (size_t i = 0; i < n; i += 512) { /* a page that was never written */
        char *torn = calloc(1, n);

        memcpy(torn, text, i);
        assert_int_equal(dp_checkpoint_read(torn, n, h, &names, NULL, ERR_IGNORED), ERR_DATA_LOSS);
        free(torn);
    }
    assert_null(dp_holdings_next(h, NULL));
    assert_int_equal(names.n, 0);
    dp_holdings_free(h);
}

static void a_changed_byte_is_noticed_or_changes_nothing(void **state)
{
    struct dp_holdings *whole = help_new();
    struct err e = { 0 };
    char expected[8192];
    size_t n = 0, unnoticed = 0;
    str_auto text = read_file(data_folder(), "checkpoint-33-without-topology", &n);

    (void)state;
    assert_int_equal(dp_checkpoint_read(text, n, whole, NULL, NULL, &e), ERR_OK);
    snprintf(expected, sizeof(expected), "%s", all(whole));
    for (size_t i = 0; i < n; i++) {
        struct dp_holdings *h = help_new();
        char was = text[i];

        text[i] ^= (char)(1 << i % 8);
        if (dp_checkpoint_read(text, n, h, NULL, NULL, ERR_IGNORED) == ERR_OK) {
            assert_string_equal(all(h), expected);
            unnoticed++; /* the last bits of base64, which mean nothing */
        }
        text[i] = was;
        dp_holdings_free(h);
    }
    assert_true(unnoticed < 4);
    dp_holdings_free(whole);
}

/* ---- contradictions ---- */

/* The text of data with its right checksum; entries and resources are as given. */
static char *signed_text(const char *entries, const char *registered)
{
    buf_auto again = BUF_INIT(DP_CHECKPOINT_MAX);
    struct dp_ck_data d;
    struct err e = { 0 };
    uint64_t sum = 0;
    str_auto text =
        str_printf(WITH_SUM("{\"PodDeviceEntries\":%s,\"RegisteredDevices\":%s}", "0"), entries, registered);

    if (dp_ck_parse(text, strlen(text), &d, &sum, &e) != ERR_OK)
        fail_msg("%s", e.text);
    dp_ck_text(&d, &again);
    dp_ck_done(&d);
    return buf_detach(&again);
}

#define ENTRY(pod, container, resource, ids, answer)                                                         \
    "{\"PodUID\":\"" pod "\",\"ContainerName\":\"" container "\",\"ResourceName\":\"" resource               \
    "\",\"DeviceIDs\":" ids ",\"AllocResp\":" answer "}"

static void of_two_entries_that_contradict_the_first_is_kept(void **state)
{
    static const char entries[] =
        "[" ENTRY("a", "main", DEV, "{\"-1\":[\"dev-0\",\"dev-1\"]}", "\"\"") "," /* taken */
        ENTRY("b", "main", DEV, "{\"0\":[\"dev-1\",\"dev-2\"]}", "\"\"") ","      /* dev-1 is a's */
        ENTRY("a", "main", DEV, "{\"-1\":[\"dev-3\"]}", "\"\"") ","               /* again */
        ENTRY("a", "side", DEV, "{\"-1\":[\"dev-1\",\"dev-1\"]}", "\"\"") ","     /* twice in one: once */
        ENTRY("b", "main", "cpu", "{\"-1\":[\"0\"]}", "\"\"") ","                 /* no extended resource */
        ENTRY("", "main", DEV, "{\"-1\":[\"dev-4\"]}", "\"\"") ","                /* no pod */
        ENTRY("c", "main", DEV, "{\"-1\":[\"\"]}", "\"\"") ","                    /* no id */
        ENTRY("d", "main", DEV, "null", "null") ","                               /* no answer */
        ENTRY("e", "main", DEV, "{\"1\":[\"dev-2\"],\"0\":[\"dev-2\"]}", "\"\"") "]"; /* taken */
    struct dp_holdings *h = help_new();
    struct strs names = { 0 }, ignored = { 0 };
    struct err e = { 0 };
    str_auto text = signed_text(entries, "{\"example.com/dev\":null,\"cpu\":[],\"a.b/c\":[\"x\"]}");

    (void)state;
    assert_int_equal(dp_checkpoint_read(text, strlen(text), h, &names, &ignored, &e), ERR_OK);
    assert_string_equal(all(h), "a/main example.com/dev: dev-0 dev-1;a/side example.com/dev: dev-1;"
                                "e/main example.com/dev: dev-2@0,1;");
    assert_string_equal(list(&names), "a.b/c; example.com/dev");
    assert_string_equal(
        list(&ignored),
        "entry of pod b, container main, resource example.com/dev: device \"dev-1\" of example.com/dev: pod "
        "a "
        "holds it, pod b cannot have it; "
        "entry of pod a, container main, resource example.com/dev: it already holds other devices; "
        "entry of pod b, container main, resource cpu: no resource may have the name \"cpu\"; "
        "entry of pod , container main, resource example.com/dev: the name of a pod, a container or a "
        "resource is empty or not UTF-8; "
        "entry of pod c, container main, resource example.com/dev: device \"\" of example.com/dev: an id has "
        "1 to 4096 bytes of UTF-8; "
        "entry of pod d, container main, resource example.com/dev: it has no answer; "
        "registered: no resource may have the name \"cpu\"");
    strs_done(&ignored);
    strs_done(&names);
    dp_holdings_free(h);
}

static void what_records_say_comes_first(void **state)
{
    struct dp_holdings *h = help_new();
    struct strs ignored = { 0 };
    struct err e = { 0 };
    str_auto text = signed_text("[" ENTRY("a", "main", DEV, "{\"-1\":[\"dev-0\"]}", "\"\"") "," ENTRY(
                                    "b", "main", DEV, "{\"-1\":[\"dev-1\",\"dev-0\"]}",
                                    "\"\"") "," ENTRY("c", "main", DEV, "{\"-1\":[\"dev-2\"]}", "\"\"") "]",
                                "{}");

    (void)state;
    help_holds(h, "b", "main", "dev-0 dev-1");
    help_holds(h, "c", "main", "dev-3");
    assert_int_equal(dp_checkpoint_read(text, strlen(text), h, NULL, &ignored, &e), ERR_OK);
    assert_string_equal(all(h), "b/main example.com/dev: dev-0 dev-1;c/main example.com/dev: dev-3;");
    /* That of b says the same: there is nothing to tell. */
    assert_int_equal(dp_holdings_find(h, "b", "main", DEV)->n_answer, 6);
    assert_string_equal(
        list(&ignored),
        "entry of pod a, container main, resource example.com/dev: device \"dev-0\" of "
        "example.com/dev: pod b holds it, pod a cannot have it; "
        "entry of pod c, container main, resource example.com/dev: it already holds other devices");
    strs_done(&ignored);
    dp_holdings_free(h);
}

static void not_all_of_a_hostile_files_entries_are_named(void **state)
{
    buf_auto entries = BUF_INIT(DP_CHECKPOINT_MAX);
    struct dp_holdings *h = help_new();
    struct strs ignored = { 0 };
    struct err e = { 0 };
    str_auto text = NULL;

    (void)state;
    for (int i = 0; i < 1000; i++)
        buf_addf(&entries, "%s" ENTRY("%d", "main", "cpu", "{}", "\"\""), i > 0 ? "," : "[", i);
    buf_adds(&entries, "]");
    text = signed_text(entries.p, "{}");
    assert_int_equal(dp_checkpoint_read(text, strlen(text), h, NULL, &ignored, &e), ERR_OK);
    assert_int_equal(ignored.n, 101);
    assert_string_equal(
        ignored.v[99],
        "entry of pod 99, container main, resource cpu: no resource may have the name \"cpu\"");
    assert_string_equal(ignored.v[100], "and others");
    strs_done(&ignored);
    dp_holdings_free(h);
}

static void sizes_are_bounded(void **state)
{
    buf_auto text = BUF_INIT(DP_CHECKPOINT_MAX);
    struct err e = { 0 };

    (void)state;
    assert_int_equal(dp_checkpoint_read("", (size_t)DP_CHECKPOINT_MAX + 1, NULL, NULL, NULL, &e),
                     ERR_DATA_LOSS);
    assert_string_equal(e.text, "checkpoint of devices: 67108865 bytes are more than the 67108864 allowed");
    buf_adds(&text, "{\"Data\":{\"PodDeviceEntries\":[");
    for (int i = 0; i <= DP_HOLDINGS_MAX; i++)
        buf_adds(&text, ENTRY("", "", "", "null", "null") ",");
    assert_int_equal(dp_checkpoint_read(text.p, text.n, NULL, NULL, NULL, &e), ERR_DATA_LOSS);
    assert_non_null(strstr(e.text, ": more than 65536 entries"));
    buf_reset(&text);
    buf_adds(&text, "{\"Data\":{\"RegisteredDevices\":{\"a\":[");
    for (int i = 0; i <= 4 * DP_HELD_MAX; i++)
        buf_adds(&text, "\"\",");
    assert_int_equal(dp_checkpoint_read(text.p, text.n, NULL, NULL, NULL, &e), ERR_DATA_LOSS);
    assert_non_null(strstr(e.text, ": more than 4194304 device ids"));
}

static void what_does_not_fit_is_not_written(void **state)
{
    struct dp_held *held = calloc(40000, sizeof(*held));
    struct dp_holding x = { .pod_uid = "a", .container = "main", .resource = DEV, .devices = held };
    char *ids = malloc((size_t)40000 * 2048);
    struct dp_holdings *h = help_new();
    struct err e = { 0 };
    char *text = NULL;
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < 40000; i++) {
        held[i].id = ids + 2048 * i;
        memset(ids + 2048 * i, 'x', 2047);
        snprintf(ids + 2048 * i + 2000, 48, "%zu", i);
    }
    x.n_devices = 40000;
    x.answer = (const uint8_t *)"";
    assert_int_equal(dp_holdings_put(h, &x, &e), ERR_OK);
    assert_int_equal(dp_checkpoint_write(h, NULL, 0, &text, &n, &e), ERR_EXHAUSTED);
    dp_holdings_free(h);
    free(ids);
    free(held);
}

static void without_memory_it_is_an_error(void **state)
{
    const struct dp_registered registered[] = { { "a.b/c", (const char *[]){ "x", "y" }, 2 } };
    struct err e = { 0 };
    bool ok = false;
    size_t n = 0;
    str_auto text = read_file(data_folder(), "checkpoint-33-without-topology", &n);

    (void)state;
    NOMEM_EACH(ok, {
        struct strs names = { 0 };
        struct strs ignored = { 0 };
        struct dp_holdings *h = NULL;
        char *again = NULL;
        size_t size = 0;

        ok = dp_holdings_new(&h, &e) == ERR_OK &&
             dp_checkpoint_read(text, n, h, &names, &ignored, &e) == ERR_OK;
        if (ok)
            ok = dp_checkpoint_write(h, registered, 1, &again, &size, &e) == ERR_OK;
        if (!ok)
            assert_int_equal(e.code, ERR_EXHAUSTED);
        assert_int_equal(ignored.n, 0);
        free(again);
        strs_done(&ignored);
        strs_done(&names);
        dp_holdings_free(h);
    });
}

static void without_memory_nothing_is_ignored_silently(void **state)
{
    struct err e = { 0 };
    bool ok = false;
    str_auto text = signed_text("[" ENTRY("a", "main", DEV, "{\"-1\":[\"dev-0\"]}", "\"\"") "," ENTRY(
                                    "b", "main", DEV, "{\"-1\":[\"dev-0\"]}", "\"\"") "]",
                                "{\"cpu\":[]}");
    size_t n = strlen(text);

    (void)state;
    NOMEM_EACH(ok, {
        struct strs names = { 0 };
        struct strs ignored = { 0 };
        struct dp_holdings *h = NULL;

        ok = dp_holdings_new(&h, &e) == ERR_OK &&
             dp_checkpoint_read(text, n, h, &names, &ignored, &e) == ERR_OK;
        if (ok)
            assert_int_equal(ignored.n, 2);
        else
            assert_int_equal(e.code, ERR_EXHAUSTED);
        strs_done(&ignored);
        strs_done(&names);
        dp_holdings_free(h);
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_files_have_our_checksum_and_our_bytes),
        cmocka_unit_test(recorded_files_become_holdings),
        cmocka_unit_test(holdings_become_kubelets_file),
        cmocka_unit_test(nothing_has_a_text_too),
        cmocka_unit_test(the_order_is_that_of_go_and_of_our_holdings),
        cmocka_unit_test(characters_are_escaped_as_go_does),
        cmocka_unit_test(reserved_devices_are_not_in_the_file),
        cmocka_unit_test(a_resource_is_registered_once),
        cmocka_unit_test(damage_is_named_with_its_place),
        cmocka_unit_test(blanks_and_the_order_of_keys_mean_nothing),
        cmocka_unit_test(a_torn_file_is_damaged_and_adds_nothing),
        cmocka_unit_test(a_changed_byte_is_noticed_or_changes_nothing),
        cmocka_unit_test(of_two_entries_that_contradict_the_first_is_kept),
        cmocka_unit_test(what_records_say_comes_first),
        cmocka_unit_test(not_all_of_a_hostile_files_entries_are_named),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(what_does_not_fit_is_not_written),
    };
    const struct CMUnitTest nomem[] = { cmocka_unit_test(without_memory_it_is_an_error),
                                        cmocka_unit_test(without_memory_nothing_is_ignored_silently) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed + NOMEM_RUN(nomem);
}
