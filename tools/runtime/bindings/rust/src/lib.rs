//! libmlc in Rust: compiles models to Core ML packages and runs them. mlc.h is the manual.
//!
//! ```no_run
//! let model = mlc::Model::load("digits.mlpackage", None)?;
//! let mut request = model.request()?;
//! request.set_input("image", &[0f32; 64], &[1, 1, 8, 8])?;
//! let scores: Vec<f32> = request.run(None)?.output("probabilities")?;
//! # Ok::<(), mlc::Error>(())
//! ```
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::time::Duration;

pub use mlc_sys as sys;

/// An error of the library.
#[derive(Debug, Clone)]
pub struct Error {
    pub code: i32,
    pub id: String,
    pub message: String,
    text: String,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}
impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

unsafe fn copied(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// Calls a function that stores an error record.
fn call(body: impl FnOnce(*mut *mut sys::mlc_error) -> i32) -> Result<()> {
    let mut record = null_mut();
    let code = body(&mut record);
    if code == sys::MLC_OK {
        return Ok(());
    }
    unsafe {
        let error = Error {
            code,
            id: copied(sys::mlc_error_id(record)),
            message: copied(sys::mlc_error_message(record)),
            text: copied(sys::mlc_error_text(record)),
        };
        sys::mlc_error_free(record);
        Err(error)
    }
}

/// Calls a function that returns a text.
fn text(body: impl FnOnce(*mut *mut c_char, *mut *mut sys::mlc_error) -> i32) -> Result<String> {
    let mut result = null_mut();
    call(|error| body(&mut result, error))?;
    unsafe {
        let owned = copied(result);
        sys::mlc_string_free(result);
        Ok(owned)
    }
}

fn c_text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error {
        code: sys::MLC_ERROR_USAGE,
        id: "usage".into(),
        message: "a text contains NUL".into(),
        text: format!("error[usage]: {text:?} contains NUL"),
    })
}

fn optional(text: Option<&str>) -> Result<Option<CString>> {
    text.map(c_text).transpose()
}
fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(null(), |text| text.as_ptr())
}

mod sealed {
    pub trait Sealed {}
}
/// A type with an element type of the library.
pub trait Element: sealed::Sealed + Copy {
    const DTYPE: i32;
}
macro_rules! element {
    ($($type:ty, $dtype:ident;)*) => {
        $(impl sealed::Sealed for $type {}
        impl Element for $type { const DTYPE: i32 = sys::$dtype; })*
    };
}
element! {
    f32, MLC_FP32; f64, MLC_FP64; i8, MLC_INT8; i16, MLC_INT16; i32, MLC_INT32; i64, MLC_INT64;
    u8, MLC_UINT8; u16, MLC_UINT16;
}

/// Describes memory of the caller. Panics if it has fewer elements than `dims` say.
fn tensor<T: Element>(data: *const T, length: usize, dims: &[i64]) -> sys::mlc_tensor {
    let count: i64 = dims.iter().map(|&size| size.max(0)).product();
    assert!(length as i64 >= count, "{length} elements for dims {dims:?}");
    sys::mlc_tensor {
        struct_size: std::mem::size_of::<sys::mlc_tensor>(),
        data: data as *mut c_void,
        dtype: T::DTYPE,
        rank: dims.len() as i32,
        dims: dims.as_ptr(),
        strides: null(),
        reserved: null_mut(),
    }
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $free:ident) => {
        $(#[$doc])*
        pub struct $name {
            raw: *mut sys::$raw,
        }
        // Any thread may use a handle; methods that must not overlap take &mut self.
        unsafe impl Send for $name {}
        impl Drop for $name {
            fn drop(&mut self) {
                unsafe { sys::$free(self.raw) }
            }
        }
    };
}

handle!(
    /// A loaded function of a model. Several threads may use it at once.
    Model, mlc_model, mlc_model_free
);
unsafe impl Sync for Model {}
handle!(
    /// The values that a model keeps between predictions.
    State, mlc_state, mlc_state_free
);
handle!(
    /// A prediction that can run several times.
    Request, mlc_request, mlc_request_free
);
handle!(
    /// The outputs of a prediction.
    Results, mlc_results, mlc_results_free
);
handle!(
    /// Converts text to token ids.
    Tokenizer, mlc_tokenizer, mlc_tokenizer_free
);
unsafe impl Sync for Tokenizer {}
handle!(
    /// Continues texts, one token per call.
    Generator, mlc_generator, mlc_generator_free
);
handle!(
    /// A program under construction.
    Program, mlc_program, mlc_program_free
);

