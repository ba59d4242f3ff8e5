/* recorder/window_weight.h -- the weight of a window: how many ranges each recorded one represents.
 *
 * A weight of total time divided by time in windows would be right if the program did as much work
 * in a moment of a window as in any other moment. It does not on an oversubscribed processor:
 * the kernel lets the threads of a process run after each other, so that the program gets the
 * processor when the thread that opens the window does, or loses it then. Neither does it if
 * recording takes a considerable part of the time of small operators: windows then contain less
 * work.
 *
 * Therefore an account (a "book") tracks the work: the CPU time of the program's threads minus the
 * cost of recording. There are two: one for known threads, which have met an earlier window, and is
 * exact; one for the rest of the process, whose threads come and go (for example one per request).
 * What such a thread does between windows and in them belongs to the rest alike
 * (record/thread.h). Ranges get the weight of their thread's
 * account, so that spinning BLAS threads, in the rest, do not disturb the first account. Recording
 * is at the cost of the account whose threads' ranges it recorded. In proportion to the accounts'
 * CPU times, a thread that did little but start others had 1.07 times its calls, and those had 0.97
 * times theirs.
 *
 * In the long run the weight is therefore total work divided by work in windows. That is known only
 * after some windows: until then, the quotient of times makes up for what is missing.
 *
 * All windows together represent all of the work. Work that earlier windows do not represent is
 * owed; each later window pays back a part. The weights are therefore right on average, however
 * windows differ from other times. A window's weight depends only on earlier windows, not on its
 * own contents, so estimates stay unbiased. A program that does little at a time would need many
 * windows before a plain quotient of the two sums were useful; owed work is never wrong.
 *
 * A window represents the work of its whole period. For the part of the period that follows the
 * window, the recorder assumes the program's rate of work so far. On average, the work that is
 * counted too early therefore equals the work that is not counted yet. If windows represented only
 * the work before them, estimates would always lack the work since the last window: 9 % of a
 * program of 2 s.
 *
 * What recording takes from a window's work, its cost times the slowdown (recorder/cost_compare.h),
 * becomes known better over time. Each new value also corrects what earlier windows left owed.
 *
 * This code is arithmetic: no clock, no lock. Its caller is recorder/window_books.c.
 */
#ifndef OPSCOPE_RECORDER_WINDOW_WEIGHT_H
#define OPSCOPE_RECORDER_WINDOW_WEIGHT_H

typedef struct opscope__window_weight {
    double planned_on, planned_wall; /* ns, of one window: used in place of measured values for the
                                        first few windows */
    double on, wall;                 /* ns, over all windows of this plan */
    double all, met;                 /* ns of work, all and in windows, over the last windows */
    double all_wall;                 /* ns in which all of it was done */
    double recent;                   /* the number of those windows */
    double remaining;                /* ns from the last window to the end of its period */
    double owed;                     /* ns of work that no window represents yet */
    double typical;                  /* ns of work in a window that has any; 0: unknown */
    double count;                    /* windows of this plan */
    double inside, work; /* ns of CPU time in all windows, with and without the cost of recording */
    double recording;    /* ns by which all of that cost, as measured in loops, changes `owed` */
    double slowdown;     /* as last known */
} opscope__window_weight;

/* All in ns. */
struct opscope__window_weight_cycle {
    double weight;            /* of the window; 0: there was no window, and the next is not soon */
    double on, wall;          /* its length; the time from the end of the last one to its own end */
    double inside;            /* CPU time inside it, without that of preparing threads to record */
    double outside;           /* CPU time from the end of the last one to its beginning */
    double remaining;         /* from its end to that of the period for which it stands; less than 0
                                 if it was later */
    double recording;         /* the part of `inside` for recording, as measured in loops */
    double recording_outside; /* likewise of `outside`: ranges recorded with weight 0 */
    double slowdown;          /* by which recording takes more of the work, as known now */
};

/* Starts another plan of windows. Owed work stays. */
void opscope__window_weight_plan(opscope__window_weight *book, double window_ns, double period_ns);

/* The next windows are this many times as long as those before. */
void opscope__window_weight_resize(opscope__window_weight *book, double ratio);

/* Sets the expected length of a window, including the usual delay of timers. */
void opscope__window_weight_expect(opscope__window_weight *book, double on_ns);

/* The weight of the next window: at least 1. */
double opscope__window_weight_now(const opscope__window_weight *book);

/* The work, in ns, by which estimates may be wrong before the next window: more may be owed than
 * was expected, the period is not over, and the slowdown is uncertain, by `error`. */
double opscope__window_weight_missing(const opscope__window_weight *book, double error);

/* Accounts for a window that has ended. Returns the work that it represents, in ns. */
double opscope__window_weight_count(opscope__window_weight *book,
                                    const struct opscope__window_weight_cycle *cycle);

#endif
