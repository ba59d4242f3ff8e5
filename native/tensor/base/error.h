/* tensor/base/error.h -- a failure carried from one thread to another, with what was attached to
 * it. */
#ifndef OPSCOPE_TENSOR_BASE_ERROR_H
#define OPSCOPE_TENSOR_BASE_ERROR_H

#include "opscope/tensor.h"

struct opscope__failure {
    opscope_error_kind kind;
    char *text;  /* owned; NULL: memory ran out */
    void *cause; /* owned; of a language binding: its exception; NULL: none */
    void (*release)(void *cause);
};

/* Puts the operator's name in front of this thread's last text, where it names none; with
 * `own_alone` also where it names another, that this one called. */
void opscope__failure_name(const char *operator, bool own_alone);

/* Adds a place to this thread's last text: "... (net.py:3:4)". */
void opscope__failure_place(const char *place);

/* This thread's last failure, which it forgets. */
void opscope__failure_take(struct opscope__failure *out);
/* Makes it this thread's last failure; takes what it owns. */
void opscope__failure_set(struct opscope__failure *failure);
void opscope__failure_drop(struct opscope__failure *failure);

/* Attaches the cause to this thread's last failure: opscope_tensor_fail, called just before. The
 * next failure releases it. */
OPSCOPE_API void opscope__failure_attach(void *cause, void (*release)(void *cause));
/* Gives the cause up to the caller; NULL: the last failure has none. */
OPSCOPE_API void *opscope__failure_cause(void);

#endif
