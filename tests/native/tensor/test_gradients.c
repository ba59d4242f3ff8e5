/* Every operator's backward against differences of its forward, in float64. */
#include "tensors.h"

enum { ARGUMENT_LIMIT = 6 };

struct sample {
    const char *name;
    opscope_argument arguments[ARGUMENT_LIMIT]; /* tensors as INT: an index into `shapes` */
    int tensors;                                /* the first `tensors` arguments are tensors */
    bool positive;
};

static opscope_tensor *shape_of(uint64_t seed, int which, bool positive)
{
    static const struct {
        int dims;
        int64_t sizes[4];
    } shapes[] = {{2, {3, 4}},       {1, {4}}, {2, {4, 5}}, {3, {2, 3, 4}}, {3, {2, 4, 2}},
                  {4, {2, 1, 3, 4}}, {0, {0}}, {2, {3, 1}}, {1, {5}},       {2, {5, 4}}};
    opscope_tensor *out = numbers(seed, OPSCOPE_FLOAT64, shapes[which].dims, shapes[which].sizes);
    for (int64_t i = 0; positive && i < opscope_tensor_count(out); i++) {
        put(out, i, fabs(at(out, i)) + 0.3);
    }
    return out;
}

/* The sum of the output, weighted so that no two elements count the same. */
static double weigh(const opscope_tensor *out)
{
    double sum = 0;
    for (int64_t i = 0; i < opscope_tensor_count(out); i++) {
        sum += at(out, i) * number(77, i);
    }
    return sum;
}

static size_t count_arguments(const struct sample *sample)
{
    size_t count = ARGUMENT_LIMIT;
    while (sample->arguments[count - 1].kind == OPSCOPE_ARGUMENT_NONE && count > 1) {
        count--;
    }
    return count;
}

static void check(const struct sample *sample)
{
    const double step = 1e-6;
    opscope_argument arguments[ARGUMENT_LIMIT];
    size_t count = count_arguments(sample);
    memcpy(arguments, sample->arguments, sizeof arguments);
    for (int i = 0; i < sample->tensors; i++) {
        opscope_tensor *tensor =
            shape_of((uint64_t)i + 5, (int)arguments[i].as.integer, sample->positive);
        CHECK(opscope_tensor_set_requires_grad(tensor, true) == OPSCOPE_OK);
        arguments[i] = T(tensor);
    }
    opscope_tensor *out = call(sample->name, arguments, count);
    opscope_tensor *weights =
        numbers(77, OPSCOPE_FLOAT64, opscope_tensor_dims(out), opscope_tensor_sizes(out));
    if (opscope_backward(&out, &weights, 1, false, false) != OPSCOPE_OK) {
        fprintf(stderr, "%s: %s\n", sample->name, opscope_tensor_error());
        _exit(1);
    }
    bool before = opscope_grad_mode_set(false);
    for (int i = 0; i < sample->tensors; i++) {
        opscope_tensor *tensor = arguments[i].as.tensor;
        CHECK(opscope_tensor_grad(tensor) != NULL);
        for (int64_t j = 0; j < opscope_tensor_count(tensor); j++) {
            double x = at(tensor, j), sums[2];
            for (int side = 0; side < 2; side++) {
                put(tensor, j, side == 0 ? x + step : x - step);
                opscope_tensor *again = call(sample->name, arguments, count);
                sums[side] = weigh(again);
                opscope_tensor_release(again);
            }
            put(tensor, j, x);
            double wanted = (sums[0] - sums[1]) / (2 * step);
            if (!near(at(opscope_tensor_grad(tensor), j), wanted, 1e-6)) {
                fprintf(stderr, "%s: gradient %lld of argument %d is %g, not %g\n", sample->name,
                        (long long)j, i, at(opscope_tensor_grad(tensor), j), wanted);
                _exit(1);
            }
        }
    }
    opscope_grad_mode_set(before);
    for (int i = 0; i < sample->tensors; i++) {
        opscope_tensor_release(arguments[i].as.tensor);
    }
    opscope_tensor_release(out);
    opscope_tensor_release(weights);
}

