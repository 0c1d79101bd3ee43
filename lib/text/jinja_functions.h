// lib/text/jinja_functions.h - filters, tests, global functions and methods by name.
//
// Each fails for arguments that Python's would not take. A name of Jinja or Python that is not
// supported is refused as such; names of neither are unknown.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "lib/text/jinja_value.h"

namespace mlc::text::jinja {

// Arguments by the names of the parameters, as in Python. Points into the arguments, which must
// outlive it; `function` is what error texts call the function.
class Parameters {
 public:
  Parameters(Runtime& runtime, std::string function, const Arguments& arguments,
             std::initializer_list<std::string_view> names, size_t required = 0);
  // Null if the argument was not given.
  const Value* operator[](size_t i) const { return values_[i]; }
  bool Flag(size_t i, bool missing = false) const;
  int64_t Whole(size_t i, int64_t missing) const;
  std::string Text(size_t i, std::string_view missing) const;

 private:
  Runtime& runtime_;
  std::string function_;
  std::vector<const Value*> values_;
};

bool IsFilter(std::string_view name);
bool IsTest(std::string_view name);
Value ApplyFilter(Runtime& runtime, std::string_view name, const Value& value,
                  const Arguments& arguments);
bool ApplyTest(Runtime& runtime, std::string_view name, const Value& value,
               const Arguments& arguments);
// A global function of that name, which is called by CallGlobal.
bool IsGlobal(std::string_view name);
// `now`: the time that strftime_now formats, in local time.
Value CallGlobal(Runtime& runtime, std::string_view name, const Arguments& arguments,
                 std::time_t now);
Value CallMethod(Runtime& runtime, const Value& self, std::string_view name,
                 const Arguments& arguments);

}  // namespace mlc::text::jinja
