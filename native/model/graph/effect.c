/* model/graph/effect.c -- what running a node does besides producing its outputs. */
#include "model/graph/effect.h"

#include <string.h>

#include "model/graph/kind_table.h"

/* Functions with dropout are here because it takes random numbers; clocks, because they differ each
 * time. */
static const char *const outside[] = {
    "prim::Print",
    "prim::RaiseException",
    "aten::warn",
    "aten::manual_seed",
    "aten::seed",
    "prim::TimePoint",
    "aten::rand",
    "aten::rand_like",
    "aten::randn",
    "aten::randn_like",
    "aten::randint",
    "aten::randint_like",
    "aten::randperm",
    "aten::normal",
    "aten::uniform",
    "aten::bernoulli",
    "aten::binomial",
    "aten::poisson",
    "aten::multinomial",
    "aten::rrelu",
    "aten::dropout",
    "aten::native_dropout",
    "aten::alpha_dropout",
    "aten::feature_dropout",
    "aten::feature_alpha_dropout",
    "aten::scaled_dot_product_attention",
    NULL,
};

/* Of Python's operations, those that raise for some values of the right types. A program may be
 * written to raise there, so they stay, used or not. Overflow does not count: Python's integers
 * have none. */
static const char *const raising[] = {
    "prim::Unwrap", "py::floordiv", "py::mod",  "py::truediv", "py::pow",  "py::getitem",
    "py::slice",    "py::range",    "py::int",  "py::float",   "py::bool", "py::round",
    "py::floor",    "py::ceil",     "py::sqrt", "py::log",     "py::exp",  "py::lshift",
    "py::rshift",   "py::tensor",   "py::item", "py::size",    "py::len",  NULL,
};

/* Operators on lists and dictionaries, calls of unknown code, and running averages of norms. */
static const char *const changing[] = {
    "prim::SetAttr",
    "prim::CallMethod",
    "prim::CallFunction",
    "prim::PythonOp",
    "prim::Enter",
    "prim::Exit",
    "prim::fork",
    "prim::Fork",
    "prim::Wait",
    "aten::wait",
    "aten::append",
    "aten::extend",
    "aten::insert",
    "aten::pop",
    "aten::popitem",
    "aten::setdefault",
    "aten::update",
    "aten::remove",
    "aten::clear",
    "aten::Delete",
    "aten::_set_item",
    "aten::__setitem__",
    "aten::__delitem__",
    "aten::__iadd__",
    "aten::__isub__",
    "aten::__imul__",
    "aten::__idiv__",
    "aten::__itruediv__",
    "aten::__ifloordiv__",
    "aten::__imod__",
    "aten::__ipow__",
    "aten::__imatmul__",
    "aten::__iand__",
    "aten::__ior__",
    "aten::__ixor__",
    "aten::__ilshift__",
    "aten::__irshift__",
    "aten::batch_norm",
    "aten::native_batch_norm",
    "aten::cudnn_batch_norm",
    "aten::instance_norm",
    "aten::rrelu_with_noise",
    "py::append",
    "py::clear",
    "py::extend",
    "py::insert",
    "py::pop",
    "py::reverse",
    "py::setitem",
    NULL,
};

static bool ends_with(const char *text, size_t bytes, const char *end)
{
    size_t length = strlen(end);
    return bytes >= length && memcmp(text + bytes - length, end, length) == 0;
}

/* "aten::add_", "aten::add.out", "aten::sum_out"; not "aten::__and__". */
static bool writes_by_name(const char *kind)
{
    const char *name = strstr(kind, "::") + 2;
    size_t bytes = strcspn(name, ".");
    bool is_special = strncmp(name, "__", 2) == 0 && ends_with(name, bytes, "__");
    return (name[bytes - (bytes > 0)] == '_' && !is_special) || ends_with(name, bytes, "_out") ||
           ends_with(name + bytes, strlen(name + bytes), "out");
}

static enum opscope__graph_effect own_effect(const struct opscope__graph_node *node)
{
    const char *kind = node->kind;
    bool is_known = strncmp(kind, "aten::", 6) == 0 || strncmp(kind, "prim::", 6) == 0 ||
                    strncmp(kind, "core::", 6) == 0 || strncmp(kind, "py::", 4) == 0;
    if (!is_known || opscope__graph_kind_is_in(kind, changing) || writes_by_name(kind)) {
        return OPSCOPE__GRAPH_CHANGES;
    }
    if (opscope__graph_kind_is_in(kind, outside) || opscope__graph_kind_is_in(kind, raising)) {
        return OPSCOPE__GRAPH_OUTSIDE;
    }
    /* A node that produces nothing is there for an effect. */
    bool produces_nothing = node->outputs.count == 0 && node->block_count == 0;
    return produces_nothing ? OPSCOPE__GRAPH_CHANGES : OPSCOPE__GRAPH_PURE;
}

enum opscope__graph_effect opscope__graph_block_effect(const struct opscope__graph_block *block)
{
    enum opscope__graph_effect effect = OPSCOPE__GRAPH_PURE;
    const struct opscope__graph_node *node = block->first;
    for (; node != NULL && effect < OPSCOPE__GRAPH_CHANGES; node = node->next) {
        enum opscope__graph_effect one = opscope__graph_node_effect(node);
        effect = one > effect ? one : effect;
    }
    return effect;
}

enum opscope__graph_effect opscope__graph_node_effect(const struct opscope__graph_node *node)
{
    enum opscope__graph_effect effect = own_effect(node);
    for (uint32_t i = 0; i < node->block_count && effect < OPSCOPE__GRAPH_CHANGES; i++) {
        enum opscope__graph_effect one = opscope__graph_block_effect(node->blocks[i]);
        effect = one > effect ? one : effect;
    }
    return effect;
}
