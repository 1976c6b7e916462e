/**
 * Runs the C++ parts of the library through its C functions, and writes what comes out.
 *
 * Usage: driver FOLDER OUT. Every folder in FOLDER is one training, as cases.py writes it; OUT gets
 * its model and intercept, what the samplers draw from a known key, and a step of the accountant.
 * The same program is made for two processors, and the test compares the files.
 */
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "xgboost/c_api.h"

extern "C" {
int XGDPSetPersons(DMatrixHandle, std::uint32_t const*, std::uint64_t, std::uint64_t);
int XGDPReleaseBeforeTrees(DMatrixHandle, char const*, char const**);
int XGDPDiscoverNumbers(float const*, std::int64_t const*, std::uint64_t, std::uint64_t,
                        char const*, char const**);
int XGDPBoundedRangeSteps(std::int64_t, std::int64_t, std::int64_t, double const*, double const*,
                          double*);
int XGDPTestUniform(std::uint8_t const*, std::uint32_t, std::uint64_t, std::size_t, std::uint64_t*);
int XGDPTestUniform128(std::uint8_t const*, std::uint32_t, std::uint64_t, std::uint64_t,
                       std::size_t, std::uint64_t*);
int XGDPTestBernoulliExp(std::uint8_t const*, std::uint32_t, std::uint64_t, std::uint64_t,
                         std::uint64_t, std::uint64_t, std::uint64_t, std::size_t, std::uint8_t*);
int XGDPTestDiscreteLaplace(std::uint8_t const*, std::uint32_t, std::uint64_t, std::size_t,
                            std::int64_t*);
int XGDPTestDiscreteGaussian(std::uint8_t const*, std::uint32_t, std::uint64_t, std::size_t,
                             std::int64_t*);
int XGDPTestSelect(std::uint8_t const*, std::uint32_t, std::int64_t const*, std::size_t,
                   std::uint64_t, std::uint64_t, std::size_t, std::uint64_t*);
int XGDPTestIntegerSqrt128(std::uint64_t, std::uint64_t, std::uint64_t*);
int XGDPTestSystemKey(std::uint8_t*);
}

namespace {
namespace fs = std::filesystem;

void Check(int status) {
  if (status != 0) {
    std::cerr << XGBGetLastError() << std::endl;
    std::exit(1);
  }
}

template <typename T>
std::vector<T> ReadAll(fs::path const& path) {
  std::ifstream in{path, std::ios::binary};
  std::vector<char> bytes{std::istreambuf_iterator<char>{in}, {}};
  std::vector<T> out(bytes.size() / sizeof(T));
  std::copy(bytes.cbegin(), bytes.cend(), reinterpret_cast<char*>(out.data()));
  return out;
}

std::vector<std::string> ReadLines(fs::path const& path) {
  std::ifstream in{path};
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

template <typename T>
void Write(fs::path const& path, std::vector<T> const& values) {
  std::ofstream out{path, std::ios::binary};
  out.write(reinterpret_cast<char const*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
}

void WriteText(fs::path const& path, std::string const& text) {
  Write(path, std::vector<char>{text.cbegin(), text.cend()});
}

void Train(fs::path const& in, fs::path const& out) {
  auto values = ReadAll<float>(in / "rows");
  auto n_columns = std::stoul(ReadLines(in / "columns").at(0)), n_rows = values.size() / n_columns;
  auto array = "{\"data\": [" + std::to_string(reinterpret_cast<std::uintptr_t>(values.data())) +
               ", true], \"typestr\": \"<f4\", \"version\": 3, \"shape\": [" +
               std::to_string(n_rows) + ", " + std::to_string(n_columns) + "]}";
  DMatrixHandle matrix;
  Check(XGDMatrixCreateFromDense(array.c_str(), R"({"missing": NaN, "nthread": 1})", &matrix));
  for (auto const& field : fs::directory_iterator{in / "info"}) {
    auto info = ReadAll<float>(field.path());
    auto name = field.path().filename().string();
    Check(XGDMatrixSetFloatInfo(matrix, name.c_str(), info.data(), info.size()));
  }
  if (auto persons = ReadAll<std::uint32_t>(in / "persons"); !persons.empty()) {
    auto most = *std::max_element(persons.cbegin(), persons.cend());
    Check(XGDPSetPersons(matrix, persons.data(), n_rows, std::uint64_t{most} + 1));
  }
  auto types = ReadLines(in / "types");
  std::vector<char const*> type_texts;
  for (auto const& type : types) {
    type_texts.push_back(type.c_str());
  }
  if (!types.empty()) {
    Check(XGDMatrixSetStrFeatureInfo(matrix, "feature_type", type_texts.data(), types.size()));
  }
  auto requests = ReadLines(in / "requests");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    char const* answer;
    Check(XGDPReleaseBeforeTrees(matrix, requests[i].c_str(), &answer));
    WriteText(out / ("answer-" + std::to_string(i)), answer);
  }

  BoosterHandle booster;
  Check(XGBoosterCreate(&matrix, 1, &booster));
  for (auto const& line : ReadLines(in / "params")) {
    auto tab = line.find('\t');
    Check(XGBoosterSetParam(booster, line.substr(0, tab).c_str(), line.substr(tab + 1).c_str()));
  }
  Check(XGBoosterSetAttr(booster, "dp_ledger", ReadLines(in / "claim").at(0).c_str()));
  auto n_rounds = std::stoi(ReadLines(in / "rounds").at(0));
  for (int i = 0; i < n_rounds; ++i) {
    Check(XGBoosterUpdateOneIter(booster, i, matrix));
  }
  Check(XGBoosterSaveModel(booster, (out / "model.ubj").string().c_str()));
  bst_ulong const* shape;
  bst_ulong dim;
  float const* found;
  Check(XGBoosterPredictFromDMatrix(
      booster, matrix,
      R"({"type": 1, "training": false, "iteration_begin": 0, "iteration_end": 0,
          "strict_shape": true})",
      &shape, &dim, &found));
  std::size_t n = 1;
  for (bst_ulong i = 0; i < dim; ++i) {
    n *= shape[i];
  }
  Write(out / "margins", std::vector<float>(found, found + n));
  Check(XGBoosterFree(booster));
  Check(XGDMatrixFree(matrix));
}

