/* tests/native/check.h -- checks for tests. A failed check prints its location and ends the process
 * with 1, from any thread or forked child. There is no framework: a test is a function named after
 * the fact it shows, and main runs the tests one after another. */
#ifndef OPSCOPE_TESTS_CHECK_H
#define OPSCOPE_TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #fact);                     \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Integers of any kind. */
#define CHECK_EQUAL(is, wanted)                                                                    \
    do {                                                                                           \
        long long check_is = (long long)(is), check_wanted = (long long)(wanted);                  \
        if (check_is != check_wanted) {                                                            \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__, #is,         \
                    check_is, check_wanted, #wanted);                                              \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define CHECK_TEXT(is, wanted)                                                                     \
    do {                                                                                           \
        const char *check_is = (is), *check_wanted = (wanted);                                     \
        if (check_is == NULL || strcmp(check_is, check_wanted) != 0) {                             \
            fprintf(stderr, "%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #is,          \
                    check_is != NULL ? check_is : "(null)", check_wanted);                         \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define RUN(test)                                                                                  \
    do {                                                                                           \
        printf("%s\n", #test);                                                                     \
        fflush(stdout);                                                                            \
        test();                                                                                    \
    } while (0)

/* True if that child ended by itself, with 0. */
static inline bool check_child(pid_t pid)
{
    int status = -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Whether a sanitizer makes everything slower. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

#endif
