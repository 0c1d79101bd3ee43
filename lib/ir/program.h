// lib/ir/program.h - the SSA program that frontends build, passes edit and backends write.
//
// A Program owns Functions, a Function owns its inputs and its Block, a Block owns its operations
// in execution order, an Operation owns its result Values and nested Blocks. Addresses stay valid
// until the operation is erased. Not thread-safe. Constant data is immutable and shared, and may
// outlive the Program.
//
// A constant is an operation `const` whose value is Operation::val. An operand is a Value or a
// literal Tensor (Apple's files hold both; a literal stays one). Arguments are held by index of the
// operator's canonical parameter; what a file or a frontend left out stays empty, and only the
// emitter adds defaults.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/ir/names.h"
#include "lib/ir/op_def.h"
#include "lib/ir/tensor.h"
#include "lib/ir/type.h"

namespace mlc {

class Block;
class Function;
class Program;

// Where a value is used: as operand `index` of a parameter of an operation, or as output `index` of a
// block.
struct Use {
  Operation* operation = nullptr;  // null: an output of `block`
  Block* block = nullptr;
  int parameter = -1;  // of the canonical form
  int index = 0;
};

// The uses of a value in the order in which they came; kept by Operation and Block. Adding one and
// taking one away are no walks: one that goes leaves its place empty until half of all are.
class Uses {
 public:
  class Iterator {  // over the operations, one for each use
   public:
    Iterator(const Use* at, const Use* end) : at_(at), end_(end) { SkipEmpty(); }
    Operation* operator*() const { return at_->operation; }
    Iterator& operator++() {
      ++at_;
      SkipEmpty();
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }
    const Use& use() const { return *at_; }

    using difference_type = std::ptrdiff_t;
    using value_type = Operation*;
    using pointer = Operation* const*;
    using reference = Operation*;
    using iterator_category = std::input_iterator_tag;

   private:
    void SkipEmpty() {
      while (at_ != end_ && !at_->operation && !at_->block) ++at_;
    }
    const Use* at_;
    const Use* end_;
  };

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Iterator begin() const { return {places_.data(), places_.data() + places_.size()}; }
  Iterator end() const {
    return {places_.data() + places_.size(), places_.data() + places_.size()};
  }
  Operation* front() const { return *begin(); }
  // A copy, for who replaces some on the way.
  std::vector<Use> All() const;

 private:
  friend class Operation;
  friend class Block;
  uint32_t Add(const Use& use);  // its place
  void Remove(uint32_t place);
  ShortVector<Use> places_;
  uint32_t size_ = 0;
};

// What shape arithmetic knows of a value beside its type.
struct ShapeKnowledge {
  std::optional<std::vector<Dim>> elements;  // of integers that are no constant
};

// What a file states of a value that was read from it.
struct Provenance {
  // Its type, where that says more or less than the program's; open dimensions are symbols without
  // meaning.
  std::shared_ptr<const Type> stated;
};

// The value of what is not constant.
inline const Tensor kNoTensor{};

// One result of an operation, or an input of a function or block.
class Value : public ShapeKnowledge, public Provenance {
 public:
  std::string name;  // legal MIL identifier, unique in its function
  Type type;
  Operation* def = nullptr;  // null: an input
  int index = 0;             // which result
  Uses users;                // as an operand
  Uses outputs;              // as an output of a block

  bool has_uses() const { return !users.empty() || is_output(); }
  bool is_output() const { return !outputs.empty(); }
  // The tensor of the `const` that defines this value; an empty Tensor for all others.
  const Tensor& constant() const;
  bool is_constant() const { return static_cast<bool>(constant()); }

  void State(Type as_read);  // sets `stated` where it differs from `type`
  // What the file said, as far as it may still be true.
  const Type& written_type() const { return stated && MayAgree(*stated, type) ? *stated : type; }
};

// What every walk looks at comes first, so that it lies together in memory.
class Operation {
 public:
  const OpDef* def = nullptr;
  ShortVector<std::unique_ptr<Value>> results;
  std::vector<std::unique_ptr<Block>> blocks;  // cond: true, false; while_loop: condition, body

 private:
  OperandLists args_;

 public:
  Block* block = nullptr;                    // owner
  std::string name;                          // of the operation; usually its first result's
  Tensor val;                                // const only
  std::shared_ptr<const Location> location;  // where in the source; may be null
  const Form* form = nullptr;                // the form in which it was read; null: ours
  std::vector<std::pair<std::string, Tensor>>
      attributes;  // beside name and val, as a file had them

  bool is(std::string_view op_name) const { return def->name == op_name; }
  Value* result(int i = 0) const { return results[i].get(); }
  const OperandLists& args() const { return args_; }
  // Operands of a parameter by canonical name; an empty vector when left out. MLC_CHECKs that the
  // parameter exists.
  const Operands& arg(std::string_view param) const;
  bool has(std::string_view param) const { return !arg(param).empty(); }
  Value* value(std::string_view param, int i = 0) const;  // null when left out or literal
  const Tensor& constant(std::string_view param,
                         int i = 0) const;  // empty when left out or not constant
  // The constant or the row's literal default.
  Tensor constant_or_default(std::string_view param) const;
  void SetArg(std::string_view param, Operands operands);
  void SetArg(int index, Operands operands);
  void SetOperand(const Use& use, Value* value);  // a use by this operation
  std::string Describe() const;                   // `conv "x_3"` plus location, for messages