void Draw(fs::path const& out) {
  std::vector<std::uint8_t> key(32);
  for (std::size_t i = 0; i < key.size(); ++i) {
    key[i] = static_cast<std::uint8_t>(i);
  }
  std::size_t constexpr kDraws = 4096;
  std::vector<std::uint64_t> words(kDraws);
  std::vector<std::int64_t> integers(kDraws);
  std::vector<std::uint8_t> coins(kDraws);
  std::uint32_t stream = 0;
  for (std::uint64_t below :
       {std::uint64_t{3}, std::uint64_t{1} << 40, (std::uint64_t{1} << 63) - 25}) {
    Check(XGDPTestUniform(key.data(), stream++, below, kDraws, words.data()));
    Write(out / ("uniform-" + std::to_string(below)), words);
  }
  Check(XGDPTestUniform128(key.data(), stream++, 1ULL << 50, 12345, kDraws / 2, words.data()));
  Write(out / "uniform-128", words);
  Check(XGDPTestBernoulliExp(key.data(), stream++, 0, 1, 7, 3, 11, kDraws, coins.data()));
  Write(out / "coins", coins);
  for (std::uint64_t scale : {1ULL, 1000ULL, 1ULL << 28}) {
    Check(XGDPTestDiscreteLaplace(key.data(), stream++, scale, kDraws, integers.data()));
    Write(out / ("laplace-" + std::to_string(scale)), integers);
    Check(XGDPTestDiscreteGaussian(key.data(), stream++, scale * scale, kDraws, integers.data()));
    Write(out / ("gaussian-" + std::to_string(scale)), integers);
  }
  std::vector<std::int64_t> const utilities{0, 5, 5, -1000, 77, 1 << 20, (1 << 20) - 3};
  Check(XGDPTestSelect(key.data(), stream++, utilities.data(), utilities.size(), 3, 1 << 4, kDraws,
                       words.data()));
  Write(out / "selections", words);
  for (std::size_t i = 0; i < kDraws; ++i) {
    Check(XGDPTestIntegerSqrt128(i * 0x9e3779b97f4a7c15ULL, i * i, &words[i]));
  }
  Write(out / "roots", words);
  // The way of this system to a random key: its bytes are not compared.
  std::vector<std::uint8_t> fresh(32);
  Check(XGDPTestSystemKey(fresh.data()));
  Write(out / "has-key", std::vector<char>{fresh == std::vector<std::uint8_t>(32) ? '0' : '1'});
}

void Account(fs::path const& out) {
  std::int64_t constexpr kPoints = 4001, kRange = 300;
  std::vector<double> curve(kPoints), laws(4 * (kRange + 1)), growth(kRange, 1e-3);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    curve[i] = 1.0 / (1.0 + static_cast<double>(i));
  }
  for (std::size_t i = 0; i < laws.size(); ++i) {
    laws[i] = 1.0 / (3.0 + static_cast<double>(i % 97));
  }
  Check(XGDPBoundedRangeSteps(2, kPoints, kRange, laws.data(), growth.data(), curve.data()));
  Write(out / "curve", curve);
}

void Discover(fs::path const& in, fs::path const& out) {
  auto values = ReadAll<float>(in / "rows");
  auto weights = ReadAll<std::int64_t>(in / "weights");
  char const* answer;
  Check(XGDPDiscoverNumbers(values.data(), weights.data(), weights.size(),
                            values.size() / weights.size(), ReadLines(in / "request").at(0).c_str(),
                            &answer));
  WriteText(out / "answer", answer);
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "driver FOLDER OUT" << std::endl;
    return 2;
  }
  fs::path const in{argv[1]}, out{argv[2]};
  for (auto const& entry : fs::directory_iterator{in}) {
    auto name = entry.path().filename();
    fs::create_directories(out / name);
    if (fs::exists(entry.path() / "request")) {
      Discover(entry.path(), out / name);
    } else {
      Train(entry.path(), out / name);
    }
  }
  fs::create_directories(out / "samplers");
  fs::create_directories(out / "accountant");
  Draw(out / "samplers");
  Account(out / "accountant");
  return 0;
}
