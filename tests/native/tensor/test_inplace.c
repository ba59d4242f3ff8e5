/* Writes in place with a gradient: a write to a view goes through its base's history, and other
 * views follow; an unsupported write fails with the operator's name and a workaround; and hooks,
 * retained gradients and gradients of gradients. */
#include "gradients.h"

static void a_written_view_changes_its_bases_history(void)
{
    opscope_tensor *x = leaf(1, SIZES(2, 3)), *y = DO("core::mul", T(x), I(2));
    opscope_tensor *row = DO("core::select", T(y), I(0), I(0)), *turned = DO("core::t", T(y));
    opscope_tensor *same = DO("core::mul_", T(row), I(3));
    CHECK_TEXT(opscope_node_name(opscope_tensor_grad_fn(y)), "core::StridedScatterBackward");
    CHECK_TEXT(opscope_node_name(opscope_tensor_grad_fn(turned)), "core::StridedViewBackward");
    opscope_tensor *product = DO("core::mul", T(turned), T(turned)),
                   *loss = DO("core::sum", T(product));
    backward(loss);
    for (int i = 0; i < 6; i++) {
        double factor = i < 3 ? 36 : 4;
        CHECK_NEAR(at(opscope_tensor_grad(x), i), 2 * factor * at(x, i), 1e-13);
    }
    RELEASE(x, y, row, turned, same, product, loss);
}

static void a_constant_becomes_part_of_the_graph(void)
{
    opscope_tensor *z = leaf(1, SIZES(2)), *y = empty(OPSCOPE_FLOAT64, SIZES(2, 3));
    opscope_tensor_release(DO("core::fill_", T(y), I(5)));
    opscope_tensor *column = DO("core::select", T(y), I(1), I(1)),
                   *other = DO("core::select", T(y), I(1), I(0));
    CHECK(!opscope_tensor_requires_grad(y) && !opscope_tensor_requires_grad(other));
    opscope_tensor_release(DO("core::copy_", T(column), T(z)));
    CHECK(opscope_tensor_requires_grad(y) && opscope_tensor_requires_grad(other));
    opscope_tensor *square = DO("core::mul", T(y), T(y)), *loss = DO("core::sum", T(square));
    backward(loss);
    CHECK_NEAR(at(opscope_tensor_grad(z), 1), 2 * at(z, 1), 1e-14);
    RELEASE(z, y, column, other, square, loss);
}

static void an_argument_in_the_written_memory_keeps_its_value(void)
{
    opscope_tensor *x = leaf(1, SIZES(2, 2)), *y = DO("core::mul", T(x), I(1)),
                   *turned = DO("core::t", T(y));
    opscope_tensor_release(DO("core::mul_", T(y), T(turned)));
    opscope_tensor *loss = DO("core::sum", T(y));
    backward(loss);
    CHECK_NEAR(at(opscope_tensor_grad(x), 0), 2 * at(x, 0), 1e-14);
    CHECK_NEAR(at(opscope_tensor_grad(x), 1), 2 * at(x, 2), 1e-14);
    RELEASE(x, y, turned, loss);
}

static void what_a_view_cannot_do_is_refused(void)
{
    opscope_tensor *x = leaf(1, SIZES(2, 1)), *of_leaf = DO("core::select", T(x), I(0), I(0));
    CHECK_HAS(FAIL("core::exp_", T(of_leaf)),
              "core::exp_: cannot write in place to a view of a leaf");
    opscope_tensor *y = DO("core::mul", T(x), I(2)), *wide = DO("core::expand", T(y), L(2, 3));
    CHECK_HAS(FAIL("core::exp_", T(wide)),
              "share one address in memory, as after expand; clone it first");
    bool before = opscope_grad_mode_set(false);
    opscope_tensor *silent = DO("core::select", T(y), I(0), I(0));
    opscope_grad_mode_set(before);
    opscope_tensor *row = DO("core::select", T(x), I(0), I(1));
    CHECK_HAS(FAIL("core::mul_", T(silent), T(row)), "to a view created under no_grad");
    before = opscope_grad_mode_set(false);
    opscope_tensor_release(DO("core::exp_", T(of_leaf)));
    opscope_grad_mode_set(before);
    RELEASE(x, of_leaf, y, wide, silent, row);
}

static void a_saved_tensor_written_through_a_view_is_found(void)
{
    opscope_tensor *x = leaf(1, SIZES(3)), *y = DO("core::exp", T(x));
    opscope_tensor *view = DO("core::slice", T(y), I(0), I(0), I(1)),
                   *same = DO("core::mul_", T(view), I(2));
    opscope_tensor *loss = DO("core::sum", T(y));
    CHECK(opscope_backward(&loss, NULL, 1, false, false) < 0);
    CHECK_HAS(opscope_tensor_error(),
              "core::ExpBackward: a tensor of sizes [3] that it saved was changed "
              "in place since: it is at version 1, expected 0");
    RELEASE(x, y, view, same, loss);
}

