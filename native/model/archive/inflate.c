/* model/archive/inflate.c -- deflated entries, by the system's zlib.
 *
 * The library is opened when the first deflated entry is read: archives of Opscope have none, and
 * PyTorch deflates only source code. The structure is that of zlib.h, unchanged since version 1.0.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "model/archive/zip.h"

struct stream {
    const uint8_t *next_in;
    unsigned available_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned available_out;
    unsigned long total_out;
    const char *message;
    void *state;
    void *allocate, *release, *user;
    int data_type;
    unsigned long checksum, reserved;
};

enum { RAW = -15, FINISH = 4, STREAM_END = 1, PIECE = 1 << 30 };

static int (*begin)(struct stream *stream, int bits, const char *version, int stream_bytes);
static int (*inflate)(struct stream *stream, int flush);
static int (*end)(struct stream *stream);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_library(void)
{
    void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found[3] = {NULL};
    const char *names[3] = {"inflateInit2_", "inflate", "inflateEnd"};
    for (int i = 0; i < 3 && library != NULL; i++) {
        found[i] = dlsym(library, names[i]);
    }
    if (found[0] != NULL && found[1] != NULL && found[2] != NULL) {
        memcpy(&begin, &found[0], sizeof begin);
        memcpy(&inflate, &found[1], sizeof inflate);
        memcpy(&end, &found[2], sizeof end);
    }
}

const char *opscope__inflate(const uint8_t *data, size_t data_bytes, uint8_t *out, size_t bytes)
{
    pthread_once(&once, open_library);
    if (end == NULL) {
        return "it is deflated, and there is no libz.so.1";
    }
    if (data_bytes > PIECE || bytes > PIECE) {
        return "it is deflated and larger than 1 GiB";
    }
    struct stream stream = {.next_in = data,
                            .available_in = (unsigned)data_bytes,
                            .next_out = out,
                            .available_out = (unsigned)bytes};
    if (begin(&stream, RAW, "1.2.0", (int)sizeof stream) != 0) {
        return "zlib failed";
    }
    const int status = inflate(&stream, FINISH);
    const bool is_whole =
        status == STREAM_END && stream.available_out == 0 && stream.available_in == 0;
    end(&stream);
    return is_whole ? NULL : "its deflated data is damaged";
}
