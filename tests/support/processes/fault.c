/* Loaded before the C library (LD_PRELOAD): in each process the FAULT_N-th call of the kinds FAULT_CALLS (each with a comma behind)
   that is about a path with FAULT_PATH in it fails with FAULT_ERRNO. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *part, *calls;
static int number = EIO;
static long at;
static atomic_long count;

__attribute__((constructor)) static void begin(void) {
    const char *text;
    part = getenv("FAULT_PATH");
    calls = getenv("FAULT_CALLS");
    if ((text = getenv("FAULT_ERRNO"))) number = atoi(text);
    if ((text = getenv("FAULT_N"))) at = atol(text);
}

static int fails(const char *call, const char *path) {
    if (!part || !calls || !path || !strstr(calls, call) || !strstr(path, part) || atomic_fetch_add(&count, 1) != at) return 0;
    errno = number;
    return 1;
}

static int file_fails(const char *call, int file) {
    char link[64], path[4096];
    if (!part || !calls || !strstr(calls, call)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(call, path);
}

#define NEXT(name) static typeof(&name) next; if (!next) next = dlsym(RTLD_NEXT, #name)

#define BY_FILE(call, kind, name, declared, given) \
    kind name declared { NEXT(name); return file_fails(call, file) ? -1 : next given; }

BY_FILE("read,", ssize_t, read, (int file, void *to, size_t size), (file, to, size))
BY_FILE("read,", ssize_t, pread, (int file, void *to, size_t size, off_t from), (file, to, size, from))
BY_FILE("read,", ssize_t, pread64, (int file, void *to, size_t size, off64_t from), (file, to, size, from))
BY_FILE("read,", ssize_t, preadv, (int file, const struct iovec *to, int parts, off_t from), (file, to, parts, from))
BY_FILE("read,", ssize_t, preadv64, (int file, const struct iovec *to, int parts, off64_t from), (file, to, parts, from))
BY_FILE("read,", ssize_t, preadv2, (int file, const struct iovec *to, int parts, off_t from, int how), (file, to, parts, from, how))
BY_FILE("read,", ssize_t, preadv64v2, (int file, const struct iovec *to, int parts, off64_t from, int how), (file, to, parts, from, how))
BY_FILE("write,", ssize_t, write, (int file, const void *from, size_t size), (file, from, size))
BY_FILE("write,", ssize_t, pwrite, (int file, const void *from, size_t size, off_t to), (file, from, size, to))
BY_FILE("write,", ssize_t, pwrite64, (int file, const void *from, size_t size, off64_t to), (file, from, size, to))
BY_FILE("fsync,", int, fsync, (int file), (file))
BY_FILE("fsync,", int, fdatasync, (int file), (file))

int rename(const char *from, const char *to) {
    NEXT(rename);
    return fails("rename,", to) ? -1 : next(from, to);
}

#define OPENING(name) \
    int name(const char *path, int how, ...) { \
        NEXT(name); \
        va_list more; \
        va_start(more, how); \
        int mode = va_arg(more, int); \
        va_end(more); \
        return fails(how & (O_WRONLY | O_RDWR) ? "create," : "open,", path) ? -1 : next(path, how, mode); \
    }

OPENING(open)
OPENING(open64)
