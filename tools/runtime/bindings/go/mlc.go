// Package mlc binds libmlc, which compiles models to Core ML packages and runs them. mlc.h is the manual.
//
// Slices of Go are used by the library only during a call. Handles are freed by Close, or by the garbage collector.
package mlc

/*
#cgo pkg-config: mlc
#include <mlc.h>
#include <stdlib.h>

// The struct of a tensor lives on the stack of C, because memory of Go must not hold pointers to memory of Go.
static int32_t set_input(mlc_request* request, const char* name, void* data, int32_t dtype, int32_t rank, const int64_t* dims,
                         mlc_error** error) {
  mlc_tensor tensor = {sizeof tensor, data, dtype, rank, dims, NULL, NULL};
  return mlc_request_set_input(request, name, &tensor, error);
}
static int32_t state_access(mlc_state* state, const char* name, void* data, int32_t dtype, int32_t rank, const int64_t* dims,
                            int32_t write, mlc_error** error) {
  mlc_tensor tensor = {sizeof tensor, data, dtype, rank, dims, NULL, NULL};
  return write ? mlc_state_write(state, name, &tensor, error) : mlc_state_read(state, name, &tensor, error);
}
*/
import "C"

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"
)

// DType is an element type.
type DType int32

const (
	Bool  DType = C.MLC_BOOL
	FP16  DType = C.MLC_FP16
	FP32  DType = C.MLC_FP32
	Int8  DType = C.MLC_INT8
	Int16 DType = C.MLC_INT16
	Int32 DType = C.MLC_INT32
	Uint8 DType = C.MLC_UINT8
	FP64  DType = C.MLC_FP64
	Int64 DType = C.MLC_INT64
)

// Element is a type of Go that has an element type.
type Element interface {
	~bool | ~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8
}

func dtypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case bool:
		return Bool
	case float32:
		return FP32
	case float64:
		return FP64
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	default:
		return Uint8
	}
}

// Error is an error of the library.
type Error struct {
	Code    int
	ID      string
	Message string
	Text    string
}

func (e *Error) Error() string { return e.Text }

func failed(code C.int32_t, record *C.mlc_error) error {
	if code == C.MLC_OK {
		return nil
	}
	defer C.mlc_error_free(record)
	return &Error{int(code), C.GoString(C.mlc_error_id(record)), C.GoString(C.mlc_error_message(record)),
		C.GoString(C.mlc_error_text(record))}
}

// cstring returns a copy for C, NULL for an empty text, and a function that frees it.
func cstring(text string) (*C.char, func()) {
	if text == "" {
		return nil, func() {}
	}
	copied := C.CString(text)
	return copied, func() { C.free(unsafe.Pointer(copied)) }
}

func taken(text *C.char) string {
	defer C.mlc_string_free(text)
	return C.GoString(text)
}

func pointer[T any](values []T) unsafe.Pointer {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Pointer(&values[0])
}

func dimsPointer(dims []int64) *C.int64_t { return (*C.int64_t)(pointer(dims)) }

// checkSize panics if data has fewer elements than dims say, because the library would read beyond it.
func checkSize(length int, dims []int64) {
	count := int64(1)
	for _, size := range dims {
		if size > 0 {
			count *= size
		}
	}
	if int64(length) < count {
		panic(fmt.Sprintf("mlc: %d elements for dims %v", length, dims))
	}
}

// Version returns the version of the library.
func Version() string { return C.GoString(C.mlc_version()) }

// Compile compiles a model; it returns the JSON of mlc_compile. Options are JSON, or "".
func Compile(model, output, options string) (string, error) {
	cModel, freeModel := cstring(model)
	defer freeModel()
	cOutput, freeOutput := cstring(output)
	defer freeOutput()
	cOptions, freeOptions := cstring(options)
	defer freeOptions()
	var result *C.char
	var record *C.mlc_error
	code := C.mlc_compile(nil, cModel, cOutput, cOptions, &result, &record)
	if err := failed(code, record); err != nil {
		return "", err
	}
	return taken(result), nil
}

// Model is a loaded function of a model.
type Model struct{ handle *C.mlc_model }

func newModel(handle *C.mlc_model) *Model {
	model := &Model{handle}
	runtime.SetFinalizer(model, (*Model).Close)
	return model
}

