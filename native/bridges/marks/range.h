/* marks/range.h -- ranges that libraries mark: names become operators, pushes and pops ranges.
 *
 * A mark belongs to a domain of the library that makes it; NULL is one too. The marks of one domain
 * nest on each thread. Those of several domains need not: a pop ends the innermost open range of
 * its domain, and the recorder drops a range that outlasts one around it.
 */
#ifndef OPSCOPE_BRIDGES_MARKS_RANGE_H
#define OPSCOPE_BRIDGES_MARKS_RANGE_H

#include <stdbool.h>
#include <wchar.h>

#include "opscope/record.h"
#include "private/marks.h"

enum {
    OPSCOPE__MARKS_OPEN_LIMIT = 256,  /* open ranges of a thread */
    OPSCOPE__MARKS_NAME_LIMIT = 4096, /* names of a kind; further ones are together "other" */
    OPSCOPE__MARKS_NAME_BYTES = 256   /* of a name with its prefix; the rest is cut off */
};

/* Whether the marks of that kind are followed. Marks that are not keep their place in the nesting,
 * so that a later pop finds its own push. */
void opscope__marks_follow(opscope_marks_kind kind, bool is_followed);
bool opscope__marks_is_followed(opscope_marks_kind kind);

/* Opens a range with that name; NULL: unnamed. Returns how many ranges of this thread were open. */
int opscope__marks_push(opscope_marks_kind kind, const void *domain, const char *name);
int opscope__marks_push_wide(opscope_marks_kind kind, const void *domain, const wchar_t *name);
/* Closes the innermost open range of the domain, if there is one. Returns the same. */
int opscope__marks_pop(opscope_marks_kind kind, const void *domain);

/* The operator of the range with that name that the caller is about to open, with
 * opscope__range_open_slow; NULL: it is not followed, or no callback wants it. */
const opscope_op *opscope__marks_wanted(opscope_marks_kind kind, const char *name);

/* The wide text in UTF-8, cut to `bytes`; "?" for what is no character. */
void opscope__marks_narrow(const wchar_t *wide, char *text, size_t bytes);

/* Measures what a range costs beyond the recorder's own part, once. */
void opscope__marks_measure(void);

#endif
