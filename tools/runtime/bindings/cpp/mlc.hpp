// mlc.hpp - libmlc in C++11: handles that free themselves, errors as exceptions. mlc.h is the manual.
//
//   mlc::Model model("digits.mlpackage");
//   std::vector<float> image(64), scores(10);
//   model.Predict({{"image", mlc::Tensor(image.data(), {1, 1, 8, 8})}},
//                 {{"probabilities", mlc::Tensor(scores.data(), {1, 10})}});
#ifndef MLC_HPP
#define MLC_HPP

#include <mlc.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mlc {

class Error : public std::runtime_error {
 public:
  explicit Error(mlc_error* error)
      : std::runtime_error(mlc_error_text(error)), error_(error, mlc_error_free) {}
  int32_t code() const { return mlc_error_code(error_.get()); }  // MLC_ERROR_INPUT ...
  std::string id() const { return mlc_error_id(error_.get()); }
  std::string message() const { return mlc_error_message(error_.get()); }

 private:
  std::shared_ptr<mlc_error> error_;
};

namespace internal {

// Calls a function whose last parameter is the error.
template <class Function, class... Arguments>
void Call(Function function, Arguments... arguments) {
  mlc_error* error = nullptr;
  if (function(arguments..., &error) != MLC_OK) throw Error(error);
}
// The same for a function whose parameter before the error receives a text.
template <class Function, class... Arguments>
std::string Text(Function function, Arguments... arguments) {
  char* text = nullptr;
  Call(function, arguments..., &text);
  const std::unique_ptr<char, void (*)(char*)> freed(text, mlc_string_free);
  return text;
}
template <class T>
using Handle = std::unique_ptr<T, void (*)(T*)>;

}  // namespace internal

// The element type of a C++ type.
template <class T>
struct DType;
template <>
struct DType<float> {
  static const int32_t value = MLC_FP32;
};
template <>
struct DType<double> {
  static const int32_t value = MLC_FP64;
};
template <>
struct DType<int32_t> {
  static const int32_t value = MLC_INT32;
};
template <>
struct DType<int64_t> {
  static const int32_t value = MLC_INT64;
};
template <>
struct DType<int8_t> {
  static const int32_t value = MLC_INT8;
};
template <>
struct DType<uint8_t> {
  static const int32_t value = MLC_UINT8;
};

// A view of memory of the caller.
class Tensor {
 public:
  Tensor(void* data, int32_t dtype, std::vector<int64_t> dims, std::vector<int64_t> strides = {})
      : data_(data), dtype_(dtype), dims_(std::move(dims)), strides_(std::move(strides)) {}
  template <class T>
  Tensor(T* data, std::vector<int64_t> dims)
      : data_(const_cast<void*>(static_cast<const void*>(data))),
        dtype_(DType<typename std::remove_const<T>::type>::value),
        dims_(std::move(dims)) {}
  mlc_tensor get() const {
    mlc_tensor tensor = {sizeof(mlc_tensor), data_, dtype_, static_cast<int32_t>(dims_.size()),
                         dims_.data(), strides_.empty() ? nullptr : strides_.data(), nullptr};
    return tensor;
  }

 private:
  void* data_;
  int32_t dtype_;
  std::vector<int64_t> dims_, strides_;
};
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

class State {
 public:
  explicit State(mlc_model* model) : handle_(nullptr, mlc_state_free) {
    mlc_state* made = nullptr;
    internal::Call(mlc_state_new, model, &made);
    handle_.reset(made);
  }
  void Read(const std::string& name, const Tensor& into) const {
    const mlc_tensor tensor = into.get();
    internal::Call(mlc_state_read, get(), name.c_str(), &tensor);
  }
  void Write(const std::string& name, const Tensor& from) {
    const mlc_tensor tensor = from.get();
    internal::Call(mlc_state_write, get(), name.c_str(), &tensor);
  }
  void Reset() { internal::Call(mlc_state_reset, get()); }
  mlc_state* get() const { return handle_.get(); }

 private:
  internal::Handle<mlc_state> handle_;
};

