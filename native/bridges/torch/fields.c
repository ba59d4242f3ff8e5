/* torch/fields.c -- see torch/fields.h. A layout may be wrong: the kernel is asked before a pointer
 * found by it is followed, and no text is read beyond its length. */
#include "bridges/torch/fields.h"

#include <sys/mman.h>

#include "bridges/pages.h"
#include "bridges/torch/ivalue.h"
#include "bridges/torch/layout.h"

enum { MOST_READS = 16, MOST_NAME_BYTES = 1024, MOST_VALUES = 64 };

/* Owner: the thread that runs the trial. */
static struct opscope__pages pages;
static bool has_pages;
static int read_count;

/* The program may map more memory during the trial: an answer of no is asked for anew. */
static bool read_pages(void)
{
    opscope__torch_fields_end();
    has_pages = ++read_count <= MOST_READS && opscope__pages_read(&pages) == OPSCOPE_OK;
    return has_pages;
}

void opscope__torch_fields_begin(void)
{
    read_count = 0;
    (void)read_pages();
}

void opscope__torch_fields_end(void)
{
    if (has_pages) {
        opscope__pages_release(&pages);
        has_pages = false;
    }
}

bool opscope__torch_is_readable(const void *address, size_t bytes)
{
    if ((uintptr_t)address % _Alignof(void *) != 0 && bytes >= sizeof(void *)) {
        return false;
    }
    return (has_pages && opscope__pages_grant(&pages, address, bytes, PROT_READ)) ||
           (read_pages() && opscope__pages_grant(&pages, address, bytes, PROT_READ));
}

/* ---- fields that each range has ----------------------------------------------------------------- */

/* True if `string`, a std::string in readable memory, is `text`, which PyTorch's function gave. */
static bool is_string(const void *string, const char *text)
{
    enum { OLD_HEAD_BYTES = 24 };
    const bool is_old = opscope__torch.has_old_strings;
    const char *start = opscope__torch_text(string);
    const size_t length = strnlen(text, MOST_NAME_BYTES);
    return start == text && length < MOST_NAME_BYTES &&
           (!is_old || opscope__torch_is_readable(start - OLD_HEAD_BYTES, OLD_HEAD_BYTES)) &&
           opscope__torch_text_bytes(string, is_old) == length;
}

static const char *common_fault(const struct opscope__torch_function *fn, opscope_scope scope,
                                bool has_schema)
{
    const struct opscope__torch_layout *layout = &opscope__torch.layout;
    if (!opscope__torch_is_readable(fn, layout->is_async + sizeof(uint64_t))) {
        return "RecordFunction is smaller than expected";
    }
    if (opscope__torch_scope(fn) != scope) {
        return "the scope is not at the expected offset";
    }
    if (OPSCOPE__TORCH_FIELD(uint8_t, fn, layout->has_schema) != has_schema) {
        return "the schema is not at the expected offset";
    }
    if (opscope__torch_is_async(fn) || !opscope__torch_layout_fits(layout, fn, has_schema)) {
        return "PyTorch's functions read unexpected fields";
    }
    const size_t input_count = opscope__torch_input_count(fn);
    const struct opscope__torch_value *inputs = opscope__torch_inputs(fn);
    if (input_count != opscope__torch.num_inputs(fn) || input_count > MOST_VALUES ||
        (input_count != 0 && !opscope__torch_is_readable(inputs, input_count * sizeof *inputs))) {
        return "inputs are not at the expected offset";
    }
    if (opscope__torch_outputs_begin(fn) != opscope__torch_outputs_end(fn)) {
        return "outputs are not at the expected offset";
    }
    return NULL;
}

static const char *name_fault(const struct opscope__torch_function *fn)
{
    const char *string = (const char *)fn + opscope__torch.layout.name;
    return is_string(string, opscope__torch.name(fn)) ? NULL
                                                      : "names are not at the expected offset";
}

/* ---- each range ------------------------------------------------------------------------------- */

const char *opscope__torch_operator_fault(const struct opscope__torch_function *fn)
{
    const char *fault = common_fault(fn, OPSCOPE_FUNCTION, true);
    if (fault != NULL) {
        return fault;
    }
    const size_t string_bytes = opscope__torch_string_bytes(opscope__torch.has_old_strings);
    const char *schema = opscope__torch_schema(fn);
    if (!opscope__torch_is_readable(schema, 2 * string_bytes) ||
        !is_string(schema, opscope__torch.name(fn))) {
        return "names are not at the expected offset";
    }
    static const char wanted[] = "memory_format";
    const char *overload = opscope__torch_text(schema + string_bytes);
    if (!opscope__torch_is_readable(overload, 1) ||
        !opscope__torch_is_readable(overload + sizeof wanted - 1, 1) ||
        memcmp(overload, wanted, sizeof wanted) != 0 ||
        !is_string(schema + string_bytes, overload)) {
        return "overload names are not at the expected offset";
    }
    if (opscope__torch_sequence_nr(fn) != -1 || opscope__torch_forward_thread_id(fn) != 0) {
        return "the sequence number or forward thread is not at the expected offset";
    }
    return NULL;
}

const char *opscope__torch_block_fault(const struct opscope__torch_function *fn)
{
    const char *fault = common_fault(fn, OPSCOPE_USER_SCOPE, false);
    if (fault == NULL) {
        fault = name_fault(fn);
    }
    if (fault == NULL &&
        (opscope__torch_sequence_nr(fn) != -1 || opscope__torch_forward_thread_id(fn) != 0)) {
        fault = "the sequence number or forward thread is not at the expected offset";
    }
    return fault;
}

const char *opscope__torch_node_fault(const struct opscope__torch_function *fn, int64_t sequence_nr)
{
    const char *fault = common_fault(fn, OPSCOPE_BACKWARD_FUNCTION, false);
    if (fault == NULL) {
        fault = name_fault(fn);
    }
    if (fault == NULL && (sequence_nr < 0 || opscope__torch_sequence_nr(fn) != sequence_nr ||
                          opscope__torch_forward_thread_id(fn) != opscope__torch.thread_id())) {
        fault = "the sequence number or forward thread is not at the expected offset";
    }
    if (fault == NULL && (opscope__torch_input_count(fn) != 1 ||
                          opscope__torch_inputs(fn)->tag != OPSCOPE__TORCH_TENSOR)) {
        fault = "inputs are not at the expected offset";
    }
    return fault;
}

const char *opscope__torch_outputs_fault(const struct opscope__torch_function *fn)
{
    const struct opscope__torch_value *first = opscope__torch_outputs_begin(fn);
    if (!opscope__torch_is_readable(first, sizeof *first) ||
        opscope__torch_outputs_end(fn) != first + 1 || opscope__torch.num_outputs(fn) != 1 ||
        first->tag != OPSCOPE__TORCH_TENSOR) {
        return "outputs are not at the expected offset";
    }
    return NULL;
}

int64_t opscope__torch_sequence_nr(const struct opscope__torch_function *fn)
{
    const uint16_t offset = opscope__torch.layout.sequence_nr;
    return opscope__torch_is_readable((const char *)fn + offset, sizeof(int64_t))
               ? OPSCOPE__TORCH_FIELD(int64_t, fn, offset)
               : -1;
}
