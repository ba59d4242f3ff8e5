/* marks/texts.h -- strings that clients register, each kept once and for ever. */
#ifndef OPSCOPE_BRIDGES_MARKS_TEXTS_H
#define OPSCOPE_BRIDGES_MARKS_TEXTS_H

#include "bridges/marks/itt_abi.h"

/* The one with that text; its address is the handle of a client, of either kind. The text is cut to
 * the length of names; that of "other" if there are as many as there may be names, or memory ran
 * out. Any thread may call it; it takes no lock. */
struct opscope__itt_string *opscope__marks_text(const char *text);

#endif