/* ---- hooks, retained gradients ------------------------------------------------------------------- */

static int triple(void *user, opscope_tensor *gradient, opscope_tensor **out)
{
    ++*(int *)user;
    *out = DO("core::mul", T(gradient), I(3));
    return OPSCOPE_OK;
}

static void gone(void *user)
{
    *(int *)user += 100;
}

static void hooks_replace_gradients_and_retained_ones_come_after(void)
{
    int calls = 0;
    opscope_tensor *x = leaf(1, SIZES(3)), *y = DO("core::mul", T(x), I(2)),
                   *loss = DO("core::sum", T(y));
    opscope_hook *hook, *on_leaf;
    CHECK(opscope_tensor_register_hook(y, triple, gone, &calls, &hook) == OPSCOPE_OK);
    CHECK(opscope_tensor_register_hook(x, triple, gone, &calls, &on_leaf) == OPSCOPE_OK);
    CHECK(opscope_tensor_retain_grad(y) == OPSCOPE_OK && opscope_tensor_retains_grad(y));
    CHECK(opscope_backward(&loss, NULL, 1, true, false) == OPSCOPE_OK);
    CHECK_EQUAL(calls, 2);
    CHECK(at(opscope_tensor_grad(y), 1) == 3 && at(opscope_tensor_grad(x), 1) == 18);
    opscope_hook_remove(hook);
    opscope_hook_remove(hook);
    opscope_hook_release(hook);
    CHECK_EQUAL(calls, 102);
    backward(loss);
    CHECK_EQUAL(calls, 103);
    CHECK(at(opscope_tensor_grad(y), 1) == 4 && at(opscope_tensor_grad(x), 1) == 24);
    RELEASE(x, y, loss);
    CHECK_EQUAL(calls, 203 - 100); /* the handle still holds it */
    opscope_hook_remove(on_leaf);
    opscope_hook_release(on_leaf);
    CHECK_EQUAL(calls, 203);
    opscope_tensor *plain = numbers(1, OPSCOPE_FLOAT64, SIZES(3));
    CHECK(opscope_tensor_register_hook(plain, triple, gone, &calls, &hook) < 0);
    CHECK_HAS(opscope_tensor_error(), "does not require grad");
    CHECK(opscope_tensor_retain_grad(plain) < 0);
    CHECK_EQUAL(calls, 303);
    opscope_tensor_release(plain);
}

/* ---- gradients of gradients ----------------------------------------------------------------------- */

static void gradients_have_gradients(void)
{
    opscope_tensor *x = leaf(1, SIZES(3)), *y = DO("core::exp", T(x)),
                   *z = DO("core::mul", T(y), T(x));
    opscope_tensor *loss = DO("core::sum", T(z)), *first, *second;
    CHECK(opscope_grad(&loss, NULL, 1, &x, 1, true, true, false, &first) == OPSCOPE_OK);
    CHECK(opscope_tensor_requires_grad(first));
    opscope_tensor *sum = DO("core::sum", T(first));
    CHECK(opscope_grad(&sum, NULL, 1, &x, 1, false, false, false, &second) == OPSCOPE_OK);
    CHECK(!opscope_tensor_requires_grad(second));
    for (int i = 0; i < 3; i++) {
        double e = exp(at(x, i));
        CHECK_NEAR(at(first, i), e * (1 + at(x, i)), 1e-13);
        CHECK_NEAR(at(second, i), e * (2 + at(x, i)), 1e-13);
    }
    RELEASE(x, y, z, loss, first, second, sum);
}

static void only_what_leads_to_the_wanted_is_walked(void)
{
    opscope_tensor *x = leaf(1, SIZES(3)), *y = DO("core::exp", T(x)),
                   *loss = DO("core::sum", T(y));
    opscope_tensor *of_y, *of_x;
    CHECK(opscope_grad(&loss, NULL, 1, &y, 1, false, false, false, &of_y) == OPSCOPE_OK);
    CHECK(opscope_grad(&y, &of_y, 1, &x, 1, false, false, false, &of_x) == OPSCOPE_OK);
    CHECK_NEAR(at(of_x, 2), at(y, 2), 1e-14);
    RELEASE(x, y, loss, of_x, of_y);
}

int main(void)
{
    RUN(a_written_view_changes_its_bases_history);
    RUN(a_constant_becomes_part_of_the_graph);
    RUN(an_argument_in_the_written_memory_keeps_its_value);
    RUN(what_a_view_cannot_do_is_refused);
    RUN(a_saved_tensor_written_through_a_view_is_found);
    RUN(hooks_replace_gradients_and_retained_ones_come_after);
    RUN(gradients_have_gradients);
    RUN(only_what_leads_to_the_wanted_is_walked);
    return 0;
}
