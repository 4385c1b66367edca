/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/show/internal.h"

static const char *flag(const json_t *object, const char *path)
{
    return cli_true(object, path) ? "true" : "false";
}

static void add_empty_dir(const json_t *v, struct buf *out)
{
    const char *limit = cli_text(v, "sizeLimit");

    buf_addf(out,
             "    Type:\tEmptyDir (a temporary directory that shares a pod's lifetime)\n"
             "    Medium:\t%s\n"
             "    SizeLimit:\t%s\n",
             cli_text(v, "medium"), limit[0] != '\0' ? limit : "<unset>");
}

static void add_host_path(const json_t *v, struct buf *out)
{
    buf_adds(out, "    Type:\tHostPath (bare host directory volume)\n    Path:\t");
    cli_add_clean(out, cli_text(v, "path"));
    buf_addf(out, "\n    HostPathType:\t%s\n", cli_at(v, "type") != NULL ? cli_text(v, "type") : "<none>");
}

static void describe_volume_add_items(const json_t *items, struct buf *out)
{
    const json_t *item;
    size_t i;

    buf_adds(out, "    Items:\n");
    json_array_foreach (items, i, item) {
        if (cli_at(item, "fieldRef") != NULL)
            buf_addf(out, "      %s -> %s\n", cli_text(item, "fieldRef.fieldPath"), cli_text(item, "path"));
        else
            buf_addf(out, "      %s -> %s\n", cli_text(item, "resourceFieldRef.resource"),
                     cli_text(item, "path"));
    }
}

static void add_projected(const json_t *v, struct buf *out)
{
    const json_t *s;
    size_t i;

    buf_adds(out, "    Type:\tProjected (a volume that contains injected data from multiple sources)\n");
    json_array_foreach (cli_at(v, "sources"), i, s) {
        if (cli_at(s, "secret") != NULL)
            buf_addf(out, "    SecretName:\t%s\n    Optional:\t%s\n", cli_text(s, "secret.name"),
                     flag(s, "secret.optional"));
        else if (cli_at(s, "downwardAPI") != NULL)
            buf_adds(out, "    DownwardAPI:\ttrue\n");
        else if (cli_at(s, "configMap") != NULL)
            buf_addf(out, "    ConfigMapName:\t%s\n    Optional:\t%s\n", cli_text(s, "configMap.name"),
                     flag(s, "configMap.optional"));
        else if (cli_at(s, "serviceAccountToken") != NULL)
            buf_addf(out, "    TokenExpirationSeconds:\t%lld\n",
                     (long long)cli_number(s, "serviceAccountToken.expirationSeconds"));
    }
}

static void add_volume(const json_t *v, struct buf *out)
{
    buf_addf(out, "  %s:\n", cli_text(v, "name"));
    if (cli_at(v, "hostPath") != NULL)
        add_host_path(cli_at(v, "hostPath"), out);
    else if (cli_at(v, "emptyDir") != NULL)
        add_empty_dir(cli_at(v, "emptyDir"), out);
    else if (cli_at(v, "secret") != NULL)
        buf_addf(
            out,
            "    Type:\tSecret (a volume populated by a Secret)\n    SecretName:\t%s\n    Optional:\t%s\n",
            cli_text(v, "secret.secretName"), flag(v, "secret.optional"));
    else if (cli_at(v, "configMap") != NULL)
        buf_addf(
            out,
            "    Type:\tConfigMap (a volume populated by a ConfigMap)\n    Name:\t%s\n    Optional:\t%s\n",
            cli_text(v, "configMap.name"), flag(v, "configMap.optional"));
    else if (cli_at(v, "downwardAPI") != NULL) {
        buf_adds(out, "    Type:\tDownwardAPI (a volume populated by information about the pod)\n");
        describe_volume_add_items(cli_at(v, "downwardAPI.items"), out);
    } else if (cli_at(v, "projected") != NULL)
        add_projected(cli_at(v, "projected"), out);
    else if (cli_at(v, "image") != NULL)
        buf_addf(
            out,
            "    Type:\tImage (a container image or OCI artifact)\n    Reference:\t%s\n    PullPolicy:\t%s\n",
            cli_text(v, "image.reference"), cli_text(v, "image.pullPolicy"));
    else
        buf_adds(out, "  <unknown>\n");
}

void cli_describe_volumes(const json_t *volumes, struct buf *out)
{
    const json_t *v;
    size_t i;

    buf_adds(out, json_array_size(volumes) == 0 ? "Volumes:\t<none>\n" : "Volumes:\n");
    json_array_foreach (volumes, i, v)
        add_volume(v, out);
}