class Model {
 public:
  explicit Model(const std::string& path, const char* options = nullptr)
      : handle_(nullptr, mlc_model_free) {
    mlc_model* made = nullptr;
    internal::Call(mlc_model_load, static_cast<mlc_context*>(nullptr), path.c_str(), options,
                   &made);
    handle_.reset(made);
  }
  explicit Model(mlc_model* owned) : handle_(owned, mlc_model_free) {}

  // Copies the outputs into the memory of `outputs`. `timeout_ms` 0: no limit.
  void Predict(const NamedTensors& inputs, const NamedTensors& outputs, State* state = nullptr,
               int64_t timeout_ms = 0) const {
    const Arrays in(inputs), out(outputs);
    internal::Call(mlc_predict, get(), state ? state->get() : nullptr, in.count(),
                   in.names.data(), in.pointers.data(), out.count(), out.names.data(),
                   out.pointers.data(), timeout_ms, static_cast<mlc_results**>(nullptr));
  }
  State NewState() const { return State(get()); }
  std::string schema() const { return mlc_model_schema(get()); }
  std::string placements() const { return internal::Text(mlc_model_placements, get()); }
  std::string telemetry() const { return internal::Text(mlc_model_telemetry, get()); }
  mlc_model* get() const { return handle_.get(); }

 private:
  struct Arrays {
    explicit Arrays(const NamedTensors& from) {
      for (const auto& one : from) tensors.push_back(one.second.get());
      for (size_t i = 0; i < from.size(); ++i) {
        names.push_back(from[i].first.c_str());
        pointers.push_back(&tensors[i]);
      }
    }
    int32_t count() const { return static_cast<int32_t>(tensors.size()); }
    std::vector<mlc_tensor> tensors;
    std::vector<const char*> names;
    std::vector<const mlc_tensor*> pointers;
  };
  internal::Handle<mlc_model> handle_;
};

class Tokenizer {
 public:
  explicit Tokenizer(const std::string& path) : handle_(nullptr, mlc_tokenizer_free) {
    mlc_tokenizer* made = nullptr;
    internal::Call(mlc_tokenizer_load, static_cast<mlc_context*>(nullptr), path.c_str(), &made);
    handle_.reset(made);
  }
  std::vector<int32_t> Encode(const std::string& text, bool add_special = true) const {
    std::vector<int32_t> ids(text.size() + 8);
    size_t count = 0;
    while (true) {
      internal::Call(mlc_tokenizer_encode, static_cast<const mlc_tokenizer*>(get()), text.data(),
                     text.size(), add_special ? 1 : 0, 0, ids.data(), ids.size(), &count);
      const bool fits = count <= ids.size();
      ids.resize(count);
      if (fits) return ids;
    }
  }
  mlc_tokenizer* get() const { return handle_.get(); }

 private:
  internal::Handle<mlc_tokenizer> handle_;
};

// Continues texts, one token per call.
class Generator {
 public:
  Generator(const Model& model, const Tokenizer& tokenizer, const char* options = nullptr)
      : handle_(nullptr, mlc_generator_free) {
    mlc_generator* made = nullptr;
    internal::Call(mlc_generator_new, model.get(), tokenizer.get(), options, &made);
    handle_.reset(made);
  }
  void Feed(const std::string& text) {
    internal::Call(mlc_generator_feed, handle_.get(), text.data(), text.size());
  }
  // Appends the text that became certain to `text`; false when the answer has ended.
  bool Next(std::string& text) {
    const char* piece = nullptr;
    int32_t done = 0;
    internal::Call(mlc_generator_next, handle_.get(), static_cast<int32_t*>(nullptr), &piece,
                   &done);
    text += piece;
    return done == 0;
  }

 private:
  internal::Handle<mlc_generator> handle_;
};

typedef mlc_value Value;

class Block;

