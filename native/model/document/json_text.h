/* model/document/json_text.h -- the texts and numbers of JSON. */
#ifndef OPSCOPE_MODEL_JSON_TEXT_H
#define OPSCOPE_MODEL_JSON_TEXT_H

#include "model/document/build.h"

/* What is left of the input. */
struct opscope__json_input {
    struct opscope__document *document;
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
};

static inline size_t opscope__json_offset(const struct opscope__json_input *input)
{
    return (size_t)(input->at - input->start);
}

/* A text, where `at` is its opening quote, and a number, where `at` is a digit or minus sign. Both
 * leave `at` behind it. NULL: a failure, reported. */
struct opscope__item *opscope__json_text(struct opscope__json_input *input);
struct opscope__item *opscope__json_number(struct opscope__json_input *input);

#endif
