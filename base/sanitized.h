/* SPDX-License-Identifier: Apache-2.0 */
/* sanitized - SANITIZED is 1 in a build with the address or thread sanitizer of gcc or clang, else 0. */
#ifndef BASE_SANITIZED_H
#define BASE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