// An operation under construction.
class Op {
 public:
  Op(mlc_block* block, const std::string& op_name, const std::string& name)
      : handle_(nullptr, mlc_op_free) {
    mlc_op* made = nullptr;
    internal::Call(mlc_op_new, block, op_name.c_str(), name.c_str(), &made);
    handle_.reset(made);
  }
  Op& Arg(const char* parameter, Value value) { return Do(mlc_op_arg, parameter, value); }
  Op& Args(const char* parameter, const std::vector<Value>& values) {
    return Do(mlc_op_args, parameter, static_cast<int32_t>(values.size()), values.data());
  }
  Op& Int(const char* parameter, int64_t number) { return Do(mlc_op_int, parameter, number); }
  Op& Float(const char* parameter, double number) { return Do(mlc_op_float, parameter, number); }
  Op& Bool(const char* parameter, bool flag) { return Do(mlc_op_bool, parameter, flag ? 1 : 0); }
  Op& String(const char* parameter, const std::string& text) {
    return Do(mlc_op_string, parameter, text.c_str());
  }
  Op& Ints(const char* parameter, const std::vector<int64_t>& numbers) {
    return Do(mlc_op_ints, parameter, static_cast<int32_t>(numbers.size()), numbers.data());
  }
  inline Block Nested(int32_t index);
  std::vector<Value> FinishAll() {
    std::vector<Value> results(64);
    int32_t count = 0;
    internal::Call(mlc_op_finish, handle_.get(), static_cast<int32_t>(results.size()),
                   results.data(), &count);
    results.resize(static_cast<size_t>(count));
    return results;
  }
  Value Finish() { return FinishAll().at(0); }

 private:
  template <class Function, class... Arguments>
  Op& Do(Function function, Arguments... arguments) {
    internal::Call(function, handle_.get(), arguments...);
    return *this;
  }
  internal::Handle<mlc_op> handle_;
};

// A block of a program, which belongs to it.
class Block {
 public:
  explicit Block(mlc_block* block) : block_(block) {}
  Value Input(const std::string& name, int32_t dtype, const std::vector<int64_t>& dims) {
    Value value = -1;
    internal::Call(mlc_block_input, block_, name.c_str(), dtype, static_cast<int32_t>(dims.size()),
                   dims.data(), &value);
    return value;
  }
  Value Constant(const std::string& name, const Tensor& tensor) {
    const mlc_tensor view = tensor.get();
    Value value = -1;
    internal::Call(mlc_block_constant, block_, name.c_str(), &view, &value);
    return value;
  }
  void Output(const std::string& name, Value value) {
    internal::Call(mlc_block_output, block_, name.c_str(), value);
  }
  Op Begin(const std::string& op_name, const std::string& name = "") {
    return Op(block_, op_name, name);
  }

 private:
  mlc_block* block_;
};

inline Block Op::Nested(int32_t index) {
  mlc_block* block = nullptr;
  internal::Call(mlc_op_block, handle_.get(), index, &block);
  return Block(block);
}

class Program {
 public:
  explicit Program(const char* options = nullptr) : handle_(nullptr, mlc_program_free) {
    mlc_program* made = nullptr;
    internal::Call(mlc_program_new, options, &made);
    handle_.reset(made);
  }
  Block AddFunction(const std::string& name) {
    mlc_block* block = nullptr;
    internal::Call(mlc_function_add, handle_.get(), name.c_str(), &block);
    return Block(block);
  }
  Model Load(const char* options = nullptr) const {
    mlc_model* model = nullptr;
    internal::Call(mlc_program_load, static_cast<mlc_context*>(nullptr), handle_.get(), options,
                   &model);
    return Model(model);
  }
  void Write(const std::string& path, const char* options = nullptr) const {
    internal::Call(mlc_program_write, static_cast<mlc_context*>(nullptr), handle_.get(),
                   path.c_str(), options, static_cast<char**>(nullptr));
  }
  std::string text() const { return internal::Text(mlc_program_text, handle_.get()); }

 private:
  internal::Handle<mlc_program> handle_;
};

// Compiles a model; returns the JSON of mlc_compile.
inline std::string Compile(const std::string& model, const std::string& output,
                           const char* options = nullptr) {
  return internal::Text(mlc_compile, static_cast<mlc_context*>(nullptr), model.c_str(),
                        output.c_str(), options);
}

}  // namespace mlc

#endif  // MLC_HPP
