/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of claims and PersistentVolumes, in kubectl's columns. */
#include "agent/cli/show/internal.h"

#include <stdio.h>
#include <string.h>

static const char *abbreviation(const char *mode)
{
    static const char *const names[][2] = { { "ReadWriteOnce", "RWO" },
                                            { "ReadOnlyMany", "ROX" },
                                            { "ReadWriteMany", "RWX" },
                                            { "ReadWriteOncePod", "RWOP" } };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i][0], mode) == 0)
            return names[i][1];
    return mode;
}

static void modes_cell(struct cli_table *t, const json_t *modes)
{
    char text[100] = "";
    size_t i, n = 0;
    json_t *mode;

    json_array_foreach (modes, i, mode)
        if (n < sizeof(text))
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i > 0 ? "," : "",
                                  abbreviation(json_is_string(mode) ? json_string_value(mode) : "?"));
    cli_table_cell(t, text);
}

static void phase_cell(struct cli_table *t, const json_t *o)
{
    const char *phase =
        cli_text(o, "metadata.deletionTimestamp")[0] != '\0' ? "Terminating" : cli_text(o, "status.phase");
    const bool good = strcmp(phase, "Bound") == 0 || strcmp(phase, "Available") == 0;

    cli_table_coloured(t, phase, good ? COLOUR_GOOD : COLOUR_WAITING);
}

static const char *or_unset(const char *text)
{
    return text[0] != '\0' ? text : "<unset>";
}

static void end_cells(const struct get *g, struct cli_table *t, const json_t *o)
{
    char age[CLI_AGE_SIZE];

    cli_age(g->cli, cli_text(o, "metadata.creationTimestamp"), age);
    cli_table_cell(t, age);
    if (get_is_format(g, "wide"))
        cli_table_cell(t, or_unset(cli_text(o, "spec.volumeMode")));
}

void get_claim_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    get_name_cell(g, t, o);
    phase_cell(t, o);
    cli_table_cell(t, cli_text(o, "spec.volumeName"));
    cli_table_cell(t, cli_text(o, "status.capacity.storage"));
    modes_cell(t, cli_at(o, "status.accessModes"));
    cli_table_cell(t, cli_text(o, "spec.storageClassName"));
    cli_table_cell(t, or_unset(cli_text(o, "spec.volumeAttributesClassName")));
    end_cells(g, t, o);
}

void get_volume_row(const struct get *g, struct cli_table *t, const json_t *o)
{
    const char *name = cli_text(o, "spec.claimRef.name");
    char claim[400] = "";

    if (name[0] != '\0')
        snprintf(claim, sizeof(claim), "%.63s/%.253s", cli_text(o, "spec.claimRef.namespace"), name);
    get_name_cell(g, t, o);
    cli_table_cell(t, cli_text(o, "spec.capacity.storage"));
    modes_cell(t, cli_at(o, "spec.accessModes"));
    cli_table_cell(t, cli_text(o, "spec.persistentVolumeReclaimPolicy"));
    phase_cell(t, o);
    cli_table_cell(t, claim);
    cli_table_cell(t, cli_text(o, "spec.storageClassName"));
    cli_table_cell(t, or_unset(cli_text(o, "spec.volumeAttributesClassName")));
    cli_table_cell(t, cli_text(o, "status.reason"));
    end_cells(g, t, o);
}
