/* Looks up the error of a socket slowly: for LD_PRELOAD, so that others see what comes before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

int getsockopt(int fd, int level, int option, void* value, socklen_t* size) {
  static int (*real)(int, int, int, void*, socklen_t*);
  if (!real) {
    real = (int (*)(int, int, int, void*, socklen_t*))dlsym(RTLD_NEXT, "getsockopt");
  }
  if (level == SOL_SOCKET && option == SO_ERROR) {
    usleep(200000);
  }
  return real(fd, level, option, value, size);
}
