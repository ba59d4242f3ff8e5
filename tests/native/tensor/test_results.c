/* Destinations of results: lists of any length, tensors of the caller's, composites and their
 * tapes. */
#include "tensors.h"

static opscope_tensor_list list_of(const char *name, const opscope_argument *arguments,
                                   size_t count)
{
    opscope_tensor_list list = {NULL, 0};
    CHECK(opscope_call_list(opscope_operator_find(name), arguments, count, &list) == OPSCOPE_OK);
    return list;
}

static void split_gives_as_many_views_as_there_are_pieces(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(1001, 2));
    opscope_tensor_list list = list_of("core::split", (opscope_argument[]){T(a), I(3)}, 2);
    CHECK_EQUAL(list.count, 334);
    for (size_t i = 0; i < list.count; i++) {
        CHECK(opscope_tensor_storage_data(list.tensors[i]) == opscope_tensor_storage_data(a));
        CHECK_EQUAL(opscope_tensor_sizes(list.tensors[i])[0], i < 333 ? 3 : 2);
        CHECK_NEAR(at(list.tensors[i], 1), at(a, (int64_t)i * 6 + 1), 0);
    }
    opscope_tensor_list_release(&list);
    CHECK_EQUAL(list.count, 0);
    CHECK(list.tensors == NULL);
    opscope_tensor_release(a);
}

static void list_is_asked_for_as_a_list_and_nothing_else_is(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(4, 2));
    opscope_tensor_list list = {NULL, 0};
    CHECK_HAS(FAIL("core::unbind", T(a)), "core::unbind: gives a list");
    CHECK(opscope_call_list(opscope_operator_find("core::exp"), &T(a), 1, &list) < 0);
    CHECK_HAS(opscope_tensor_error(), "core::exp: gives no list");
    CHECK(opscope_call_list(opscope_operator_find("core::split"),
                            (opscope_argument[]){T(a), L(3, 2)}, 2, &list) < 0);
    CHECK_HAS(opscope_tensor_error(), "core::split: sizes [3, 2] do not sum to 4");
    CHECK(list.tensors == NULL);
    opscope_tensor_release(a);
}

static void list_carries_gradients_of_each_piece(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT64, SIZES(3, 2));
    opscope_tensor_set_requires_grad(a, true);
    opscope_tensor_list list = list_of("core::unbind", (opscope_argument[]){T(a), I(0)}, 2);
    opscope_tensor *product = DO("core::mul", T(list.tensors[0]), T(list.tensors[2]));
    opscope_tensor *sum = DO("core::sum", T(product));
    CHECK(opscope_backward(&sum, NULL, 1, false, false) == OPSCOPE_OK);
    opscope_tensor *grad = opscope_tensor_grad(a);
    for (int64_t i = 0; i < 2; i++) {
        CHECK_NEAR(at(grad, i), at(a, 4 + i), 1e-12);
        CHECK_NEAR(at(grad, 2 + i), 0, 0);
        CHECK_NEAR(at(grad, 4 + i), at(a, i), 1e-12);
    }
    opscope_tensor_list_release(&list);
    opscope_tensor_release(product);
    opscope_tensor_release(sum);
    opscope_tensor_release(a);
}

static int call_out(const char *name, const opscope_argument *arguments, size_t count,
                    opscope_tensor **into)
{
    return opscope_call_out(opscope_operator_find(name), arguments, count, into);
}

static void results_are_written_where_the_caller_wants_them(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(3, 4)),
                   *b = numbers(2, OPSCOPE_FLOAT32, SIZES(3, 4));
    opscope_tensor *out = empty(OPSCOPE_FLOAT64, SIZES(3, 4)), *kept = out;
    CHECK(call_out("core::add", (opscope_argument[]){T(a), T(b)}, 2, &out) == OPSCOPE_OK);
    CHECK(out == kept);
    for (int64_t i = 0; i < 12; i++) {
        CHECK_NEAR(at(out, i), (float)(at(a, i) + at(b, i)), 1e-6);
    }
    uint64_t version = opscope_tensor_version(a);
    opscope_tensor *target = a;
    double first = at(a, 0) * at(b, 0);
    CHECK(call_out("core::mul", (opscope_argument[]){T(a), T(b)}, 2, &target) == OPSCOPE_OK);
    CHECK_EQUAL(opscope_tensor_version(a), version + 1);
    CHECK_NEAR(at(a, 0), first, 1e-6);

    opscope_tensor *nothing = empty(OPSCOPE_FLOAT32, SIZES(0));
    CHECK(call_out("core::sum", (opscope_argument[]){T(b), L(1)}, 2, &nothing) == OPSCOPE_OK);
    CHECK_SIZES(nothing, 3);

    opscope_tensor *both[] = {empty(OPSCOPE_FLOAT32, SIZES(3, 4)), empty(OPSCOPE_INT64, SIZES(0))};
    CHECK(call_out("core::sort", (opscope_argument[]){T(b), I(1)}, 2, both) == OPSCOPE_OK);
    CHECK(at(both[0], 0) <= at(both[0], 1));
    CHECK_SIZES(both[1], 3, 4);

    CHECK(call_out("core::sum", (opscope_argument[]){T(b), L(1)}, 2, &out) < 0);
    CHECK_HAS(opscope_tensor_error(), "core::sum: the result has sizes [3], but out has [3, 4]");
    CHECK(call_out("core::t", (opscope_argument[]){T(b)}, 1, &out) < 0);
    CHECK_HAS(opscope_tensor_error(), "core::t: its result shares memory with its argument");

    /* A gradient's operator is on the tape as well, although it has no backward. */
    CHECK(opscope_tensor_set_requires_grad(b, true) == OPSCOPE_OK);
    opscope_tensor *gradient = b;
    CHECK(call_out("core::prod_backward", (opscope_argument[]){T(b), T(b)}, 2, &gradient) < 0);
    CHECK_HAS(opscope_tensor_error(), "core::prod_backward: out= does not support gradients");
    opscope_tensor_release(a);
    opscope_tensor_release(b);
    opscope_tensor_release(out);
    opscope_tensor_release(nothing);
    opscope_tensor_release(both[0]);
    opscope_tensor_release(both[1]);
}

static void composite_in_place_keeps_its_tape(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT64, SIZES(3)),
                   *b = numbers(2, OPSCOPE_FLOAT64, SIZES(3));
    opscope_tensor_set_requires_grad(a, true);
    opscope_tensor *copy = DO("core::mul", T(a), R(1));
    opscope_tensor *same = DO("core::addcmul_", T(copy), T(b), T(b), R(2));
    CHECK(same == copy);
    opscope_tensor *sum = DO("core::sum", T(same));
    CHECK(opscope_backward(&sum, NULL, 1, false, false) == OPSCOPE_OK);
    for (int64_t i = 0; i < 3; i++) {
        CHECK_NEAR(at(copy, i), at(a, i) + 2 * at(b, i) * at(b, i), 1e-12);
        CHECK_NEAR(at(opscope_tensor_grad(a), i), 1, 0);
    }
    opscope_tensor_release(sum);
    opscope_tensor_release(same);
    opscope_tensor_release(copy);
    opscope_tensor_release(a);
    opscope_tensor_release(b);
}

int main(void)
{
    split_gives_as_many_views_as_there_are_pieces();
    list_is_asked_for_as_a_list_and_nothing_else_is();
    list_carries_gradients_of_each_piece();
    results_are_written_where_the_caller_wants_them();
    composite_in_place_keeps_its_tape();
    return 0;
}
