/* Between a program and the system: counts each call that changes a file below one folder, and at a chosen one of them
 * kills the process, fails, or writes half. Or writes down all of them, for a power cut to be played out later.
 *
 * Built and used by torture/shim.py:  cc -shared -fPIC -o shim.so shim.c -ldl  and  LD_PRELOAD=shim.so */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum mode { OFF, COUNT, KILL, FAIL_EIO, FULL_DISK, HALF, RECORD };
enum kind { WRITE = 1, SYNC, TRUNCATE, CREATE, RENAME, EXCHANGE, UNLINK, LINK, MKDIR, MARK, RMDIR };

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static size_t folder_length;
static enum mode mode = OFF;
static long chosen = -1, seen = 0, faults = 0;
static int record = -1;

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* -- what Python calls ---------------------------------------------------------------------------------------------- */

void shim_arm(const char *below, int what, long at, int to) {
    pthread_mutex_lock(&one_at_a_time);
    snprintf(folder, sizeof folder, "%s", below);
    folder_length = strlen(folder);
    chosen = at;
    seen = faults = 0;
    record = to;
    mode = (enum mode)what;
    pthread_mutex_unlock(&one_at_a_time);
}

long shim_seen(void) { return seen; }
long shim_faults(void) { return faults; }

/* -- what each call does -------------------------------------------------------------------------------------------- */

static int ours(const char *path) { return mode != OFF && path && strncmp(path, folder, folder_length) == 0; }

static const char *path_of(int fd, char *into) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, into, PATH_MAX - 1);
    into[length < 0 ? 0 : length] = 0;
    return into;
}

static const char *path_at(int directory, const char *path, char *into) {
    if (path[0] == '/') return path;
    char here[PATH_MAX];
    if (directory == AT_FDCWD) {
        if (!getcwd(here, sizeof here)) return path;
    } else path_of(directory, here);
    if (snprintf(into, PATH_MAX, "%s/%s", here, path) < 0) return path;
    return into;
}

static void put(const void *data, size_t length) {
    REAL(ssize_t, "write", int, const void *, size_t);
    const char *rest = data;
    while (length) {
        ssize_t done = real(record, rest, length);
        if (done <= 0) abort();
        rest += done;
        length -= (size_t)done;
    }
}

static void written_down(enum kind kind, const char *path, const char *other, int64_t at, const void *data, size_t length) {
    if (mode != RECORD) return;
    uint32_t sizes[4] = {kind, (uint32_t)strlen(path), (uint32_t)(other ? strlen(other) : 0), (uint32_t)length};
    put(sizes, sizeof sizes);
    put(&at, sizeof at);
    put(path, sizes[1]);
    if (other) put(other, sizes[2]);
    if (length) put(data, length);
}

void shim_mark(long number) {
    pthread_mutex_lock(&one_at_a_time);
    written_down(MARK, "", NULL, number, NULL, 0);
    pthread_mutex_unlock(&one_at_a_time);
}

/* Called with the lock held, before the real call. 0: go on; 1: write half; else: the error to return. */
static int fate(int takes_room) {
    long number = seen++;
    if (mode == KILL && number == chosen) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    if (mode == FAIL_EIO && number == chosen) { faults++; return EIO; }
    if (mode == FULL_DISK && number >= chosen && takes_room) { faults++; return ENOSPC; }
    if (mode == HALF && number == chosen && takes_room) { faults++; return 1; }
    return 0;
}

#define GUARDED(is_ours, takes_room, type, failed, call, note) \
    int verdict = 0; \
    if (!(is_ours)) return call; \
    pthread_mutex_lock(&one_at_a_time); \
    if (mode != OFF) verdict = fate(takes_room); \
    type result; \
    if (verdict > 1) { errno = verdict; result = failed; } \
    else { result = call; if (result != failed) { int kept = errno; note; errno = kept; } } \
    pthread_mutex_unlock(&one_at_a_time); \
    return result

#define HALF_OF(length) (verdict == 1 && (length) > 1 ? (length) / 2 : (length))

ssize_t write(int fd, const void *data, size_t length) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (mode == OFF) return real(fd, data, length);
    char path[PATH_MAX];
    path_of(fd, path);
    if (!ours(path)) return real(fd, data, length);
    int64_t at = lseek(fd, 0, SEEK_CUR);
    if (fcntl(fd, F_GETFL) & O_APPEND) at = lseek(fd, 0, SEEK_END);
    GUARDED(1, 1, ssize_t, -1, real(fd, data, HALF_OF(length)), written_down(WRITE, path, NULL, at, data, (size_t)result));
}

static ssize_t write_at(ssize_t (*real)(int, const void *, size_t, off64_t), int fd, const void *data, size_t length,
                        off64_t at) {
    if (mode == OFF) return real(fd, data, length, at);
    char path[PATH_MAX];
    GUARDED(ours(path_of(fd, path)), 1, ssize_t, -1, real(fd, data, HALF_OF(length), at),
            written_down(WRITE, path, NULL, at, data, (size_t)result));
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return write_at(real, fd, data, length, at);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return write_at(real, fd, data, length, at);
}

