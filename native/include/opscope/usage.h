/* opscope/usage.h -- which parts of an API a process uses, said once for each part.
 *
 * The idea: a library says a key at the places worth knowing. The first time in a process, the key
 * goes to the handler, to standard error where OPSCOPE_API_USAGE_STDERR=1, and is kept: a handler
 * set late gets every key said before, and the recorder writes them into its segment.
 *
 * Threads: any. Forks: the child knows the parent's keys and does not say them again.
 *
 *     OPSCOPE_LOG_API_USAGE_ONCE("core.linalg");
 */
#ifndef OPSCOPE_USAGE_H
#define OPSCOPE_USAGE_H

#include <stddef.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

typedef void (*opscope_usage_handler)(const char *key, void *user);
typedef void (*opscope_usage_metadata_handler)(const char *context, const char *key,
                                               const char *value, void *user);

/* Says `key`, at most once in the process. At most 4,096 keys; more are dropped. */
OPSCOPE_API void opscope_log_api_usage_once(const char *key);
/* One handler at a time; NULL for none. Replays the keys said so far, in order. */
OPSCOPE_API void opscope_set_api_usage_handler(opscope_usage_handler handler, void *user);
/* Details about one use, not deduplicated; without a handler, dropped. */
OPSCOPE_API void opscope_log_api_usage_metadata(const char *context, const char *key,
                                                const char *value);
OPSCOPE_API void opscope_set_api_usage_metadata_handler(opscope_usage_metadata_handler handler,
                                                        void *user);
/* The keys said so far, in order: the one at `index`, or NULL past the last. */
OPSCOPE_API const char *opscope_api_usage_key(size_t index);

#define OPSCOPE_LOG_API_USAGE_ONCE(key)                                                            \
    do {                                                                                           \
        static unsigned char opscope_said;                                                         \
        if (!__atomic_load_n(&opscope_said, __ATOMIC_RELAXED)) {                                   \
            __atomic_store_n(&opscope_said, 1, __ATOMIC_RELAXED);                                  \
            opscope_log_api_usage_once(key);                                                       \
        }                                                                                          \
    } while (0)

OPSCOPE_END_DECLS

#endif