static void gradients_equal_differences(void)
{
    opscope_tensor *index = empty(OPSCOPE_INT64, SIZES(5)),
                   *classes = empty(OPSCOPE_INT64, SIZES(3));
    for (int i = 0; i < 5; i++) {
        put(index, i, i % 3 - (i == 4));
    }
    for (int i = 0; i < 3; i++) {
        put(classes, i, 3 - i);
    }
    const struct sample samples[] = {
        {"core::add", {I(0), I(1), R(0.5)}, 2, false},
        {"core::add", {I(7), I(1)}, 2, false},
        {"core::add", {I(0), R(2)}, 1, false},
        {"core::sub", {I(1), I(0), I(3)}, 2, false},
        {"core::mul", {I(0), I(1)}, 2, false},
        {"core::mul", {I(0), R(3)}, 1, false},
        {"core::mul", {I(6), I(0)}, 2, false},
        {"core::div", {I(0), I(1)}, 2, true},
        {"core::pow", {I(0), I(1)}, 2, true},
        {"core::pow", {I(0), I(2)}, 1, true},
        {"core::pow", {I(0), R(3)}, 1, false},
        {"core::maximum", {I(0), I(1)}, 2, false},
        {"core::minimum", {I(0), I(1)}, 2, false},
        {"core::clamp", {I(0), R(-0.5), R(1)}, 1, false},
        {"core::exp", {I(0)}, 1, false},
        {"core::log", {I(0)}, 1, true},
        {"core::sin", {I(0)}, 1, false},
        {"core::cos", {I(0)}, 1, false},
        {"core::tanh", {I(0)}, 1, false},
        {"core::sqrt", {I(0)}, 1, true},
        {"core::rsqrt", {I(0)}, 1, true},
        {"core::sigmoid", {I(0)}, 1, false},
        {"core::gelu", {I(0)}, 1, false},
        {"core::relu", {I(0)}, 1, false},
        {"core::abs", {I(0)}, 1, false},
        {"core::neg", {I(0)}, 1, false},
        {"core::view", {I(0), L(2, 6)}, 1, false},
        {"core::reshape", {I(3), L(4, -1)}, 1, false},
        {"core::transpose", {I(3), I(0), I(2)}, 1, false},
        {"core::permute", {I(3), L(2, 0, 1)}, 1, false},
        {"core::t", {I(0)}, 1, false},
        {"core::expand", {I(7), L(2, 3, 4)}, 1, false},
        {"core::select", {I(3), I(1), I(-1)}, 1, false},
        {"core::slice", {I(3), I(2), I(3), N, I(-2)}, 1, false},
        {"core::squeeze", {I(5)}, 1, false},
        {"core::unsqueeze", {I(0), I(1)}, 1, false},
        {"core::contiguous", {I(0)}, 1, false},
        {"core::clone", {I(0)}, 1, false},
        {"core::copy", {I(0), I(1)}, 2, false},
        {"core::sum", {I(3)}, 1, false},
        {"core::sum", {I(3), L(0, 2)}, 1, false},
        {"core::mean", {I(3), L(1), B(true)}, 1, false},
        {"core::amax", {I(3), L(1)}, 1, false},
        {"core::amin", {I(3)}, 1, false},
        {"core::prod", {I(0), L(0)}, 1, true},
        {"core::sum_to_size", {I(0), L(3, 1)}, 1, false},
        {"core::mm", {I(0), I(2)}, 2, false},
        {"core::bmm", {I(3), I(4)}, 2, false},
        {"core::matmul", {I(5), I(2)}, 2, false},
        {"core::matmul", {I(5), I(4)}, 2, false},
        {"core::matmul", {I(1), I(1)}, 2, false},
        {"core::matmul", {I(1), I(4)}, 2, false},
        {"core::matmul", {I(3), I(1)}, 2, false},
        {"core::addmm", {I(8), I(0), I(2)}, 3, false},
        {"core::linear", {I(3), I(9), I(8)}, 3, false},
        {"core::linear", {I(1), I(9)}, 2, false},
        {"core::remainder", {I(0), I(1)}, 2, true},
        {"core::softmax", {I(3), I(1)}, 1, false},
        {"core::softmax", {I(0), I(-1)}, 1, false},
        {"core::log_softmax", {I(3), I(0)}, 1, false},
        {"core::cumsum", {I(3), I(1)}, 1, false},
        {"core::var", {I(3), L(0, 2)}, 1, false},
        {"core::var", {I(0), N, I(0), B(true)}, 1, false},
        {"core::index_select", {I(3), I(1), T(index)}, 1, false},
        {"core::embedding", {I(0), T(index)}, 1, false},
        {"core::nll_loss", {I(0), T(classes)}, 1, false},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        check(&samples[i]);
    }
    opscope_tensor_release(index);
    opscope_tensor_release(classes);
}

int main(void)
{
    RUN(gradients_equal_differences);
    return 0;
}
