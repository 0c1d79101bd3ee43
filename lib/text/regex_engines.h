// lib/text/regex_engines.h - the regular expression engines behind regex_pattern.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lib/text/regex_pattern.h"

namespace mlc::text {

class Pattern::Engine {
 public:
  virtual ~Engine() = default;
  // Searches from `from`, with look-behind into the text before it. Returns false if there is no
  // match. `steps` is the remaining budget for all searches in this text; only untrusted patterns
  // use it.
  virtual bool Find(std::string_view text, size_t from, TextRange& match,
                    uint64_t& steps) const = 0;
};

std::unique_ptr<const Pattern::Engine> CompilePcre(const std::string& expression);
std::unique_ptr<const Pattern::Engine> CompileOniguruma(const std::string& expression);

[[noreturn]] void RefuseExpression(const std::string& expression, const std::string& why);
[[noreturn]] void StopExpression(const std::string& expression, const std::string& why);

}  // namespace mlc::text
