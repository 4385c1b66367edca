/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle debug node/NAME`: a pod of the manifest folder in the node's own namespaces, as kubectl makes it
 * (k8s.io/kubectl/pkg/cmd/debug: generateNodeDebugPod). */
#include "agent/cli/stream/internal.h"

#include "base/files/fs.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

void debug_name(const char *prefix, char *ret, size_t size)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* apimachinery/pkg/util/rand */
    unsigned char random[5] = { 0 };
    char suffix[sizeof(random) + 1] = "";

    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        memset(random, 0, sizeof(random)); /* never for so few bytes: getrandom(2) */
    for (size_t i = 0; i < sizeof(random); i++)
        suffix[i] = letters[random[i] % (sizeof(letters) - 1)];
    snprintf(ret, size, "%s%s", prefix, suffix);
}

/* NULL: out of memory. */
static json_t *pod_of(const char *namespace_, const char *name, const json_t *container)
{
    json_auto_t *own = json_deep_copy(container);
    json_t *mounts = json_pack("[{s:s, s:s}]", "name", "host-root", "mountPath", "/host");

    if (json_object_set_new(own, "volumeMounts", mounts) != 0)
        return NULL;
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s}}, s:{s:[O], s:b, s:b, s:b, s:s, s:[{s:s}], "
                     "s:[{s:s, s:{s:s}}]}}",
                     "apiVersion", "v1", "kind", "Pod", "metadata", "name", name, "namespace", namespace_,
                     "labels", DEBUG_LABEL, "coracle-debug", DEBUG_INSTANCE, name, "spec", "containers", own,
                     "hostIPC", true, "hostNetwork", true, "hostPID", true, "restartPolicy", "Never",
                     "tolerations", "operator", "Exists", "volumes", "name", "host-root", "hostPath", "path",
                     "/");
}

static int write_pod(struct cli *cli, const char *path, const json_t *pod)
{
    str_auto text = pod != NULL ? json_dumps(pod, JSON_INDENT(2)) : NULL;
    struct err e = { 0 };

    if (text == NULL)
        return cli_error(cli, "out of memory");
    return fs_replace_at(AT_FDCWD, path, text, strlen(text), 0644, true, &e) == ERR_OK ? EXIT_OK
                                                                                       : cli_failed(cli, &e);
}

int debug_node_make(struct cli *cli, const char *node, const char *namespace_, const json_t *container,
                    char ret[DEBUG_POD_SIZE])
{
    json_auto_t *config = NULL, *found = NULL, *pod = NULL;
    str_auto prefix = str_printf("node-debugger-%.40s-", node); /* its name is a label's value: 63 at most */
    buf_auto url = BUF_INIT(64 * 1024);
    str_auto path = NULL;
    const char *folder;
    int code;

    cli_add_kind_path(&url, cli_kind_find("nodes"), NULL, node);
    found = cli_get(cli, url.p, &code);
    if (found != NULL)
        config = cli_get(cli, "/configz", &code);
    if (config == NULL)
        return code;
    folder = cli_text(config, "kubeletconfig.staticPodPath");
    if (folder[0] == '\0')
        return cli_error(cli, "the daemon has no manifest folder");
    if (prefix == NULL)
        return cli_error(cli, "out of memory");
    debug_name(prefix, ret, DEBUG_POD_SIZE);
    pod = pod_of(namespace_, ret, container);
    path = str_printf("%s/pod-%s-%s.yaml", folder, namespace_, ret);
    if (path == NULL)
        return cli_error(cli, "out of memory");
    code = write_pod(cli, path, pod);
    if (code == EXIT_OK)
        cli_note(cli, "Creating debugging pod %s with container %s on node %s: %s\n", ret,
                 cli_text(container, "name"), node, path);
    return code;
}
