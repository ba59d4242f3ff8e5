/* tensor/ops/elementwise/round.c -- core::round: rounds to the nearest whole number. */
#include "tensor/ops/elementwise/rounding.h"

OPSCOPE__ROUNDING(round, rint,
                  "The whole number nearest to each element, and the even one of two equally near")
