#include "plugin_cpp/pages/page_file.h"

#include <cerrno>     // for errno, EINTR
#include <cstring>    // for strerror

#if !defined(_WIN32)
#include <fcntl.h>     // for fcntl, posix_fadvise
#include <stdlib.h>    // for mkstemp
#include <sys/mman.h>  // for mmap, munmap
#include <unistd.h>    // for close, pwrite, unlink
#endif  // !defined(_WIN32)

#include "xgboost/logging.h"  // for CHECK, LOG

namespace xgboost::dp {
#if defined(_WIN32)
// An open file keeps its name here, and a process that is killed would leave its rows behind.
bool PageFile::IsAvailable() { return false; }
PageFile::PageFile(std::string const&) { LOG(FATAL) << "No nameless files on this system."; }
PageFile::~PageFile() = default;
std::uint64_t PageFile::Append(std::uint8_t const*, std::size_t) { return 0; }
std::shared_ptr<std::uint8_t const> PageFile::Map(std::uint64_t, std::size_t) const { return {}; }
void PageFile::ReadAhead(std::uint64_t, std::size_t) const {}
#else
namespace {
// What is mapped begins at a multiple of the system's page size, which is not larger anywhere.
constexpr std::uint64_t kAlignment = std::uint64_t{1} << 16;
constexpr char kMend[] =
    " Binned rows are kept where `cache_prefix` of the DataIter points to: choose a folder with "
    "room for a byte for each cell of the data.";
}  // namespace

bool PageFile::IsAvailable() { return true; }

PageFile::PageFile(std::string const& prefix) : prefix_{prefix} {
  auto name = prefix + ".dp_bins.page.XXXXXX";
  file_ = mkstemp(name.data());  // readable by this user alone
  CHECK_GE(file_, 0) << "Cannot create `" << name << "`: " << std::strerror(errno) << "." << kMend;
  CHECK_EQ(unlink(name.c_str()), 0) << "Cannot take the name off `" << name
                                    << "`: " << std::strerror(errno) << ".";
  fcntl(file_, F_SETFD, FD_CLOEXEC);
}

PageFile::~PageFile() {
  if (file_ >= 0) {
    close(file_);
  }
}

std::uint64_t PageFile::Append(std::uint8_t const* bytes, std::size_t n_bytes) {
  auto begin = (end_ + kAlignment - 1) / kAlignment * kAlignment;
  for (std::size_t done = 0; done < n_bytes;) {
    auto n = pwrite(file_, bytes + done, n_bytes - done, static_cast<off_t>(begin + done));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    CHECK_GT(n, 0) << "Cannot write a page of binned rows below `" << prefix_
                   << "`: " << std::strerror(errno) << "." << kMend;
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
  CHECK(at != MAP_FAILED) << "Cannot map a page of binned rows: " << std::strerror(errno) << ".";
  return {static_cast<std::uint8_t const*>(at), [at, n_bytes](auto) { munmap(at, n_bytes); }};
}

void PageFile::ReadAhead([[maybe_unused]] std::uint64_t begin,
                         [[maybe_unused]] std::size_t n_bytes) const {
#if defined(POSIX_FADV_WILLNEED)
  // Advice only: whether it is taken changes no result.
  posix_fadvise(file_, static_cast<off_t>(begin), static_cast<off_t>(n_bytes),
                POSIX_FADV_WILLNEED);
#endif  // defined(POSIX_FADV_WILLNEED)
}
#endif  // defined(_WIN32)
}  // namespace xgboost::dp
