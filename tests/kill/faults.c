/* Kills the process before its n-th call that changes a folder or has the disk hold something.
 * For LD_PRELOAD: calls of SQLite and of PyTorch are counted as those of Python are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

static long left = 0, seen = 0;

void faults_arm(long n) { left = n; seen = 0; }
long faults_seen(void) { return seen; }

static void count(void) {
  seen++;
  if (left > 0 && --left == 0) kill(getpid(), SIGKILL);
}

#define COUNTED(name, types, values)                 \
  int name types {                                   \
    static int(*real) types = 0;                     \
    if (!real) real = dlsym(RTLD_NEXT, #name);       \
    count();                                         \
    return real values;                              \
  }

COUNTED(rename, (const char *a, const char *b), (a, b))
COUNTED(renameat, (int i, const char *a, int j, const char *b), (i, a, j, b))
COUNTED(unlink, (const char *a), (a))
COUNTED(unlinkat, (int i, const char *a, int flags), (i, a, flags))
COUNTED(rmdir, (const char *a), (a))

/* A killed process leaves what it wrote with the kernel: nothing need wait for the disk. */
int fsync(int i) { (void)i; count(); return 0; }
int fdatasync(int i) { (void)i; count(); return 0; }
