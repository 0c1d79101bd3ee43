// lib/ir/program.h - the SSA program that frontends build, passes edit and backends write.
//
// A Program owns Functions, a Function owns its inputs and its Block, a Block owns its operations
// in execution order, an Operation owns its result Values and nested Blocks. Addresses stay valid
// until the operation is erased. Not thread-safe. Constant data is immutable and shared, and may
// outlive the Program.
//
// A constant is an operation `const` whose value is Operation::val. An operand is a Value or a
// literal Tensor (Apple's files contain both; literals are preserved). Arguments are indexed by
// canonical parameter. An argument that a file or frontend omits stays empty; only the emitter adds
// defaults.
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

#include "lib/ir/op_def.h"
#include "lib/ir/tensor.h"
#include "lib/ir/type.h"
#include "lib/ir/value_names.h"

namespace mlc {

class Block;
class Function;
class Program;

// One use of a value: operand `index` of a parameter of an operation, or output `index` of a block.
struct Use {
  Operation* operation = nullptr;  // null: an output of `block`
  Block* block = nullptr;
  int parameter = -1;  // index of the canonical parameter
  int index = 0;
};

// The uses of a value in order of insertion, maintained by Operation and Block. Insertion and
// removal take constant time: a removed use leaves an empty slot until half of all slots are empty.
class Uses {
 public:
  class Iterator {  // visits the operation of each use
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
  // A copy, for loops that replace uses.
  std::vector<Use> All() const;

 private:
  friend class Operation;
  friend class Block;
  uint32_t Add(const Use& use);  // returns its position
  void Remove(uint32_t place);
  ShortVector<Use> places_;
  uint32_t size_ = 0;
};

// What shape arithmetic knows about a value beyond its type.
struct ShapeKnowledge {
  std::optional<std::vector<Dim>> elements;  // known elements of a non-constant integer value
};

// What a file states about a value that was read from it.
struct Provenance {
  // The stated type, if it differs in detail from the program's; its symbolic dimensions are
  // placeholders.
  std::shared_ptr<const Type> stated;
};

// The empty tensor that represents "not constant".
extern const Tensor kNoTensor;

// One result of an operation, or an input of a function or block.
class Value : public ShapeKnowledge, public Provenance {
 public:
  std::string name;  // legal MIL identifier, unique in its function
  Type type;
  Operation* def = nullptr;  // null: an input
  int index = 0;             // which result of `def`
  Uses users;                // uses as an operand
  Uses outputs;              // uses as an output of a block

  bool has_uses() const { return !users.empty() || is_output(); }
  bool is_output() const { return !outputs.empty(); }
  // The tensor of the `const` that defines this value; an empty Tensor otherwise.
  const Tensor& constant() const;
  bool is_constant() const { return static_cast<bool>(constant()); }

  void State(Type as_read);  // sets `stated` where it differs from `type`
  // The type stated by the file, if it can still be true; otherwise `type`.
  const Type& written_type() const { return stated && MayAgree(*stated, type) ? *stated : type; }
};

// The members that every traversal reads come first, to share cache lines.
class Operation {
 public:
  const OpDef* def = nullptr;
  ShortVector<std::unique_ptr<Value>> results;
  std::vector<std::unique_ptr<Block>> blocks;  // cond: true, false; while_loop: condition, body

 private:
  OperandLists args_;

 public:
  Block* block = nullptr;                    // owner
  std::string name;                          // usually the name of the first result
  Tensor val;                                // const only
  std::shared_ptr<const Location> location;  // location in the source; may be null
  const Form* form = nullptr;                // the form in which it was read; null: ours
  std::vector<std::pair<std::string, Tensor>>
      attributes;  // other than name and val, as read from a file

