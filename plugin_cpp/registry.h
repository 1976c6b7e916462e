/**
 * Ways to do one thing. The file of each adds it by a static `Add`, and no other names it.
 */
#pragma once

#include <functional>  // for function
#include <map>         // for map
#include <memory>      // for make_unique, unique_ptr

#include "xgboost/logging.h"  // for CHECK

namespace xgboost::dp {
/** @tparam Parts What all of them are made of, which outlives them. */
template <typename Way, typename Choice, typename Parts>
class Registry {
 public:
  template <typename T>
  struct Add {
    explicit Add(Choice choice) {
      auto make = [](Parts const& parts) { return std::make_unique<T>(parts); };
      CHECK(Makers().emplace(choice, make).second) << "Two files add the same way.";
    }
  };
  [[nodiscard]] static std::unique_ptr<Way> Make(Choice choice, Parts const& parts) {
    auto maker = Makers().find(choice);
    CHECK(maker != Makers().cend()) << "No file adds this way.";
    return maker->second(parts);
  }

 private:
  static std::map<Choice, std::function<std::unique_ptr<Way>(Parts const&)>>& Makers() {
    static std::map<Choice, std::function<std::unique_ptr<Way>(Parts const&)>> all;
    return all;
  }
};
}  // namespace xgboost::dp
