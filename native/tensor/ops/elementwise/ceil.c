/* tensor/ops/elementwise/ceil.c -- core::ceil: rounds up. */
#include "tensor/ops/elementwise/rounding.h"

OPSCOPE__ROUNDING(ceil, ceil, "The smallest whole number not below each element")