/// Returns the version of the library.
pub fn version() -> String {
    unsafe { copied(sys::mlc_version()) }
}

/// Compiles a model; returns the JSON of mlc_compile. Options are JSON.
pub fn compile(model: &str, output: &str, options: Option<&str>) -> Result<String> {
    let (model, output, options) = (c_text(model)?, c_text(output)?, optional(options)?);
    text(|result, error| unsafe {
        sys::mlc_compile(null_mut(), model.as_ptr(), output.as_ptr(), pointer(&options), result, error)
    })
}

impl Model {
    pub fn load(path: &str, options: Option<&str>) -> Result<Model> {
        let (path, options) = (c_text(path)?, optional(options)?);
        let mut raw = null_mut();
        call(|error| unsafe {
            sys::mlc_model_load(null_mut(), path.as_ptr(), pointer(&options), &mut raw, error)
        })?;
        Ok(Model { raw })
    }
    pub fn schema(&self) -> String {
        unsafe { copied(sys::mlc_model_schema(self.raw)) }
    }
    pub fn placements(&self) -> Result<String> {
        text(|result, error| unsafe { sys::mlc_model_placements(self.raw, result, error) })
    }
    pub fn telemetry(&self) -> Result<String> {
        text(|result, error| unsafe { sys::mlc_model_telemetry(self.raw, result, error) })
    }
    pub fn new_state(&self) -> Result<State> {
        let mut raw = null_mut();
        call(|error| unsafe { sys::mlc_state_new(self.raw, &mut raw, error) })?;
        Ok(State { raw })
    }
    pub fn request(&self) -> Result<Request> {
        let mut raw = null_mut();
        call(|error| unsafe { sys::mlc_request_new(self.raw, &mut raw, error) })?;
        Ok(Request { raw })
    }
}

impl State {
    pub fn read<T: Element>(&mut self, name: &str, into: &mut [T], dims: &[i64]) -> Result<()> {
        let name = c_text(name)?;
        let tensor = tensor(into.as_ptr(), into.len(), dims);
        call(|error| unsafe { sys::mlc_state_read(self.raw, name.as_ptr(), &tensor, error) })
    }
    pub fn write<T: Element>(&mut self, name: &str, from: &[T], dims: &[i64]) -> Result<()> {
        let name = c_text(name)?;
        let tensor = tensor(from.as_ptr(), from.len(), dims);
        call(|error| unsafe { sys::mlc_state_write(self.raw, name.as_ptr(), &tensor, error) })
    }
    pub fn reset(&mut self) -> Result<()> {
        call(|error| unsafe { sys::mlc_state_reset(self.raw, error) })
    }
}

impl Request {
    /// Sets an input, whose elements are copied.
    pub fn set_input<T: Element>(&mut self, name: &str, data: &[T], dims: &[i64]) -> Result<()> {
        let name = c_text(name)?;
        let tensor = tensor(data.as_ptr(), data.len(), dims);
        call(|error| unsafe { sys::mlc_request_set_input(self.raw, name.as_ptr(), &tensor, error) })
    }
    /// Predicts without states, which are zero.
    pub fn run(&mut self, timeout: Option<Duration>) -> Result<Results> {
        call(|error| unsafe { sys::mlc_request_set_state(self.raw, null_mut(), error) })?;
        self.run_now(timeout)
    }
    /// Predicts with states, which change.
    pub fn run_with(&mut self, state: &mut State, timeout: Option<Duration>) -> Result<Results> {
        call(|error| unsafe { sys::mlc_request_set_state(self.raw, state.raw, error) })?;
        let results = self.run_now(timeout);
        call(|error| unsafe { sys::mlc_request_set_state(self.raw, null_mut(), error) })?;
        results
    }
    fn run_now(&mut self, timeout: Option<Duration>) -> Result<Results> {
        let ms = timeout.map_or(0, |timeout| timeout.as_millis().clamp(1, i64::MAX as u128) as i64);
        let mut raw = null_mut();
        call(|error| unsafe { sys::mlc_request_run(self.raw, ms, &mut raw, error) })?;
        Ok(Results { raw })
    }
}

