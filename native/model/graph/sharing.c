/* model/graph/sharing.c -- which values may share memory with others. */
#include "model/graph/sharing.h"

#include "model/graph/effect.h"
#include "model/graph/kind_table.h"

/* Operators that always write their result to memory of its own. Those that may return what they
 * take, or a view of it, are not here: reshape, contiguous, to, dropout, expand, ... Nor are
 * py::add and the like, because their list has the items of another. */
static const char *const fresh[] = {
    "aten::add",          "aten::sub",
    "aten::rsub",         "aten::mul",
    "aten::div",          "aten::true_divide",
    "aten::floor_divide", "aten::remainder",
    "aten::pow",          "aten::neg",
    "aten::abs",          "aten::sign",
    "aten::exp",          "aten::log",
    "aten::sqrt",         "aten::rsqrt",
    "aten::reciprocal",   "aten::sin",
    "aten::cos",          "aten::tanh",
    "aten::sigmoid",      "aten::relu",
    "aten::gelu",         "aten::silu",
    "aten::elu",          "aten::leaky_relu",
    "aten::hardtanh",     "aten::softplus",
    "aten::softmax",      "aten::log_softmax",
    "aten::matmul",       "aten::mm",
    "aten::bmm",          "aten::mv",
    "aten::dot",          "aten::addmm",
    "aten::baddbmm",      "aten::linear",
    "aten::bilinear",     "aten::conv1d",
    "aten::conv2d",       "aten::conv3d",
    "aten::embedding",    "aten::layer_norm",
    "aten::group_norm",   "aten::max_pool1d",
    "aten::max_pool2d",   "aten::avg_pool1d",
    "aten::avg_pool2d",   "aten::adaptive_avg_pool2d",
    "aten::sum",          "aten::mean",
    "aten::prod",         "aten::var",
    "aten::std",          "aten::max",
    "aten::min",          "aten::argmax",
    "aten::argmin",       "aten::any",
    "aten::all",          "aten::cumsum",
    "aten::norm",         "aten::eq",
    "aten::ne",           "aten::lt",
    "aten::le",           "aten::gt",
    "aten::ge",           "aten::logical_not",
    "aten::logical_and",  "aten::logical_or",
    "aten::where",        "aten::masked_fill",
    "aten::cat",          "aten::stack",
    "aten::clone",        "aten::zeros",
    "aten::ones",         "aten::full",
    "aten::arange",       "aten::zeros_like",
    "aten::ones_like",    "aten::full_like",
    "py::size",           "py::range",
    "py::tensor",         NULL,
};

bool opscope__graph_is_fresh(const struct opscope__graph_node *node)
{
    return opscope__graph_node_effect(node) == OPSCOPE__GRAPH_PURE &&
           opscope__graph_kind_is_in(node->kind, fresh);
}

bool opscope__graph_is_immutable(const struct opscope__graph_type *type)
{
    switch (type->kind) {
    case OPSCOPE__GRAPH_TENSOR:
    case OPSCOPE__GRAPH_LIST:
    case OPSCOPE__GRAPH_CLASS:
        return false;
    default:
        for (uint32_t i = 0; i < type->count; i++) {
            if (!opscope__graph_is_immutable(type->parts[i])) {
                return false;
            }
        }
        return true;
    }
}
