/* recorder/window_books.h -- the two accounts of a program's work: of threads known from earlier
 * windows, and of the rest (recorder/window_weight.h). Computes what belongs to each from what was
 * read at the ends of windows' counted parts.
 *
 * This code is arithmetic: no clock, no lock. Its caller is recorder/window_cycle.c.
 */
#ifndef OPSCOPE_RECORDER_WINDOW_BOOKS_H
#define OPSCOPE_RECORDER_WINDOW_BOOKS_H

#include <stdbool.h>

#include "recorder/moment.h"
#include "recorder/window_weight.h"

typedef struct opscope__window_books {
    opscope__window_weight known, rest;
    double late_ns, late_count; /* how much longer than planned windows have been */
} opscope__window_books;

/* The weights of a window's ranges: on known threads, and on new ones. 0: there was no window. */
struct opscope__window_weights {
    double known, rest;
};

/* A window, and the time since the one before. */
struct opscope__window_period {
    const struct opscope__moment *last, *start, *stop; /* ends of counted parts: that of the last
                                                          window; this one's beginning and end */
    struct opscope__window_weights weights;
    double remaining; /* see recorder/window_weight.h */
    bool is_usual;    /* otherwise it tells nothing of the share of time in other windows */
};

/* Starts another plan of windows. */
void opscope__window_books_plan(opscope__window_books *books, double window_ns, double period_ns);
/* The next windows are this many times as long as those before. */
void opscope__window_books_resize(opscope__window_books *books, double ratio);
/* A timer for `planned_ns` took `ns`; the timer that ends the window may be late too. */
void opscope__window_books_note_late(opscope__window_books *books, double planned_ns, double ns);
/* The weights of the next window, which is planned to take `on_ns`. */
struct opscope__window_weights opscope__window_books_weights(opscope__window_books *books,
                                                             double on_ns);
/* Accounts for a window. Returns the work that it represents, in ns. */
double opscope__window_books_count(opscope__window_books *books,
                                   const struct opscope__window_period *period);
/* As of opscope__window_weight_missing: by how much work estimates may be wrong before the next
 * window. `has_new`: new threads have met the last one. */
double opscope__window_books_missing(const opscope__window_books *books, bool has_new,
                                     double slowdown_error);

#endif