impl Results {
    /// Copies an output of this element type.
    pub fn output<T: Element>(&self, name: &str) -> Result<Vec<T>> {
        let c_name = c_text(name)?;
        let mut view = tensor::<T>(null(), 0, &[0]);
        call(|error| unsafe {
            let index = sys::mlc_results_find(self.raw, c_name.as_ptr());
            sys::mlc_results_tensor(self.raw, index, &mut view, error)
        })?;
        if view.dtype != T::DTYPE {
            let message = format!("output \"{name}\" has element type {}", view.dtype);
            let text = format!("error[bad-input]: {message}");
            return Err(Error { code: sys::MLC_ERROR_INPUT, id: "bad-input".into(), message, text });
        }
        unsafe {
            let dims = if view.rank > 0 { std::slice::from_raw_parts(view.dims, view.rank as usize) } else { &[] };
            let count = dims.iter().product::<i64>() as usize;
            let data = view.data as *const T;
            Ok(if count > 0 { std::slice::from_raw_parts(data, count).to_vec() } else { Vec::new() })
        }
    }
}

impl Tokenizer {
    pub fn load(path: &str) -> Result<Tokenizer> {
        let path = c_text(path)?;
        let mut raw = null_mut();
        call(|error| unsafe { sys::mlc_tokenizer_load(null_mut(), path.as_ptr(), &mut raw, error) })?;
        Ok(Tokenizer { raw })
    }
}

impl Generator {
    pub fn new(model: &Model, tokenizer: &Tokenizer, options: Option<&str>) -> Result<Generator> {
        let options = optional(options)?;
        let mut raw = null_mut();
        call(|error| unsafe {
            sys::mlc_generator_new(model.raw, tokenizer.raw, pointer(&options), &mut raw, error)
        })?;
        Ok(Generator { raw })
    }
    pub fn feed(&mut self, text: &str) -> Result<()> {
        call(|error| unsafe {
            sys::mlc_generator_feed(self.raw, text.as_ptr() as *const c_char, text.len(), error)
        })
    }
    /// Returns the text that became certain, and whether the answer has ended.
    pub fn next_piece(&mut self) -> Result<(String, bool)> {
        let (mut piece, mut done) = (null(), 0);
        call(|error| unsafe { sys::mlc_generator_next(self.raw, null_mut(), &mut piece, &mut done, error) })?;
        Ok((unsafe { copied(piece) }, done != 0))
    }
}

/// A value of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value(i64);

/// A block of a program.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    raw: *mut sys::mlc_block,
    program: std::marker::PhantomData<&'a Program>,
}

/// An operation under construction.
pub struct Op<'a> {
    raw: *mut sys::mlc_op,
    program: std::marker::PhantomData<&'a Program>,
}
impl Drop for Op<'_> {
    fn drop(&mut self) {
        unsafe { sys::mlc_op_free(self.raw) }
    }
}

impl Program {
    pub fn new(options: Option<&str>) -> Result<Program> {
        let options = optional(options)?;
        let mut raw = null_mut();
        call(|error| unsafe { sys::mlc_program_new(pointer(&options), &mut raw, error) })?;
        Ok(Program { raw })
    }
    pub fn function(&self, name: &str) -> Result<Block<'_>> {
        let name = c_text(name)?;
        let mut raw = null_mut();
        call(|error| unsafe { sys::mlc_function_add(self.raw, name.as_ptr(), &mut raw, error) })?;
        Ok(Block { raw, program: std::marker::PhantomData })
    }
    pub fn load(&self, options: Option<&str>) -> Result<Model> {
        let options = optional(options)?;
        let mut raw = null_mut();
        call(|error| unsafe {
            sys::mlc_program_load(null_mut(), self.raw, pointer(&options), &mut raw, error)
        })?;
        Ok(Model { raw })
    }
    pub fn write(&self, path: &str) -> Result<()> {
        let path = c_text(path)?;
        call(|error| unsafe {
            sys::mlc_program_write(null_mut(), self.raw, path.as_ptr(), null(), null_mut(), error)
        })
    }
}

