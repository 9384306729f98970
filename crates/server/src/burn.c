/*
 * Makes a server slower by a known amount: burns FLOOR_NS and DELTABENCH_BURN_NS nanoseconds of CPU after
 * every successful recv() on a stream socket. Two servers that differ in DELTABENCH_BURN_NS differ by as much.
 *
 * A backend reads its client's messages with recv(), at most 8 KiB at a time, and sees EAGAIN before it
 * waits. So a statement whose messages are sent together (Parse, Bind, Execute, Sync in one packet, or a
 * simple query) costs one successful recv() and one burn, whatever the version. Needs no PostgreSQL
 * headers.
 *
 * Why a spin on the monotonic clock: CLOCK_THREAD_CPUTIME_ID would be CPU time by definition, but each look
 * is a system call of some 250 ns that takes the run queue's lock; a counted loop changes its length with
 * the core's frequency. The monotonic clock is read without entering the kernel in about 25 ns. It runs on
 * while this process is off its core, so a gap that is too long for anything but a context switch moves the
 * end by the same length.
 *
 * Why every process that has the library burns FLOOR_NS, asked or not: the first look after a system call finds
 * cold caches, the loop ends with a mispredicted branch and overshoots by half a look. Base and candidate
 * both pay for that, so it is not in what they differ by.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

/* Interrupts take less and are billed to the process; a turn of another process takes more. */
#define OFF_CORE_NS 10000

/* What everyone burns. */
#define FLOOR_NS 1000

typedef ssize_t (*recv_function)(int, void *, size_t, int);

static recv_function next_recv;
static int64_t burn_ns;
/* The last socket asked about: a backend has one. */
static int known_socket = -1;
static int known_is_stream;

static int64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t) time.tv_sec * 1000000000 + time.tv_nsec;
}

__attribute__((constructor)) static void prepare(void)
{
    const char *text = getenv("DELTABENCH_BURN_NS");
    int64_t asked = text ? strtoll(text, NULL, 10) : 0;

    burn_ns = FLOOR_NS + (asked > 0 ? asked : 0);
    next_recv = (recv_function) dlsym(RTLD_NEXT, "recv");
}

static void burn(void)
{
    int64_t last = now_ns();
    int64_t end = last + burn_ns;

    while (last < end)
    {
        int64_t now = now_ns();

        if (now - last > OFF_CORE_NS)
            end += now - last;
        last = now;
    }
}

/* Statistics of servers before 15 come by datagrams: they are no statements. */
static int is_stream(int socket)
{
    if (socket != known_socket)
    {
        int type = 0;
        socklen_t length = sizeof type;

        known_is_stream = getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
        known_socket = socket;
    }
    return known_is_stream;
}

ssize_t recv(int socket, void *buffer, size_t length, int flags)
{
    ssize_t received = next_recv(socket, buffer, length, flags);

    if (received > 0 && !(flags & MSG_PEEK))
    {
        int saved = errno;

        if (is_stream(socket))
            burn();
        errno = saved;
    }
    return received;
}
