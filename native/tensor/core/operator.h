/* tensor/core/operator.h -- the spec of an operator, which one file under ops/ defines.
 *
 * Each ops/<group>/<name>.c defines one `const struct opscope__operator_spec
 * OPSCOPE__OPERATOR(<name>)`; the build collects them by file name (tensor.cmake), so adding an
 * operator is adding a file. The build compiles it once for each CPU level. The spec also yields
 * the Python function, its docs, the gradient check and the tests.
 */
#ifndef OPSCOPE_TENSOR_CORE_OPERATOR_H
#define OPSCOPE_TENSOR_CORE_OPERATOR_H

#include "opscope/operator.h" /* struct opscope__call, struct opscope__backward */

/* A loop over elements: `count` elements of each operand, strides in bytes. */
typedef void (*opscope__loop)(char *const *data, const int64_t *strides, int64_t count, void *user);

/* The loops of an operator that computes each element from the operands' elements at the same
 * position. */
struct opscope__elementwise {
    uint8_t operands;                         /* of an operator that is this one pass: its first */
    uint8_t numbers;                          /* arguments are the operands, then the numbers */
    opscope__loop loops[OPSCOPE_DTYPE_COUNT]; /* by the dtype of the computation; NULL: not
                                                 supported. Operand 0 is the output */
    int64_t cost;                             /* of an element, in additions */
    uint32_t apart;    /* bit i: operand i is bool and does not affect the dtype */
    bool gives_bool;   /* the output's dtype is bool, not that of the computation */
    bool needs_floats; /* integers are computed in float32 */
};

struct opscope__operator_spec {
    /* PyTorch's notation: "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor". Types:
     * Tensor, Tensor?, Tensor[], int, int?, int[], int[]?, int|int[], float, float?, bool, Scalar,
     * dtype?, str. Several outputs: "-> (Tensor values, Tensor indices)"; any number of them:
     * "-> Tensor[]". The operator's name is core::<name>. */
    const char *schema;
    /* One paragraph: the computation, shapes, errors, and the source of the definition. */
    const char *doc;
    /* Python expressions, one a line, each the arguments of a sample call: "t(3, 4), t(4),
     * alpha=2". t(...) is a float tensor of that shape, i(...) an int64 one, b(...) a bool one. */
    const char *samples;
    /* Computes the outputs as new references. Runs inside the operator's range, grad mode off. */
    int (*forward)(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs);
    /* NULL: not differentiable. Stores one gradient for each of `inputs` (NULL if not wanted).
     * Calls operators, so that each is a range; runs with grad mode off. */
    int (*backward)(const struct opscope__backward *backward, opscope_tensor **gradients);
    uint32_t saves_inputs;  /* bit i: backward reads the data of input i */
    uint32_t saves_outputs; /* bit i: backward reads output i */
    /* For each saved input 0 to 2: bit j if backward reads it only for the gradient of input j; 0:
     * for any. An input that no wanted gradient needs is not saved, and may be written in place. */
    uint8_t saves_for[3];
    bool has_inplace;   /* "name_" exists and writes into the first argument; for elementwise
                           operators */
    bool is_view;       /* its output shares the storage of the first argument */
    bool takes_numbers; /* a Tensor parameter also takes a number */
    const struct opscope__elementwise
        *elementwise;  /* the loops of an operator that is one pass over
                          its operands' elements,
                          which can be fused with others; else NULL */
    bool is_composite; /* forward only calls operators (formula.h), in the caller's grad mode, and
                          the tape records them; it has no backward */
};

#define OPSCOPE__JOIN(a, b, c) opscope__operator_##a##_##b
#define OPSCOPE__JOIN_LEVEL(name, level) OPSCOPE__JOIN(name, level, )
#define OPSCOPE__OPERATOR(name) OPSCOPE__JOIN_LEVEL(name, OPSCOPE__LEVEL)

/* The operator's name, "core::add"; for forward. */
const char *opscope__call_name(const struct opscope__call *call);
/* The tensor that an in-place call writes, or NULL. */
opscope_tensor *opscope__call_into(const struct opscope__call *call);
/* For an operator "-> Tensor[]": appends an output and takes its reference. Fails for NULL. */
int opscope__call_append(struct opscope__call *call, opscope_tensor *tensor);
/* Keeps a tensor for backward; does nothing if the call needs no grad. */
void opscope__call_save(struct opscope__call *call, opscope_tensor *tensor);

#endif
