/**
 * A file of binned rows, for data that memory does not hold.
 *
 * Its rows are private. The file loses its name as soon as it is open: no other process finds it,
 * and the system frees its space when the training ends, however it ends. This is so on local
 * disks; a network file system may keep a name until the file is closed. On Windows an open file
 * keeps its name. No other process can open it, and the system deletes it with the last handle,
 * also that of a killed process; after a failure of power it may still be there.
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for uint8_t, uint64_t
#include <memory>   // for shared_ptr
#include <string>   // for string

namespace xgboost::dp {
class PageFile {
 public:
  /** @param prefix Path that the name of the file begins with. */
  explicit PageFile(std::string const& prefix);
  ~PageFile();
  PageFile(PageFile const&) = delete;
  PageFile& operator=(PageFile const&) = delete;

  /** @brief Fail if there is no room for so many bytes, or if they could not be mapped. */
  void Reserve(std::uint64_t n_bytes);
  /** @brief Write at the end. @return Where the bytes begin. */
  [[nodiscard]] std::uint64_t Append(std::uint8_t const* bytes, std::size_t n_bytes);
  /** @brief Bytes of the file, in memory only while the result lives. */
  [[nodiscard]] std::shared_ptr<std::uint8_t const> Map(std::uint64_t begin,
                                                        std::size_t n_bytes) const;
  /** @brief Tell the system which bytes are mapped next, to be read from the disk meanwhile. */
  void ReadAhead(std::uint64_t begin, std::size_t n_bytes) const;

 private:
#if defined(_WIN32)
  using File = void*;  // HANDLE
#else
  using File = int;
#endif  // defined(_WIN32)

  // What is mapped begins at a multiple of the system's page size, or of Windows' allocation
  // granularity, which are not larger anywhere.
  static constexpr std::uint64_t kAlignment = std::uint64_t{1} << 16;
  static constexpr char kMend[] =
      " Binned rows are kept where `cache_prefix` of the DataIter points to: choose a folder with "
      "room for a byte for each cell of the data, or two with many bins or categories.";

  std::string prefix_;
  File file_;
  std::uint64_t end_{0};
};
}  // namespace xgboost::dp