static int synced(int (*real)(int), int fd) {
    if (mode == OFF) return real(fd);
    char path[PATH_MAX];
    GUARDED(ours(path_of(fd, path)), 0, int, -1, real(fd), written_down(SYNC, path, NULL, 0, NULL, 0));
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    return synced(real, fd);
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    return synced(real, fd);
}

int ftruncate64(int fd, off64_t length) {
    REAL(int, "ftruncate64", int, off64_t);
    if (mode == OFF) return real(fd, length);
    char path[PATH_MAX];
    GUARDED(ours(path_of(fd, path)), 0, int, -1, real(fd, length), written_down(TRUNCATE, path, NULL, length, NULL, 0));
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

static int opened(int directory, const char *name, int flags, mode_t rights) {
    REAL(int, "openat64", int, const char *, int, ...);
    if (mode == OFF || !(flags & O_CREAT)) return real(directory, name, flags, rights);
    char path[PATH_MAX];
    const char *whole = path_at(directory, name, path);
    struct stat there;
    int is_new = ours(whole) && fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) != 0;
    GUARDED(is_new, 1, int, -1, real(directory, name, flags, rights), written_down(CREATE, whole, NULL, 0, NULL, 0));
}

#define RIGHTS(flags) \
    mode_t rights = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); rights = va_arg(rest, mode_t); va_end(rest); }

int open(const char *name, int flags, ...) { RIGHTS(flags) return opened(AT_FDCWD, name, flags, rights); }
int open64(const char *name, int flags, ...) { RIGHTS(flags) return opened(AT_FDCWD, name, flags, rights); }
int openat(int directory, const char *name, int flags, ...) { RIGHTS(flags) return opened(directory, name, flags, rights); }
int openat64(int directory, const char *name, int flags, ...) { RIGHTS(flags) return opened(directory, name, flags, rights); }

static int renamed(int old_directory, const char *old, int new_directory, const char *new, unsigned flags) {
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    if (mode == OFF) return real(old_directory, old, new_directory, new, flags);
    char first[PATH_MAX], second[PATH_MAX];
    const char *from = path_at(old_directory, old, first), *to = path_at(new_directory, new, second);
    GUARDED(ours(from) || ours(to), 0, int, -1, real(old_directory, old, new_directory, new, flags),
            written_down(flags & RENAME_EXCHANGE ? EXCHANGE : RENAME, from, to, 0, NULL, 0));
}

int rename(const char *old, const char *new) { return renamed(AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int from, const char *old, int to, const char *new) { return renamed(from, old, to, new, 0); }
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return renamed(from, old, to, new, flags);
}

static int linked(int old_directory, const char *old, int new_directory, const char *new, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    if (mode == OFF) return real(old_directory, old, new_directory, new, flags);
    char first[PATH_MAX], second[PATH_MAX];
    const char *from = path_at(old_directory, old, first), *to = path_at(new_directory, new, second);
    GUARDED(ours(to), 1, int, -1, real(old_directory, old, new_directory, new, flags),
            written_down(LINK, from, to, 0, NULL, 0));
}

int link(const char *old, const char *new) { return linked(AT_FDCWD, old, AT_FDCWD, new, 0); }
int linkat(int from, const char *old, int to, const char *new, int flags) { return linked(from, old, to, new, flags); }

static int removed(int directory, const char *name, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    if (mode == OFF) return real(directory, name, flags);
    char path[PATH_MAX];
    const char *whole = path_at(directory, name, path);
    GUARDED(ours(whole), 0, int, -1, real(directory, name, flags),
            written_down(flags & AT_REMOVEDIR ? RMDIR : UNLINK, whole, NULL, 0, NULL, 0));
}

int unlink(const char *name) { return removed(AT_FDCWD, name, 0); }
int unlinkat(int directory, const char *name, int flags) { return removed(directory, name, flags); }
int rmdir(const char *name) { return removed(AT_FDCWD, name, AT_REMOVEDIR); }

static int made(int directory, const char *name, mode_t rights) {
    REAL(int, "mkdirat", int, const char *, mode_t);
    if (mode == OFF) return real(directory, name, rights);
    char path[PATH_MAX];
    const char *whole = path_at(directory, name, path);
    GUARDED(ours(whole), 1, int, -1, real(directory, name, rights), written_down(MKDIR, whole, NULL, 0, NULL, 0));
}

int mkdir(const char *name, mode_t rights) { return made(AT_FDCWD, name, rights); }
int mkdirat(int directory, const char *name, mode_t rights) { return made(directory, name, rights); }

/* -- the time of day, which can jump -------------------------------------------------------------------------------- */

static long ahead = 0;

void shim_clock(long seconds) { ahead = seconds; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int result = real(clock, now);
    if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += ahead;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    REAL(int, "gettimeofday", struct timeval *, void *);
    int result = real(now, zone);
    if (result == 0) now->tv_sec += ahead;
    return result;
}
