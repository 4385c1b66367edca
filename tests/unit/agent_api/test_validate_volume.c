/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: kinds, payload sources, projected paths, what is refused. */
#include "helper.h"

static void each_volume_has_one_type_and_its_own_name(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad("",
               "volumes:\n- {name: a, emptyDir: {}, hostPath: {path: /x}}\n- {name: a}\n- {emptyDir: {}}\n"
               "- {name: A, emptydir: {}}",
               "spec.volumes[0]: only one volume type is allowed",
               "spec.volumes[1].name: \"a\" is given twice", "spec.volumes[2].name: required",
               "spec.volumes[3].name: \"A\" must be 1 to 63 characters of a-z, 0-9 and '-', beginning and "
               "ending with a "
               "letter or digit",
               "spec.volumes[3].emptydir: unknown field, did you mean emptyDir?");
    decode_pod(&d, "", "volumes: [{name: a}]");
    assert_int_equal(the_pod(&d)->spec.volumes[0].kind, API_VOL_EMPTY_DIR);
    decoded_done(&d);
}

static void host_paths_are_checked(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad("", "volumes:\n- {name: a, hostPath: {path: /a/../b, type: Dir}}\n- {name: b, hostPath: {}}",
               "spec.volumes[0].hostPath.path: \"/a/../b\" must not contain \"..\"",
               "spec.volumes[0].hostPath.type: \"Dir\" is not supported, allowed are \"\", "
               "DirectoryOrCreate, Directory, "
               "FileOrCreate, File, Socket, CharDevice and BlockDevice",
               "spec.volumes[1].hostPath.path: required");
    decode_pod(&d, "",
               "volumes:\n- {name: a, hostPath: {path: /a}}\n- {name: b, hostPath: {path: b, type: File}}");
    assert_int_equal(the_pod(&d)->spec.volumes[0].kind, API_VOL_HOST_PATH);
    assert_string_equal(the_pod(&d)->spec.volumes[0].host_path, "/a");
    assert_string_equal(the_pod(&d)->spec.volumes[0].host_path_type, "");
    assert_string_equal(the_pod(&d)->spec.volumes[1].host_path_type, "File");
    assert_int_equal(the_pod(&d)->ignored.n, 1);
    assert_string_equal(the_pod(&d)->ignored.v[0],
                        "spec.volumes[1].hostPath.path: not an absolute path: the volume cannot be mounted");
    decoded_done(&d);
}

static void empty_dirs_are_checked(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad(
        "",
        "volumes:\n- {name: a, emptyDir: {medium: Disk, sizeLimit: -1}}\n"
        "- {name: b, emptyDir: {medium: HugePages-2Mi, sizeLimit: 1x}}",
        "spec.volumes[0].emptyDir.medium: \"Disk\" is not a medium, allowed are \"\", Memory, HugePages and "
        "HugePages-<size>",
        "spec.volumes[0].emptyDir.sizeLimit: must not be negative",
        "spec.volumes[1].emptyDir.sizeLimit: quantity \"1x\" has an unknown suffix, allowed are numbers with "
        "a "
        "suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei or an exponent (500m, 1.5Gi, 12e6)");
    decode_pod(&d, "",
               "volumes: [{name: a, emptyDir: {medium: Memory, sizeLimit: 64Mi}}, {name: b, emptyDir: {}}]");
    assert_string_equal(the_pod(&d)->spec.volumes[0].medium, "Memory");
    assert_true(the_pod(&d)->spec.volumes[0].has_size_limit);
    assert_int_equal(quantity_value(&the_pod(&d)->spec.volumes[0].size_limit), 64 << 20);
    assert_string_equal(the_pod(&d)->spec.volumes[1].medium, "");
    assert_false(the_pod(&d)->spec.volumes[1].has_size_limit);
    decoded_done(&d);
}

