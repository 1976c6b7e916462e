/**
 * A file of binned rows, for data that do not fit into memory.
 *
 * The rows are private. The file is unlinked as soon as it is open, so no other process can find
 * it, and the system frees its space whenever the process ends. A network file system may keep a
 * name until the file is closed. On Windows an open file keeps its name, but no other process can
 * open it, and the system deletes it with the last handle; it may survive a power failure.
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for uint8_t, uint64_t
#include <memory>   // for shared_ptr
#include <string>   // for string

namespace xgboost::dp {
class PageFile {
 public:
  /** @param prefix Start of the path of the file. */
  explicit PageFile(std::string const& prefix);
  ~PageFile();
  PageFile(PageFile const&) = delete;
  PageFile& operator=(PageFile const&) = delete;

  /** @brief Fail if `n_bytes` do not fit on the disk, or cannot be mapped. */
  void Reserve(std::uint64_t n_bytes);
  /** @brief Append bytes. @return Their offset. */
  [[nodiscard]] std::uint64_t Append(std::uint8_t const* bytes, std::size_t n_bytes);
  /** @brief Map bytes of the file for the lifetime of the result. */
  [[nodiscard]] std::shared_ptr<std::uint8_t const> Map(std::uint64_t begin,
                                                        std::size_t n_bytes) const;
  /** @brief Ask the system to read the next bytes ahead. */
  void ReadAhead(std::uint64_t begin, std::size_t n_bytes) const;

 private:
#if defined(_WIN32)
  using File = void*;  // HANDLE
#else
  using File = int;
#endif  // defined(_WIN32)

  // A multiple of every system's page size, and of the allocation granularity of Windows.
  static constexpr std::uint64_t kAlignment = std::uint64_t{1} << 16;
  static constexpr char kFix[] =
      " Binned rows are stored in the folder of the DataIter's `cache_prefix`. Choose a folder "
      "with free space for one byte per cell of the data, or two with many bins or categories.";

  std::string prefix_;
  File file_;
  std::uint64_t end_{0};
};
}  // namespace xgboost::dp
