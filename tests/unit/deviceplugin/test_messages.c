/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/message/messages.h"

#include "base/buf.h"
#include "base/codec/protobuf.h"
#include "base/scope.h"
#include "deviceplugin/proto/podresources.pb-c.h"
#include "tests/unit/base/helper.h"
#include "tests/unit/deviceplugin/wire_fixtures.h"

enum { BYTES_MAX = 8 * 1024 * 1024 };

static const char *const ids[] = { "dev-0", "dev-1", "dev-10" };

/* Packs with `call`, which uses &p, &n, &e, and compares with a fixture. */
#define PACKS(name, call)                                                                                    \
    do {                                                                                                     \
        mem_auto uint8_t *p = NULL;                                                                          \
        struct err e = { 0 };                                                                                \
        size_t n = 0;                                                                                        \
                                                                                                             \
        assert_int_equal(call, ERR_OK);                                                                      \
        assert_int_equal(n, wire_##name##_n);                                                                \
        assert_memory_equal(p, wire_##name, n);                                                              \
    } while (0)

/* ---- what python's encoder says ---- */

static void what_is_sent_is_what_another_encoder_writes(void **state)
{
    (void)state;
    PACKS(allocate, dp_allocate_pack(ids, 3, &p, &n, &e));
    PACKS(allocate_none, dp_allocate_pack(NULL, 0, &p, &n, &e));
    PACKS(preferred, dp_preferred_pack(ids, 3, ids, 1, 2, &p, &n, &e));
    PACKS(pre_start, dp_pre_start_pack(ids, 3, &p, &n, &e));
    PACKS(status_ok, dp_status_pack(NULL, &p, &n, &e));
    PACKS(status_failed, dp_status_pack("RegisterPlugin error -- no", &p, &n, &e));
    assert_int_equal(wire_empty_n, 0);
}

static void a_registration_is_read(void **state)
{
    struct dp_registration r = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(dp_registration_unpack(&r, wire_register, wire_register_n, &e), ERR_OK);
    assert_string_equal(r.version, "v1beta1");
    assert_string_equal(r.endpoint, "nvidia.sock");
    assert_string_equal(r.resource, "example.com/dev");
    dp_registration_done(&r);
    assert_int_equal(dp_registration_unpack(&r, NULL, 0, &e), ERR_OK);
    assert_string_equal(r.version, "");
    assert_string_equal(r.endpoint, "");
    dp_registration_done(&r);
}

static void options_are_read(void **state)
{
    struct dp_options o = { true, true };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(dp_options_unpack(&o, wire_options_none, wire_options_none_n, &e), ERR_OK);
    assert_false(o.pre_start);
    assert_false(o.preferred);
    assert_int_equal(dp_options_unpack(&o, wire_options_both, wire_options_both_n, &e), ERR_OK);
    assert_true(o.pre_start);
    assert_true(o.preferred);
    assert_int_equal(dp_options_unpack(&o, wire_options_preferred, wire_options_preferred_n, &e), ERR_OK);
    assert_false(o.pre_start);
    assert_true(o.preferred);
}

static void a_list_is_read_with_health_and_numa_nodes(void **state)
{
    struct dp_list l = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(dp_list_unpack(&l, wire_list, wire_list_n, &e), ERR_OK);
    assert_int_equal(l.n, 4);
    assert_string_equal(l.v[0].id, "dev-0");
    assert_true(l.v[0].healthy);
    assert_int_equal(l.v[0].n_numa, 1);
    assert_int_equal(l.v[0].numa[0], 0);
    assert_false(l.v[1].healthy);
    assert_int_equal(l.v[1].n_numa, 3);
    assert_int_equal(l.v[1].numa[1], -1);
    assert_true(l.v[1].numa[2] == INT64_C(1) << 62);
    assert_string_equal(l.v[2].id, "ger\u00e4t \u2603 \U0001d11e");
    assert_int_equal(l.v[2].n_numa, 0);
    assert_string_equal(l.v[3].id, "odd");
    assert_false(l.v[3].healthy);
    assert_int_equal(l.v[3].n_numa, 0);
    dp_list_done(&l);
    assert_int_equal(dp_list_unpack(&l, wire_list_none, wire_list_none_n, &e), ERR_OK);
    assert_int_equal(l.n, 0);
    dp_list_done(&l);
}

static void preferred_ids_are_read(void **state)
{
    mem_auto char **v = NULL;
    mem_auto char **none = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(dp_preferred_unpack(&v, wire_preferred_answer, wire_preferred_answer_n, &e), ERR_OK);
    assert_string_equal(v[0], "dev-1");
    assert_string_equal(v[1], "dev-10");
    assert_null(v[2]);
    assert_int_equal(dp_preferred_unpack(&none, NULL, 0, &e), ERR_OK);
    assert_null(none[0]);
}

static void information_of_a_watched_plugin_is_read(void **state)
{
    struct dp_info i = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(dp_info_unpack(&i, wire_info, wire_info_n, &e), ERR_OK);
    assert_string_equal(i.info.type, "DevicePlugin");
    assert_string_equal(i.info.name, "example.com/dev");
    assert_string_equal(i.info.endpoint, "/run/x.sock");
    assert_int_equal(i.info.n_versions, 2);
    assert_string_equal(i.info.versions[1], "v1beta1");
    dp_info_done(&i);
}

static void expect_answer(const struct dp_answer *a)
{
    assert_int_equal(a->n_envs, 1);
    assert_string_equal(a->envs[0].name, "DEV_IDS");
    assert_string_equal(a->envs[0].value, "dev-0");
    assert_int_equal(a->n_annotations, 1);
    assert_string_equal(a->annotations[0].name, "example.com/note");
    assert_string_equal(a->annotations[0].value, "");
    assert_int_equal(a->n_mounts, 2);
    assert_string_equal(a->mounts[0].container_path, "/mnt");
    assert_string_equal(a->mounts[0].host_path, "/srv");
    assert_true(a->mounts[0].read_only);
    assert_false(a->mounts[1].read_only);
    assert_int_equal(a->n_nodes, 1);
    assert_string_equal(a->nodes[0].container_path, "/dev/x");
    assert_string_equal(a->nodes[0].host_path, "/dev/null");
    assert_string_equal(a->nodes[0].permissions, "rwm");
    assert_int_equal(a->n_cdi, 1);
    assert_string_equal(a->cdi[0], "example.com/net=net-0");
}

static void an_answer_is_read_and_its_bytes_are_kept(void **state)
{
    mem_auto struct dp_answer *a = NULL;
    mem_auto struct dp_answer *stored = NULL;
    mem_auto uint8_t *raw = NULL;
    struct err e = { 0 };
    size_t n = 0;

    (void)state;
    assert_int_equal(dp_allocated_unpack(&a, &raw, &n, wire_allocated, wire_allocated_n, &e), ERR_OK);
    expect_answer(a);
    assert_int_equal(n, wire_answer_n);
    assert_memory_equal(raw, wire_answer, n);
    assert_int_equal(dp_answer_unpack(&stored, raw, n, &e), ERR_OK);
    expect_answer(stored);
}

static void an_answer_of_our_own_is_what_another_encoder_writes(void **state)
{
    struct dp_kv env = { "DEV_IDS", "dev-0" }, annotation = { "example.com/note", "x" };
    struct dp_mount mounts[] = { { "/mnt", "/srv", true }, { "/a", "/b", false } };
    struct dp_node node = { "/dev/x", "/dev/null", "rwm" };
    const char *cdi = "example.com/net=net-0";
    const struct dp_answer a = { .envs = &env,
                                 .annotations = &annotation,
                                 .mounts = mounts,
                                 .nodes = &node,
                                 .cdi = &cdi,
                                 .n_envs = 1,
                                 .n_annotations = 1,
                                 .n_mounts = 2,
                                 .n_nodes = 1,
                                 .n_cdi = 1 };

    (void)state;
    PACKS(declared, dp_answer_pack(&a, &p, &n, &e));
}

static void of_several_containers_the_first_one_is_used(void **state)
{
    mem_auto struct dp_answer *a = NULL;
    mem_auto uint8_t *raw = NULL;
    struct err e = { 0 };
    size_t n = 0;

    (void)state;
    assert_int_equal(dp_allocated_unpack(&a, &raw, &n, wire_allocated_two, wire_allocated_two_n, &e), ERR_OK);
    expect_answer(a);
}

static void pod_resources_are_what_another_encoder_writes(void **state)
{
    V1__NUMANode zero = V1__NUMANODE__INIT, one = V1__NUMANODE__INIT, *nodes[] = { &zero, &one };
    V1__TopologyInfo t = V1__TOPOLOGY_INFO__INIT;
    V1__ContainerDevices d = V1__CONTAINER_DEVICES__INIT, *devices[] = { &d };
    V1__ContainerMemory m = V1__CONTAINER_MEMORY__INIT, *memory[] = { &m };
    V1__ContainerResources c = V1__CONTAINER_RESOURCES__INIT, *containers[] = { &c };
    V1__PodResources pod = V1__POD_RESOURCES__INIT, *pods[] = { &pod };
    V1__ListPodResourcesResponse list = V1__LIST_POD_RESOURCES_RESPONSE__INIT;
    int64_t cpus[] = { 2, 3, 300 };
    char *device_ids[] = { (char *)"dev-0" };
    uint8_t p[256];

    (void)state;
    one.id = 1;
    t.n_nodes = 2;
    t.nodes = nodes;
    d.resource_name = (char *)"example.com/dev";
    d.n_device_ids = 1;
    d.device_ids = device_ids;
    d.topology = m.topology = &t;
    m.memory_type = (char *)"memory";
    m.size = UINT64_C(1) << 40;
    c.name = (char *)"main";
    c.n_cpu_ids = 3;
    c.cpu_ids = cpus;
    c.n_memory = c.n_devices = 1;
    c.memory = memory;
    c.devices = devices;
    pod.name = (char *)"a";
    pod.namespace_ = (char *)"default";
    pod.n_containers = 1;
    pod.containers = containers;
    list.n_pod_resources = 1;
    list.pod_resources = pods;
    assert_int_equal(v1__list_pod_resources_response__get_packed_size(&list), wire_pod_resources_n);
    v1__list_pod_resources_response__pack(&list, p);
    assert_memory_equal(p, wire_pod_resources, wire_pod_resources_n);
}

/* ---- what is refused ---- */

/* Fields of a message, written by hand. */
static void put_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_addc(b, (char)(v | 0x80));
    buf_addc(b, (char)v);
}

static void put_bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, n);
    buf_add(b, p, n);
}

