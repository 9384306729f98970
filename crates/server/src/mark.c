/*
 * Has valgrind's callgrind begin to count a process when its client first sends a mark: a message that names
 * pg_backend_pid. Until then the counter only follows what the process does, a tenth of the work: a server starts,
 * and clients make its tables, in a fraction of the time. Needs no PostgreSQL headers.
 *
 * A backend reads its client's messages with recv(). The request to the counter is a few instructions that do
 * nothing on a processor and that valgrind takes for a call.
 *
 * What this library itself does later, at each recv(), is left out of a count by the name of its function. That name
 * is shorter than "recv" because valgrind calls a function by the shortest of its names.
 *
 * Source: valgrind.h (VALGRIND_DO_CLIENT_REQUEST_EXPR) and callgrind.h of Valgrind 3.19.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* The fifth of callgrind's requests, VG_USERREQ_TOOL_BASE('C', 'T') + 4: count from here on. */
#define START 0x43540004

typedef ssize_t (*recv_function)(int, void *, size_t, int);

static const char mark[] = "pg_backend_pid";
static recv_function next_recv;
static int counts;

__attribute__((constructor)) static void prepare(void)
{
    next_recv = (recv_function) dlsym(RTLD_NEXT, "recv");
}

static void start(void)
{
    volatile uint64_t asked[6] = {START};

#if defined(__x86_64__)
    uint64_t answer = 0;

    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(&asked[0])
                     : "cc", "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov x3, #0\n\tmov x4, %0\n\t"
                     "ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\t"
                     "orr x10, x10, x10"
                     :
                     : "r"(&asked[0])
                     : "x3", "x4", "cc", "memory");
#else
    (void) asked;
#endif
}

ssize_t dlb(int socket, void *buffer, size_t length, int flags)
{
    ssize_t received;

    if (counts)
        return next_recv(socket, buffer, length, flags);
    received = next_recv(socket, buffer, length, flags);
    if (received > 0 && memmem(buffer, (size_t) received, mark, sizeof mark - 1))
    {
        counts = 1;
        start();
    }
    return received;
}

ssize_t recv(int socket, void *buffer, size_t length, int flags) __attribute__((alias("dlb")));
