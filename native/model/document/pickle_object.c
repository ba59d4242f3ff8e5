/* model/document/pickle_object.c -- globals and objects of a pickle, which stay descriptions. */
#include <stdio.h>
#include <string.h>

#include "model/document/pickle.h"
#include "model/document/pickle_machine.h"

enum { NAME_BYTES = 500 };

/* ---- globals --------------------------------------------------------------------------------- */

static bool has_allowed_prefix(const struct opscope__machine *machine, const char *name)
{
    const char *const *prefix = machine->globals->prefixes;
    while (prefix != NULL && *prefix != NULL && strncmp(name, *prefix, strlen(*prefix)) != 0) {
        prefix++;
    }
    return prefix != NULL && *prefix != NULL;
}

static bool is_allowed(const struct opscope__machine *machine, const char *name)
{
    const char *const *known = machine->globals->names;
    while (known != NULL && *known != NULL && strcmp(name, *known) != 0) {
        known++;
    }
    return (known != NULL && *known != NULL) || has_allowed_prefix(machine, name);
}

/* Pushes nothing. NULL: not allowed, reported. */
static struct opscope__item *make_global(struct opscope__machine *machine, const char *name)
{
    size_t bytes = strlen(name), bad;
    if (!opscope__utf8_check((const uint8_t *)name, bytes, &bad) || !is_allowed(machine, name)) {
        opscope__machine_fail(machine, "%s is not among the globals that are read",
                              opscope__printable(name, bytes).text);
        return NULL;
    }
    return opscope__item_new_text(machine->document, OPSCOPE__ITEM_GLOBAL, name, bytes,
                                  machine->opcode_offset);
}

/* The bytes up to the end of the line, which it takes too. */
static bool take_line(struct opscope__machine *machine, const char **line, int *bytes)
{
    size_t left = (size_t)(machine->end - machine->at);
    const uint8_t *end = left > 0 ? memchr(machine->at, '\n', left) : NULL;
    if (end == NULL) {
        return opscope__machine_fail(machine, "the name of a global has no end");
    }
    *line = (const char *)machine->at;
    *bytes = (int)(end - machine->at);
    machine->at = end + 1;
    if (*bytes > NAME_BYTES || memchr(*line, '\0', (size_t)*bytes) != NULL) {
        return opscope__machine_fail(machine, "%s is no name of a global",
                                     opscope__printable(*line, (size_t)*bytes).text);
    }
    return true;
}

bool opscope__machine_global(struct opscope__machine *machine)
{
    static const char old[] = "__builtin__";
    const char *module, *name;
    int module_bytes, name_bytes;
    char whole[2 * NAME_BYTES + 2];
    if (!take_line(machine, &module, &module_bytes) || !take_line(machine, &name, &name_bytes)) {
        return false;
    }
    if (module_bytes == sizeof old - 1 && memcmp(module, old, sizeof old - 1) == 0) {
        module = "builtins";
        module_bytes = sizeof "builtins" - 1;
    }
    snprintf(whole, sizeof whole, "%.*s.%.*s", module_bytes, module, name_bytes, name);
    return opscope__machine_push(machine, make_global(machine, whole));
}

/* ---- objects --------------------------------------------------------------------------------- */

static bool push_object(struct opscope__machine *machine, struct opscope__item *function,
                        struct opscope__item *arguments)
{
    struct opscope__item *item =
        opscope__item_new(machine->document, OPSCOPE__ITEM_CALL, machine->opcode_offset);
    struct opscope__object *object =
        item != NULL ? opscope__document_memory(machine->document, sizeof *object) : NULL;
    if (object == NULL) {
        return false;
    }
    *object = (struct opscope__object){.function = function, .arguments = arguments};
    item->as.object = object;
    return opscope__machine_push(machine, item);
}

bool opscope__machine_empty_set(struct opscope__machine *machine)
{
    if (machine->set == NULL) {
        machine->set = make_global(machine, "builtins.set");
    }
    return machine->set != NULL && push_object(machine, machine->set, &opscope__item_empty_tuple);
}

bool opscope__machine_call(struct opscope__machine *machine)
{
    struct opscope__item *const *items = opscope__machine_pop_many(machine, 2);
    if (items == NULL) {
        return false;
    }
    struct opscope__item *function = items[0], *arguments = items[1];
    if (function->kind != OPSCOPE__ITEM_GLOBAL) {
        return opscope__machine_fail(machine, "a call of what is no global but %s",
                                     opscope__item_kind_name(function));
    }
    /* TorchScript writes an enum as a call of its class with the plain value. */
    if (arguments->kind != OPSCOPE__ITEM_TUPLE && !has_allowed_prefix(machine, function->as.text)) {
        return opscope__machine_fail(machine, "arguments that are no tuple but %s",
                                     opscope__item_kind_name(arguments));
    }
    return push_object(machine, function, arguments);
}

bool opscope__machine_build(struct opscope__machine *machine)
{
    struct opscope__item *state = opscope__machine_pop(machine);
    struct opscope__item *item = state != NULL ? opscope__machine_top(machine) : NULL;
    if (item == NULL) {
        return false;
    }
    if (item->kind != OPSCOPE__ITEM_CALL) {
        return opscope__machine_fail(machine, "a state for what is no object but %s",
                                     opscope__item_kind_name(item));
    }
    if (item->as.object->state != NULL) {
        return opscope__machine_fail(machine, "a second state for one object");
    }
    item->as.object->state = state;
    return true;
}

bool opscope__machine_persistent(struct opscope__machine *machine)
{
    struct opscope__item *id = opscope__machine_pop(machine);
    struct opscope__item *item =
        id != NULL
            ? opscope__item_new(machine->document, OPSCOPE__ITEM_PERSISTENT, machine->opcode_offset)
            : NULL;
    if (item != NULL) {
        item->as.id = id;
    }
    return opscope__machine_push(machine, item);
}
