/* marks/clients.h -- gives a client of NVTX or ITT the functions of the bridge. */
#ifndef OPSCOPE_BRIDGES_MARKS_CLIENTS_H
#define OPSCOPE_BRIDGES_MARKS_CLIENTS_H

#include <stdbool.h>

#include "bridges/marks/itt_abi.h"
#include "bridges/marks/nvtx_abi.h"

/* False if the client is not as expected; its places are as they were then. */
bool opscope__marks_take_nvtx(opscope__nvtx_get_table *get_table);
void opscope__marks_take_itt(struct opscope__itt_global *global);

#endif
