#include "plugin_cpp/mechanisms/sampling.h"

#include <algorithm>  // for transform

#include "plugin_cpp/random/samplers.h"  // for UniformBelow
#include "plugin_cpp/release/source.h"   // for MakeSampleSource
#include "xgboost/logging.h"             // for CHECK

namespace xgboost::dp {
RowSample::RowSample(Plan const& plan, std::string const& test_key) : plan_{plan} {
  if (plan.ReadsSomeRows()) {
    source_ = MakeSampleSource(test_key);
  }
}

std::vector<std::uint8_t> const& RowSample::Draw(std::int32_t round, std::size_t n_rows,
                                                 Persons const* persons, Release* release) {
  CHECK(!persons || persons->NumRows() == n_rows);
  if (plan_.ReadsSomeRows()) {
    release->BeginRound(MakeRoundEvent(plan_, round),
                        plan_.IsSampled() || round % plan_.ensemble == 0);
  }
  auto n_units = persons ? persons->NumPersons() : n_rows;
  if (plan_.IsSampled()) {
    this->DrawSample(n_units);
  } else if (plan_.ensemble > 1) {
    if (round % plan_.ensemble == 0) {
      this->DrawParts(n_units);
    }
    units_.resize(n_units);
    std::transform(parts_.cbegin(), parts_.cend(), units_.begin(),
                   [&](auto part) { return part == round % plan_.ensemble; });
  }
  if (!persons || units_.empty()) {
    return units_;
  }
  auto const& codes = persons->Codes();
  rows_.resize(n_rows);
  std::transform(codes.cbegin(), codes.cend(), rows_.begin(),
                 [&](auto code) { return units_[code]; });
  return rows_;
}

void RowSample::DrawSample(std::size_t n_units) {
  units_.resize(n_units);
  std::uint64_t bits{0};
  for (std::size_t i = 0; i < n_units; ++i) {
    // Each word serves two units.
    bits = i % 2 == 0 ? source_->Next64() : bits >> 32;
    units_[i] = static_cast<std::int64_t>(bits & 0xffffffffU) < plan_.sampling_num;
  }
}

void RowSample::DrawParts(std::size_t n_units) {
  parts_.resize(n_units);
  for (auto& part : parts_) {
    part = static_cast<std::uint16_t>(UniformBelow(source_.get(), plan_.ensemble));
  }
}
}  // namespace xgboost::dp
