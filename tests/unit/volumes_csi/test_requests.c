/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to drivers, against those of a real kubelet: tests/fixtures/csi. */
#include "volumes/csi/messages.h"
#include "volumes/csi/paths.h"

#include "base/codec/json.h"
#include "base/scope.h"
#include "tests/unit/base/helper.h"
#include "volumes/csi/proto/csi.pb-c.h"

#include <stdlib.h>

#define FIXTURE "tests/fixtures/csi/requests.json"

/* ---- what a row describes ---- */

static csi_caps caps_of(const json_t *row)
{
    static const char *const names[] = {
        "",
        "STAGE_UNSTAGE_VOLUME",
        "GET_VOLUME_STATS",
        "EXPAND_VOLUME",
        "VOLUME_CONDITION",
        "SINGLE_NODE_MULTI_WRITER",
        "VOLUME_MOUNT_GROUP",
    };
    csi_caps caps = 0;
    json_t *v;
    size_t i;

    json_array_foreach (json_object_get(row, "caps"), i, v)
        for (size_t k = 1; k < ARRAY_LEN(names); k++)
            if (strcmp(json_string_value(v), names[k]) == 0)
                caps |= 1u << k;
    return caps;
}

static unsigned modes_of(const json_t *list)
{
    unsigned modes = 0;

    modes |= json_has(list, "ReadWriteOnce") ? CSI_RWO : 0;
    modes |= json_has(list, "ReadOnlyMany") ? CSI_ROX : 0;
    modes |= json_has(list, "ReadWriteMany") ? CSI_RWX : 0;
    modes |= json_has(list, "ReadWriteOncePod") ? CSI_RWOP : 0;
    return modes;
}

static struct csi_pairs pairs_of(const json_t *map, struct arena *memory)
{
    struct csi_pair *v = arena_alloc(memory, (json_object_size(map) + 1) * sizeof(*v));
    const char *key;
    json_t *value;
    size_t n = 0;

    assert_non_null(v);
    json_object_foreach ((json_t *)map, key, value)
        v[n++] = (struct csi_pair){ key, json_string_value(value) };
    return (struct csi_pairs){ v, n };
}

/* It is part of the staging path. */
static const char *driver_of(const json_t *row, struct arena *memory)
{
    static const char prefix[] = "<rootDir>/" CSI_PLUGIN "/";
    const char *staging = json_str(json_object_get(row, "request"), "staging_target_path");

    if (staging == NULL || strncmp(staging, prefix, strlen(prefix)) != 0)
        return "d.example.test";
    staging += strlen(prefix);
    return arena_strndup(memory, staging, strcspn(staging, "/"));
}

static struct csi_volume volume_of(const json_t *row, struct arena *memory)
{
    const json_t *v = json_object_get(row, "volume"), *pod = json_object_get(row, "pod");
    const json_t *options = json_object_get(v, "mountOptions");
    const char **flags = arena_alloc(memory, (json_array_size(options) + 1) * sizeof(*flags));
    json_t *flag;
    size_t i;

    assert_non_null(flags);
    json_array_foreach ((json_t *)options, i, flag)
        flags[i] = json_string_value(flag);
    return (struct csi_volume){
        .handle = json_flag(v, "ephemeral") ? json_str(json_object_get(row, "request"), "volume_id")
                                            : json_str(v, "handle"),
        .spec_name = json_str(v, "name"),
        .ephemeral = json_flag(v, "ephemeral"),
        .block = json_flag(v, "block"),
        .read_only = json_flag(v, "readOnly"),
        .fs_type = json_str(v, "fsType"),
        .access_modes = modes_of(json_object_get(v, "accessModes")),
        .mount_flags = flags,
        .n_mount_flags = json_array_size(options),
        .attributes = pairs_of(json_object_get(v, "attributes"), memory),
        .publish_context = pairs_of(json_object_get(v, "publishContext"), memory),
        .stage_secrets = pairs_of(json_object_get(v, "stageSecrets"), memory),
        .publish_secrets = pairs_of(json_object_get(v, "publishSecrets"), memory),
        .pod_uid = arena_printf(memory, "<uid:%s>", json_str(pod, "name")),
        .pod_name = json_str(pod, "name"),
        .pod_namespace = json_str(pod, "namespace"),
        .service_account = json_str(pod, "serviceAccount"),
        .pod_info = json_flag(row, "podInfo"),
        .driver = driver_of(row, memory),
        .tokens = json_str(row, "tokens"),
        .tokens_secret = json_flag(row, "tokensInSecrets"),
        .expand_secrets = pairs_of(json_object_get(v, "expandSecrets"), memory),
        .fs_group = json_int(row, "fsGroup", -1),
    };
}