static void items_and_modes_are_checked(void **state)
{
    (void)state;
    pod_is_bad(
        "",
        "volumes:\n- name: a\n  configMap:\n    defaultMode: 01777\n    items:\n    - {key: k}\n"
        "    - {path: p}\n    - {key: k, path: /abs}\n    - {key: k, path: a/../b}\n    - {key: k, path: "
        "..x}\n"
        "    - {key: k, path: x, mode: 512}\n    - {key: k, path: y, mode: -1}\n- {name: b, secret: {}}",
        "spec.volumes[0].configMap.name: required", "spec.volumes[0].configMap.items[0].path: required",
        "spec.volumes[0].configMap.items[1].key: required",
        "spec.volumes[0].configMap.items[2].path: \"/abs\" must be a relative path",
        "spec.volumes[0].configMap.items[3].path: \"a/../b\" must not contain \"..\"",
        "spec.volumes[0].configMap.items[4].path: \"..x\" must not begin with \"..\"",
        "spec.volumes[0].configMap.items[5].mode: 01000 (512) is out of range, allowed are 0 to 0777 (octal)",
        "spec.volumes[0].configMap.items[6].mode: -1 is out of range, allowed are 0 to 511",
        "spec.volumes[0].configMap.defaultMode: 01777 (1023) is out of range, allowed are 0 to 0777 (octal)",
        "spec.volumes[1].secret.secretName: required");
}

static void payload_volumes_reach_the_structs(void **state)
{
    const struct api_volume *v;
    struct decoded d;

    (void)state;
    decode_pod(
        &d, "",
        "volumes:\n- {name: a, configMap: {name: cm, optional: true, items: [{key: k, path: p/q}]}}\n"
        "- {name: b, secret: {secretName: s, defaultMode: 0400, items: [{key: k, path: p, mode: 0}]}}\n"
        "- name: c\n  downwardAPI:\n    items:\n    - {path: l, fieldRef: {fieldPath: metadata.labels}}\n"
        "    - {path: m, mode: 0600, resourceFieldRef: {containerName: main, resource: limits.memory}}");
    v = the_pod(&d)->spec.volumes;
    assert_int_equal(v[0].kind, API_VOL_PAYLOAD);
    assert_false(v[0].projected);
    assert_int_equal(v[0].n_sources, 1);
    assert_int_equal(v[0].default_mode, 0644);
    assert_int_equal(v[0].sources[0].kind, API_SRC_CONFIG_MAP);
    assert_string_equal(v[0].sources[0].name, "cm");
    assert_true(v[0].sources[0].optional);
    assert_int_equal(v[0].sources[0].items[0].mode, -1);
    assert_int_equal(v[1].default_mode, 0400);
    assert_int_equal(v[1].sources[0].kind, API_SRC_SECRET);
    assert_string_equal(v[1].sources[0].name, "s");
    assert_int_equal(v[1].sources[0].items[0].mode, 0);
    assert_int_equal(v[2].sources[0].kind, API_SRC_DOWNWARD);
    assert_int_equal(v[2].sources[0].n_downward, 2);
    assert_string_equal(v[2].sources[0].downward[0].field_ref->field_path, "metadata.labels");
    assert_int_equal(v[2].sources[0].downward[1].mode, 0600);
    decoded_done(&d);
}

static void downward_files_have_one_reference_each(void **state)
{
    (void)state;
    pod_is_bad(
        "",
        "volumes:\n- name: a\n  downwardAPI:\n    items:\n    - {path: a}\n"
        "    - {path: b, fieldRef: {fieldPath: metadata.name}, resourceFieldRef: {containerName: main, "
        "resource: limits.cpu}}\n    - {path: c, resourceFieldRef: {resource: limits.cpu}}\n"
        "    - {path: d, fieldRef: {fieldPath: status.podIP}}",
        "spec.volumes[0].downwardAPI.items[0]: fieldRef or resourceFieldRef is required",
        "spec.volumes[0].downwardAPI.items[1]: only one of fieldRef and resourceFieldRef is allowed",
        "spec.volumes[0].downwardAPI.items[2].resourceFieldRef.containerName: required in a volume",
        "spec.volumes[0].downwardAPI.items[3].fieldRef.fieldPath: \"status.podIP\" is not supported, allowed "
        "are "
        "metadata.name, metadata.namespace, metadata.uid, metadata.labels and metadata.annotations (these "
        "two "
        "also with ['key'])");
}

