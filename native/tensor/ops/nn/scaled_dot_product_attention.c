/* tensor/ops/nn/scaled_dot_product_attention.c -- core::scaled_dot_product_attention: averages
 * values by the similarity of queries and keys. */
#include <math.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int check(const char *name, const opscope_argument *arguments)
{
    const opscope_tensor *query = arguments[0].as.tensor, *key = arguments[1].as.tensor;
    const opscope_tensor *value = arguments[2].as.tensor;
    bool fits = query->dims >= 2 && key->dims >= 2 && value->dims >= 2 &&
                opscope__sizes(query)[query->dims - 1] == opscope__sizes(key)[key->dims - 1] &&
                opscope__sizes(key)[key->dims - 2] == opscope__sizes(value)[value->dims - 2];
    if (!fits) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: query %s, key %s, value %s: expected [..., queries, width], [..., keys, "
            "width], [..., keys, any]",
            name, opscope__shape_text(query).text, opscope__shape_text(key).text,
            opscope__shape_text(value).text);
    }
    if (arguments[5].as.integer != 0 && arguments[3].kind != OPSCOPE_ARGUMENT_NONE) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "%s: attn_mask is of no use with is_causal; give one of them",
                                   name);
    }
    return OPSCOPE_OK;
}

/* The weights of the keys: softmax of the scores, 0 in rows whose keys are all masked. */
static opscope_tensor *masked_shares(struct opscope__formula *f, opscope_tensor *scores,
                                     const opscope_argument *mask)
{
    if (mask->as.tensor->dtype == OPSCOPE_BOOL) {
        opscope_tensor *hidden = opscope__f(f, "logical_not", *mask);
        scores = opscope__f(f, "masked_fill", opscope__T(scores), opscope__T(hidden),
                            opscope__R(-INFINITY));
    } else {
        scores = opscope__f(f, "add", opscope__T(scores), *mask);
    }
    opscope_tensor *most = opscope__f(f, "amax", opscope__T(scores),
                                      opscope__L(((int64_t[]){-1}), 1), opscope__B(true));
    opscope_tensor *is_blind = opscope__fr(f, "eq", most, -INFINITY);
    scores = opscope__f(f, "masked_fill", opscope__T(scores), opscope__T(is_blind), opscope__I(0));
    opscope_tensor *shares = opscope__f(f, "softmax", opscope__T(scores), opscope__I(-1));
    return opscope__f(f, "masked_fill", opscope__T(shares), opscope__T(is_blind), opscope__I(0));
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    struct opscope__formula f = {0};
    opscope_tensor *query = arguments[0].as.tensor, *key = arguments[1].as.tensor, *shares;
    int status = check(opscope__call_name(call), arguments);
    if (status != OPSCOPE_OK) {
        return status;
    }
    double scale = arguments[6].kind != OPSCOPE_ARGUMENT_NONE
                       ? arguments[6].as.real
                       : 1 / sqrt((double)opscope__sizes(query)[query->dims - 1]);
    opscope_tensor *turned =
        opscope__f(&f, "transpose", opscope__T(key), opscope__I(-2), opscope__I(-1));
    opscope_tensor *scores =
        opscope__f2(&f, "matmul", opscope__fr(&f, "mul", query, scale), turned);
    if (arguments[3].kind != OPSCOPE_ARGUMENT_NONE) {
        shares = masked_shares(&f, scores, &arguments[3]);
    } else {
        if (arguments[5].as.integer != 0) {
            int64_t sizes[] = {opscope__sizes(query)[query->dims - 2],
                               opscope__sizes(key)[key->dims - 2]};
            opscope_tensor *later =
                opscope__f(&f, "ones", opscope__L(sizes, 2), opscope__I(OPSCOPE_BOOL));
            later = opscope__f(&f, "triu", opscope__T(later), opscope__I(1));
            scores = opscope__f(&f, "masked_fill", opscope__T(scores), opscope__T(later),
                                opscope__R(-INFINITY));
        }
        shares = opscope__f(&f, "softmax", opscope__T(scores), opscope__I(-1));
    }
    if (arguments[4].as.real != 0) {
        shares = opscope__f(&f, "dropout", opscope__T(shares), arguments[4], opscope__B(true));
    }
    outputs[0] = opscope__keep(opscope__f(&f, "matmul", opscope__T(shares), arguments[2]));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(scaled_dot_product_attention) = {
    .schema =
        "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
        "float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> Tensor",
    .doc = "softmax(query @ key.T * scale) @ value: [..., queries, width], [..., keys, width] "
           "and [..., keys, n] give [..., queries, n]. attn_mask broadcasts to [..., queries, "
           "keys]: floats are added to the scores, and with bools only keys that are true take "
           "part. With is_causal, query i uses keys up to i. By default scale is 1 / "
           "sqrt(width). Definition: Vaswani et al. 2017. @s \"%s: attn_mask is of no use with "
           "is_causal; give one of them\" @t \"%s: attn_mask and is_causal exclude each other\"",
    .samples = "t(2, 3, 4), t(2, 5, 4), t(2, 5, 6)\n"
               "t(2, 2, 3, 4), t(2, 2, 3, 4), t(2, 2, 3, 4), is_causal=True, scale=0.3\n"
               "t(3, 4), t(5, 4), t(5, 4), t(3, 5)\n"
               "t(3, 4), t(3, 4), t(3, 4), b(3, 3)",
    .forward = forward,
    .is_composite = true,
};
