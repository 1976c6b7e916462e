#if !defined(_WIN32)
#include "plugin_cpp/grow/page_file.h"

#include <fcntl.h>     // for fallocate, posix_fadvise, O_CLOEXEC
#include <stdlib.h>    // for mkostemp
#include <sys/mman.h>  // for mmap, munmap
#include <unistd.h>    // for close, ftruncate, pwrite, unlink

#include <algorithm>  // for min
#include <cerrno>     // for errno, EINTR, ENOSYS, EOPNOTSUPP
#include <cstring>    // for strerror

#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
PageFile::PageFile(std::string const& prefix) : prefix_{prefix} {
  auto name = prefix + ".dp_bins.page.XXXXXX";
  file_ = mkostemp(name.data(), O_CLOEXEC);  // readable by this user alone
  auto error = errno;                        // building the message may change errno
  CHECK(file_ >= 0) << "Cannot create `" << name << "`: " << std::strerror(error) << "." << kFix;
  bool nameless = unlink(name.c_str()) == 0;
  error = errno;
  CHECK(nameless) << "Cannot unlink `" << name << "`: " << std::strerror(error) << ".";
}

PageFile::~PageFile() { close(file_); }

void PageFile::Reserve(std::uint64_t n_bytes) {
  if (n_bytes == 0) {
    return;
  }
#if defined(__linux__)
  int error = 0;
  do {
    error = fallocate(file_, 0, 0, static_cast<off_t>(n_bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  bool room = error == 0 || error == EOPNOTSUPP ||
              error == ENOSYS;  // not supported: continue without this check
#else
  bool room = ftruncate(file_, static_cast<off_t>(n_bytes)) == 0;
  int error = errno;
#endif  // defined(__linux__)
  CHECK(room) << "Cannot reserve disk space for binned rows at `" << prefix_
              << "`: " << std::strerror(error) << "." << kFix;
  auto first = this->Map(0, 1);
}

std::uint64_t PageFile::Append(std::uint8_t const* bytes, std::size_t n_bytes) {
  auto begin = (end_ + kAlignment - 1) / kAlignment * kAlignment;
  for (std::size_t done = 0; done < n_bytes;) {
    // Some systems write fewer than 2^31 bytes per call.
    auto n_now = std::min(n_bytes - done, std::size_t{1} << 30);
    auto n = pwrite(file_, bytes + done, n_now, static_cast<off_t>(begin + done));
    auto error = errno;
    if (n < 0 && error == EINTR) {
      continue;
    }
    CHECK(n > 0) << "Cannot write a page of binned rows at `" << prefix_
                 << "`: " << std::strerror(error) << "." << kFix;
    done += static_cast<std::size_t>(n);
  }
  end_ = begin + n_bytes;
  return begin;
}

std::shared_ptr<std::uint8_t const> PageFile::Map(std::uint64_t begin, std::size_t n_bytes) const {
  if (n_bytes == 0) {
    return {};
  }
  auto* at = mmap(nullptr, n_bytes, PROT_READ, MAP_SHARED, file_, static_cast<off_t>(begin));
  auto error = errno;
  CHECK(at != MAP_FAILED) << "Cannot map a page of binned rows: " << std::strerror(error) << "."
                          << kFix;
  return {static_cast<std::uint8_t const*>(at), [at, n_bytes](auto) { munmap(at, n_bytes); }};
}

void PageFile::ReadAhead([[maybe_unused]] std::uint64_t begin,
                         [[maybe_unused]] std::size_t n_bytes) const {
#if defined(POSIX_FADV_WILLNEED)
  // Only a hint: it does not change any result.
  posix_fadvise(file_, static_cast<off_t>(begin), static_cast<off_t>(n_bytes), POSIX_FADV_WILLNEED);
#endif  // defined(POSIX_FADV_WILLNEED)
}
}  // namespace xgboost::dp
#endif  // !defined(_WIN32)
