/* recorder/warm_up.h -- how long a window warms up before it counts.
 *
 * A window's first ranges run cold: neither PyTorch's code and data for callbacks nor ours have
 * been used since the last window. During the warm-up, ranges are recorded with weight 0, so that
 * the recorder knows what encloses later ones. Measured on PyTorch: of the operators that a small
 * training step runs in a millisecond, the first 0.1 ms of a window observe 55 %, the fifth 84 %,
 * the tenth 97 %.
 *
 * A program whose step has many different operators takes longer: PyTorch has separate code for
 * each kind of recorded operator, and until each has run, the program gets no further in a
 * millisecond than it otherwise does in a third of one, or in a tenth. Measured on a loop of small
 * networks and NumPy with steps of 1.7 ms, beside users of the processor's caches: a step with a
 * cold window in it took 5 ms. Windows after 2.3 ms of warm-up recorded 40 to 700 ranges, and
 * missed half of all calls; after 7 ms 370 to 890, and a tenth. So a warm-up is the longer the more
 * the program was slower in earlier ones. It does not depend on what the program does in this one:
 * otherwise it would end at certain ranges rather than others.
 *
 * A warm-up whose timer is late has been stopped: by a quota of CPU time, which stops the program
 * too, or for other processes. What the program does next runs cold again; a small training step is
 * 1.7 times slower in the first two milliseconds after a quota's stop of 50. A window that counted
 * from there would meet such moments more often than there are: with a quota of a half, estimates
 * of calls were 10 to 20 % too low. So it warms up once more, for a time drawn anew, because the
 * program may repeat itself from the stop on; without the part that is there to outlast waiting,
 * because the program goes on as the driver does. Only once: on a crowded host timers are often
 * late.
 * Whether it does depends on the driver's own timer, never on what the program does.
 *
 * This code is arithmetic: no clock, no lock. Its caller is recorder/window_cycle.c.
 */
#ifndef OPSCOPE_RECORDER_WARM_UP_H
#define OPSCOPE_RECORDER_WARM_UP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct opscope__warm_up {
    uint64_t start_ns, length_ns;
    double first_ns, again_ns; /* the first one's length, and the least of a second one */
    bool is_second;
    double warm, few; /* the two sides of opscope__warm_up_learn, over the last warm-ups */
} opscope__warm_up;

/* Begins at `now_ns`, for a window planned to last `on_ns` of a period of `period_ns`; `stretch`:
 * by which the window is longer because the program waits (recorder/window_length.h). Returns its
 * end. */
uint64_t opscope__warm_up_begin(opscope__warm_up *warm_up, double on_ns, double stretch,
                                double period_ns, uint64_t now_ns);
/* The last one has taken `warm_ns` of CPU time for `warm_count` ranges, which took `few_ns` for
 * `few_count` shortly before, where they were only counted. */
void opscope__warm_up_learn(opscope__warm_up *warm_up, double warm_ns, double warm_count,
                            double few_ns, double few_count);
/* Its timer has woken the driver, at `now_ns`. Returns 0: it is over; or the end of a second one,
 * which has begun. `unit`: drawn from [0, 1). */
uint64_t opscope__warm_up_again(opscope__warm_up *warm_up, uint64_t now_ns, double unit);

#endif
