/**
 * A user-defined loss, as a list of arithmetic instructions on the numbers of one row. It has no
 * memory and no loops and reads a single row, so it cannot couple rows.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <cmath>    // for abs, atan, cos, exp, expm1, fmax, fmin, log, log1p, pow, sin, sqrt, tanh
#include <memory>   // for make_shared
#include <utility>  // for pair
#include <vector>   // for vector

#include "plugin_cpp/loss/loss.h"  // for Loss
#include "xgboost/json.h"          // for Json, Array, Integer, String
#include "xgboost/logging.h"       // for CHECK

namespace xgboost::dp {
namespace {
using One = double (*)(double);
using Two = double (*)(double, double);

std::vector<std::pair<std::string, One>> const kOne{
    {"neg", [](double a) { return -a; }},
    {"abs", [](double a) { return std::abs(a); }},
    {"sign", [](double a) { return a > 0.0   ? 1.0
                                   : a < 0.0 ? -1.0
                                             : a; }},
    {"not", [](double a) { return a == 0.0 ? 1.0 : 0.0; }},
    {"exp", [](double a) { return std::exp(a); }},
    {"expm1", [](double a) { return std::expm1(a); }},
    {"log", [](double a) { return std::log(a); }},
    {"log1p", [](double a) { return std::log1p(a); }},
    {"sqrt", [](double a) { return std::sqrt(a); }},
    {"tanh", [](double a) { return std::tanh(a); }},
    {"sin", [](double a) { return std::sin(a); }},
    {"cos", [](double a) { return std::cos(a); }},
    {"atan", [](double a) { return std::atan(a); }},
};
std::vector<std::pair<std::string, Two>> const kTwo{
    {"add", [](double a, double b) { return a + b; }},
    {"sub", [](double a, double b) { return a - b; }},
    {"mul", [](double a, double b) { return a * b; }},
    {"div", [](double a, double b) { return a / b; }},
    {"pow", [](double a, double b) { return std::pow(a, b); }},
    // NaN stays NaN.
    {"max", [](double a, double b) { return a > b || a != a ? a : b; }},
    {"min", [](double a, double b) { return a < b || a != a ? a : b; }},
    {"lt", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"le", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
    {"eq", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"and", [](double a, double b) { return a != 0.0 && b != 0.0 ? 1.0 : 0.0; }},
    {"or", [](double a, double b) { return a != 0.0 || b != 0.0 ? 1.0 : 0.0; }},
};

struct Instruction {
  enum class Kind { kMargin, kLabel, kWeight, kNumber, kOne, kTwo, kWhere } kind{Kind::kNumber};
  double number{0};
  One one{nullptr};
  Two two{nullptr};
  std::size_t a{0}, b{0}, c{0};  // of earlier instructions
};

constexpr char kWrong[] =
    "The plan (`dp_plan`) is not valid: `loss.program` is not a list of instructions that read "
    "earlier ones.";

/** @param earlier Number of earlier instructions, which this one may read. */
Instruction ReadInstruction(Json const& json, std::size_t earlier) {
  CHECK(IsA<Array>(json) && !get<Array const>(json).empty()) << kWrong;
  auto const& words = get<Array const>(json);
  CHECK(IsA<String>(words.front())) << kWrong;
  auto const& name = get<String const>(words.front());
  auto from = [&](std::size_t i) {
    CHECK(i < words.size() && IsA<Integer>(words[i])) << kWrong;
    auto value = get<Integer const>(words[i]);
    CHECK(value >= 0 && static_cast<std::size_t>(value) < earlier) << kWrong;
    return static_cast<std::size_t>(value);
  };
  Instruction out;
  std::size_t n = 0;
  using Kind = Instruction::Kind;
  if (name == "margin" || name == "label" || name == "weight") {
    out.kind = name == "margin" ? Kind::kMargin : name == "label" ? Kind::kLabel : Kind::kWeight;
  } else if (name == "number") {
    CHECK(words.size() == 2 && IsA<String>(words[1])) << kWrong;
    out.number = JsonReader::ParseNumber("program", get<String const>(words[1]));
    return out;
  } else if (name == "where") {
    out.kind = Kind::kWhere;
    n = 3;
  } else {
    for (auto const& [known, fn] : kOne) {
      if (known == name) {
        out.kind = Kind::kOne;
        out.one = fn;
        n = 1;
      }
    }
    for (auto const& [known, fn] : kTwo) {
      if (known == name) {
        out.kind = Kind::kTwo;
        out.two = fn;
        n = 2;
      }
    }
    CHECK(n > 0) << kWrong;
  }
  CHECK(words.size() == n + 1) << kWrong;
  out.a = n > 0 ? from(1) : 0;
  out.b = n > 1 ? from(2) : 0;
  out.c = n > 2 ? from(3) : 0;
  return out;
}

class ProgramLoss : public Loss {
 public:
  static constexpr std::size_t kMaxInstructions = 1000;

  ProgramLoss(JsonReader const& in, LabelRange) : unit_{in.Real("unit", 1e-30, 1e38)} {
    auto const& json = in.At("program");
    CHECK(IsA<Array>(json)) << kWrong;
    for (auto const& v : get<Array const>(json)) {
      program_.push_back(ReadInstruction(v, program_.size()));
      is_weighted_ = is_weighted_ || program_.back().kind == Instruction::Kind::kWeight;
    }
    CHECK(!program_.empty() && program_.size() <= kMaxInstructions) << kWrong;
    auto last = static_cast<std::int64_t>(program_.size()) - 1;
    gradient_ = in.Int("gradient", 0, last);
    hessian_ = in.Int("hessian", 0, last);
  }

  [[nodiscard]] double Unit(std::int32_t, std::size_t) const override { return unit_; }
  [[nodiscard]] bool IsWeighted() const override { return is_weighted_; }
  [[nodiscard]] bool KnowsNorms() const override { return false; }

  void Pairs(LossRows const& rows, double* g, double* h) const override {
    std::vector<double> values(program_.size());
    for (std::size_t i = 0; i < rows.n; ++i) {
      for (std::size_t k = 0; k < program_.size(); ++k) {
        values[k] = this->Value(program_[k], rows, i, values);
      }
      // The unit of margins, so that the gradient is the user's gradient.
      g[i] = values[gradient_];
      h[i] = values[hessian_] * unit_;
    }
  }

  void LargestNorms(LossRows const&, double, double*) const override {
    LOG(FATAL) << "The norms of this loss are unknown.";
  }

 private:
  [[nodiscard]] double Value(Instruction const& in, LossRows const& rows, std::size_t i,
                             std::vector<double> const& values) const {
    switch (in.kind) {
      case Instruction::Kind::kMargin:
        return rows.margins[i];
      case Instruction::Kind::kLabel:
        return rows.labels[i];
      case Instruction::Kind::kWeight:
        return rows.weights[i];
      case Instruction::Kind::kOne:
        return in.one(values[in.a]);
      case Instruction::Kind::kTwo:
        return in.two(values[in.a], values[in.b]);
      case Instruction::Kind::kWhere:
        return values[in.a] != 0.0 ? values[in.b] : values[in.c];
      default:
        return in.number;
    }
  }

  double unit_;
  std::vector<Instruction> program_;
  std::size_t gradient_{0}, hessian_{0};
  bool is_weighted_{false};
};
}  // namespace

std::shared_ptr<Loss const> MakeProgramLoss(JsonReader const& in, LabelRange range) {
  return std::make_shared<ProgramLoss>(in, range);
}
}  // namespace xgboost::dp