static void put_text(struct buf *b, unsigned field, const char *text)
{
    put_bytes(b, field, text, strlen(text));
}

#define REFUSED(call, wanted, message)                                                                       \
    do {                                                                                                     \
        struct err e = { 0 };                                                                                \
                                                                                                             \
        assert_int_equal(call, wanted);                                                                      \
        assert_string_equal(e.text, message);                                                                \
    } while (0)

static void no_container_in_an_answer_is_an_error_in_kubelets_words(void **state)
{
    struct dp_answer *a = NULL;
    uint8_t *raw = NULL;
    size_t n = 0;

    (void)state;
    REFUSED(dp_allocated_unpack(&a, &raw, &n, NULL, 0, &e), ERR_INTERNAL,
            "no containers return in allocation response");
    assert_null(a);
    assert_null(raw);
}

/* A list of one device with these bytes as its id. */
static enum err_code list_with_id(const void *id, size_t n, struct err *e)
{
    struct buf device = BUF_INIT(BYTES_MAX), list = BUF_INIT(BYTES_MAX);
    struct dp_list l = { 0 };

    put_text(&device, 2, "Healthy");
    put_bytes(&device, 1, id, n);
    put_bytes(&list, 1, device.p, device.n);
    ERR_IGNORE(dp_list_unpack(&l, (uint8_t *)list.p, list.n, e));
    dp_list_done(&l);
    buf_done(&device);
    buf_done(&list);
    return e->code;
}

