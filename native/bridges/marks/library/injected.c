/* marks/library/injected.c -- the library that the environment names to NVTX and ITT
 * (libopscope_marks.so). It depends on nothing but the C library, keeps no state besides one
 * pointer, and prints nothing.
 *
 * In an observed process the bridge has loaded it first, by the same path, and has given it a
 * receiver. In any other process that inherits the variable, there is none: NVTX gets a refusal and
 * unloads the library, and ITT's functions become those of a program without a collector.
 */
#include "bridges/marks/receiver.h"

#include <string.h>

#include "opscope/export.h"

/* Written by the bridge before the variable names this library. */
static const struct opscope__marks_receiver *receiver;

OPSCOPE_API void opscope_marks_receive(const struct opscope__marks_receiver *new_receiver);
OPSCOPE_API int InitializeInjectionNvtx2(opscope__nvtx_get_table *get_table);
OPSCOPE_API void __itt_api_init(struct opscope__itt_global *global, int groups);

void opscope_marks_receive(const struct opscope__marks_receiver *new_receiver)
{
    __atomic_store_n(&receiver, new_receiver, __ATOMIC_RELEASE); /* partner: below */
}

static const struct opscope__marks_receiver *current(void)
{
    return __atomic_load_n(&receiver, __ATOMIC_ACQUIRE); /* partner: above */
}

int InitializeInjectionNvtx2(opscope__nvtx_get_table *get_table)
{
    const struct opscope__marks_receiver *found = current();
    return found != NULL && get_table != NULL ? found->nvtx(get_table) : 0;
}

/* ITT calls it with its lock held. */
void __itt_api_init(struct opscope__itt_global *global, int groups)
{
    (void)groups;
    if (global == NULL || memcmp(global->magic, opscope__itt_magic, sizeof global->magic) != 0) {
        return;
    }
    for (const struct opscope__itt_api *api = global->apis; api != NULL && api->name != NULL;
         api++) {
        *api->function = api->none;
    }
    const struct opscope__marks_receiver *found = current();
    if (found != NULL) {
        found->itt(global);
    }
}
