/**
 * All binned rows of a worker, page by page: in memory, or in a file of which one page at a time is
 * in memory.
 */
#pragma once

#include <cstddef>  // for size_t
#include <cstdint>  // for uint64_t
#include <memory>   // for unique_ptr
#include <string>   // for string
#include <vector>   // for vector

#include "common/hist_util.h"           // for HistogramCuts
#include "plugin_cpp/grow/bin_page.h"   // for BinPage, BinPlaces
#include "plugin_cpp/grow/page_file.h"  // for PageFile

namespace xgboost::dp {
class BinnedPages {
 public:
  /** @param cache Prefix of the path of the file; empty to keep the pages in memory. */
  BinnedPages(common::HistogramCuts const& cuts, std::string const& cache);

  void Add(BinPage page);
  [[nodiscard]] std::size_t Size() const { return pages_.size(); }
  /** @brief A page. Keep one at a time, and take them in order. */
  [[nodiscard]] BinPage operator[](std::size_t i) const;
  /** @brief A page without its bytes: what rows it has. */
  [[nodiscard]] BinPage const& Head(std::size_t i) const { return pages_[i]; }
  [[nodiscard]] std::size_t NumRows() const;
  [[nodiscard]] BinPlaces const& Places() const { return places_; }

 private:
  BinPlaces places_;
  std::vector<BinPage> pages_;         // without their bytes if there is a file
  std::vector<std::uint64_t> begins_;  // in the file
  std::unique_ptr<PageFile> file_;
};
}  // namespace xgboost::dp
