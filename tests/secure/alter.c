/* Somebody on the network: for LD_PRELOAD. Flips the lowest bit of the first word of the message
 * number ALTER_NTH that a process sends of at least ALTER_SIZE bytes, and says so in the file that
 * ALTER_LOG names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void note(char const* name) {
  int log = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (log < 0 || write(log, "x", 1) != 1 || close(log) != 0) {
    abort();
  }
}

ssize_t send(int fd, void const* data, size_t size, int flags) {
  static ssize_t (*real)(int, void const*, size_t, int);
  static long seen;
  if (!real) {
    real = (ssize_t(*)(int, void const*, size_t, int))dlsym(RTLD_NEXT, "send");
  }
  char const* nth = getenv("ALTER_NTH");
  if (!nth || size < (size_t)atol(getenv("ALTER_SIZE")) || ++seen != atol(nth)) {
    return real(fd, data, size, flags);
  }
  note(getenv("ALTER_LOG"));
  char* changed = malloc(size);
  memcpy(changed, data, size);
  changed[0] ^= 1;
  ssize_t done = real(fd, changed, size, flags);
  free(changed);
  return done;
}
