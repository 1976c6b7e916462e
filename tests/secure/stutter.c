/* Every third exchange of bytes that does not wait would have had to: for LD_PRELOAD. The file that
 * STUTTER names gets a byte for each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int would_block(int fd) {
  static _Thread_local unsigned calls;
  if (!(fcntl(fd, F_GETFL) & O_NONBLOCK) || ++calls % 3 != 0) {
    return 0;
  }
  int log = open(getenv("STUTTER"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (log < 0 || write(log, "x", 1) != 1 || close(log) != 0) {
    abort();
  }
  errno = EAGAIN;
  return 1;
}

ssize_t send(int fd, void const* data, size_t size, int flags) {
  ssize_t (*real)(int, void const*, size_t, int) =
      (ssize_t(*)(int, void const*, size_t, int))dlsym(RTLD_NEXT, "send");
  return would_block(fd) ? -1 : real(fd, data, size, flags);
}

ssize_t recv(int fd, void* data, size_t size, int flags) {
  ssize_t (*real)(int, void*, size_t, int) =
      (ssize_t(*)(int, void*, size_t, int))dlsym(RTLD_NEXT, "recv");
  return would_block(fd) ? -1 : real(fd, data, size, flags);
}
