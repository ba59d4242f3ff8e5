/* tensor/ops/elementwise/floor.c -- core::floor: rounds down. */
#include "tensor/ops/elementwise/rounding.h"

OPSCOPE__ROUNDING(floor, floor, "The largest whole number not above each element")
