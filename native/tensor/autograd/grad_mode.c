/* tensor/autograd/grad_mode.c -- whether the tape records a thread's operators. */
#include <pthread.h>

#include "opscope/autograd.h"
#include "opscope/debug_info.h"

static _Thread_local bool is_off;

bool opscope_grad_mode(void)
{
    return !is_off;
}

static uintptr_t read_word(void)
{
    return is_off;
}

static uintptr_t exchange_word(uintptr_t word)
{
    uintptr_t before = is_off;
    is_off = word != 0;
    return before;
}

/* Forked tasks inherit it. It is on for all threads until one turns it off. */
static void carry(void)
{
    opscope_state_carry(read_word, exchange_word);
}

bool opscope_grad_mode_set(bool on)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool before = !is_off;
    if (!on) {
        pthread_once(&once, carry);
    }
    is_off = !on;
    return before;
}