static void ids_with_odd_bytes_are_refused_by_name(void **state)
{
    static char longest[DP_ID_MAX + 1];
    struct err none = { 0 };

    (void)state;
    memset(longest, 'x', sizeof(longest));
    REFUSED(list_with_id("a\xff", 2, &e), ERR_INVALID,
            "v1beta1.ListAndWatchResponse: devices[0].ID: string field contains invalid UTF-8");
    REFUSED(list_with_id("\xc0\x80", 2, &e), ERR_INVALID,
            "v1beta1.ListAndWatchResponse: devices[0].ID: string field contains invalid UTF-8");
    REFUSED(list_with_id("a\0b", 3, &e), ERR_INVALID,
            "v1beta1.ListAndWatchResponse: devices[0].ID: string field contains a NUL");
    REFUSED(list_with_id("", 0, &e), ERR_INVALID,
            "v1beta1.ListAndWatchResponse: devices[0].ID: 0 bytes; 1 to 4096 are allowed");
    REFUSED(list_with_id(longest, sizeof(longest), &e), ERR_INVALID,
            "v1beta1.ListAndWatchResponse: devices[0].ID: 4097 bytes; 1 to 4096 are allowed");
    assert_int_equal(list_with_id(longest, DP_ID_MAX, &none), ERR_OK);
    assert_int_equal(list_with_id("\n\x1b[31m\t", 7, &none), ERR_OK); /* any character */
}

