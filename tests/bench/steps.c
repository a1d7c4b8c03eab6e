/*
 * Counts instructions between marks of a program by single steps: steps PROGRAM ARGUMENT...
 *
 * The program runs at full speed up to a mark (SIGUSR1, see marks.h), instruction by instruction up
 * to the next one, and so on: setting up 100,000 objects costs seconds, not the minutes that it
 * takes under an emulator, and the counts are as exact and as independent of the machine's speed.
 * Prints "region N INSTRUCTIONS" for each pair of marks; only the thread that marks is counted. A
 * repeated string instruction counts once. The cost of a mark itself is measured by the first
 * region, which the program leaves empty, and taken off.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* From <linux/ptrace.h>, which does not go together with <sys/ptrace.h> everywhere. */
struct syscall_info {
    uint8_t op;
    uint8_t pad[3];
    uint32_t arch;
    uint64_t instruction_pointer;
    uint64_t stack_pointer;
    uint64_t rest[8];
};

enum { GET_SYSCALL_INFO = 0x420e };

static void fail(const char *what)
{
    (void)fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t instruction_pointer(pid_t pid)
{
    struct syscall_info info;
    memset(&info, 0, sizeof(info));
    if (ptrace((enum __ptrace_request)GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0) {
        fail("PTRACE_GET_SYSCALL_INFO");
    }
    return info.instruction_pointer;
}

/* Let it go on and wait for its next stop. Returns the signal, or -1 when it ended. */
static int resume(pid_t pid, bool step, int deliver)
{
    int status = 0;
    enum __ptrace_request how = step ? PTRACE_SINGLESTEP : PTRACE_CONT;
    if (ptrace(how, pid, NULL, (void *)(intptr_t)deliver) != 0) {
        fail("ptrace");
    }
    if (waitpid(pid, &status, 0) != pid) {
        fail("waitpid");
    }
    if (WIFSTOPPED(status)) {
        return WSTOPSIG(status);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return -1;
    }
    (void)fprintf(stderr, "steps: the program failed (status %d)\n", status);
    exit(1);
}

/* From one mark to the next. */
static uint64_t count_region(pid_t pid)
{
    uint64_t count = 0;
    uint64_t last = 0;
    for (int deliver = 0;;) {
        int signal = resume(pid, true, deliver);
        deliver = 0;
        if (signal == SIGTRAP) {
            uint64_t at = instruction_pointer(pid);
            count += at != last;
            last = at;
        } else if (signal == SIGUSR1) {
            return count;
        } else if (signal == -1) {
            (void)fputs("steps: the program ended within a region\n", stderr);
            exit(1);
        } else {
            deliver = signal;
        }
    }
}

static void trace(pid_t pid)
{
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
        fail("the program did not start");
    }
    uint64_t empty = 0;
    int deliver = 0;
    for (unsigned region = 0;;) {
        int signal = resume(pid, false, deliver);
        deliver = 0;
        if (signal == -1) {
            return;
        }
        if (signal != SIGUSR1) {
            deliver = signal == SIGTRAP ? 0 : signal;
            continue;
        }
        uint64_t count = count_region(pid);
        if (region == 0) {
            empty = count;
        } else {
            printf("region %u %llu\n", region,
                   (unsigned long long)(count > empty ? count - empty : 0));
            (void)fflush(stdout);
        }
        region++;
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fputs("usage: steps PROGRAM ARGUMENT...\n", stderr);
        return 64;
    }
    /* On one CPU a step is a switch of context; on two it is a wake-up of the other, ten times as
     * long. */
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((unsigned)sched_getcpu(), &here);
    (void)sched_setaffinity(0, sizeof(here), &here); /* for speed only */
    pid_t pid = fork();
    if (pid < 0) {
        fail("fork");
    }
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            fail("PTRACE_TRACEME");
        }
        (void)execv(argv[1], argv + 1);
        fail(argv[1]);
    }
    trace(pid);
    return 0;
}
