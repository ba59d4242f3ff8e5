/* tensor/operator.h -- what one file under ops/ says of its operator.
 *
 * Each ops/<name>.c defines one `const struct opscope__operator_spec OPSCOPE__OPERATOR(<name>)`;
 * the build collects them by file name (tensor.cmake), so adding an operator is adding a file. It
 * is compiled once for each level of CPU. The Python function, its docs, the gradient check and the
 * tests come from the spec.
 */
#ifndef OPSCOPE_TENSOR_OPERATOR_H
#define OPSCOPE_TENSOR_OPERATOR_H

#include "opscope/operator.h" /* struct opscope__call, struct opscope__backward */

struct opscope__operator_spec {
    /* PyTorch's notation: "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor". Types:
     * Tensor, Tensor?, Tensor[], int, int?, int[], int[]?, int|int[], float, float?, bool, Scalar,
     * dtype?, str. Several outputs: "-> (Tensor values, Tensor indices)"; any number of them:
     * "-> Tensor[]". The operator's name is core::<name>. */
    const char *schema;
    /* One paragraph: what it computes, shapes, errors, and the source of its definition. */
    const char *doc;
    /* Python expressions, one a line, each the arguments of a sample call: "t(3, 4), t(4),
     * alpha=2". t(...) is a float tensor of that shape, i(...) an int64 one, b(...) a bool one. */
    const char *samples;
    /* Computes; outputs are new references. Runs inside the operator's range, grad mode off. */
    int (*forward)(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs);
    /* NULL: not differentiable. Leaves one gradient for each of `inputs` (NULL where not wanted).
     * Written with operators, so that each is a range; runs with grad mode off. */
    int (*backward)(const struct opscope__backward *backward, opscope_tensor **gradients);
    uint32_t saves_inputs;  /* bit i: backward reads the data of input i */
    uint32_t saves_outputs; /* bit i: backward reads output i */
    /* Of inputs 0 to 2 that are saved: bit j, where backward reads them for the gradient of input j
     * alone; 0, for any. What no gradient needs is not kept, and may be written in place. */
    uint8_t saves_for[3];
    bool has_inplace;   /* "name_" exists: writes into the first argument; elementwise ones */
    bool is_view;       /* its output shares the storage of the first argument */
    bool takes_numbers; /* a Tensor slot takes a number too */
    bool is_composite;  /* forward is written with operators alone (formula.h), runs in the caller's
                           grad mode, and what it calls is on the tape; it has no backward */
};

#define OPSCOPE__JOIN(a, b, c) opscope__operator_##a##_##b
#define OPSCOPE__JOIN_LEVEL(name, level) OPSCOPE__JOIN(name, level, )
#define OPSCOPE__OPERATOR(name) OPSCOPE__JOIN_LEVEL(name, OPSCOPE__LEVEL)

/* For forward: the operator's name, "core::add". */
const char *opscope__call_name(const struct opscope__call *call);
/* The tensor an in-place call writes, or NULL. */
opscope_tensor *opscope__call_into(const struct opscope__call *call);
/* Of an operator "-> Tensor[]": its next output, whose reference is taken. NULL fails. */
int opscope__call_append(struct opscope__call *call, opscope_tensor *tensor);
/* Keeps a tensor for backward. Nothing where no grad is wanted. */
void opscope__call_save(struct opscope__call *call, opscope_tensor *tensor);

#endif