static void unknown_fields_are_ignored(void **state)
{
    struct dp_registration r = { 0 };
    struct buf b = BUF_INIT(BYTES_MAX);
    struct err e = { 0 };

    (void)state;
    put_text(&b, 1, "v1beta1");
    put_varint(&b, 99 << 3 | 0);
    put_varint(&b, UINT64_MAX);
    put_bytes(&b, 1000, "\xff\0\xff", 3);
    put_varint(&b, 98 << 3 | 1);
    buf_add(&b, "12345678", 8);
    put_varint(&b, 97 << 3 | 5);
    buf_add(&b, "1234", 4);
    put_text(&b, 3, "example.com/dev");
    assert_int_equal(dp_registration_unpack(&r, (uint8_t *)b.p, b.n, &e), ERR_OK);
    assert_string_equal(r.version, "v1beta1");
    assert_string_equal(r.resource, "example.com/dev");
    dp_registration_done(&r);
    buf_done(&b);
}

static void of_repeated_keys_the_last_is_used(void **state)
{
    mem_auto struct dp_answer *a = NULL;
    struct buf b = BUF_INIT(BYTES_MAX);
    struct err e = { 0 };

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct buf entry = BUF_INIT(BYTES_MAX);

        put_text(&entry, 1, i == 1 ? "B" : "A");
        put_text(&entry, 2, i == 0 ? "first" : i == 1 ? "b" : "last");
        put_bytes(&b, 1, entry.p, entry.n);
        buf_done(&entry);
    }
    assert_int_equal(dp_answer_unpack(&a, (uint8_t *)b.p, b.n, &e), ERR_OK);
    assert_int_equal(a->n_envs, 2);
    assert_string_equal(a->envs[0].name, "A");
    assert_string_equal(a->envs[0].value, "last");
    assert_string_equal(a->envs[1].name, "B");
    buf_done(&b);
}

static void a_cut_message_is_refused_at_any_length(void **state)
{
    struct dp_list whole = { 0 };
    struct err e = { 0 };
    unsigned refused = 0;

    (void)state;
    assert_int_equal(dp_list_unpack(&whole, wire_list, wire_list_n, &e), ERR_OK);
    dp_list_done(&whole);
    for (size_t n = 0; n < wire_list_n; n++) {
        struct dp_list l = { 0 };
        struct err cut = { 0 };

        if (dp_list_unpack(&l, wire_list, n, &cut) != ERR_OK) {
            assert_int_equal(cut.code, ERR_INVALID);
            refused++;
        }
        dp_list_done(&l);
    }
    assert_int_equal(refused, wire_list_n - 4); /* it can end before each of the four devices */
}

