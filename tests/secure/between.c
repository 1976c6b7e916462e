/* What stands between a process and the network: for LD_PRELOAD. Environment variables say what.
 *
 * STUTTER: every third exchange of bytes that does not wait would have had to; the file that it
 * names gets a byte for each.
 * ALTER_LOG, ALTER_NTH, ALTER_SIZE: the lowest bit of the first word of the message with this
 * number, of those of at least that size, is flipped, and the file gets a byte.
 * SENT: the file that it names gets all that is sent.
 * SLOW: the error of a socket is looked up slowly, so that others see what comes before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void note(char const* name, void const* data, size_t size) {
  int log = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (log < 0 || write(log, data, size) != (ssize_t)size || close(log) != 0) {
    abort();
  }
}

static int would_block(int fd) {
  static _Thread_local unsigned calls;
  char const* log = getenv("STUTTER");
  if (!log || !(fcntl(fd, F_GETFL) & O_NONBLOCK) || ++calls % 3 != 0) {
    return 0;
  }
  note(log, "x", 1);
  errno = EAGAIN;
  return 1;
}

ssize_t send(int fd, void const* data, size_t size, int flags) {
  static long seen;
  ssize_t (*real)(int, void const*, size_t, int) =
      (ssize_t(*)(int, void const*, size_t, int))dlsym(RTLD_NEXT, "send");
  if (would_block(fd)) {
    return -1;
  }
  char const* nth = getenv("ALTER_NTH");
  if (nth && size >= (size_t)atol(getenv("ALTER_SIZE")) && ++seen == atol(nth)) {
    note(getenv("ALTER_LOG"), "x", 1);
    char* changed = malloc(size);
    memcpy(changed, data, size);
    changed[0] ^= 1;
    ssize_t done = real(fd, changed, size, flags);
    free(changed);
    return done;
  }
  ssize_t done = real(fd, data, size, flags);
  if (done > 0 && getenv("SENT")) {
    note(getenv("SENT"), data, (size_t)done);
  }
  return done;
}

ssize_t recv(int fd, void* data, size_t size, int flags) {
  ssize_t (*real)(int, void*, size_t, int) =
      (ssize_t(*)(int, void*, size_t, int))dlsym(RTLD_NEXT, "recv");
  return would_block(fd) ? -1 : real(fd, data, size, flags);
}

int getsockopt(int fd, int level, int option, void* value, socklen_t* size) {
  int (*real)(int, int, int, void*, socklen_t*) =
      (int (*)(int, int, int, void*, socklen_t*))dlsym(RTLD_NEXT, "getsockopt");
  if (getenv("SLOW") && level == SOL_SOCKET && option == SO_ERROR) {
    usleep(200000);
  }
  return real(fd, level, option, value, size);
}