  bool is(std::string_view op_name) const { return def->name == op_name; }
  Value* result(int i = 0) const { return results[i].get(); }
  const OperandLists& args() const { return args_; }
  // The operands of a parameter, by canonical name; empty if omitted. MLC_CHECK fails if there is
  // no such parameter.
  const Operands& arg(std::string_view param) const;
  bool has(std::string_view param) const { return !arg(param).empty(); }
  Value* value(std::string_view param, int i = 0) const;  // null if omitted or literal
  const Tensor& constant(std::string_view param,
                         int i = 0) const;  // empty if omitted or not constant
  // The constant, or the literal default of the parameter.
  Tensor constant_or_default(std::string_view param) const;
  void SetArg(std::string_view param, Operands operands);
  void SetArg(int index, Operands operands);
  void SetOperand(const Use& use, Value* value);  // a use by this operation
  std::string Describe() const;                   // `conv "x_3"` and the location, for messages

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

// A block that neither belongs to an operation nor is a function's body, such as one under
// construction (block_transaction.h), owns the symbols created for its sizes and the bounds
// narrowed in it. Destroying it discards everything that it owns.
class Block {
 public:
  // The operations in execution order: an intrusive doubly linked list.
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
  // MLC_CHECK fails if a result is in use.
  void Erase(Operation* op);
  // Erases everything that the block owns, including its outputs and the names of its inputs.
  void Clear();
  // Moves all operations and symbols out of a block that has no parent; its outputs are dropped.
  void Append(Block& alone);
  // A new symbol for a size in this block, and a new unknown size that may be 0; see Function.
  std::string FreshSymbol(std::string_view hint);
  Dim FreshSize(std::string_view hint) { return Dim::Symbol(FreshSymbol(hint)) - 1; }
  // Restricts a symbol of the function to the sizes `left`, because of the operations in this
  // block. Destroying the block restores the previous sizes, unless they were restricted elsewhere
  // too.
  void Narrow(const std::string& symbol, Symbol left);
  // Moves `op`, which may be in any block of the function; before == null appends.
  void MoveBefore(Operation* op, Operation* before);
  // The operation after `op`; null at the end.
  Operation* Next(const Operation* op) const;
  // Returns whether a comes before b in this block (linear).
  bool Precedes(const Operation* a, const Operation* b) const;

 private:
  friend class Uses;
  bool is_alone() const;
  void TakeSymbols(Block& from);
  void Widen();
  Operations operations_;
  std::vector<Value*> outputs_;
  std::vector<uint32_t> places_;      // positions of the outputs among the uses of each value
  std::vector<std::string> symbols_;  // created while the block has no parent
};

// Dimensions of function inputs, keyed by function and input name; may be incomplete.
using InputDims = std::map<std::pair<std::string, std::string>, Shape>;

// The external description of an input, output or state of the model. The Value has the same
// `name`.
struct Port {
  std::string name;         // MIL name
  std::string source_name;  // name in the source model
  DType source_dtype = DType::kNone;
  Shape source_shape;
  DType dtype = DType::kNone;  // dtype in the package's description (kNone: that of the value)
  std::string description;
  enum class Feature : uint8_t {
    kMultiArray,
    kImageRgb,
    kImageBgr,
    kImageGray
  } feature = Feature::kMultiArray;
  bool optional = false;
  std::optional<double> default_value;  // for every element of an optional input
  // Flexible shapes as a description states them: ranges per dimension, or enumerated shapes. Both
  // are empty for static shapes.
  std::vector<std::pair<int64_t, int64_t>> shape_range;  // high -1: unbounded
  std::vector<Dims> enumerated_shapes;
  Dims default_shape;  // as described; empty: derived from the type of the value

  // The sizes that the description allows for dimension d, possibly 0; any size from 1 if it states
  // nothing.
  Symbol DescribedSizes(size_t d) const;
};

// An input of the source model that the function lacks, because its value is known or it is unused.
struct AbsentInput {
  std::string source_name;
  size_t place = 0;            // position among the inputs of the source
  DType dtype = DType::kNone;  // in the source
  Dims dims;                   // dims of the known value
  std::string hash;            // XXH3-128 of its bytes; "": any value is accepted
};

class Function {
 public:
  explicit Function(Program* owner, std::string function_name);
  std::string name;
  Opset opset = Opset::kIos15;  // lowest that the operations require, or the target's
  Program* program;
  Block body;  // body.inputs are the function's inputs
  std::vector<Port> inputs, outputs,
      states;  // parallel to body.inputs (without states) and body.outputs
  std::vector<AbsentInput> absent_inputs;  // sorted by place
  Symbols symbols;                         // every symbol of a size, possibly some unused ones

