/* model/document/pickle.c -- a pickle as a document: the opcodes, one after another. */
#include "model/document/pickle.h"

#include <stdlib.h>

#include "model/document/pickle_machine.h"
#include "opscope/status.h"

/* By the letters of the format: `python -m pickletools` prints a pickle with these names. */
enum opcode {
    APPEND = 'a',
    APPENDS = 'e',
    BINBYTES = 'B',
    BINFLOAT = 'G',
    BINGET = 'h',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    BINPERSID = 'Q',
    BINPUT = 'q',
    BINUNICODE = 'X',
    BUILD = 'b',
    EMPTY_DICT = '}',
    EMPTY_LIST = ']',
    EMPTY_SET = 0x8f,
    EMPTY_TUPLE = ')',
    FRAME = 0x95,
    GLOBAL = 'c',
    LONG1 = 0x8a,
    LONG_BINGET = 'j',
    LONG_BINPUT = 'r',
    MARK = '(',
    MEMOIZE = 0x94,
    NEWFALSE = 0x89,
    NEWOBJ = 0x81,
    NEWTRUE = 0x88,
    NONE = 'N',
    PROTO = 0x80,
    REDUCE = 'R',
    SETITEM = 's',
    SETITEMS = 'u',
    SHORT_BINBYTES = 'C',
    SHORT_BINSTRING = 'U',
    SHORT_BINUNICODE = 0x8c,
    STOP = '.',
    TUPLE = 't',
    TUPLE1 = 0x85,
    TUPLE2 = 0x86,
    TUPLE3 = 0x87
};

static bool push_empty(struct opscope__machine *machine, enum opscope__item_kind kind)
{
    return opscope__machine_push(
        machine, opscope__item_new(machine->document, kind, machine->opcode_offset));
}

static bool refuse(struct opscope__machine *machine, uint8_t opcode)
{
    if (opcode == FRAME || opcode == MEMOIZE || opcode == SHORT_BINUNICODE) {
        return opscope__machine_fail(
            machine, "opcode 0x%02x of pickle protocol 4: save with protocol 2", opcode);
    }
    return opscope__machine_fail(machine, "opcode 0x%02x is not among those that are read", opcode);
}

static bool step(struct opscope__machine *machine, uint8_t opcode)
{
    switch (opcode) {
    case NONE:
        return opscope__machine_push(machine, &opscope__item_none);
    case NEWTRUE:
        return opscope__machine_push(machine, &opscope__item_true);
    case NEWFALSE:
        return opscope__machine_push(machine, &opscope__item_false);
    case BININT1:
        return opscope__machine_int(machine, 1);
    case BININT2:
        return opscope__machine_int(machine, 2);
    case BININT:
        return opscope__machine_int(machine, 4);
    case LONG1:
        return opscope__machine_long(machine);
    case BINFLOAT:
        return opscope__machine_float(machine);
    case BINUNICODE:
        return opscope__machine_text(machine, OPSCOPE__ITEM_TEXT, 4);
    case SHORT_BINSTRING: /* Python 2's str; PyTorch reads it as UTF-8 */
        return opscope__machine_text(machine, OPSCOPE__ITEM_TEXT, 1);
    case SHORT_BINBYTES:
        return opscope__machine_text(machine, OPSCOPE__ITEM_BYTES, 1);
    case BINBYTES:
        return opscope__machine_text(machine, OPSCOPE__ITEM_BYTES, 4);
    case EMPTY_TUPLE:
        return opscope__machine_push(machine, &opscope__item_empty_tuple);
    case TUPLE1:
    case TUPLE2:
    case TUPLE3:
        return opscope__machine_tuple(machine, (size_t)(opcode - TUPLE1 + 1));
    case TUPLE:
        return opscope__machine_tuple_from_mark(machine);
    case EMPTY_LIST:
        return push_empty(machine, OPSCOPE__ITEM_LIST);
    case APPEND:
        return opscope__machine_append(machine);
    case APPENDS:
        return opscope__machine_appends(machine);
    case EMPTY_DICT:
        return push_empty(machine, OPSCOPE__ITEM_MAP);
    case SETITEM:
        return opscope__machine_set_item(machine);
    case SETITEMS:
        return opscope__machine_set_items(machine);
    case EMPTY_SET:
        return opscope__machine_empty_set(machine);
    case GLOBAL:
        return opscope__machine_global(machine);
    case REDUCE:
    case NEWOBJ:
        return opscope__machine_call(machine);
    case BUILD:
        return opscope__machine_build(machine);
    case BINPERSID:
        return opscope__machine_persistent(machine);
    case MARK:
        return opscope__machine_mark(machine);
    case BINPUT:
        return opscope__machine_put(machine, 1);
    case LONG_BINPUT:
        return opscope__machine_put(machine, 4);
    case BINGET:
        return opscope__machine_get(machine, 1);
    case LONG_BINGET:
        return opscope__machine_get(machine, 4);
    default:
        return refuse(machine, opcode);
    }
}

static bool take_header(struct opscope__machine *machine)
{
    uint32_t opcode, protocol;
    if (!opscope__machine_take_number(machine, 1, &opcode)) {
        return false;
    }
    if (opcode != PROTO) {
        return opscope__machine_fail(machine, "not a pickle: it begins with 0x%02x", opcode);
    }
    if (!opscope__machine_take_number(machine, 1, &protocol)) {
        return false;
    }
    return protocol == 2 || protocol == 3 ||
           opscope__machine_fail(machine, "pickle protocol %u: save with protocol 2", protocol);
}

/* All opcodes up to STOP; NULL: reported. */
static struct opscope__item *run(struct opscope__machine *machine)
{
    if (!take_header(machine)) {
        return NULL;
    }
    for (;;) {
        uint32_t opcode;
        machine->opcode_offset = (size_t)(machine->at - machine->start);
        if (machine->at == machine->end) {
            opscope__machine_fail(machine, "the pickle ends without STOP");
            return NULL;
        }
        opcode = *machine->at++;
        if (opcode == STOP) {
            break;
        }
        if (!step(machine, (uint8_t)opcode)) {
            return NULL;
        }
    }
    struct opscope__item *root = opscope__machine_pop(machine);
    if (root != NULL && (machine->stack.count != 0 || machine->mark_count != 0)) {
        opscope__machine_fail(machine, "STOP with %zu items and %zu marks left",
                              machine->stack.count, machine->mark_count);
        return NULL;
    }
    return root;
}

int opscope__pickle_parse(const void *bytes, size_t size,
                          const struct opscope__pickle_globals *globals,
                          struct opscope__document **out)
{
    const uint8_t *start = size > 0 ? bytes : (const uint8_t *)"";
    struct opscope__document *document = opscope__document_new(size);
    if (document == NULL) {
        return opscope__document_failed();
    }
    struct opscope__machine machine = {
        .document = document, .globals = globals, .start = start, .at = start, .end = start + size};
    struct opscope__item *root = run(&machine);
    int status = root == NULL ? opscope__document_failed()
                              : opscope__document_finish(document, root,
                                                         (size_t)(machine.at - machine.start));
    opscope__stack_free(&machine.stack);
    opscope__stack_free(&machine.memo);
    free(machine.marks);
    if (status < 0) {
        opscope__document_release(document);
        return status;
    }
    *out = document;
    return OPSCOPE_OK;
}
