/* tensor/ops/elementwise/pow.c -- core::pow: powers. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

/* Squares repeatedly; wraps around. */
static int64_t integer_power(int64_t base, int64_t exponent)
{
    int64_t out = 1;
    if (exponent < 0) {
        return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
    }
    for (; exponent > 0; exponent >>= 1, base *= base) {
        out *= (exponent & 1) != 0 ? base : 1;
    }
    return out;
}

OPSCOPE__BINARY(pow_float32, float, float, powf(a, b))
OPSCOPE__BINARY(pow_float64, double, double, pow(a, b))
OPSCOPE__BINARY(pow_int32, int32_t, int32_t, integer_power(a, b))
OPSCOPE__BINARY(pow_int64, int64_t, int64_t, integer_power(a, b))
OPSCOPE__BINARY(pow_uint8, uint8_t, uint8_t, integer_power(a, b))
OPSCOPE__UNARY_NUMBERS(square, a *a)

static bool is_two(const opscope_argument *number)
{
    return (number->kind == OPSCOPE_ARGUMENT_FLOAT && number->as.real == 2) ||
           (number->kind == OPSCOPE_ARGUMENT_INT && number->as.integer == 2);
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise powers = {.loops = {OPSCOPE__NUMBER_LOOPS(pow)},
                                                       .cost = 24};
    static const struct opscope__elementwise squares = {.loops = {OPSCOPE__NUMBER_LOOPS(square)},
                                                        .cost = 1};
    if (arguments[0].kind == OPSCOPE_ARGUMENT_TENSOR && arguments[1].kind == OPSCOPE_ARGUMENT_INT &&
        arguments[1].as.integer < 0 &&
        !opscope_dtype_is_floating(opscope__dtype_of(arguments, 2, 0))) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "%s: integers (%s) to the power of %lld are fractions; use %lld.0, or a floating "
            "tensor",
            opscope__call_name(call),
            opscope_dtype_name((opscope_dtype)arguments[0].as.tensor->dtype),
            (long long)arguments[1].as.integer, (long long)arguments[1].as.integer);
    }
    /* A float exponent turns integers into floats; powers does that. */
    bool is_plain =
        arguments[0].kind == OPSCOPE_ARGUMENT_TENSOR && is_two(&arguments[1]) &&
        opscope__dtype_of(arguments, 2, 0) == (opscope_dtype)arguments[0].as.tensor->dtype;
    return is_plain ? opscope__elementwise(call, &squares, arguments, 1, NULL, 0, outputs)
                    : opscope__elementwise(call, &powers, arguments, 2, NULL, 0, outputs);
}

/* 0 to any power from 0 on has slope 0 in the exponent, although its log is -inf. */
static opscope_tensor *still_at_zero(struct opscope__formula *f, opscope_tensor *is_zero,
                                     opscope_argument exponent, opscope_tensor *slope)
{
    opscope_tensor *is_still = opscope__f(f, "ge", exponent, opscope__I(0));
    is_still = opscope__f2(f, "logical_and", is_zero, is_still);
    return opscope__f(f, "where", opscope__T(is_still), opscope__I(0), opscope__T(slope));
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_argument base = backward->arguments[0], exponent = backward->arguments[1];
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        opscope_tensor *slope;
        if (exponent.kind == OPSCOPE_ARGUMENT_TENSOR) {
            /* With exponent 0 the power is 1 for every base, including 0, where 0 * 0 ** -1 would
             * be NaN. */
            opscope_tensor *less = opscope__f(&f, "sub", exponent, opscope__I(1));
            slope = opscope__f(&f, "mul", opscope__T(opscope__f(&f, "pow", base, opscope__T(less))),
                               exponent);
            opscope_tensor *is_still = opscope__f(&f, "eq", exponent, opscope__I(0));
            slope = opscope__f(&f, "where", opscope__T(is_still), opscope__I(0), opscope__T(slope));
        } else {
            double value = exponent.kind == OPSCOPE_ARGUMENT_FLOAT ? exponent.as.real
                                                                   : (double)exponent.as.integer;
            slope = opscope__f(&f, "pow", base, opscope__R(value == 0 ? 0 : value - 1));
            slope = opscope__f(&f, "mul", opscope__T(slope), exponent);
        }
        slope = opscope__f2(&f, "mul", grad, slope);
        gradients[0] = opscope__keep(opscope__sum_to(&f, slope, backward->inputs[0]));
    }
    if (backward->wanted[1]) {
        opscope_tensor *slope;
        if (base.kind == OPSCOPE_ARGUMENT_TENSOR) {
            opscope_tensor *is_zero = opscope__f(&f, "eq", base, opscope__I(0));
            opscope_tensor *log = opscope__f(&f, "log", base);
            slope = still_at_zero(&f, is_zero, exponent,
                                  opscope__f2(&f, "mul", log, backward->saved[0]));
        } else {
            double value =
                base.kind == OPSCOPE_ARGUMENT_FLOAT ? base.as.real : (double)base.as.integer;
            slope = opscope__fr(&f, "mul", backward->saved[0], log(value));
            if (value == 0) {
                opscope_tensor *is_zero = opscope__f(&f, "eq", exponent, exponent);
                slope = still_at_zero(&f, is_zero, exponent, slope);
            }
        }
        slope = opscope__f2(&f, "mul", grad, slope);
        gradients[1] = opscope__keep(opscope__sum_to(&f, slope, backward->inputs[1]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(pow) = {
    .schema = "pow(Tensor self, Tensor exponent) -> Tensor",
    .doc = "self to the power of exponent. Sizes broadcast, dtypes promote as in PyTorch; "
           "either argument may be a number. Integers wrap around. For integers, a tensor's "
           "negative exponent gives 0 except for bases of 1 and -1, and a negative number as "
           "exponent raises ValueError. Definition: C pow.",
    .samples = "p(3, 4), 2.5\n"
               "p(3, 4), p(4)\n"
               "t(3), 2",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
    .saves_outputs = 1,
    .has_inplace = true,
    .takes_numbers = true,
};