  // Creates a symbol whose name derives from `hint`.
  std::string FreshSymbol(std::string_view hint, Symbol sizes = {1, INT32_MAX, {}});
  // The size of a symbolic input dimension. Creates the symbol, or narrows it to the intersection
  // with `sizes`; subtracts 1 if `sizes` include 0. nullopt if no size remains.
  std::optional<Dim> OpenSize(const std::string& symbol, Symbol sizes);
  // A new unknown size that may be 0: a new symbol minus 1.
  Dim FreshSize(std::string_view hint) { return Dim::Symbol(FreshSymbol(hint)) - 1; }
  // Simplifies the sizes of all values after bounds have been narrowed (Dim::Within).
  void SimplifySizes();

  // Creates and claims a legal identifier that no value of this function has, derived from `hint`.
  std::string UniqueName(std::string_view hint);
  bool Claim(std::string_view name);
  // Claims a name that values of sibling blocks may share, as is common in files.
  void ClaimShared(std::string_view name) { ++names_[name].values; }
  void ReleaseName(std::string_view name);
  bool IsShared(std::string_view name) const;
  // Renames a value to exactly `name` if that is free (after legalisation), otherwise to a unique
  // variant. A name that the value shares with others is also replaced.
  void Rename(Value* value, std::string_view name);
  Value* AddInput(std::string_view hint, Type type);

 private:
  friend class Block;
  struct Narrowing {
    Block* by;  // null: permanent
    std::string symbol;
    Symbol before;
  };
  std::vector<Narrowing> narrowings_;  // in order, from the first by a block without a parent
  // The first suffix for FreshSymbol to try, by hint. Reset when a symbol is removed.
  std::unordered_map<std::string, int> next_symbol_;
  Names names_;
};

struct Interface {
  std::string author, license, short_description, version;
  std::vector<std::pair<std::string, std::string>> metadata;  // user-defined, in file order
  std::string default_function = "main";
  // The order of functions in the description that was read; empty: that of the program.
  std::vector<std::string> function_order;
  // The version of the file that the program was read from, possibly above what its functions
  // require; 0: none.
  int specification_version = 0;
  // Constants state where they come from (Tensor::Provenance): one that does not was computed.
  bool states_sources = false;
};

class Program {
 public:
  explicit Program(const OpSet* op_set);
  Program(Program&& other) noexcept;  // functions keep their addresses
  Program& operator=(Program&& other) noexcept;

  const OpSet* ops;
  std::vector<std::unique_ptr<Function>> functions;
  Interface interface;
  std::vector<std::pair<std::string, std::string>>
      build_info;  // attribute buildInfo of the program

  Function* main() const;  // the default function; MLC_CHECK fails if there is none
  Function* Add(std::string name);
};

// Replaces every use of `from`, including block outputs, by `to`. If `from` is a function output
// and `to` is not, `to` takes over its name.
void ReplaceAllUses(Value* from, Value* to);

// Visits every operation of a function, including nested blocks, in execution order. `visit` may
// erase the visited operation.
void ForEachOperation(Function& function, const std::function<void(Operation*)>& visit);
void ForEachOperation(Block& block, const std::function<void(Operation*)>& visit);

// Makes a MIL identifier from any text: replaces illegal characters with '_', inserts '_' before a
// leading digit and appends '_' to a type keyword.
std::string LegalName(std::string_view text);
bool IsLegalName(std::string_view text);  // whether LegalName returns it unchanged

// A deep copy; constants are shared.
Program Clone(const Program& program);

// Checks the invariants of a program and throws an InternalError that names the operation. Each
// operand is defined earlier and lists this operation as a user; each result type equals the
// inferred one; required parameters are present and const parameters are constant; names are unique
// and legal; every symbol of a size belongs to the function, is at least 1 and has ordered bounds.
void Verify(const Program& program);

}  // namespace mlc
