/* model/document/pickle_container.c -- tuples, lists and dicts of a pickle.
 *
 * Lists and dicts grow while the pickle is read, through every reference to them. Objects of
 * `collections` (OrderedDict, Counter) are filled as dicts are.
 */
#include <string.h>

#include "model/document/pickle_machine.h"

static struct opscope__item *make_tuple(struct opscope__machine *machine,
                                        struct opscope__item *const *items, size_t count)
{
    return opscope__item_new_items(machine->document, OPSCOPE__ITEM_TUPLE, items, count,
                                   machine->opcode_offset);
}

bool opscope__machine_tuple(struct opscope__machine *machine, size_t count)
{
    struct opscope__item *const *items = opscope__machine_pop_many(machine, count);
    return items != NULL && opscope__machine_push(machine, make_tuple(machine, items, count));
}

bool opscope__machine_tuple_from_mark(struct opscope__machine *machine)
{
    struct opscope__item *const *items;
    size_t count;
    return opscope__machine_pop_mark(machine, &items, &count) &&
           opscope__machine_push(machine, make_tuple(machine, items, count));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool extend(struct opscope__machine *machine, struct opscope__item *const *items,
                   size_t count)
{
    struct opscope__item *list = opscope__machine_top(machine);
    if (list == NULL) {
        return false;
    }
    if (list->kind != OPSCOPE__ITEM_LIST) {
        return opscope__machine_fail(machine, "items are appended to what is no list but %s",
                                     opscope__item_kind_name(list));
    }
    if (count == 0) {
        return true;
    }
    struct opscope__item **grown = opscope__document_grow(
        machine->document, list->as.items, list->count, count, sizeof(struct opscope__item *));
    if (grown == NULL) {
        return false;
    }
    memcpy(grown + list->count, items, count * sizeof(struct opscope__item *));
    list->as.items = grown;
    list->count += (uint32_t)count;
    return true;
}

bool opscope__machine_append(struct opscope__machine *machine)
{
    struct opscope__item *const *items = opscope__machine_pop_many(machine, 1);
    return items != NULL && extend(machine, items, 1);
}

bool opscope__machine_appends(struct opscope__machine *machine)
{
    struct opscope__item *const *items;
    size_t count;
    return opscope__machine_pop_mark(machine, &items, &count) && extend(machine, items, count);
}

/* ---- dicts ----------------------------------------------------------------------------------- */

/* Where a dict, or what is filled as one, has its pairs; NULL: it has none. */
static struct opscope__pair **pairs_of(struct opscope__item *item)
{
    static const char module[] = "collections.";
    if (item->kind == OPSCOPE__ITEM_MAP) {
        return &item->as.pairs;
    }
    bool is_dict = item->kind == OPSCOPE__ITEM_CALL &&
                   strncmp(item->as.object->function->as.text, module, sizeof module - 1) == 0;
    return is_dict ? &item->as.object->pairs : NULL;
}

/* Keys and values in turn. */
static bool set_items(struct opscope__machine *machine, struct opscope__item *const *items,
                      size_t count)
{
    struct opscope__item *map = opscope__machine_top(machine);
    if (map == NULL) {
        return false;
    }
    struct opscope__pair **pairs = pairs_of(map);
    if (pairs == NULL) {
        return opscope__machine_fail(machine, "items are set in what is no dict but %s",
                                     opscope__item_kind_name(map));
    }
    if (count % 2 != 0) {
        return opscope__machine_fail(machine, "a key without a value");
    }
    if (count == 0) {
        return true;
    }
    struct opscope__pair *grown =
        opscope__document_grow(machine->document, *pairs, map->count, count / 2, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i += 2) {
        if (items[i]->kind == OPSCOPE__ITEM_LIST || items[i]->kind == OPSCOPE__ITEM_MAP) {
            return opscope__machine_fail(machine, "a %s is a key",
                                         opscope__item_kind_name(items[i]));
        }
        grown[map->count + i / 2] = (struct opscope__pair){items[i], items[i + 1]};
    }
    *pairs = grown;
    map->count += (uint32_t)(count / 2);
    return true;
}

bool opscope__machine_set_item(struct opscope__machine *machine)
{
    struct opscope__item *const *items = opscope__machine_pop_many(machine, 2);
    return items != NULL && set_items(machine, items, 2);
}

bool opscope__machine_set_items(struct opscope__machine *machine)
{
    struct opscope__item *const *items;
    size_t count;
    return opscope__machine_pop_mark(machine, &items, &count) && set_items(machine, items, count);
}
