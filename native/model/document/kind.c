/* model/document/kind.c -- the names of the kinds of items. */
#include "model/document/document.h"

const char *opscope__item_kind_name(const struct opscope__item *item)
{
    static const char *const names[] = {
        [OPSCOPE__ITEM_NONE] = "none",   [OPSCOPE__ITEM_BOOL] = "bool",
        [OPSCOPE__ITEM_INT] = "integer", [OPSCOPE__ITEM_FLOAT] = "float",
        [OPSCOPE__ITEM_TEXT] = "text",   [OPSCOPE__ITEM_BYTES] = "bytes",
        [OPSCOPE__ITEM_LIST] = "list",   [OPSCOPE__ITEM_TUPLE] = "tuple",
        [OPSCOPE__ITEM_MAP] = "map",     [OPSCOPE__ITEM_GLOBAL] = "global",
        [OPSCOPE__ITEM_CALL] = "object", [OPSCOPE__ITEM_PERSISTENT] = "persistent id",
    };
    return names[item->kind];
}
