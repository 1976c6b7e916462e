#include "plugin_cpp/tree_text.h"

#include <cstddef>      // for size_t
#include <cstdlib>      // for atoi
#include <string>       // for string, to_string
#include <string_view>  // for string_view
#include <utility>      // for move

#include "xgboost/json.h"     // for Json, get, Object, Array, String
#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
namespace {
constexpr std::size_t kMostDigits = 15;  // so many come back from a double as they were
constexpr int kLeastFixed = -4, kMostFixed = 15;

/** @brief A real as XGBoost writes it, "-1.25E-2", in the form of Python's `repr`. */
void AppendReal(std::string_view token, std::string* out) {
  auto mark = token.find('E');
  CHECK(mark != std::string_view::npos) << "A real number without an exponent.";
  auto power = std::atoi(std::string{token.substr(mark + 1)}.c_str());
  if (token.front() == '-') {
    out->push_back('-');
    token.remove_prefix(1);
    --mark;
  }
  std::string digits{token.substr(0, 1)};
  if (mark > 1) {
    CHECK_EQ(token[1], '.');
    digits += token.substr(2, mark - 2);
  }
  CHECK_LE(digits.size(), kMostDigits) << "A real number of a double's precision.";
  while (digits.size() > 1 && digits.back() == '0') {
    digits.pop_back();
  }
  if (power < kLeastFixed || power > kMostFixed) {
    out->push_back(digits.front());
    if (digits.size() > 1) {
      *out += "." + digits.substr(1);
    }
    auto size = std::to_string(power < 0 ? -power : power);
    *out += power < 0 ? "e-" : "e+";
    *out += size.size() < 2 ? "0" + size : size;
    return;
  }
  if (power < 0) {
    *out += "0.";
    out->append(static_cast<std::size_t>(-power - 1), '0');
    *out += digits;
    return;
  }
  auto whole = static_cast<std::size_t>(power) + 1;
  if (digits.size() <= whole) {
    *out += digits;
    out->append(whole - digits.size(), '0');
    *out += ".0";
  } else {
    *out += digits.substr(0, whole) + "." + digits.substr(whole);
  }
}

bool IsNumeric(char c) { return (c >= '0' && c <= '9') || c == '-'; }
}  // namespace

std::string AsPythonWrites(std::string const& text) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (std::size_t i = 0; i < text.size();) {
    auto c = text[i];
    if (c == '"') {
      auto end = i + 1;
      while (end < text.size() && text[end] != '"') {
        end += text[end] == '\\' ? 2 : 1;
      }
      CHECK_LT(end, text.size()) << "A text of a tree has no end.";
      out.append(text, i, end + 1 - i);
      i = end + 1;
    } else if (IsNumeric(c)) {
      auto end = i;
      bool is_whole = true;
      while (end < text.size() && text[end] != ',' && text[end] != ']' && text[end] != '}') {
        is_whole = text[end] != 'E' && is_whole;
        ++end;
      }
      std::string_view token{text.data() + i, end - i};
      if (is_whole) {
        out += token;  // a whole number, or -Infinity
      } else {
        AppendReal(token, &out);
      }
      i = end;
    } else {
      out.push_back(c);
      if (c == ',' || c == ':') {
        out.push_back(' ');
      }
      ++i;
    }
  }
  return out;
}

std::string TreeTexts(Json const& model) {
  auto const& learner = model["learner"];
  std::string score, text, out;
  Json::Dump(learner["learner_model_param"]["base_score"], &score);
  auto const& trees = get<Array const>(learner["gradient_booster"]["model"]["trees"]);
  for (auto const& tree : trees) {
    auto numbers = get<Object const>(tree);
    numbers.erase("id");
    Json::Dump(Json{Object{std::move(numbers)}}, &text);
    out += "[" + score + ", " + AsPythonWrites(text) + "]\n";
  }
  return out;
}
}  // namespace xgboost::dp