 private:
  friend class Block;  // with its list
  friend class Uses;
  void AddUses(int parameter);
  void DropUses(int parameter);
  Operation *previous_ = nullptr, *next_ = nullptr;  // in the block's list
};

inline const Tensor& Value::constant() const { return def ? def->val : kNoTensor; }
inline const Tensor& Operand::constant() const {
  return value ? value->constant() : literal_ ? literal_->tensor : kNoTensor;
}

// One that is in no operation and is no function's body, as a draft (draft.h), owns the symbols that
// were made for its sizes and the bounds that were narrowed in it, and takes all that it owns with it
// when it goes.
class Block {
 public:
  // The operations in execution order: a doubly linked list whose links stand in the operations.
  // An iterator stays valid while its operation stays in the block.
  class Operations {
   public:
    template <bool kReversed>
    class IteratorOf {
     public:
      using difference_type = std::ptrdiff_t;
      using value_type = Operation*;
      using pointer = Operation* const*;
      using reference = Operation*;
      using iterator_category = std::input_iterator_tag;

      explicit IteratorOf(Operation* at = nullptr) : at_(at) {}
      Operation* operator*() const { return at_; }
      IteratorOf& operator++() {
        at_ = kReversed ? at_->previous_ : at_->next_;
        return *this;
      }
      IteratorOf operator++(int) {
        IteratorOf before = *this;
        ++*this;
        return before;
      }
      bool operator==(const IteratorOf& other) const { return at_ == other.at_; }

     private:
      Operation* at_;
    };
    using Iterator = IteratorOf<false>;
    using ReverseIterator = IteratorOf<true>;

    Iterator begin() const { return Iterator(first_); }
    Iterator end() const { return Iterator(); }
    ReverseIterator rbegin() const { return ReverseIterator(last_); }
    ReverseIterator rend() const { return ReverseIterator(); }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    Operation* front() const { return first_; }
    Operation* back() const { return last_; }

    Operations() = default;
    ~Operations();
    Operations(const Operations&) = delete;
    Operations& operator=(const Operations&) = delete;

   private:
    friend class Block;
    void Link(Operation* op, Operation* before);  // null: behind the last one
    void Unlink(Operation* op);
    Operation *first_ = nullptr, *last_ = nullptr;
    size_t size_ = 0;
  };

  Block() = default;
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::vector<std::unique_ptr<Value>> inputs;
  Function* function = nullptr;
  Operation* parent = nullptr;  // the operation that this block is nested in

  const Operations& operations() const { return operations_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  void SetOutputs(std::vector<Value*> outputs);
  void SetOutput(int i, Value* value);

  // Takes ownership and links uses. before == null appends.
  Operation* Insert(std::unique_ptr<Operation> op, Operation* before);
  // MLC_CHECKs that no result is used.
  void Erase(Operation* op);
  // Erases everything that the block owns, its outputs and the names of its inputs included.
  void Clear();
  // Takes over the operations and symbols of a block that is in no operation; its outputs go.
  void Append(Block& alone);
  // A new symbol for a size in this block, and a size that nobody knows and that may be 0, as
  // Function makes them.
  std::string FreshSymbol(std::string_view hint);
  Dim FreshSize(std::string_view hint) { return Dim::Symbol(FreshSymbol(hint)) - 1; }
  // What is in this block leaves a symbol of the function these sizes only. When the block goes, all
  // that it had before come back, but for what others took away meanwhile.
  void Narrow(const std::string& symbol, Symbol left);
  // `op` is of any block of the function; before == null appends.
  void MoveBefore(Operation* op, Operation* before);
  // The operation after `op`, or null.
  Operation* Next(const Operation* op) const;
  // Whether a comes before b in this block (linear).
  bool Precedes(const Operation* a, const Operation* b) const;

 private:
  friend class Uses;
  bool is_alone() const;
  void TakeSymbols(Block& from);
  void Widen();
  Operations operations_;
  std::vector<Value*> outputs_;
  std::vector<uint32_t> places_;      // of the outputs, among the uses of each value
  std::vector<std::string> symbols_;  // while it is alone
};

// Dimensions of function inputs by function and input name, as far as someone names them.
using InputDims = std::map<std::pair<std::string, std::string>, Shape>;

// A model input, output or state as its user sees it; beside the Value of the same `name`.
struct Port {
  std::string name;         // MIL name
  std::string source_name;  // in the source model
  DType source_dtype = DType::kNone;
  Shape source_shape;
  DType dtype = DType::kNone;  // in the package's description (kNone: the value's)
  std::string description;
  enum class Feature : uint8_t {
    kMultiArray,
    kImageRgb,
    kImageBgr,
    kImageGray
  } feature = Feature::kMultiArray;
  bool optional = false;
  std::optional<double> default_value;  // of every element of an optional input
  // Flexible shapes as a description states them: ranges per dimension, or enumerated shapes; empty
  // when static.
  std::vector<std::pair<int64_t, int64_t>> shape_range;  // high -1: unbounded
  std::vector<Dims> enumerated_shapes;
  Dims default_shape;  // as described; empty: derived from the value's type

