// lib/text/regex_engines.h - what pattern.h compiles expressions with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/pattern.h"

namespace mlc {

class Pattern::Engine {
 public:
  virtual ~Engine() = default;
  // Searches from `from` on, and sees what is before it. False: there is no match. `steps` are those
  // that are left for all searches in the text, where an expression is a stranger's.
  virtual bool Find(std::string_view text, size_t from, TextRange& match,
                    uint64_t& steps) const = 0;
};

std::unique_ptr<const Pattern::Engine> CompilePcre(const std::string& expression);
std::unique_ptr<const Pattern::Engine> CompileOniguruma(const std::string& expression);

[[noreturn]] void RefuseExpression(const std::string& expression, const std::string& why);
[[noreturn]] void StopExpression(const std::string& expression, const std::string& why);

}  // namespace mlc
