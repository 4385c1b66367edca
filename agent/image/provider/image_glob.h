/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_glob - which images a key of registry credentials is for: kubelet's rules (pkg/credentialprovider,
 * URLsMatch()), for a Docker config's keys, and for matchImages and auth of image credential providers. Pure.
 *
 * The host is compared part by part between its dots, each as a glob: "*.io" is not "a.b.io". Ports are equal
 * or both missing. The rest is a prefix of the repository's path: "r.io/te" is for "r.io/team", too.
 */
#ifndef AGENT_IMAGE_PROVIDER_IMAGE_GLOB_H
#define AGENT_IMAGE_PROVIDER_IMAGE_GLOB_H
#include <stdbool.h>

/* `repository`: normalised, without tag and digest; `glob` without a scheme. */
bool image_glob_matches(const char *glob, const char *repository);
#endif
