/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/node_machine.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX 16384

/* The file's text without blanks at its end; NULL: there is none. */
static char *machine_file(const char *root, const char *path)
{
    str_auto full = str_printf("%s%s", root, path);
    char *text = NULL;

    if (full == NULL || fs_read_at(AT_FDCWD, full, FILE_MAX, &text, NULL, ERR_IGNORED) != ERR_OK)
        return NULL;
    for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]);)
        text[--n] = '\0';
    if (text[0] != '\0')
        return text;
    free(text);
    return NULL;
}

/* The value of PRETTY_NAME in os-release(5), without its quotes. */
static void put_os(json_t *info, char *text)
{
    static const char key[] = "PRETTY_NAME=";

    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        size_t n;

        if (strncmp(line, key, sizeof(key) - 1) != 0)
            continue;
        line += sizeof(key) - 1;
        n = strlen(line);
        if (n >= 2 && (line[0] == '"' || line[0] == '\'') && line[n - 1] == line[0]) {
            line[n - 1] = '\0';
            line++;
        }
        if (line[0] != '\0')
            json_object_set_new(info, "osImage", json_string_of(line));
        return;
    }
}

void node_machine_put(json_t *info, const char *root)
{
    str_auto machine = machine_file(root, "/etc/machine-id");
    str_auto system = machine_file(root, "/sys/class/dmi/id/product_uuid");
    str_auto os = machine_file(root, "/etc/os-release");

    if (machine == NULL)
        machine = machine_file(root, "/var/lib/dbus/machine-id");
    if (os == NULL)
        os = machine_file(root, "/usr/lib/os-release");
    for (char *p = system; p != NULL && *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    if (machine != NULL)
        json_object_set_new(info, "machineID", json_string_of(machine));
    if (system != NULL || machine != NULL)
        json_object_set_new(info, "systemUUID", json_string_of(system != NULL ? system : machine));
    if (os != NULL)
        put_os(info, os);
}
