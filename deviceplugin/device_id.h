/* SPDX-License-Identifier: Apache-2.0 */
/* device_id - the order of device ids, and the check of an id. Pure. */
#ifndef DEVICEPLUGIN_DEVICE_ID_H
#define DEVICEPLUGIN_DEVICE_ID_H
#include <stdbool.h>

#define DP_ID_MAX 4096 /* bytes */

/* Natural order: runs of digits are compared as numbers, so dev-2 is before dev-10. Total: 0 only for equal
 * bytes. */
int dp_id_compare(const char *a, const char *b);
/* Not empty, at most DP_ID_MAX bytes, and UTF-8, as protobuf and kubelet's checkpoint require. Any character
 * is allowed: messages pass through text_printable(). */
bool dp_id_ok(const char *id);
#endif
