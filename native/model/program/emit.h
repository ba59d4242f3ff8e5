/* model/program/emit.h -- a program while it is made: instructions and operands are added to it.
 *
 * Functions return 0, or the status of a failure that they have reported.
 */
#ifndef OPSCOPE_MODEL_PROGRAM_EMIT_H
#define OPSCOPE_MODEL_PROGRAM_EMIT_H

#include "model/graph/buffer.h"
#include "model/program/code.h"

struct opscope__emitter {
    struct opscope__program *program;
    struct opscope__model_graph *graph;
    const struct opscope__program_attribute *attributes; /* sorted by name */
    size_t attribute_count;
    struct opscope__graph_buffer instructions;
    struct opscope__graph_buffer operands;
    struct opscope__graph_buffer constants;
    opscope__operand *of_value; /* by the values' numbers */
    /* By the values' numbers: the node of the value's own block that uses it last, itself or by
     * its blocks; NULL: none. (last_use.c) */
    const struct opscope__graph_node **last_use;
    bool keeps_operands;
    const struct opscope__program_source *source;
    /* opscope__program_new, of functions that are forked. */
    int (*make)(const struct opscope__program_source *source, struct opscope__program **out);
    struct opscope__forked **forked; /* all functions that are forked so far */
    uint32_t *last_operand;          /* by the values' numbers: that is "last", its index + 1 */
};

/* Stands for the end of the block in `last_use`: the block returns the value. */
extern const struct opscope__graph_node opscope__block_end;

/* Finds all last uses. */
void opscope__find_last_uses(struct opscope__emitter *emitter);
/* Whether values of the type hold references, so that their last use matters. */
bool opscope__type_is_held(const struct opscope__graph_type *type);

/* A new register; or one for a value, which keeps it. */
opscope__operand opscope__emit_register(struct opscope__emitter *emitter);
void opscope__emit_value(struct opscope__emitter *emitter,
                         const struct opscope__graph_value *value);
/* Where a value is. */
opscope__operand opscope__emit_operand(const struct opscope__emitter *emitter,
                                       const struct opscope__graph_value *value);
/* A constant, whose reference the program takes, also on failure. */
int opscope__emit_constant(struct opscope__emitter *emitter, struct opscope__value value,
                           opscope__operand *out);

/* An instruction whose operands follow: its inputs, then its outputs. */
int opscope__emit_begin(struct opscope__emitter *emitter, enum opscope__code code,
                        const struct opscope__graph_node *node);
/* Before anything: also a program without operands has memory for them. */
int opscope__emit_reserve(struct opscope__emitter *emitter);
int opscope__emit_input(struct opscope__emitter *emitter, opscope__operand operand);
int opscope__emit_output(struct opscope__emitter *emitter, opscope__operand operand);
/* The instruction that was begun last. */
struct opscope__instruction *opscope__emit_last(const struct opscope__emitter *emitter);
size_t opscope__emit_count(const struct opscope__emitter *emitter);
/* Lets the instruction of that index jump to the next one. */
void opscope__emit_land(const struct opscope__emitter *emitter, size_t index);

/* An input that is a value. `is_last`: nothing after this instruction uses it; of several inputs
 * of an instruction that are the same value, the last one gives up the reference. */
int opscope__emit_used(struct opscope__emitter *emitter, const struct opscope__graph_value *value,
                       bool is_last);
/* All inputs of a node; and new registers for its outputs. */
int opscope__emit_inputs(struct opscope__emitter *emitter, const struct opscope__graph_node *node);
int opscope__emit_outputs(struct opscope__emitter *emitter, const struct opscope__graph_node *node);

#endif
