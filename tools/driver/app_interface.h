// tools/driver/app_interface.h - the interface of a package as the code of an app sees it, which
// app_code.h writes down in Swift and in Objective-C.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::driver {

struct AppPort {
  enum class Kind { kArray, kImage, kLabel, kProbabilities };
  std::string name;        // in the package
  std::string identifier;  // in the language, unique among the ports of its list
  Kind kind = Kind::kArray;
  DType dtype = DType::kNone;  // of an array, or of the class labels: kString or an integer
  std::string about;           // a sentence: type, shape, allowed sizes, default
  bool optional = false;       // inputs only
};

struct AppFunction {
  const Function* function;
  std::string class_name;  // "MobilenetPredictor"
  std::vector<AppPort> inputs, outputs, states;
};

struct AppInterface {
  std::string package;   // "mobilenet.mlpackage", whatever the format that was read
  std::string resource;  // "mobilenet": its compiled form in an app is mobilenet.mlmodelc
  Opset target;          // the lowest that supports all functions, states, and choosing a function
  std::vector<AppFunction> functions;  // the default function first
  bool several() const { return functions.size() > 1; }
};

// The words that a language does not allow as the name of a property, with a blank around each.
// Identifiers are ASCII.
struct AppLanguage {
  std::string_view keywords;  // escaped by `quote`, or by a '_' behind them if that is 0
  std::string_view taken;     // get a '_' behind them
  char quote = 0;
  // Prefixes that give a method's result another owner (Objective-C): such names get "the_".
  std::span<const std::string_view> families;
};
// Keywords that are reserved in declarations, statements and expressions of Swift.
std::string_view SwiftKeywords();
bool IsSwiftKeyword(std::string_view name);

AppInterface AppInterfaceOf(const Program& program, Opset needed,
                            const std::filesystem::path& model, const AppLanguage& language);

// A comment of one or more lines, each at most 100 bytes with `begin` ("    /// "), except for longer words.
// Control characters become blanks.
std::string Comment(std::string_view begin, std::string_view text);
// The text with blanks in place of control characters.
std::string OneLine(std::string_view text);
// A string literal of C and Swift with double quotes.
std::string Quoted(std::string_view text);

}  // namespace mlc::driver