  // What these allow dimension d, from 0 on; any size of at least 1 where they say nothing.
  Symbol DescribedSizes(size_t d) const;
};

// An input of the source that the function has not, since its value is known or nothing needs it.
struct AbsentInput {
  std::string source_name;
  size_t place = 0;            // among the source's inputs
  DType dtype = DType::kNone;  // in the source
  Dims dims;                   // of the value that it has ...
  std::string hash;            // ... and the XXH3-128 of its bytes; "": any value will do
};

class Function {
 public:
  explicit Function(Program* owner, std::string function_name);
  std::string name;
  Opset opset = Opset::kIos15;  // lowest that its operations need, or the target's
  Program* program;
  Block body;  // body.inputs are the function's inputs
  std::vector<Port> inputs, outputs,
      states;  // parallel to body.inputs (without states) and body.outputs
  std::vector<AbsentInput> absent_inputs;  // by place
  Symbols symbols;  // all that its sizes are written with, and perhaps some that no size has now

  // A new symbol; its name is made from `hint`.
  std::string FreshSymbol(std::string_view hint, Symbol sizes = {1, INT32_MAX, {}});
  // The size of an open dimension of an input: the symbol of this name, which is made, or narrowed
  // to what both allow; less 1 where `sizes` have a 0. Nothing where no size is left.
  std::optional<Dim> OpenSize(const std::string& symbol, Symbol sizes);
  // A size that nobody knows and that may be 0: a new symbol less 1.
  Dim FreshSize(std::string_view hint) { return Dim::Symbol(FreshSymbol(hint)) - 1; }
  // Writes the sizes of all values as the bounds of the symbols allow (Dim::Within). For who has
  // narrowed bounds.
  void SimplifySizes();

  // A legal identifier that no value of this function has; made from `hint` and claimed.
  std::string UniqueName(std::string_view hint);
  bool Claim(std::string_view name);
  // Claims a name that values of sibling blocks may have already, as files share them.
  void ClaimShared(std::string_view name) { ++names_[name].values; }
  void ReleaseName(std::string_view name);
  bool IsShared(std::string_view name) const;
  // Renames a value to exactly `name` if that is free (or becomes so after legalisation), else to a
  // unique variant; also when the value has the name already but shares it.
  void Rename(Value* value, std::string_view name);
  Value* AddInput(std::string_view hint, Type type);

 private:
  friend class Block;
  struct Narrowing {
    Block* by;  // null: for good
    std::string symbol;
    Symbol before;
  };
  std::vector<Narrowing> narrowings_;  // in order, from the first by a block that is alone on
  // By hint: below this number FreshSymbol has nothing to look for. Forgotten when a symbol goes.
  std::unordered_map<std::string, int> next_symbol_;
  Names names_;
};

struct Interface {
  std::string author, license, short_description, version;
  std::vector<std::pair<std::string, std::string>> metadata;  // user-defined, in file order
  std::string default_function = "main";
  // In the order in which a description that was read has them; empty: the program's.
  std::vector<std::string> function_order;
  // Of the file that the program was read from, which may be above what its functions need; 0:
  // none.
  int specification_version = 0;
};

class Program {
 public:
  explicit Program(const OpSet* op_set) : ops(op_set) {}
  Program(Program&& other) noexcept;  // functions keep their addresses and follow
  Program& operator=(Program&& other) noexcept;

  const OpSet* ops;
  std::vector<std::unique_ptr<Function>> functions;
  Interface interface;
  std::vector<std::pair<std::string, std::string>> build_info;  // Program attribute buildInfo

  Function* main() const;  // the default function; MLC_CHECKs that there is one
  Function* Add(std::string name);
};

// Replaces every use of `from`, block outputs too, by `to`. Keeps the name of an output: `to` takes
// it over when `from` is a function output and `to` is not.
void ReplaceAllUses(Value* from, Value* to);

// Visits every operation of the function, nested blocks included, in execution order. `visit` may
// erase the visited operation.
void ForEachOperation(Function& function, const std::function<void(Operation*)>& visit);
void ForEachOperation(Block& block, const std::function<void(Operation*)>& visit);

// MIL identifier made from any text: illegal characters become '_', a leading digit gets '_' before
// it, a type word '_' behind.
std::string LegalName(std::string_view text);
bool IsLegalName(std::string_view text);  // LegalName leaves it as it is

// A deep copy; constants are shared.
Program Clone(const Program& program);

// Checks, throwing InternalError that names the operation: each operand is defined earlier and
// lists this operation as a user; each result type equals what infer computes; required parameters
// are there and constants are constants; names are unique and legal; every symbol of a size is its
// function's, at least 1, with bounds in order.
void Verify(const Program& program);

}  // namespace mlc
