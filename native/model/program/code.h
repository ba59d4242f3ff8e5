/* model/program/code.h -- a program as its interpreter reads it.
 *
 * A flat array of instructions over registers, which hold one value each. An operand is a register
 * or a constant. Its last use gives up the register's reference: "last" is set where the value is
 * not used any more afterwards, whichever way the program takes.
 */
#ifndef OPSCOPE_MODEL_PROGRAM_CODE_H
#define OPSCOPE_MODEL_PROGRAM_CODE_H

#include "model/program/kinds/kinds.h"
#include "model/program/program.h"

enum opscope__code {
    OPSCOPE__CODE_CALL,        /* an operator: as.call */
    OPSCOPE__CODE_FUSED,       /* operators in one pass: as.fused; jumps over them if it could */
    OPSCOPE__CODE_KIND,        /* a kind py::NAME: as.function */
    OPSCOPE__CODE_MOVE,        /* an input to an output */
    OPSCOPE__CODE_JUMP,        /* to as.target */
    OPSCOPE__CODE_JUMP_UNLESS, /* if the input is false */
    OPSCOPE__CODE_LOOP,        /* most rounds, condition -> rounds so far, round; or jumps */
    OPSCOPE__CODE_DROP,        /* gives up its inputs */
    OPSCOPE__CODE_COPY,        /* a new list equal to a constant one */
    OPSCOPE__CODE_LIST,
    OPSCOPE__CODE_TUPLE,
    OPSCOPE__CODE_UNPACK, /* the items of a list or tuple */
    OPSCOPE__CODE_PART,   /* the item as.target of a tuple */
    OPSCOPE__CODE_UNWRAP,
    OPSCOPE__CODE_RAISE,
    OPSCOPE__CODE_PRINT,
    OPSCOPE__CODE_FORK, /* as.forked, with the inputs */
    OPSCOPE__CODE_WAIT,
    OPSCOPE__CODE_RETURN /* its inputs are the results */
};

typedef uint32_t opscope__operand;
enum { OPSCOPE__OPERAND_INDEX_LIMIT = 1 << 30 };
#define OPSCOPE__OPERAND_CONSTANT (UINT32_C(1) << 31)
#define OPSCOPE__OPERAND_LAST (UINT32_C(1) << 30)
#define OPSCOPE__OPERAND_INDEX (OPSCOPE__OPERAND_LAST - 1)

/* An argument that a value of the run becomes. */
struct opscope__given {
    uint8_t argument; /* its index */
    uint8_t type;     /* enum opscope__type, of the parameter */
    uint8_t length;   /* of a parameter int[N]; else 0 */
};

/* A call of an operator: its arguments, of which constants are complete already. */
struct opscope__call_plan {
    const opscope_operator *op;
    uint8_t argument_count; /* all, defaults included */
    uint8_t shown_count;    /* those that the graph gives */
    uint8_t output_count;
    uint8_t given_count; /* the inputs of the instruction */
    bool is_list;        /* it returns a list */
    bool takes_spare;    /* its result may take the memory of an input */
    struct opscope__given given[OPSCOPE_ARGUMENT_LIMIT];
    opscope_argument arguments[OPSCOPE_ARGUMENT_LIMIT];
    void *memory[OPSCOPE_ARGUMENT_LIMIT]; /* of constant lists; owned */
};

struct opscope__fused_jump {
    struct opscope__fused_call *call;
    uint32_t target;
    uint32_t spares; /* bits: the inputs that are used for the last time */
};

struct opscope__instruction {
    uint8_t code; /* enum opscope__code */
    uint32_t input_count;
    uint32_t output_count;
    uint32_t first; /* among the operands: inputs, then outputs */
    union {
        struct opscope__call_plan *call;
        struct opscope__fused_jump *fused;
        opscope__kind_function *function;
        const struct opscope__program *forked;
        uint32_t target;
    } as;
    const struct opscope__graph_node *node; /* for failures; NULL: the program's own */
};

/* The program of a function that is forked. */
struct opscope__forked {
    struct opscope__forked *next;
    struct opscope__program *program; /* owned */
    char name[];
};

struct opscope__program {
    struct opscope__model_graph *graph; /* has the types, and the nodes of failures */
    struct opscope__instruction *instructions;
    size_t instruction_count;
    opscope__operand *operands;
    struct opscope__value *constants;
    size_t constant_count;
    struct opscope__heap heap;      /* of constant lists */
    uint32_t register_count;        /* the first ones are the inputs */
    struct opscope__forked *forked; /* owned; of a program that is forked itself, empty */
};

#endif
