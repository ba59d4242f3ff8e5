/* tests/native/model/fuzz_archive.c -- any bytes as an archive.
 *
 * Opening them fails with a text, or every entry lies within the bytes, can be found by its name,
 * and is read or refused with a text; no byte outside is touched (the sanitizers say so). As a
 * model, they run within limits or are refused with a text.
 *
 * Random changes of an archive soon fail at a checksum. So most of them correct the checksums, and
 * some begin anew with the archive of a model.
 */
#define _GNU_SOURCE /* memmem */
#include <assert.h>

#include "model_zip.h"
#include "run_fuzzed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* ---- what is tried -------------------------------------------------------------------------- */

static void check_entry(opscope_archive *archive, size_t index, size_t size)
{
    opscope_archive_entry entry;
    assert(opscope_archive_entry_at(archive, index, &entry) == OPSCOPE_OK);
    assert(entry.offset <= size && entry.file_bytes <= size - entry.offset);
    size_t found;
    assert(opscope_archive_find(archive, entry.name, &found) == OPSCOPE_OK && found == index);
    const void *content;
    size_t bytes;
    const int status = opscope_archive_read(archive, entry.name, &content, &bytes);
    assert(status == OPSCOPE_OK ? bytes == entry.bytes : opscope_tensor_error()[0] != '\0');
    opscope_tensor *tensor;
    if (opscope_archive_tensor(archive, entry.name, OPSCOPE_FLOAT64, &tensor) == OPSCOPE_OK) {
        const size_t all = (size_t)opscope_tensor_count(tensor) * 8;
        void *elements = malloc(all + 1);
        assert(elements != NULL);
        memcpy(elements, opscope_tensor_data(tensor), all);
        free(elements);
        opscope_tensor_release(tensor);
    }
}

static bool try_archive(uint8_t *bytes, size_t size)
{
    opscope_archive *archive;
    if (opscope_archive_open_memory("fuzz", bytes, size, &archive) != OPSCOPE_OK) {
        assert(strncmp(opscope_tensor_error(), "fuzz: ", 6) == 0);
        return false;
    }
    for (size_t i = 0; i < opscope_archive_count(archive); i++) {
        check_entry(archive, i, size);
    }
    opscope_archive_close(archive);
    return true;
}

static void try_model(uint8_t *bytes, size_t size)
{
    opscope_model *model;
    opscope_allocator_set_default(&small_tensors);
    if (opscope_model_open_memory("fuzz", bytes, size, &model) != OPSCOPE_OK) {
        assert(strncmp(opscope_tensor_error(), "fuzz: ", 6) == 0);
        return;
    }
    run_fuzzed(model);
    opscope_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Of exactly that size, so that the sanitizer sees a read past the end. */
    uint8_t *copy = malloc(size > 0 ? size : 1);
    memcpy(copy, data, size);
    if (try_archive(copy, size)) {
        try_model(copy, size);
    }
    free(copy);
    return 0;
}

/* ---- changes -------------------------------------------------------------------------------- */

/* The archive of a small model, as a beginning. */
static size_t begin(uint8_t *data, size_t most)
{
    static const char document[] =
        "{\"tensors\":[{\"storage\":0,\"dtype\":\"float32\",\"offset\":0,\"sizes\":[2,2],"
        "\"strides\":[2,1],\"requires_grad\":false}],\"model\":{\"entry\":"
        "\"forward\",\"id\":\"m\",\"name\":\"M\",\"functions\":[\"forward\"],\"attributes\":{\"w\":0},"
        "\"parameters\":[],\"signature\":[[\"x\"]]}}";
    static const char graph[] = "graph(%x : Tensor):\n"
                                "  %w : Tensor = prim::GetAttr[name=\"w\"]()\n"
                                "  %s : Tensor = core::sum(%w)\n"
                                "  %y : Tensor = core::mul(%x, %s)\n"
                                "  return (%y)\n";
    static uint8_t room[ZIP_HEADERS_BYTES + sizeof document + sizeof graph];
    static struct model_zip zip;
    if (zip.at == NULL) {
        zip.at = room;
        zip_add(&zip, "a/version", "1\n", 2);
        zip_add(&zip, "a/byteorder", "little", 6);
        zip_add(&zip, "a/model.json", document, sizeof document - 1);
        zip_add(&zip, "a/graph/forward.ir", graph, sizeof graph - 1);
        zip_add(&zip, "a/tensors/0", "0123456789abcdef", 16);
        zip_finish(&zip);
    }
    if (zip.bytes > most) {
        return 0;
    }
    memcpy(data, room, zip.bytes);
    return zip.bytes;
}

/* Gives each stored entry in a directory the checksum of its content. */
static void correct_checksums(uint8_t *data, size_t size)
{
    uint8_t *record = data;
    for (; (record = memmem(record, size - (size_t)(record - data), "PK\1\2", 4)); record++) {
        if (size - (size_t)(record - data) < OPSCOPE__ZIP_CENTRAL_BYTES) {
            return;
        }
        const size_t local = opscope__zip_u32(record + 42), bytes = opscope__zip_u32(record + 20);
        if (local + OPSCOPE__ZIP_LOCAL_BYTES > size) {
            continue;
        }
        const size_t content = local + OPSCOPE__ZIP_LOCAL_BYTES +
                               opscope__zip_u16(data + local + 26) +
                               opscope__zip_u16(data + local + 28);
        if (content <= size && bytes <= size - content) {
            zip_put(record + 16, opscope__crc32(0, data + content, bytes), 4);
        }
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    if (size < OPSCOPE__ZIP_END_BYTES || seed % 256 == 0) {
        const size_t begun = begin(data, most);
        size = begun > 0 ? begun : size;
    }
    size = LLVMFuzzerMutate(data, size, most);
    if (seed % 8 != 1) {
        correct_checksums(data, size);
    }
    return size;
}
