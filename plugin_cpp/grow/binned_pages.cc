#include "plugin_cpp/grow/binned_pages.h"

#include <utility>  // for move

namespace xgboost::dp {
BinnedPages::BinnedPages(common::HistogramCuts const& cuts, std::string const& cache)
    : places_{cuts} {
  if (!cache.empty()) {
    file_ = std::make_unique<PageFile>(cache);
  }
}

void BinnedPages::Add(BinPage page) {
  if (file_) {
    begins_.push_back(file_->Append(page.bytes.get(), page.n_bytes));
    page.bytes.reset();
  }
  pages_.push_back(std::move(page));
}

BinPage BinnedPages::operator[](std::size_t i) const {
  auto page = pages_[i];
  if (file_) {
    page.bytes = file_->Map(begins_[i], page.n_bytes);
    auto next = (i + 1) % pages_.size();
    file_->ReadAhead(begins_[next], pages_[next].n_bytes);
  }
  return page;
}

std::size_t BinnedPages::NumRows() const {
  std::size_t n_rows = 0;
  for (auto const& page : pages_) {
    n_rows += page.n_rows;
  }
  return n_rows;
}
}  // namespace xgboost::dp
