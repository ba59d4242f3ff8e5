/* torch/layout.c -- finds the offsets of at::RecordFunction's fields by PyTorch's own functions.
 *
 * RecordFunction::name(), num_inputs(), num_outputs(), isAsync() and overload_name() only read.
 * Each is called on an object made up of words that are all different: the result tells which word
 * it comes from. This needs no version, no header and no disassembly, on any processor.
 *
 * Safe, whatever the functions do. The object is the beginning of a mapping of our own, and each
 * word in the mapping points to a place in it: a function that follows a pointer, and another from
 * there, never leaves it. The lowest byte of each pointer is zero: read as the index of the
 * std::variant in RecordFunction it means "a name, no schema", and read as a bool it is false.
 *
 * The fields without a function lie between fields that have one. Their distances are such that
 * there is room for the known fields and for nothing else. The live trial (torch/trial.c) then
 * compares all of them with ranges of PyTorch.
 *
 * Found so in all releases from 2.4 to 2.15 (native/bridges/COVERAGE.md). Three layouts exist: 2.4
 * to 2.6 and 2.7 to 2.15, which differ in the size of std::string, and 2.4 to 2.6 with the string
 * of the later ones.
 */
#include "bridges/torch/layout.h"

#include <sys/mman.h>

enum {
    WORD = sizeof(uint64_t),
    WORDS = OPSCOPE__TORCH_FUNCTION_BYTES / WORD,
    SCHEMA_WORDS = 32,
    STEP = SCHEMA_WORDS * WORD,
    VALUE_BYTES = 16, /* a c10::IValue */
};
_Static_assert(STEP == 256, "the lowest byte of each pointer is zero");

/* The distance to the next pointer is different for each. */
static size_t distance_of(size_t word)
{
    return STEP * (word * (word + 1) / 2);
}

enum { MAPPING_BYTES = STEP * (WORDS * (WORDS + 1) / 2) + OPSCOPE__TORCH_FUNCTION_BYTES };

static const struct opscope__torch_function *as_function(const uint64_t *object)
{
    return (const struct opscope__torch_function *)(const void *)object;
}

/* The word whose pointer this is; WORDS: none. */
static size_t word_of(const uint64_t *object, uint64_t value, size_t count)
{
    size_t i = 0;
    while (i < count && (uint64_t)(uintptr_t)object + distance_of(i) != value) {
        i++;
    }
    return i < count ? i : WORDS;
}

/* The object, then, again and again, what a schema would be. */
static uint64_t *make_object(void)
{
    uint64_t *object = mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (object == MAP_FAILED) {
        return NULL;
    }
    for (size_t i = 0; i < MAPPING_BYTES / WORD; i++) {
        object[i] = (uint64_t)(uintptr_t)object + distance_of(i < WORDS ? i : i % SCHEMA_WORDS);
    }
    return object;
}

/* The only word that, with a one in its lowest byte, makes `is_so` true; WORDS: none, or several.
 */
static size_t switch_in(uint64_t *object, bool (*is_so)(uint64_t *object))
{
    size_t found = WORDS;
    size_t count = 0;
    if (is_so(object)) {
        return WORDS;
    }
    for (size_t i = 0; i < WORDS; i++) {
        object[i] |= 1;
        if (is_so(object)) {
            found = i;
            count++;
        }
        object[i] &= ~(uint64_t)1;
    }
    return count == 1 ? found : WORDS;
}

static bool is_async(uint64_t *object)
{
    return opscope__torch.is_async(as_function(object));
}

/* The first word of a schema leads to the object. */
static bool has_schema(uint64_t *object)
{
    return opscope__torch.name(as_function(object)) == (const char *)object;
}

static size_t outputs_in(const uint64_t *object)
{
    const size_t count = opscope__torch.num_outputs(as_function(object));
    size_t i = 0;
    while (i < WORDS && (distance_of(i + 1) - distance_of(i)) / VALUE_BYTES != count) {
        i++;
    }
    return i;
}

static size_t overload_in(uint64_t *object, size_t has_schema_word)
{
    object[has_schema_word] |= 1;
    const char *text = opscope__torch.overload_name(as_function(object));
    object[has_schema_word] &= ~(uint64_t)1;
    return word_of(object, (uint64_t)(uintptr_t)text, SCHEMA_WORDS);
}

