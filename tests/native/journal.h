/* tests/native/journal.h -- callbacks that write a journal of their calls, in order: "s1 e1 " for
 * the start and the end of callback 1. */
#ifndef OPSCOPE_TESTS_JOURNAL_H
#define OPSCOPE_TESTS_JOURNAL_H

#include "ranges.h"

static char journal[4096];

static inline void begin(void)
{
    opscope_clear_callbacks();
    journal[0] = '\0';
}

static inline void say(char what, const void *user)
{
    size_t length = strlen(journal);
    snprintf(journal + length, sizeof journal - length, "%c%s ", what, (const char *)user);
}

static inline int say_start(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    say('s', user);
    *context = user;
    return OPSCOPE_OK;
}

static inline int say_end(const opscope_range *fn, void *user, void *context)
{
    (void)fn;
    CHECK(context == user);
    say('e', user);
    return OPSCOPE_OK;
}

static inline opscope_callback saying(const char *name)
{
    return (opscope_callback){
        .start = say_start, .end = say_end, .user = (void *)(uintptr_t)name, .sampling_prob = 1.0};
}

#endif