static void projected_sources_are_joined(void **state)
{
    const struct api_volume *v;
    struct decoded d;

    (void)state;
    decode_pod(&d, "",
               "volumes:\n- name: p\n  projected:\n    sources:\n    - configMap: {name: c}\n"
               "    - secret: {name: s, items: [{key: k, path: x}]}\n"
               "    - downwardAPI: {items: [{path: y, fieldRef: {fieldPath: metadata.uid}}]}");
    v = the_pod(&d)->spec.volumes;
    assert_int_equal(v[0].kind, API_VOL_PAYLOAD);
    assert_true(v[0].projected);
    assert_int_equal(v[0].n_sources, 3);
    assert_int_equal(v[0].default_mode, 0644);
    assert_int_equal(v[0].sources[1].kind, API_SRC_SECRET);
    assert_int_equal(v[0].sources[2].kind, API_SRC_DOWNWARD);
    decoded_done(&d);
    pod_is_bad(
        "",
        "volumes:\n- name: p\n  projected:\n    sources:\n"
        "    - {configMap: {name: c}, secret: {name: s}}\n    - {}\n"
        "    - configMap: {name: c, items: [{key: k, path: x}]}\n"
        "    - downwardAPI: {items: [{path: x, fieldRef: {fieldPath: metadata.name}}]}",
        "spec.volumes[0].projected.sources[0]: only one kind of source is allowed in each element of sources",
        "spec.volumes[0].projected.sources[1]: one of configMap, secret and downwardAPI is required",
        "spec.volumes[0].projected.sources[3].downwardAPI.items[0].path: conflicting duplicate paths: \"x\" "
        "is also that of sources[2].configMap.items[0].path");
    pod_is_bad(
        "",
        "volumes:\n- name: p\n  projected:\n    sources:\n"
        "    - secret: {name: s, items: [{key: k, path: a/b}, {key: k, path: a-b}, {key: k, path: z}]}\n"
        "    - configMap: {name: c, items: [{key: k, path: ./a//b/}, {key: k, path: a}]}\n"
        "    - serviceAccountToken: {path: z}\n"
        "    - downwardAPI: {items: [{path: z/t, fieldRef: {fieldPath: metadata.name}}]}",
        "spec.volumes[0].projected.sources[1].configMap.items[1].path: \"a\" cannot be a file while "
        "sources[0].secret.items[0].path is \"a/b\"",
        "spec.volumes[0].projected.sources[1].configMap.items[0].path: conflicting duplicate paths: "
        "\"./a//b/\" is also that of sources[0].secret.items[0].path",
        "spec.volumes[0].projected.sources[2].serviceAccountToken.path: conflicting duplicate paths: \"z\" "
        "is "
        "also that of sources[0].secret.items[2].path",
        "spec.volumes[0].projected.sources[3].downwardAPI.items[0].path: \"z/t\" cannot be a path while "
        "sources[2].serviceAccountToken.path is \"z\"");
}

static void what_needs_an_api_server_is_checked(void **state)
{
    (void)state;
    pod_is_bad(
        "",
        "volumes:\n- name: p\n  projected:\n    sources:\n    - serviceAccountToken: {path: t, "
        "expirationSeconds: 5}\n    - clusterTrustBundle: {path: c}\n    - podCertificate: {signerName: a, "
        "keyType: ED25519, keyPath: ../k}",
        "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: 5 is out of range, "
        "allowed "
        "are 600 to 4294967296",
        "spec.volumes[0].projected.sources[1].clusterTrustBundle: name or signerName is required",
        "spec.volumes[0].projected.sources[2].podCertificate.keyPath: \"../k\" must not contain \"..\"");
    pod_is_good("", "volumes:\n- name: p\n  projected:\n    sources:\n    - serviceAccountToken: {path: t}\n"
                    "    - clusterTrustBundle: {path: c, name: a}\n"
                    "    - podCertificate: {signerName: a.b/c, keyType: ED25519, keyPath: k}");
}