// Load loads a model of any format. Options are JSON, or "".
func Load(path, options string) (*Model, error) {
	cPath, freePath := cstring(path)
	defer freePath()
	cOptions, freeOptions := cstring(options)
	defer freeOptions()
	var handle *C.mlc_model
	var record *C.mlc_error
	code := C.mlc_model_load(nil, cPath, cOptions, &handle, &record)
	if err := failed(code, record); err != nil {
		return nil, err
	}
	return newModel(handle), nil
}

// Close frees the model.
func (m *Model) Close() {
	C.mlc_model_free(m.handle)
	m.handle = nil
}

// Schema returns the interface as JSON.
func (m *Model) Schema() string {
	defer runtime.KeepAlive(m)
	return C.GoString(C.mlc_model_schema(m.handle))
}

// Placements returns the planned device of each operation as JSON.
func (m *Model) Placements() (string, error) {
	defer runtime.KeepAlive(m)
	var result *C.char
	var record *C.mlc_error
	code := C.mlc_model_placements(m.handle, &result, &record)
	if err := failed(code, record); err != nil {
		return "", err
	}
	return taken(result), nil
}

// State holds the values that a model keeps between predictions.
type State struct{ handle *C.mlc_state }

// NewState creates states of zeros.
func (m *Model) NewState() (*State, error) {
	defer runtime.KeepAlive(m)
	var handle *C.mlc_state
	var record *C.mlc_error
	code := C.mlc_state_new(m.handle, &handle, &record)
	if err := failed(code, record); err != nil {
		return nil, err
	}
	state := &State{handle}
	runtime.SetFinalizer(state, (*State).Close)
	return state, nil
}

// Close frees the states.
func (s *State) Close() {
	C.mlc_state_free(s.handle)
	s.handle = nil
}

func accessState[T Element](s *State, name string, data []T, dims []int64, write C.int32_t) error {
	defer runtime.KeepAlive(s)
	checkSize(len(data), dims)
	cName, freeName := cstring(name)
	defer freeName()
	var record *C.mlc_error
	code := C.state_access(s.handle, cName, pointer(data), C.int32_t(dtypeOf[T]()), C.int32_t(len(dims)), dimsPointer(dims), write, &record)
	return failed(code, record)
}

// ReadState copies the value of a state.
func ReadState[T Element](s *State, name string, into []T, dims ...int64) error {
	return accessState(s, name, into, dims, 0)
}

// WriteState replaces the value of a state.
func WriteState[T Element](s *State, name string, from []T, dims ...int64) error {
	return accessState(s, name, from, dims, 1)
}

// Request is a prediction that can run several times.
type Request struct{ handle *C.mlc_request }

// NewRequest creates a request without inputs.
func (m *Model) NewRequest() (*Request, error) {
	defer runtime.KeepAlive(m)
	var handle *C.mlc_request
	var record *C.mlc_error
	code := C.mlc_request_new(m.handle, &handle, &record)
	if err := failed(code, record); err != nil {
		return nil, err
	}
	request := &Request{handle}
	runtime.SetFinalizer(request, (*Request).Close)
	return request, nil
}

// Close frees the request.
func (r *Request) Close() {
	C.mlc_request_free(r.handle)
	r.handle = nil
}

// SetInput sets an input, whose elements are copied.
func SetInput[T Element](r *Request, name string, data []T, dims ...int64) error {
	defer runtime.KeepAlive(r)
	checkSize(len(data), dims)
	cName, freeName := cstring(name)
	defer freeName()
	var record *C.mlc_error
	code := C.set_input(r.handle, cName, pointer(data), C.int32_t(dtypeOf[T]()), C.int32_t(len(dims)), dimsPointer(dims), &record)
	return failed(code, record)
}

// SetState sets the states; nil for zeros.
func (r *Request) SetState(state *State) error {
	defer runtime.KeepAlive(r)
	var handle *C.mlc_state
	if state != nil {
		handle = state.handle
	}
	var record *C.mlc_error
	code := C.mlc_request_set_state(r.handle, handle, &record)
	runtime.KeepAlive(state)
	return failed(code, record)
}

// Results are the outputs of a prediction.
type Results struct{ handle *C.mlc_results }

