/* tensor/ops/elementwise/trunc.c -- core::trunc: removes fractions. */
#include "tensor/ops/elementwise/rounding.h"

OPSCOPE__ROUNDING(trunc, trunc, "Each element without its fraction")