static void a_csi_volume_is_read(void **state)
{
    struct decoded d;
    const struct api_volume *v;

    (void)state;
    decode_pod(&d, "",
               "volumes: [{name: a, csi: {driver: d.example.com, readOnly: true, fsType: ext4, "
               "volumeAttributes: {k: v}, "
               "nodePublishSecretRef: {name: s}}}]");
    assert_int_equal(d.objects.n, 1);
    v = &d.objects.v[0].pod->spec.volumes[0];
    assert_int_equal(v->kind, API_VOL_CSI);
    assert_string_equal(v->csi_driver, "d.example.com");
    assert_true(v->csi_read_only);
    assert_string_equal(v->csi_fs_type, "ext4");
    assert_string_equal(api_kvs_get(&v->csi_attributes, "k"), "v");
    assert_string_equal(v->csi_secret, "s");
    decoded_done(&d);
    decode_pod(&d, "", "volumes: [{name: a, csi: {}}]");
    assert_int_equal(d.objects.n, 0);
    decoded_done(&d);
}

static void foreign_volumes_are_refused(void **state)
{
    static const char *const names[] = { "awsElasticBlockStore",
                                         "azureDisk",
                                         "azureFile",
                                         "cephfs",
                                         "cinder",
                                         "flocker",
                                         "gitRepo",
                                         "glusterfs",
                                         "gcePersistentDisk",
                                         "quobyte",
                                         "portworxVolume",
                                         "rbd",
                                         "photonPersistentDisk",
                                         "scaleIO",
                                         "storageos",
                                         "vsphereVolume" };

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char spec[200], wanted[200];
        struct decoded d;
        bool found = false;

        snprintf(spec, sizeof(spec), "volumes: [{name: a, %s: {wrong: 1}}]", names[i]);
        decode_pod(&d, "", spec);
        snprintf(wanted, sizeof(wanted), "spec.volumes[0].%s", names[i]);
        for (size_t k = 0; k < d.problems.n; k++)
            found = found || (strcmp(d.problems.v[k].field, wanted) == 0 &&
                              str_starts(d.problems.v[k].message, "not supported: "));
        assert_true(found);
        assert_int_equal(d.objects.n, 0);
        decoded_done(&d);
    }
}

static void the_token_of_a_copied_pod_is_left_out(void **state)
{
    struct decoded d;
    const struct api_pod *pod;

    (void)state;
    decode_pod(
        &d, "volumeMounts: [{name: kube-api-access-x7k2p, mountPath: /var/run/secrets/x, readOnly: true}]\n",
        "nodeName: another\nvolumes:\n- name: kube-api-access-x7k2p\n  projected:\n    sources:\n"
        "    - serviceAccountToken: {path: token, expirationSeconds: 3607}\n"
        "    - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}\n");
    pod = the_pod(&d);
    assert_int_equal(pod->spec.volumes[0].kind, API_VOL_EMPTY_DIR);
    assert_int_equal(pod->ignored.n, 1);
    assert_string_equal(pod->ignored.v[0],
                        "spec.volumes[0]: without an API server there is no token: the volume is empty");
    decoded_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_volume_has_one_type_and_its_own_name),
        cmocka_unit_test(host_paths_are_checked),
        cmocka_unit_test(empty_dirs_are_checked),
        cmocka_unit_test(items_and_modes_are_checked),
        cmocka_unit_test(payload_volumes_reach_the_structs),
        cmocka_unit_test(downward_files_have_one_reference_each),
        cmocka_unit_test(projected_sources_are_joined),
        cmocka_unit_test(what_needs_an_api_server_is_checked),
        cmocka_unit_test(the_token_of_a_copied_pod_is_left_out),
        cmocka_unit_test(foreign_volumes_are_refused),
        cmocka_unit_test(a_csi_volume_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
