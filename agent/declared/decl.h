/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decl - one file of declarations, decoded and checked. Any thread.
 *
 *     domain: example.com            # for names without one
 *     devices:
 *     - name: modem                  # or example.com/modem
 *       groups:                      # each matching group of nodes is one device
 *       - count: 1                   # how many containers may use it at a time paths:
 *         - path: /dev/serial/by-id/usb-Acme_*
 *           mountPath: /dev/modem    # in the container; "/dev/serial/": by its name in that folder
 *           permissions: rw          # letters of rwm
 *           type: Device             # or Mount, with readOnly
 *           limit: 1                 # the number of devices of this group that may share a match optional:
 *           false
 *           env: MODEM               # a variable with the path in the container
 *           match: {subsystem: tty, vendor: "0403", product: "6001", serial: A*, port: 1-1.2,
 *                   attributes: {bInterfaceNumber: "00"}}
 *       - usb:                       # instead of paths: nodes below /dev/bus/usb
 *         - {vendor: "1209", product: "000f", serial: "0001", port: 1-1}
 *
 * The fields are those of the generic device plugin (github.com/squat/generic-device-plugin, config.go); the
 * README lists the differences.
 */
#ifndef AGENT_DECLARED_DECL_H
#define AGENT_DECLARED_DECL_H
#include "agent/api/problems.h"
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>

#define DECL_FILE_MAX (256 * 1024) /* bytes */
#define DECL_RESOURCES_MAX 64      /* of one file */
#define DECL_GROUPS_MAX 64         /* of one resource */
#define DECL_MEMBERS_MAX 16        /* nodes of one device; their joined ids must fit in DP_ID_MAX */
#define DECL_ATTRIBUTES_MAX 16
#define DECL_COUNT_MAX 1000
#define DECL_PATH_MAX 240 /* bytes of a pattern or of a path in the container */

struct decl_attribute {
    const char *name, *value;
};

struct decl_match { /* NULL: any; with * ? [] */
    const char *subsystem;
    const char *vendor, *product; /* four lower-case hexadecimal digits, no patterns */
    const char *serial, *port;
    struct decl_attribute *attributes;
    size_t n_attributes;
};

enum decl_type { DECL_DEVICE, DECL_MOUNT, DECL_USB };

struct decl_member {
    enum decl_type type;
    const char *path;        /* with * ? []; NULL: DECL_USB */
    const char *mount_path;  /* NULL: as on the host */
    const char *permissions; /* "rwm" */
    const char *env;         /* NULL: none */
    bool read_only, optional, has_match;
    unsigned limit;
    struct decl_match match;
};

struct decl_group {
    unsigned count;
    struct decl_member *v; /* at least one; either no or only DECL_USB */
    size_t n;
};

struct decl_resource {
    const char *name;
    int document; /* from 1 */
    struct decl_group *groups;
    size_t n_groups;
};

struct decl_file {
    struct arena arena;
    struct decl_resource *v;
    size_t n;
};

/*
 * Decodes YAML or JSON. The caller owns *ret: decl_done(). If the text has a problem, *ret has no resource,
 * and `problems` has each problem with its place and the allowed values. Fails only when out of memory.
 */
enum err_code decl_parse(const char *file, const char *text, size_t size, struct decl_file *ret,
                         struct api_problems *problems, struct err *e) MUST_CHECK;
void decl_done(struct decl_file *f);
#endif
