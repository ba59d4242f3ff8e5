/* record/random.h -- a thread's random numbers, and the geometric countdowns drawn from them.
 *
 * splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): 64 bits
 * of state, every value once in a period. Not for secrets.
 */
#ifndef OPSCOPE_RECORD_RANDOM_H
#define OPSCOPE_RECORD_RANDOM_H

#include <stdint.h>

typedef struct opscope__random {
    uint64_t state;
} opscope__random;

/* Seeds from `seed` and `stream`. If `seed` is 0, uses the process's seed, which comes from the
 * operating system. The library asks for it once, for the first thread of the process: a filter of
 * system calls may be in force later. */
void opscope__random_seed(opscope__random *random, uint64_t seed, uint64_t stream);
/* In a forked child: derives a new process seed from the parent's seed and the current time. Call
 * it before seeding any thread. */
void opscope__random_fork_child(void);
uint64_t opscope__random_next(opscope__random *random);
/* Uniform in (0, 1), never 0 or 1. */
double opscope__random_unit(opscope__random *random);
/* The number of trials up to and including the first success, each of probability `prob` in (0, 1).
 * Inversion: 1 + floor(log(U) / log1p(-prob)); at least 1, at most 2^63. */
uint64_t opscope__random_countdown(opscope__random *random, double prob);

#endif
