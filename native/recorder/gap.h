/* recorder/gap.h -- when the next window opens.
 *
 * Each period has one window, at a newly drawn moment. A window is thus equally likely at every
 * moment, whatever rhythm the program has, and any stretch of time has the expected number of
 * windows, give or take one.
 *
 * A program that does almost nothing needs few of them: a host may have hundreds of processes that
 * wait, and to open a window takes CPU time. If the program has used less than a thousandth of a
 * processor up to each of the last 40 windows, the next one is at a moment of a stretch of 8
 * periods, and counts 8 times. Once the program works again, each period has a window again: the
 * driver looks now and then.
 *
 * Estimates stay unbiased. Whether a stretch is a long one depends on what was before it, and each
 * moment of it has an eighth of the windows, of eight times the weight. What ends it early must not
 * depend on where its window is or was. So a look ends it whether or not its window has been there,
 * and looks have moments of their own; an end by what the window saw would be wrong.
 *
 * A quota of CPU time stops the driver and the program together, and for tens of milliseconds. A
 * window that opened as they go on would meet what the program does first after a stop, and no
 * stop: with a quota that lets it run for a quarter of the time, three of four windows would. Stops
 * often come at the same points of a program's step, so such windows would also meet the same
 * operators again and again. So if the driver wakes up very late, the moment is drawn anew, a few
 * times at most. That depends on the driver's own timer, never on what the program does. A driver
 * that is a little late mostly waited for other processes. If those moments were drawn anew as
 * well, more windows would open while the program waits, which is when the kernel lets the driver
 * run at once: calls of a small training were 13 % too low then, and 4 % otherwise. But if a third
 * of the late moments were very late, a quota stops the driver, and a little late one was in the
 * last part of a stop: it is drawn anew too. Otherwise calls under a quota of a half were a fifth
 * too low.
 *
 * This code is arithmetic: no clock, no lock. Its caller is recorder/window_cycle.c. Simulations:
 * tests/native/test_gap.c.
 */
#ifndef OPSCOPE_RECORDER_GAP_H
#define OPSCOPE_RECORDER_GAP_H

#include <stdbool.h>
#include <stdint.h>

#include "record/random.h"

enum { OPSCOPE__GAP_STILL_WINDOWS = 40, OPSCOPE__GAP_STILL_PERIODS = 8 };
enum { OPSCOPE__GAP_LOOK_NS = 500000000 };
/* A moment drawn again is within this time: half of the kernel's usual period of a quota. */
enum { OPSCOPE__GAP_AGAIN_NS = 50000000, OPSCOPE__GAP_AGAIN_TIMES = 4 };
/* A driver that is later was stopped by a quota: beside four times as many busy threads as
 * processors, it is up to 18 ms late. */
enum { OPSCOPE__GAP_LATE_NS = 20000000 };

typedef struct opscope__gap {
    double period_ns;    /* planned */
    uint64_t start_ns;   /* of the stretch after that of the window drawn last */
    uint64_t long_to_ns; /* the end of the last long stretch */
    unsigned still;      /* windows in a row, up to each of which the program did almost nothing */
    unsigned periods;    /* of the stretch of the window drawn last: the factor of its weight */
    uint64_t due_ns;     /* that window's moment */
    unsigned again;      /* how often it was drawn again */
    double late_little, late_much;     /* moments that were so; older ones count less */
    uint64_t look_ns;                  /* the next look, within a long stretch */
    uint64_t looked_ns, looked_cpu_ns; /* the last look; 0: none in this long stretch */
    opscope__random random;
    bool is_seeded;
} opscope__gap;

/* Starts another plan. */
void opscope__gap_begin(opscope__gap *gap, uint64_t period_ns, uint64_t now_ns);
/* Draws the moment of the next window. A process stopped for longer than a period does not catch up
 * on the missed windows. `seed` is used once. */
uint64_t opscope__gap_draw(opscope__gap *gap, uint64_t now_ns, uint64_t seed);
/* The driver opens the window at `now_ns`. Returns 0, or another moment to open it, if it is very
 * late.
 */
uint64_t opscope__gap_again(opscope__gap *gap, uint64_t now_ns);
/* Whether a quota is known to stop the driver, by the moments so far. */
bool opscope__gap_has_quota(const opscope__gap *gap);
/* From the end of the window drawn last to that of its period, for which it stands; less than 0 if
 * it was later. 0 for a long stretch: no work is expected in it. */
double opscope__gap_remaining_ns(const opscope__gap *gap, uint64_t now_ns);
/* What the program did from the end of a window to that of the next. */
void opscope__gap_note(opscope__gap *gap, double cpu_ns, double wall_ns);
/* Whether this is within a long stretch. */
bool opscope__gap_is_long(const opscope__gap *gap, uint64_t now_ns);
/* A look, at `look_ns` of a long stretch or soon after. `cpu_ns`: of the program so far. Returns
 * whether it has worked since the look before: the stretch is over, draw again. */
bool opscope__gap_look(opscope__gap *gap, uint64_t cpu_ns, uint64_t now_ns);

#endif