impl<'a> Block<'a> {
    pub fn input<T: Element>(&self, name: &str, dims: &[i64]) -> Result<Value> {
        let name = c_text(name)?;
        let mut value = -1;
        call(|error| unsafe {
            sys::mlc_block_input(self.raw, name.as_ptr(), T::DTYPE, dims.len() as i32, dims.as_ptr(), &mut value, error)
        })?;
        Ok(Value(value))
    }
    pub fn constant<T: Element>(&self, name: &str, data: &[T], dims: &[i64]) -> Result<Value> {
        let name = c_text(name)?;
        let tensor = tensor(data.as_ptr(), data.len(), dims);
        let mut value = -1;
        call(|error| unsafe {
            sys::mlc_block_constant(self.raw, name.as_ptr(), &tensor, &mut value, error)
        })?;
        Ok(Value(value))
    }
    pub fn output(&self, name: &str, value: Value) -> Result<()> {
        let name = c_text(name)?;
        call(|error| unsafe { sys::mlc_block_output(self.raw, name.as_ptr(), value.0, error) })
    }
    pub fn begin(&self, op_name: &str, name: &str) -> Result<Op<'a>> {
        let (op_name, name) = (c_text(op_name)?, c_text(name)?);
        let mut raw = null_mut();
        call(|error| unsafe {
            sys::mlc_op_new(self.raw, op_name.as_ptr(), name.as_ptr(), &mut raw, error)
        })?;
        Ok(Op { raw, program: std::marker::PhantomData })
    }
}

impl<'a> Op<'a> {
    pub fn args(self, parameter: &str, values: &[Value]) -> Result<Self> {
        let parameter = c_text(parameter)?;
        let ids: Vec<i64> = values.iter().map(|value| value.0).collect();
        call(|error| unsafe {
            sys::mlc_op_args(self.raw, parameter.as_ptr(), ids.len() as i32, ids.as_ptr(), error)
        })?;
        Ok(self)
    }
    pub fn int(self, parameter: &str, number: i64) -> Result<Self> {
        let parameter = c_text(parameter)?;
        call(|error| unsafe { sys::mlc_op_int(self.raw, parameter.as_ptr(), number, error) })?;
        Ok(self)
    }
    pub fn float(self, parameter: &str, number: f64) -> Result<Self> {
        let parameter = c_text(parameter)?;
        call(|error| unsafe { sys::mlc_op_float(self.raw, parameter.as_ptr(), number, error) })?;
        Ok(self)
    }
    pub fn ints(self, parameter: &str, numbers: &[i64]) -> Result<Self> {
        let parameter = c_text(parameter)?;
        call(|error| unsafe {
            sys::mlc_op_ints(self.raw, parameter.as_ptr(), numbers.len() as i32, numbers.as_ptr(), error)
        })?;
        Ok(self)
    }
    pub fn string(self, parameter: &str, text: &str) -> Result<Self> {
        let (parameter, text) = (c_text(parameter)?, c_text(text)?);
        call(|error| unsafe {
            sys::mlc_op_string(self.raw, parameter.as_ptr(), text.as_ptr(), error)
        })?;
        Ok(self)
    }
    pub fn block(&self, index: i32) -> Result<Block<'a>> {
        let mut raw = null_mut();
        call(|error| unsafe { sys::mlc_op_block(self.raw, index, &mut raw, error) })?;
        Ok(Block { raw, program: std::marker::PhantomData })
    }
    pub fn finish_all(self) -> Result<Vec<Value>> {
        let (mut results, mut count) = ([-1i64; 64], 0);
        call(|error| unsafe {
            sys::mlc_op_finish(self.raw, results.len() as i32, results.as_mut_ptr(), &mut count, error)
        })?;
        Ok(results[..count as usize].iter().map(|&id| Value(id)).collect())
    }
    pub fn finish(self) -> Result<Value> {
        Ok(self.finish_all()?[0])
    }
}
