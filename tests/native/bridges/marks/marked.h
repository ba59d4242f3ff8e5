/* tests/native/bridges/marks/marked.h -- attaches, and writes the ranges of marks to the journal.
 */
#ifndef OPSCOPE_TESTS_MARKED_H
#define OPSCOPE_TESTS_MARKED_H

#include <stdlib.h>

#include "journal.h"
#include "private/marks.h"

/* The thread sanitizer and QEMU have own threads, so the bridge sets no variable there. */
#if defined(OPSCOPE_TEST_EMULATED)
#define HAS_OWN_THREAD 1
#elif defined(__has_feature)
#define HAS_OWN_THREAD __has_feature(thread_sanitizer)
#else
#define HAS_OWN_THREAD 0
#endif

static inline void attach(opscope_marks_kind kind)
{
    if (HAS_OWN_THREAD) {
        const char *name =
            kind == OPSCOPE_MARKS_ITT ? "INTEL_LIBITTNOTIFY64" : "NVTX_INJECTION64_PATH";
        CHECK_EQUAL(setenv(name, OPSCOPE_TEST_MARKS, 1), 0);
    }
    CHECK_EQUAL(opscope_marks_attach(kind, OPSCOPE_TEST_MARKS), OPSCOPE_OK);
}

/* An observer: "+name " and "-name ". */

static void (*mark)(void); /* the callbacks call it, unless it is NULL */

static inline void write_line(char sign, const opscope_range *fn)
{
    const size_t length = strlen(journal);
    snprintf(journal + length, sizeof journal - length, "%c%s ", sign, fn->op->name);
    if (mark != NULL) {
        mark();
    }
}

static inline int see_start(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    (void)context;
    write_line('+', fn);
    return OPSCOPE_OK;
}

static inline int see_end(const opscope_range *fn, void *user, void *context)
{
    (void)user;
    (void)context;
    write_line('-', fn);
    return OPSCOPE_OK;
}

static inline void observe(void)
{
    begin();
    add_global((opscope_callback){.start = see_start, .end = see_end, .sampling_prob = 1.0});
}

#endif
