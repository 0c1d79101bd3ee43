// The C interface: each byte of the input selects a call and its arguments. Every call succeeds or
// fails with an error that is not a bug, and everything is freed.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "lib/ops/row.h"
#include "tools/runtime/composites.h"
#include "tools/runtime/mlc.h"

namespace mlc {
namespace {

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  uint8_t Next() { return empty() ? 0 : data_[at_++]; }
  // A number below `count`.
  size_t Below(size_t count) { return count ? Next() % count : 0; }
  std::string Text() {
    std::string text;
    for (size_t length = Below(12); length > 0; --length) text += static_cast<char>(Next());
    return text;
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

// Ends the process for errors that are bugs.
void Judge(int32_t code, mlc_error* error) {
  if (code != mlc_error_code(error) || code == MLC_ERROR_INTERNAL) std::abort();
  mlc_error_free(error);
}

class Session {
 public:
  explicit Session(Bytes& bytes) : bytes_(bytes) {
    Do([&](mlc_error** error) { return mlc_program_new(nullptr, &program_, error); });
    AddFunction();
  }
  ~Session() {
    for (const Operator& one : ops_) mlc_op_free(one.op);
    mlc_program_free(program_);
  }

  void Step() {
    switch (bytes_.Below(16)) {
      case 0:
        return AddFunction();
      case 1:
        return Add([&](mlc_value* value, mlc_error** error) {
          Shape();
          return mlc_block_input(Block(), bytes_.Text().c_str(), Type(), rank_, dims_, value,
                                 error);
        });
      case 2:
        return Add([&](mlc_value* value, mlc_error** error) {
          Shape();
          const mlc_tensor tensor = {sizeof tensor, memory_, Type(), rank_,
                                     dims_,         nullptr, nullptr};
          return mlc_block_constant(Block(), bytes_.Text().c_str(), &tensor, value, error);
        });
      case 3: {
        const std::vector<OpDef>& all = Ops().all();
        const size_t which = bytes_.Below(all.size() + abi::Composites().size());
        Operator made;
        std::string name;
        if (which < all.size()) {
          name = all[which].name;
          for (const Param& param : all[which].canonical().params)
            made.parameters.emplace_back(param.name);
        } else {
          const abi::Composite& composite = abi::Composites()[which - all.size()];
          name = composite.name;
          for (std::string_view parameter : composite.names())
            made.parameters.emplace_back(parameter);
        }
        Do([&](mlc_error** error) {
          return mlc_op_new(Block(), name.c_str(), bytes_.Text().c_str(), &made.op, error);
        });
        if (made.op) ops_.push_back(std::move(made));
        return;
      }
      case 4:
        return Do([&](mlc_error** error) {
          mlc_op* op = Op();
          return mlc_op_arg(op, Parameter(), Value(), error);
        });
      case 5:
        return Do([&](mlc_error** error) {
          const mlc_value values[] = {Value(), Value()};
          mlc_op* op = Op();
          return mlc_op_args(op, Parameter(), static_cast<int32_t>(bytes_.Below(3)), values, error);
        });
      case 6:
        return Do([&](mlc_error** error) {
          mlc_op* op = Op();
          return mlc_op_int(op, Parameter(), static_cast<int8_t>(bytes_.Next()), error);
        });
      case 7:
        return Do([&](mlc_error** error) {
          mlc_op* op = Op();
          return mlc_op_float(op, Parameter(), bytes_.Next() / 16.0, error);
        });
      case 8:
        return Do([&](mlc_error** error) {
          mlc_op* op = Op();
          return mlc_op_string(op, Parameter(), bytes_.Text().c_str(), error);
        });
      case 9:
        return Do([&](mlc_error** error) {
          Shape();
          mlc_op* op = Op();
          return mlc_op_ints(op, Parameter(), rank_, dims_, error);
        });
      case 10: {
        mlc_block* block = nullptr;
        Do([&](mlc_error** error) {
          return mlc_op_block(Op(), static_cast<int32_t>(bytes_.Below(3)), &block, error);
        });
        if (block) blocks_.push_back(block);
        return;
      }
      case 11: {
        mlc_value results[4];
        int32_t count = 0;
        Do([&](mlc_error** error) { return mlc_op_finish(Op(), 4, results, &count, error); });
        for (int32_t i = 0; i < count && i < 4; ++i) values_.push_back(results[i]);
        return;
      }
      case 12:
        return Do([&](mlc_error** error) {
          return mlc_block_output(Block(), bytes_.Text().c_str(), Value(), error);
        });
      case 13: {
        char* text = nullptr;
        Do([&](mlc_error** error) { return mlc_program_text(program_, &text, error); });
        mlc_string_free(text);
        return;
      }
      case 14: {
        if (ops_.empty()) return;
        const size_t at = bytes_.Below(ops_.size());
        mlc_op_free(ops_[at].op);
        ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      }
      default: {
        int64_t dims[64];
        const mlc_value value = Value();
        if (mlc_value_rank(program_, value) > 64) return;
        Do([&](mlc_error** error) { return mlc_value_dims(program_, value, dims, error); });
      }
    }
  }

 private:
  template <class Call>
  void Do(Call call) {
    mlc_error* error = nullptr;
    const int32_t code = call(&error);
    Judge(code, error);
  }
  template <class Call>
  void Add(Call call) {
    mlc_value value = -1;
    Do([&](mlc_error** error) { return call(&value, error); });
    if (value >= 0) values_.push_back(value);
  }
  void AddFunction() {
    mlc_block* block = nullptr;
    Do([&](mlc_error** error) {
      return mlc_function_add(program_, bytes_.Text().c_str(), &block, error);
    });
    if (block) blocks_.push_back(block);
  }
  mlc_block* Block() { return blocks_.empty() ? nullptr : blocks_[bytes_.Below(blocks_.size())]; }
  // Usually the latest, so that operations are finished.
  mlc_op* Op() {
    if (ops_.empty()) return nullptr;
    const size_t back = bytes_.Below(8) == 0 ? bytes_.Below(ops_.size()) : 0;
    chosen_ = ops_.size() - 1 - back;
    return ops_[chosen_].op;
  }
  mlc_value Value() { return values_.empty() ? 7 : values_[bytes_.Below(values_.size())]; }
  int32_t Type() { return static_cast<int32_t>(bytes_.Below(24)); }
  // A parameter of the operation that Op chose.
  const char* Parameter() {
    if (ops_.empty() || ops_[chosen_].parameters.empty()) return "x";
    const std::vector<std::string>& names = ops_[chosen_].parameters;
    return names[bytes_.Below(names.size())].c_str();
  }
  // Up to 4 sizes below 4, so that constants fit the memory.
  void Shape() {
    rank_ = static_cast<int32_t>(bytes_.Below(5));
    for (int32_t d = 0; d < rank_; ++d) dims_[d] = static_cast<int64_t>(bytes_.Below(5)) - 1;
    for (int32_t d = 0; d < rank_; ++d) dims_[d] = dims_[d] < 0 ? -bytes_.Next() : dims_[d];
  }

  Bytes& bytes_;
  mlc_program* program_ = nullptr;
  std::vector<mlc_block*> blocks_;
  struct Operator {
    mlc_op* op = nullptr;
    std::vector<std::string> parameters;
  };
  std::vector<Operator> ops_;
  size_t chosen_ = 0;
  std::vector<mlc_value> values_;
  int32_t rank_ = 0;
  int64_t dims_[4] = {};
  double memory_[4 * 4 * 4 * 4] = {};
};

}  // namespace
}  // namespace mlc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMostSteps = 200;
  mlc::Bytes bytes(data, size);
  mlc::Session session(bytes);
  for (size_t i = 0; i < kMostSteps && !bytes.empty(); ++i) session.Step();
  return 0;
}
