/* tensor/error.c -- the text and kind of a thread's last failure in the tensor core.
 *
 * The text is on the heap, freed when its thread ends: thread-local memory of a library that is loaded
 * late is scarce.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "opscope/tensor.h"

enum { TEXT_BYTES = 512 };

static _Thread_local opscope_error_kind kind_of_last;

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_exists;

static void make_key(void)
{
    key_exists = pthread_key_create(&key, free) == 0;
}

/* This thread's text; NULL where it has none and, with `make`, none can be made. */
static char *own_text(bool make)
{
    pthread_once(&key_once, make_key);
    char *text = key_exists ? pthread_getspecific(key) : NULL;
    if (text == NULL && make && key_exists) {
        text = malloc(TEXT_BYTES);
        if (text != NULL && pthread_setspecific(key, text) != 0) {
            free(text);
            text = NULL;
        }
    }
    return text;
}

const char *opscope_tensor_error(void)
{
    const char *text = own_text(false);
    return text != NULL ? text : "out of memory";
}

opscope_error_kind opscope_tensor_error_kind(void)
{
    return kind_of_last;
}

int opscope_tensor_fail(opscope_error_kind kind, const char *format, ...)
{
    char *text = own_text(true);
    if (text != NULL) {
        /* Formatted apart first: an argument may be the text that is being replaced. */
        char fresh[TEXT_BYTES];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(fresh, sizeof fresh, format, arguments);
        va_end(arguments);
        snprintf(text, TEXT_BYTES, "%s", fresh);
    }
    kind_of_last = kind;
    return kind == OPSCOPE_ERROR_MEMORY ? OPSCOPE_ERR_NO_MEMORY : OPSCOPE_ERR_INVALID;
}