static void a_field_of_another_type_is_refused(void **state)
{
    struct dp_registration r = { 0 };

    (void)state;
    REFUSED(dp_registration_unpack(&r, (const uint8_t *)"\x08\x01", 2, &e), ERR_INVALID,
            "v1beta1.RegisterRequest: version: wrong wire type 0");
    REFUSED(dp_registration_unpack(&r, (const uint8_t *)"\x0b", 1, &e), ERR_INVALID,
            "v1beta1.RegisterRequest: not a message: it is truncated, or its fields are damaged");
    dp_registration_done(&r);
}

static void too_many_devices_are_refused_before_memory_is_taken(void **state)
{
    struct dp_list l = { 0 };
    struct buf b = BUF_INIT(BYTES_MAX);

    (void)state;
    for (int i = 0; i < 1000000; i++)
        put_text(&b, 1, "");
    REFUSED(dp_list_unpack(&l, (uint8_t *)b.p, b.n, &e), ERR_EXHAUSTED,
            "v1beta1.ListAndWatchResponse: devices[65536]: more than 65536 elements");
    assert_int_equal(l.memory.used, 0);
    buf_done(&b);
}

static void too_many_fields_are_refused_before_memory_is_taken(void **state)
{
    struct dp_list l = { 0 };
    struct buf b = BUF_INIT(BYTES_MAX);

    (void)state;
    for (int i = 0; i < PROTOBUF_FIELDS_MAX + 1; i++) {
        put_varint(&b, 15 << 3 | 0);
        put_varint(&b, 0);
    }
    REFUSED(dp_list_unpack(&l, (uint8_t *)b.p, b.n, &e), ERR_EXHAUSTED,
            "v1beta1.ListAndWatchResponse: more than 524288 fields");
    assert_int_equal(l.memory.used, 0);
    buf_done(&b);
}

/* protobuf merges such fields, which costs memory by the square of their number. */
static void a_message_field_given_twice_is_refused(void **state)
{
    struct buf device = BUF_INIT(BYTES_MAX), list = BUF_INIT(BYTES_MAX);
    struct dp_list l = { 0 };

    (void)state;
    put_text(&device, 1, "a");
    put_text(&device, 3, "");
    put_text(&device, 3, "");
    put_bytes(&list, 1, device.p, device.n);
    REFUSED(dp_list_unpack(&l, (uint8_t *)list.p, list.n, &e), ERR_INVALID,
            "v1beta1.ListAndWatchResponse: devices[0].topology: given twice");
    dp_list_done(&l);
    buf_done(&device);
    buf_done(&list);
}

/* One element in field `field` of an answer, with these texts as its first fields. */
static enum err_code answer_with(unsigned field, const char *one, const char *two, const char *three,
                                 struct err *e)
{
    const char *const texts[] = { one, two, three };
    struct buf element = BUF_INIT(BYTES_MAX), b = BUF_INIT(BYTES_MAX);
    struct dp_answer *a = NULL;

    for (unsigned i = 0; i < 3 && texts[i] != NULL; i++)
        put_text(&element, i + 1, texts[i]);
    put_bytes(&b, field, element.p, element.n);
    ERR_IGNORE(dp_answer_unpack(&a, (uint8_t *)b.p, b.n, e));
    free(a);
    buf_done(&element);
    buf_done(&b);
    return e->code;
}

