/* SPDX-License-Identifier: Apache-2.0 */
/* tar_internal - the header block of tar (POSIX ustar, with GNU's long names and numbers). */
#ifndef BASE_TAR_INTERNAL_H
#define BASE_TAR_INTERNAL_H

enum { TAR_BLOCK = 512, TAR_NAME_MAX = 4095 };

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[8], user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is a block");
#endif
