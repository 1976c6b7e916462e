#if defined(_WIN32)
#include <windows.h>

#include <algorithm>     // for min
#include <atomic>        // for atomic
#include <limits>        // for numeric_limits
#include <string>        // for string, wstring, to_string
#include <system_error>  // for system_category

#include "plugin_cpp/grow/page_file.h"
#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
namespace {
std::string Reason(DWORD error) { return std::system_category().message(static_cast<int>(error)); }

std::wstring Wide(std::string const& text) {
  if (text.empty()) {
    return {};
  }
  CHECK_LE(text.size(), static_cast<std::size_t>(std::numeric_limits<int>::max()));
  auto size = static_cast<int>(text.size());
  std::wstring wide(static_cast<std::size_t>(size),
                    L'\0');  // UTF-16 never needs more code units than UTF-8
  size = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), size, wide.data(), size);
  CHECK_GT(size, 0) << "The `cache_prefix` of a DataIter must be valid UTF-8.";
  wide.resize(static_cast<std::size_t>(size));
  return wide;
}

DWORD Low(std::uint64_t x) { return static_cast<DWORD>(x); }
DWORD High(std::uint64_t x) { return static_cast<DWORD>(x >> 32); }
}  // namespace

PageFile::PageFile(std::string const& prefix) : prefix_{prefix} {
  static std::atomic<std::uint64_t> n_files{0};
  auto base = prefix + ".dp_bins.page." + std::to_string(GetCurrentProcessId()) + ".";
  std::string name;
  file_ = INVALID_HANDLE_VALUE;
  DWORD error = ERROR_FILE_EXISTS;
  // After a power failure, the file of an earlier process with the same id may still exist.
  while (file_ == INVALID_HANDLE_VALUE && error == ERROR_FILE_EXISTS) {
    name = base + std::to_string(n_files.fetch_add(1));
    // No sharing, so no other process can open the file. No security attributes, so child processes
    // do not inherit the handle, which would keep the file alive.
    file_ = CreateFileW(Wide(name).c_str(), GENERIC_READ | GENERIC_WRITE | DELETE, 0, nullptr,
                        CREATE_NEW, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
    error = GetLastError();
  }
  CHECK(file_ != INVALID_HANDLE_VALUE)
      << "Cannot create `" << name << "`: " << Reason(error) << "." << kFix;
}

PageFile::~PageFile() { CloseHandle(file_); }

void PageFile::Reserve(std::uint64_t n_bytes) {
  if (n_bytes == 0) {
    return;
  }
  LARGE_INTEGER size;
  size.QuadPart = static_cast<LONGLONG>(n_bytes);
  bool room = SetFilePointerEx(file_, size, nullptr, FILE_BEGIN) != 0 && SetEndOfFile(file_) != 0;
  auto error = GetLastError();
  CHECK(room) << "Cannot reserve disk space for binned rows at `" << prefix_
              << "`: " << Reason(error) << "." << kFix;
  auto first = this->Map(0, 1);
}

std::uint64_t PageFile::Append(std::uint8_t const* bytes, std::size_t n_bytes) {
  auto begin = (end_ + kAlignment - 1) / kAlignment * kAlignment;
  for (std::size_t done = 0; done < n_bytes;) {
    auto n_now = static_cast<DWORD>(std::min(n_bytes - done, std::size_t{1} << 30));
    OVERLAPPED at{};
    at.Offset = Low(begin + done);
    at.OffsetHigh = High(begin + done);
    DWORD n = 0;
    bool written = WriteFile(file_, bytes + done, n_now, &n, &at) != 0 && n > 0;
    auto error = GetLastError();
    CHECK(written) << "Cannot write a page of binned rows at `" << prefix_ << "`: " << Reason(error)
                   << "." << kFix;
    done += n;
  }
  end_ = begin + n_bytes;
  return begin;
}

std::shared_ptr<std::uint8_t const> PageFile::Map(std::uint64_t begin, std::size_t n_bytes) const {
  if (n_bytes == 0) {
    return {};
  }
  void* at = nullptr;
  auto mapping = CreateFileMappingW(file_, nullptr, PAGE_READONLY, 0, 0, nullptr);
  auto error = GetLastError();
  if (mapping != nullptr) {
    at = MapViewOfFile(mapping, FILE_MAP_READ, High(begin), Low(begin), n_bytes);
    error = GetLastError();
    CloseHandle(mapping);  // the view keeps the mapping open
  }
  CHECK(at != nullptr) << "Cannot map a page of binned rows: " << Reason(error) << "." << kFix;
  return {static_cast<std::uint8_t const*>(at), [at](auto) { UnmapViewOfFile(at); }};
}

// Windows prefetches sequential reads without a request.
void PageFile::ReadAhead(std::uint64_t, std::size_t) const {}
}  // namespace xgboost::dp
#endif  // defined(_WIN32)
