/* record/exposure.h -- how many ranges one that is recorded in a window stands for.
 *
 * In the long run: as many as there is time for each moment in windows. That holds as long as the
 * program does as much in a moment of a window as in any other. It does not on a processor with
 * more to do than it can: waking the thread that opens a window takes the processor from somebody,
 * often from its own program, and other processes have the next slice. Nor where recording itself
 * takes a good part of what a small operator takes: there is less done in a window.
 *
 * So books are kept of the work: the processor time of the threads that open ranges, less what
 * recording took of it. Windows stand for all of it. What those so far have not stood for is owed,
 * and the ones to come pay it back, each a small part. So the weights are right on average whatever
 * makes windows differ from other times; and as a window's weight depends on those before it alone,
 * not on what happens in it, estimates stay without bias. A program that does little at a time
 * would need many windows before a plain quotient of the two sums were worth anything; a debt is
 * never wrong.
 *
 * Arithmetic only: no clock, no lock. Its user is record/window.c.
 */
#ifndef OPSCOPE_RECORD_EXPOSURE_H
#define OPSCOPE_RECORD_EXPOSURE_H

typedef struct opscope__exposure {
    double planned_on, planned_wall; /* ns, of one window: they stand in for the first few */
    double on, wall;                 /* ns, over all windows of this plan */
    double owed;                     /* ns of work done that no window has stood for */
    double typical; /* ns of work in a window in which there is any; 0: not known */
} opscope__exposure;

/* All in ns. */
struct opscope__exposure_cycle {
    double weight;    /* of the window; 0: there was none, nor is one to follow soon */
    double on, wall;  /* its length, and since the end of the last one to its own */
    double inside;    /* processor time within it */
    double outside;   /* likewise, since the end of the last one to its beginning */
    double recording; /* what recording took of that within it; an estimate */
};

/* Windows are opened by another plan from now on. What is owed stays. */
void opscope__exposure_plan(opscope__exposure *exposure, double window_ns, double period_ns);

/* The weight of the next window: at least 1. */
double opscope__exposure_weight(const opscope__exposure *exposure);

/* A window has ended. */
void opscope__exposure_count(opscope__exposure *exposure,
                             const struct opscope__exposure_cycle *cycle);

#endif
