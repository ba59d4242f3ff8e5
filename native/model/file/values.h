/* model/file/values.h -- the names and types of what a model takes and returns. */
#ifndef OPSCOPE_MODEL_FILE_VALUES_H
#define OPSCOPE_MODEL_FILE_VALUES_H

#include "model/file/model.h"

/* Fills `values` of a model that has its program. */
int opscope__model_describe(opscope_model *model);

#endif
