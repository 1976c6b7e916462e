/* Every third exchange of bytes that does not wait would have had to: for LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

static int would_block(int fd) {
  static _Thread_local unsigned calls;
  if (!(fcntl(fd, F_GETFL) & O_NONBLOCK) || ++calls % 3 != 0) {
    return 0;
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
