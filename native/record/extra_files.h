/* record/extra_files.h -- the part of opscope/extra_files.h for bridges, which bring a framework to
 * add the files to its own archives. */
#ifndef OPSCOPE_RECORD_EXTRA_FILES_H
#define OPSCOPE_RECORD_EXTRA_FILES_H

#include <stdbool.h>

#include "opscope/extra_files.h"

/* Calls `changed` whenever the hook was set or removed, on that thread. There is one listener. */
OPSCOPE_API void opscope__extra_files_listen(void (*changed)(void));
/* True while there is a hook. */
OPSCOPE_API bool opscope__extra_files_are_hooked(void);

#endif