#define ANSWER "v1beta1.ContainerAllocateResponse: "
static void what_no_container_could_get_is_refused_by_name(void **state)
{
    struct err none = { 0 };

    (void)state;
    REFUSED(answer_with(1, "", "x", NULL, &e), ERR_INTERNAL,
            ANSWER "envs[0]: a name must not be empty or contain \"=\" (it is \"\")");
    REFUSED(answer_with(1, "A=B", "x", NULL, &e), ERR_INTERNAL,
            ANSWER "envs[0]: a name must not be empty or contain \"=\" (it is \"A=B\")");
    REFUSED(answer_with(2, "mnt", "/srv", NULL, &e), ERR_INTERNAL,
            ANSWER
            "mounts[0]: container_path must be an absolute path of at most 4095 bytes (it is \"mnt\")");
    REFUSED(answer_with(2, "/mnt", "", NULL, &e), ERR_INTERNAL,
            ANSWER "mounts[0]: host_path must be an absolute path of at most 4095 bytes (it is \"\")");
    REFUSED(answer_with(3, "dev", "/dev/null", "r", &e), ERR_INTERNAL,
            ANSWER
            "devices[0]: container_path must be an absolute path of at most 4095 bytes (it is \"dev\")");
    REFUSED(answer_with(3, "/dev/x", "/dev/null", "rwx", &e), ERR_INTERNAL,
            ANSWER "devices[0]: permissions are up to three letters of \"rwm\" (it is \"rwx\")");
    REFUSED(answer_with(4, "", "x", NULL, &e), ERR_INTERNAL,
            ANSWER "annotations[0]: a name must not be empty (it is \"\")");
    REFUSED(answer_with(5, "", NULL, NULL, &e), ERR_INTERNAL,
            ANSWER "cdi_devices[0]: a name must not be empty (it is \"\")");
    assert_int_equal(answer_with(3, "/dev/x", "/dev/null", "mrw", &none), ERR_OK);
    assert_int_equal(answer_with(1, "A", "x=y", NULL, &none), ERR_OK);
}

static void a_device_without_a_path_in_the_container_has_that_of_the_host(void **state)
{
    struct buf element = BUF_INIT(BYTES_MAX), b = BUF_INIT(BYTES_MAX);
    struct dp_answer *a = NULL;
    struct err e = { 0 };

    (void)state;
    put_text(&element, 2, "/dev/null");
    put_text(&element, 3, "rw");
    put_bytes(&b, 3, element.p, element.n);
    assert_int_equal(dp_answer_unpack(&a, (uint8_t *)b.p, b.n, &e), ERR_OK);
    assert_string_equal(a->nodes[0].container_path, "/dev/null");
    assert_string_equal(a->nodes[0].host_path, "/dev/null");
    free(a);
    buf_done(&element);
    buf_done(&b);
}

static void an_answer_has_a_bounded_number_of_entries(void **state)
{
    struct dp_answer *a = NULL;
    struct buf b = BUF_INIT(BYTES_MAX);

    (void)state;
    for (int i = 0; i <= DP_ANSWER_ENTRIES_MAX; i++)
        put_text(&b, 2, "");
    REFUSED(dp_answer_unpack(&a, (uint8_t *)b.p, b.n, &e), ERR_EXHAUSTED,
            ANSWER "mounts[1024]: more than 1024 elements");
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_is_what_another_encoder_writes),
        cmocka_unit_test(a_registration_is_read),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(a_list_is_read_with_health_and_numa_nodes),
        cmocka_unit_test(preferred_ids_are_read),
        cmocka_unit_test(information_of_a_watched_plugin_is_read),
        cmocka_unit_test(an_answer_is_read_and_its_bytes_are_kept),
        cmocka_unit_test(an_answer_of_our_own_is_what_another_encoder_writes),
        cmocka_unit_test(of_several_containers_the_first_one_is_used),
        cmocka_unit_test(pod_resources_are_what_another_encoder_writes),
        cmocka_unit_test(no_container_in_an_answer_is_an_error_in_kubelets_words),
        cmocka_unit_test(ids_with_odd_bytes_are_refused_by_name),
        cmocka_unit_test(unknown_fields_are_ignored),
        cmocka_unit_test(of_repeated_keys_the_last_is_used),
        cmocka_unit_test(a_cut_message_is_refused_at_any_length),
        cmocka_unit_test(a_field_of_another_type_is_refused),
        cmocka_unit_test(too_many_devices_are_refused_before_memory_is_taken),
        cmocka_unit_test(too_many_fields_are_refused_before_memory_is_taken),
        cmocka_unit_test(a_message_field_given_twice_is_refused),
        cmocka_unit_test(what_no_container_could_get_is_refused_by_name),
        cmocka_unit_test(a_device_without_a_path_in_the_container_has_that_of_the_host),
        cmocka_unit_test(an_answer_has_a_bounded_number_of_entries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
