/* SPDX-License-Identifier: Apache-2.0 */
/* Text files of the host: resolv.conf and hosts as a pod gets them; subuid; /proc/self/mountinfo and cgroup
 * for what is mounted. */
#include "agent/api/manifest/decode.h"
#include "agent/pod/sandbox/files.h"
#include "agent/pod/sandbox/resolv.h"
#include "agent/pod/sandbox/userns.h"
#include "cgroups/internal.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const manifests[] = {
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: x}]}}",
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {dnsPolicy: Default, hostNetwork: true, "
    "dnsConfig: {nameservers: "
    "[10.0.0.1], searches: [a.b], options: [{name: ndots, value: '2'}]}, containers: [{name: a, image: x}]}}",
};

static void check_texts(const char *text, const char *manifest)
{
    static const char *const dns_servers[] = { "10.0.0.10", NULL }, *const ips[] = { "10.1.1.1" };
    const struct resolv_node node = { .cluster_dns = dns_servers,
                                      .cluster_domain = "cluster.local",
                                      .file = text };
    struct resolv_warnings warnings = RESOLV_WARNINGS_INIT;
    struct buf out = BUF_INIT(1 << 20);
    struct api_problems problems = { 0 };
    struct api_objects objects = { 0 };
    struct err e = { 0 };

    assert(api_decode_file("f", manifest, strlen(manifest), &objects, &problems, &e) == ERR_OK &&
           objects.n == 1);
    resolv_text(objects.v[0].pod, &node, &out, &warnings);
    assert(!out.failed && !warnings.servers.failed && !warnings.searches.failed);
    buf_done(&warnings.servers);
    buf_done(&warnings.searches);
    buf_reset(&out);
    files_hosts_text(objects.v[0].pod, "p", "cluster.local", ips, 1, text, &out);
    assert(!out.failed);
    buf_done(&out);
    api_objects_done(&objects);
    api_problems_done(&problems);
}

static void check_subids(const char *text)
{
    struct err e = { 0 };
    uint32_t id, n;

    if (userns_parse_range(text, "f", &id, &n, &e) == ERR_OK && n != 0)
        assert(id >= USERNS_IDS && id % USERNS_IDS == 0 && n % USERNS_IDS == 0 && id + n > id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str parts[2] = { { "", 0 }, { "", 0 } };
    struct cg_found found = { 0 };
    struct err e = { 0 };
    char *first, *second;

    scratch_parts(data, size, parts, 2);
    first = text_of(parts[0].p, parts[0].n);
    second = text_of(parts[1].p, parts[1].n);
    for (size_t i = 0; i < ARRAY_LEN(manifests) && size < 65536; i++)
        check_texts(first, manifests[i]);
    check_subids(first);
    if (cg_discover(&found, first, second, &e) == ERR_OK) {
        assert(found.n >= 1 && found.n <= CG_HIERS_MAX && found.n_unmounted <= CG_HIERS_MAX);
        for (size_t i = 0; i < found.n; i++)
            assert(memchr(found.hiers[i].own, '\0', sizeof(found.hiers[i].own)) != NULL &&
                   found.hiers[i].point[0] == '/');
    } else {
        assert(e.text[0] != '\0');
    }
    (void)cg_controllers_parse(first);
    free(first);
    free(second);
    return 0;
}