// Run predicts. A timeout of 0 is none.
func (r *Request) Run(timeout time.Duration) (*Results, error) {
	defer runtime.KeepAlive(r)
	var handle *C.mlc_results
	var record *C.mlc_error
	code := C.mlc_request_run(r.handle, C.int64_t(timeout.Milliseconds()), &handle, &record)
	if err := failed(code, record); err != nil {
		return nil, err
	}
	results := &Results{handle}
	runtime.SetFinalizer(results, (*Results).Close)
	return results, nil
}

// Close frees the results.
func (r *Results) Close() {
	C.mlc_results_free(r.handle)
	r.handle = nil
}

// Output copies an output of this element type, and returns its sizes.
func Output[T Element](r *Results, name string) ([]T, []int64, error) {
	defer runtime.KeepAlive(r)
	cName, freeName := cstring(name)
	defer freeName()
	var tensor C.mlc_tensor
	tensor.struct_size = C.size_t(unsafe.Sizeof(tensor))
	var record *C.mlc_error
	code := C.mlc_results_tensor(r.handle, C.mlc_results_find(r.handle, cName), &tensor, &record)
	if err := failed(code, record); err != nil {
		return nil, nil, err
	}
	if DType(tensor.dtype) != dtypeOf[T]() {
		return nil, nil, fmt.Errorf("mlc: output %q has element type %d", name, tensor.dtype)
	}
	dims := make([]int64, int(tensor.rank))
	count := 1
	for i, size := range unsafe.Slice((*int64)(unsafe.Pointer(tensor.dims)), len(dims)) {
		dims[i] = size
		count *= int(size)
	}
	values := make([]T, count)
	if count > 0 {
		copy(values, unsafe.Slice((*T)(tensor.data), count))
	}
	return values, dims, nil
}

// Tokenizer converts text to token ids.
type Tokenizer struct{ handle *C.mlc_tokenizer }

// LoadTokenizer loads the tokenizer of a model.
func LoadTokenizer(path string) (*Tokenizer, error) {
	cPath, freePath := cstring(path)
	defer freePath()
	var handle *C.mlc_tokenizer
	var record *C.mlc_error
	code := C.mlc_tokenizer_load(nil, cPath, &handle, &record)
	if err := failed(code, record); err != nil {
		return nil, err
	}
	tokenizer := &Tokenizer{handle}
	runtime.SetFinalizer(tokenizer, (*Tokenizer).Close)
	return tokenizer, nil
}

// Close frees the tokenizer.
func (t *Tokenizer) Close() {
	C.mlc_tokenizer_free(t.handle)
	t.handle = nil
}

// Generator continues texts, one token per call.
type Generator struct{ handle *C.mlc_generator }

// NewGenerator creates a generator. Options are JSON, or "".
func NewGenerator(model *Model, tokenizer *Tokenizer, options string) (*Generator, error) {
	cOptions, freeOptions := cstring(options)
	defer freeOptions()
	var handle *C.mlc_generator
	var record *C.mlc_error
	code := C.mlc_generator_new(model.handle, tokenizer.handle, cOptions, &handle, &record)
	runtime.KeepAlive(model)
	runtime.KeepAlive(tokenizer)
	if err := failed(code, record); err != nil {
		return nil, err
	}
	generator := &Generator{handle}
	runtime.SetFinalizer(generator, (*Generator).Close)
	return generator, nil
}

// Close frees the generator.
func (g *Generator) Close() {
	C.mlc_generator_free(g.handle)
	g.handle = nil
}

// Feed appends a text.
func (g *Generator) Feed(text string) error {
	defer runtime.KeepAlive(g)
	cText, freeText := cstring(text)
	defer freeText()
	var record *C.mlc_error
	return failed(C.mlc_generator_feed(g.handle, cText, C.size_t(len(text)), &record), record)
}

// Next returns the text that became certain, and whether the answer has ended.
func (g *Generator) Next() (piece string, done bool, err error) {
	defer runtime.KeepAlive(g)
	var cPiece *C.char
	var cDone C.int32_t
	var record *C.mlc_error
	code := C.mlc_generator_next(g.handle, nil, &cPiece, &cDone, &record)
	if err := failed(code, record); err != nil {
		return "", false, err
	}
	return C.GoString(cPiece), cDone != 0, nil
}