static const char *ask(uint64_t *object, struct opscope__torch_layout *out)
{
    const size_t string_words = opscope__torch_string_bytes(opscope__torch.has_old_strings) / WORD;
    const size_t name =
        word_of(object, (uint64_t)(uintptr_t)opscope__torch.name(as_function(object)), WORDS);
    const size_t inputs = word_of(object, opscope__torch.num_inputs(as_function(object)), WORDS);
    const size_t outputs = outputs_in(object);
    const size_t async = switch_in(object, is_async);
    if (name == WORDS || inputs == WORDS || outputs == WORDS || async == WORDS) {
        return "PyTorch's functions read unexpected parts of RecordFunction";
    }
    const size_t schema = switch_in(object, has_schema);
    if (schema != name + string_words) {
        return "a name is no std::string or schema";
    }
    if (opscope__torch.overload_name != NULL && overload_in(object, schema) != string_words) {
        return "overload names are elsewhere in a schema";
    }
    enum { SEQUENCE = 1, INPUTS, INPUT_COUNT, OUTPUTS_WORDS = 3, ASYNC = 5 };
    if (inputs != schema + INPUT_COUNT || outputs <= inputs || async != outputs + ASYNC) {
        return "RecordFunction has unexpected fields";
    }
    *out = (struct opscope__torch_layout){
        .scope = 0x60, /* has no function: the live trial sees it with three values */
        .name = (uint16_t)(name * WORD),
        .has_schema = (uint16_t)(schema * WORD),
        .sequence_nr = (uint16_t)((schema + SEQUENCE) * WORD),
        .inputs = (uint16_t)((schema + INPUTS) * WORD),
        .input_count = (uint16_t)(inputs * WORD),
        .outputs = (uint16_t)(outputs * WORD),
        .forward_thread_id = (uint16_t)((outputs + OUTPUTS_WORDS) * WORD),
        .is_async = (uint16_t)(async * WORD)};
    return NULL;
}

const char *opscope__torch_find_layout(struct opscope__torch_layout *out)
{
    if (opscope__torch.num_inputs == NULL || opscope__torch.num_outputs == NULL) {
        return "libtorch_cpu does not export num_inputs and num_outputs of RecordFunction";
    }
    uint64_t *object = make_object();
    if (object == NULL) {
        return "out of memory";
    }
    const char *reason = ask(object, out);
    (void)munmap(object, MAPPING_BYTES);
    return reason;
}

/* ---- the same, for a copy of a real object ------------------------------------------------------ */

/* Each field, even of one byte, is the first of its word. */
static bool is_aligned(const struct opscope__torch_layout *layout)
{
    uint16_t offsets[sizeof *layout / sizeof(uint16_t)];
    memcpy(offsets, layout, sizeof offsets);
    uint16_t any = 0;
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        any |= offsets[i];
    }
    return any % WORD == 0;
}

bool opscope__torch_layout_fits(const struct opscope__torch_layout *layout,
                                const struct opscope__torch_function *fn, bool has_a_schema)
{
    enum { SOME_INPUTS = 1234, SOME_OUTPUTS = 567 };
    uint64_t copy[WORDS] = {0};
    const size_t bytes = layout->is_async + sizeof(bool);
    if (bytes > sizeof copy || !is_aligned(layout)) {
        return false;
    }
    memcpy(copy, fn, bytes);
    copy[layout->is_async / WORD] = 0;
    if (opscope__torch.is_async(as_function(copy))) {
        return false;
    }
    copy[layout->is_async / WORD] = 1;
    if (!opscope__torch.is_async(as_function(copy))) {
        return false;
    }
    if (has_a_schema) {
        return true; /* its schema answers for the numbers of inputs and outputs */
    }
    copy[layout->input_count / WORD] = SOME_INPUTS;
    copy[layout->outputs / WORD] = (uint64_t)(uintptr_t)copy;
    copy[layout->outputs / WORD + 1] = (uint64_t)(uintptr_t)copy + SOME_OUTPUTS * VALUE_BYTES;
    return opscope__torch.num_inputs(as_function(copy)) == SOME_INPUTS &&
           opscope__torch.num_outputs(as_function(copy)) == SOME_OUTPUTS;
}
