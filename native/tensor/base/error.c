/* tensor/base/error.c -- the text and kind of a thread's last failure in the tensor core.
 *
 * The record is on the heap, freed when its thread ends: thread-local memory of a library that is
 * loaded late is scarce.
 */
#include "tensor/base/error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 512 };

/* Owner: the thread. */
struct last {
    opscope_error_kind kind;
    void *cause;
    void (*release)(void *cause);
    char text[TEXT_BYTES];
};

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_exists;

static void drop_cause(struct last *last)
{
    void *cause = last->cause;
    last->cause = NULL;
    if (cause != NULL) {
        last->release(cause);
    }
}

static void destroy(void *last)
{
    drop_cause(last);
    free(last);
}

static void make_key(void)
{
    key_exists = pthread_key_create(&key, destroy) == 0;
}

/* This thread's record; NULL where it has none and, with `make`, none can be made. */
static struct last *own(bool make)
{
    pthread_once(&key_once, make_key);
    struct last *last = key_exists ? pthread_getspecific(key) : NULL;
    if (last == NULL && make && key_exists) {
        last = calloc(1, sizeof *last);
        if (last != NULL && pthread_setspecific(key, last) != 0) {
            free(last);
            last = NULL;
        }
    }
    return last;
}

const char *opscope_tensor_error(void)
{
    const struct last *last = own(false);
    return last != NULL ? last->text : "out of memory";
}

opscope_error_kind opscope_tensor_error_kind(void)
{
    const struct last *last = own(false);
    return last != NULL ? last->kind : OPSCOPE_ERROR_MEMORY;
}

int opscope_tensor_fail(opscope_error_kind kind, const char *format, ...)
{
    struct last *last = own(true);
    if (last != NULL) {
        /* Formatted apart first: an argument may be the text that is being replaced. */
        char fresh[TEXT_BYTES];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(fresh, sizeof fresh, format, arguments);
        va_end(arguments);
        drop_cause(last);
        last->kind = kind;
        snprintf(last->text, TEXT_BYTES, "%s", fresh);
    }
    return kind == OPSCOPE_ERROR_MEMORY ? OPSCOPE_ERR_NO_MEMORY : OPSCOPE_ERR_INVALID;
}

void opscope__failure_name(const char *operator, bool own_alone)
{
    struct last *last = own(false);
    if (last == NULL) {
        return;
    }
    /* "core::add: ..." or "mine::scale: ...": a name stands before the first blank. */
    size_t first = strcspn(last->text, " ");
    const char *colons = strstr(last->text, "::");
    bool is_named = colons != NULL && colons <= last->text + first;
    if (own_alone) {
        is_named &= first == strlen(operator) + 1 && strncmp(last->text, operator, first - 1) == 0;
    }
    if (!is_named) {
        char text[TEXT_BYTES];
        snprintf(text, sizeof text, "%s", last->text);
        snprintf(last->text, TEXT_BYTES, "%s: %.400s", operator, text);
    }
}

void opscope__failure_place(const char *place)
{
    struct last *last = own(false);
    if (last != NULL) {
        char text[TEXT_BYTES];
        snprintf(text, sizeof text, "%s", last->text);
        snprintf(last->text, TEXT_BYTES, "%.300s%s (%.190s)", text, strlen(text) > 300 ? "..." : "",
                 place);
    }
}

void opscope__failure_attach(void *cause, void (*release)(void *cause))
{
    struct last *last = own(true);
    if (last == NULL) {
        release(cause);
        return;
    }
    drop_cause(last);
    last->cause = cause;
    last->release = release;
}

void *opscope__failure_cause(void)
{
    struct last *last = own(false);
    void *cause = last != NULL ? last->cause : NULL;
    if (cause != NULL) {
        last->cause = NULL;
    }
    return cause;
}

void opscope__failure_take(struct opscope__failure *out)
{
    const struct last *last = own(false);
    *out = (struct opscope__failure){.kind = opscope_tensor_error_kind(),
                                     .text = strdup(opscope_tensor_error()),
                                     .release = last != NULL ? last->release : NULL};
    out->cause = opscope__failure_cause();
}

void opscope__failure_set(struct opscope__failure *failure)
{
    opscope_tensor_fail(failure->kind, "%s",
                        failure->text != NULL ? failure->text : "out of memory");
    if (failure->cause != NULL) {
        opscope__failure_attach(failure->cause, failure->release);
    }
    free(failure->text);
}

void opscope__failure_drop(struct opscope__failure *failure)
{
    if (failure->cause != NULL) {
        failure->release(failure->cause);
    }
    free(failure->text);
}