/* ---- a packed request, as protojson shows it ---- */

#define MAP_JSON(o, name, field, m)                                                                          \
    do {                                                                                                     \
        json_t *map_ = json_object();                                                                        \
        for (size_t i_ = 0; i_ < (m)->n_##field; i_++)                                                       \
            json_object_set_new(map_, (m)->field[i_]->key, json_string((m)->field[i_]->value));              \
        if ((m)->n_##field > 0)                                                                              \
            json_object_set((o), (name), map_);                                                              \
        json_decref(map_);                                                                                   \
    } while (0)

static json_t *capability_json(const Csi__V1__VolumeCapability *c)
{
    static const char *const modes[] = { "UNKNOWN",
                                         "SINGLE_NODE_WRITER",
                                         "SINGLE_NODE_READER_ONLY",
                                         "MULTI_NODE_READER_ONLY",
                                         "MULTI_NODE_SINGLE_WRITER",
                                         "MULTI_NODE_MULTI_WRITER",
                                         "SINGLE_NODE_SINGLE_WRITER",
                                         "SINGLE_NODE_MULTI_WRITER" };
    json_t *o = json_pack("{s:{s:s}}", "access_mode", "mode", modes[c->access_mode->mode]);
    json_t *mount = json_object(), *flags = json_array();

    if (c->block != NULL)
        json_object_set_new(o, "block", json_object());
    if (c->mount != NULL) {
        json_put_str(mount, "fs_type", c->mount->fs_type);
        json_put_str(mount, "volume_mount_group", c->mount->volume_mount_group);
        for (size_t i = 0; i < c->mount->n_mount_flags; i++)
            json_array_append_new(flags, json_string(c->mount->mount_flags[i]));
        if (json_array_size(flags) > 0)
            json_object_set(mount, "mount_flags", flags);
        json_object_set(o, "mount", mount);
    }
    json_decref(mount);
    json_decref(flags);
    return o;
}

static json_t *publish_json(const uint8_t *p, size_t n)
{
    Csi__V1__NodePublishVolumeRequest *m = csi__v1__node_publish_volume_request__unpack(NULL, n, p);
    json_t *o = json_object();

    assert_non_null(m);
    json_put_str(o, "volume_id", m->volume_id);
    json_put_str(o, "staging_target_path", m->staging_target_path);
    json_put_str(o, "target_path", m->target_path);
    json_object_set_new(o, "volume_capability", capability_json(m->volume_capability));
    if (m->readonly)
        json_object_set_new(o, "readonly", json_true());
    MAP_JSON(o, "publish_context", publish_context, m);
    MAP_JSON(o, "secrets", secrets, m);
    MAP_JSON(o, "volume_context", volume_context, m);
    csi__v1__node_publish_volume_request__free_unpacked(m, NULL);
    return o;
}

static json_t *stage_json(const uint8_t *p, size_t n)
{
    Csi__V1__NodeStageVolumeRequest *m = csi__v1__node_stage_volume_request__unpack(NULL, n, p);
    json_t *o = json_object();

    assert_non_null(m);
    json_put_str(o, "volume_id", m->volume_id);
    json_put_str(o, "staging_target_path", m->staging_target_path);
    json_object_set_new(o, "volume_capability", capability_json(m->volume_capability));
    MAP_JSON(o, "publish_context", publish_context, m);
    MAP_JSON(o, "secrets", secrets, m);
    MAP_JSON(o, "volume_context", volume_context, m);
    csi__v1__node_stage_volume_request__free_unpacked(m, NULL);
    return o;
}

static json_t *expand_json(const uint8_t *p, size_t n)
{
    Csi__V1__NodeExpandVolumeRequest *m = csi__v1__node_expand_volume_request__unpack(NULL, n, p);
    json_t *o = json_object();
    char bytes[24];

    assert_non_null(m);
    json_put_str(o, "volume_id", m->volume_id);
    json_put_str(o, "volume_path", m->volume_path);
    json_put_str(o, "staging_target_path", m->staging_target_path);
    snprintf(bytes, sizeof(bytes), "%lld", (long long)m->capacity_range->required_bytes);
    json_object_set_new(o, "capacity_range", json_pack("{s:s}", "required_bytes", bytes));
    json_object_set_new(o, "volume_capability", capability_json(m->volume_capability));
    MAP_JSON(o, "secrets", secrets, m);
    csi__v1__node_expand_volume_request__free_unpacked(m, NULL);
    return o;
}

static json_t *asked_to_grow(const json_t *row, const struct csi_volume *v, const struct csi_paths *paths)
{
    uint64_t bytes = strtoull(json_str(row, "bytes"), NULL, 10);
    struct csi_expand_request r;
    struct err e = { 0 };
    uint8_t *p = NULL;
    size_t n = 0;
    json_t *o;

    csi_expand_request(v, caps_of(row), paths->staging, paths->target, bytes, &r);
    assert_int_equal(csi_expand_pack(&r, &p, &n, &e), ERR_OK);
    o = expand_json(p, n);
    csi_wipe(p, n);
    return o;
}

static json_t *asked(const json_t *row)
{
    bool stage = str_eq(json_str(row, "call"), "NodeStageVolume");
    struct arena memory = { 0 };
    struct csi_volume v = volume_of(row, &memory);
    const struct csi_id id = { v.driver, v.handle, v.spec_name, v.block, v.ephemeral };
    const char *staging;
    struct csi_paths paths;
    struct csi_request r;
    struct err e = { 0 };
    uint8_t *p = NULL;
    size_t n = 0;
    json_t *o;

    assert_int_equal(csi_paths_make(&paths, "<rootDir>", &id, v.pod_uid, &memory, &e), ERR_OK);
    staging = csi_can(caps_of(row), CSI_CAN_STAGE) && !v.ephemeral ? paths.staging : NULL;
    if (str_eq(json_str(row, "call"), "NodeExpandVolume")) {
        o = asked_to_grow(row, &v, &paths);
        arena_done(&memory);
        return o;
    }
    if (stage) {
        assert_int_equal(csi_stage_request(&v, caps_of(row), staging, &memory, &r, &e), ERR_OK);
        assert_int_equal(csi_stage_pack(&r, &p, &n, &e), ERR_OK);
    } else {
        assert_int_equal(csi_publish_request(&v, caps_of(row), staging, paths.target, &memory, &r, &e),
                         ERR_OK);
        assert_int_equal(csi_publish_pack(&r, &p, &n, &e), ERR_OK);
    }
    o = stage ? stage_json(p, n) : publish_json(p, n);
    csi_wipe(p, n);
    arena_done(&memory);
    return o;
}

static void requests_are_those_of_kubelet(void **state)
{
    json_error_t why;
    json_t *rows = json_load_file(FIXTURE, 0, &why), *row;
    size_t i, bad = 0;

    (void)state;
    assert_non_null(rows);
    assert_true(json_array_size(rows) > 100);
    json_array_foreach (rows, i, row) {
        json_t *ours = asked(row);

        if (!json_equal(ours, json_object_get(row, "request"))) {
            mem_auto char *theirs = json_text(json_object_get(row, "request"));
            mem_auto char *text = json_text(ours);

            print_message("%s %s\n  kubelet %s\n  ours    %s\n", json_str(row, "case"), json_str(row, "call"),
                          theirs, text);
            bad++;
        }
        json_decref(ours);
    }
    json_decref(rows);
    assert_int_equal(bad, 0);
}

/* ---- answers ---- */

static void answers_are_read(void **state)
{
    static const uint8_t info[] = {
        0x0a, 2, 'i', 'd', 0x10, 5, 0x1a, 8, 0x0a, 6, 0x0a, 1, 'z', 0x12, 1, 'a'
    };
    static const uint8_t caps[] = { 0x0a, 4, 0x0a, 2, 8,    1, 0x0a, 4,  0x0a, 2,
                                    8,    6, 0x0a, 4, 0x0a, 2, 8,    99, 0x0a, 0 };
    struct csi_node_info i = { 0 };
    struct err e = { 0 };
    csi_caps c = 0;

    (void)state;
    assert_int_equal(csi_node_info_unpack(&i, info, sizeof(info), &e), ERR_OK);
    assert_string_equal(i.node_id, "id");
    assert_int_equal(i.max_volumes, 5);
    assert_int_equal(i.topology.n, 1);
    assert_string_equal(i.topology.v[0].key, "z");
    assert_string_equal(i.topology.v[0].value, "a");
    csi_node_info_done(&i);
    assert_int_equal(csi_caps_unpack(&c, caps, sizeof(caps), &e), ERR_OK);
    assert_true(csi_can(c, CSI_CAN_STAGE) && csi_can(c, CSI_CAN_MOUNT_GROUP) && !csi_can(c, CSI_CAN_EXPAND));
}

static void usage_is_read(void **state)
{
    static const uint8_t both[] = { 0x0a, 10, 8,    0x80, 1, 0x10, 0x80, 2, 0x18, 5,
                                    0x20, 1,  0x0a, 6,    8, 1,    0x10, 2, 0x20, 2 };
    static const uint8_t negative[] = {
        0x0a, 11, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1
    };
    struct csi_usage u = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(csi_usage_unpack(&u, NULL, 0, &e), ERR_INVALID);
    e = (struct err){ 0 };
    assert_int_equal(csi_usage_unpack(&u, negative, sizeof(negative), &e), ERR_INVALID);
    e = (struct err){ 0 };
    assert_int_equal(csi_usage_unpack(&u, both, sizeof(both), &e), ERR_OK);
    assert_true(u.has_bytes && u.has_inodes);
    assert_int_equal(u.available_bytes, 128);
    assert_int_equal(u.total_bytes, 256);
    assert_int_equal(u.used_bytes, 5);
    assert_int_equal(u.total_inodes, 2);
    assert_false(u.has_condition);
}

static void conditions_and_sizes_are_read(void **state)
{
    static const uint8_t ill[] = { 0x0a, 4, 8, 1, 0x20, 1, 0x12, 5, 8, 1, 0x12, 1, 'x' };
    static const uint8_t size[] = { 8, 0x80, 1 };
    static const uint8_t negative[] = { 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 };
    struct csi_usage u = { 0 };
    struct err e = { 0 };
    uint64_t bytes = 7;

    (void)state;
    assert_int_equal(csi_usage_unpack(&u, ill, sizeof(ill), &e), ERR_OK);
    assert_true(u.has_condition && u.abnormal);
    assert_int_equal(csi_expand_unpack(&bytes, negative, sizeof(negative), &e), ERR_INVALID);
    assert_int_equal(bytes, 7);
    e = (struct err){ 0 };
    assert_int_equal(csi_expand_unpack(&bytes, size, sizeof(size), &e), ERR_OK);
    assert_int_equal(bytes, 128);
    assert_int_equal(csi_expand_unpack(&bytes, NULL, 0, &e), ERR_OK);
    assert_int_equal(bytes, 0);
}

static void hostile_answers_are_refused(void **state)
{
    static const uint8_t negative[] = { 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 };
    static const uint8_t cut[] = { 0x0a, 200, 'x' };
    uint8_t many[2 * (CSI_CAPABILITIES_MAX + 1)], long_id[3 + CSI_NODE_ID_MAX + 1] = { 0x0a, 0xc1, 1 };
    struct csi_node_info i = { 0 };
    struct err e = { 0 };
    csi_caps c = 0;

    (void)state;
    assert_int_equal(csi_node_info_unpack(&i, negative, sizeof(negative), &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "max_volumes_per_node: -1; 0 or more is allowed"));
    csi_node_info_done(&i);
    assert_int_equal(csi_node_info_unpack(&i, cut, sizeof(cut), &e), ERR_INVALID);
    csi_node_info_done(&i);
    memset(long_id + 3, 'x', CSI_NODE_ID_MAX + 1);
    assert_int_equal(csi_node_info_unpack(&i, long_id, sizeof(long_id), &e), ERR_EXHAUSTED);
    csi_node_info_done(&i);
    for (size_t k = 0; k < sizeof(many); k += 2) {
        many[k] = 0x0a;
        many[k + 1] = 0;
    }
    e = (struct err){ 0 };
    assert_int_equal(csi_caps_unpack(&c, many, sizeof(many), &e), ERR_EXHAUSTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_those_of_kubelet),
        cmocka_unit_test(answers_are_read),
        cmocka_unit_test(usage_is_read),
        cmocka_unit_test(conditions_and_sizes_are_read),
        cmocka_unit_test(hostile_answers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
