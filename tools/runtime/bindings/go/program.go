package mlc

/*
#include <mlc.h>
#include <stdlib.h>

static int32_t constant_of(mlc_block* block, const char* name, void* data, int32_t dtype, int32_t rank, const int64_t* dims,
                           mlc_value* value, mlc_error** error) {
  mlc_tensor tensor = {sizeof tensor, data, dtype, rank, dims, NULL, NULL};
  return mlc_block_constant(block, name, &tensor, value, error);
}
*/
import "C"

import "runtime"

// Value is a value of a program.
type Value int64

// Program is a program under construction. Its methods keep the first error, which Err returns.
type Program struct {
	handle *C.mlc_program
	err    error
}

// Block is a block of a program, which belongs to it.
type Block struct {
	program *Program
	handle  *C.mlc_block
}

// Op is an operation under construction.
type Op struct {
	block  *Block
	handle *C.mlc_op
}

// NewProgram creates an empty program. Options are JSON, or "".
func NewProgram(options string) *Program {
	cOptions, freeOptions := cstring(options)
	defer freeOptions()
	program := &Program{}
	var record *C.mlc_error
	program.keep(C.mlc_program_new(cOptions, &program.handle, &record), record)
	runtime.SetFinalizer(program, (*Program).Close)
	return program
}

// Close frees the program.
func (p *Program) Close() {
	C.mlc_program_free(p.handle)
	p.handle = nil
}

// Err returns the first error of the program.
func (p *Program) Err() error { return p.err }

func (p *Program) keep(code C.int32_t, record *C.mlc_error) {
	if err := failed(code, record); err != nil && p.err == nil {
		p.err = err
	}
	runtime.KeepAlive(p)
}

// Function adds a function and returns its body.
func (p *Program) Function(name string) *Block {
	block := &Block{program: p}
	cName, freeName := cstring(name)
	defer freeName()
	var record *C.mlc_error
	p.keep(C.mlc_function_add(p.handle, cName, &block.handle, &record), record)
	return block
}

// Load loads the program without a file.
func (p *Program) Load(options string) (*Model, error) {
	if p.err != nil {
		return nil, p.err
	}
	cOptions, freeOptions := cstring(options)
	defer freeOptions()
	var handle *C.mlc_model
	var record *C.mlc_error
	code := C.mlc_program_load(nil, p.handle, cOptions, &handle, &record)
	runtime.KeepAlive(p)
	if err := failed(code, record); err != nil {
		return nil, err
	}
	return newModel(handle), nil
}

// Write writes the program to a package.
func (p *Program) Write(path string) error {
	if p.err != nil {
		return p.err
	}
	cPath, freePath := cstring(path)
	defer freePath()
	var record *C.mlc_error
	code := C.mlc_program_write(nil, p.handle, cPath, nil, nil, &record)
	runtime.KeepAlive(p)
	return failed(code, record)
}

// Input adds an input.
func (b *Block) Input(name string, dtype DType, dims ...int64) Value {
	cName, freeName := cstring(name)
	defer freeName()
	var value C.mlc_value = -1
	var record *C.mlc_error
	b.program.keep(C.mlc_block_input(b.handle, cName, C.int32_t(dtype), C.int32_t(len(dims)), dimsPointer(dims), &value, &record), record)
	return Value(value)
}

// Constant adds a constant, whose elements are copied.
func Constant[T Element](b *Block, name string, data []T, dims ...int64) Value {
	checkSize(len(data), dims)
	cName, freeName := cstring(name)
	defer freeName()
	var value C.mlc_value = -1
	var record *C.mlc_error
	code := C.constant_of(b.handle, cName, pointer(data), C.int32_t(dtypeOf[T]()), C.int32_t(len(dims)), dimsPointer(dims), &value, &record)
	b.program.keep(code, record)
	return Value(value)
}

// Output adds an output, or a result of a nested block.
func (b *Block) Output(name string, value Value) {
	cName, freeName := cstring(name)
	defer freeName()
	var record *C.mlc_error
	b.program.keep(C.mlc_block_output(b.handle, cName, C.mlc_value(value), &record), record)
}

// Begin begins an operation.
func (b *Block) Begin(opName, name string) *Op {
	op := &Op{block: b}
	cOp, freeOp := cstring(opName)
	defer freeOp()
	cName, freeName := cstring(name)
	defer freeName()
	var record *C.mlc_error
	b.program.keep(C.mlc_op_new(b.handle, cOp, cName, &op.handle, &record), record)
	return op
}

// Args sets an argument to values.
func (o *Op) Args(parameter string, values ...Value) *Op {
	cParameter, freeParameter := cstring(parameter)
	defer freeParameter()
	var record *C.mlc_error
	code := C.mlc_op_args(o.handle, cParameter, C.int32_t(len(values)), (*C.mlc_value)(pointer(values)), &record)
	o.block.program.keep(code, record)
	return o
}

// Ints sets an argument to a vector of integers.
func (o *Op) Ints(parameter string, numbers ...int64) *Op {
	cParameter, freeParameter := cstring(parameter)
	defer freeParameter()
	var record *C.mlc_error
	o.block.program.keep(C.mlc_op_ints(o.handle, cParameter, C.int32_t(len(numbers)), dimsPointer(numbers), &record), record)
	return o
}

// Int sets an argument to an integer.
func (o *Op) Int(parameter string, number int64) *Op {
	cParameter, freeParameter := cstring(parameter)
	defer freeParameter()
	var record *C.mlc_error
	o.block.program.keep(C.mlc_op_int(o.handle, cParameter, C.int64_t(number), &record), record)
	return o
}

// Float sets an argument to a floating-point number.
func (o *Op) Float(parameter string, number float64) *Op {
	cParameter, freeParameter := cstring(parameter)
	defer freeParameter()
	var record *C.mlc_error
	o.block.program.keep(C.mlc_op_float(o.handle, cParameter, C.double(number), &record), record)
	return o
}

// String sets an argument to a string.
func (o *Op) String(parameter, text string) *Op {
	cParameter, freeParameter := cstring(parameter)
	defer freeParameter()
	cText := C.CString(text)
	defer C.mlc_string_free(cText)
	var record *C.mlc_error
	o.block.program.keep(C.mlc_op_string(o.handle, cParameter, cText, &record), record)
	return o
}

// Block returns a nested block.
func (o *Op) Block(index int) *Block {
	block := &Block{program: o.block.program}
	var record *C.mlc_error
	o.block.program.keep(C.mlc_op_block(o.handle, C.int32_t(index), &block.handle, &record), record)
	return block
}

// Finish adds the operation and returns its results: at least one value, which is -1 after an error.
func (o *Op) Finish() []Value {
	results := make([]Value, 64)
	var count C.int32_t
	var record *C.mlc_error
	code := C.mlc_op_finish(o.handle, C.int32_t(len(results)), (*C.mlc_value)(pointer(results)), &count, &record)
	o.block.program.keep(code, record)
	C.mlc_op_free(o.handle)
	o.handle = nil
	if code != C.MLC_OK {
		for i := range results {
			results[i] = -1
		}
		return results
	}
	return results[:count]
}
