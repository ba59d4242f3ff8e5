/* base/real_time.h -- the C library's own functions of time.
 *
 * Programs run with libraries that give them another time, such as libfaketime: one that stops,
 * runs backwards, or ten times as fast. Such a library has the same functions and is found before
 * the C library. Opscope compares clocks with the processor's counter and with what the kernel and
 * the agent say, so it uses the C library's own, which it looks up there. On a C library with
 * another name than glibc's it uses what it finds first.
 */
#ifndef OPSCOPE_BASE_REAL_TIME_H
#define OPSCOPE_BASE_REAL_TIME_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "base/hot.h"

/* Written when the library is loaded; tests put clocks of their own here. */
extern OPSCOPE__INTERNAL int (*opscope__clock_gettime)(clockid_t id, struct timespec *now);

/* A clock in nanoseconds; 0 if the kernel refuses it. */
uint64_t opscope__clock_ns(clockid_t id);

/* As pthread_cond_timedwait, of a condition that uses CLOCK_MONOTONIC, by opscope__clock_ns. */
int opscope__cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns);

/* Sleeps for less than a second, or until a signal. */
void opscope__sleep(uint32_t ns);

#endif
