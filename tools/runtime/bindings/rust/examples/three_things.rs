//! What every binding's example does (bindings/README.md).
use mlc::{Generator, Model, Program, Result, Tokenizer};

fn read_digits(path: &str, images: &str) -> Result<()> {
    let mut request = Model::load(path, None)?.request()?;
    let bytes = std::fs::read(images).expect("the images");
    print!("digits:");
    for image in bytes.chunks_exact(256) {
        let pixels: Vec<f32> =
            image.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        request.set_input("image", &pixels, &[1, 1, 8, 8])?;
        let scores: Vec<f32> = request.run(None)?.output("probabilities")?;
        let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
        print!(" {best}");
    }
    println!();
    Ok(())
}

fn speak(path: &str, prompt: &str) -> Result<()> {
    let mut generator = Generator::new(&Model::load(path, None)?, &Tokenizer::load(path)?, None)?;
    generator.feed(prompt)?;
    let mut text = prompt.to_string();
    loop {
        let (piece, done) = generator.next_piece()?;
        text += &piece;
        if done {
            break;
        }
    }
    println!("text: {text}");
    Ok(())
}

/// sum = 0 + 1 + ... + (n - 1)
fn sum_up(package: &str) -> Result<()> {
    let program = Program::new(None)?;
    let body = program.function("main")?;
    let n = body.input::<i32>("n", &[1])?;
    let limit = body.begin("squeeze", "limit")?.args("x", &[n])?.finish()?;
    let zero = body.constant("", &[0i32], &[])?;
    let op = body.begin("while_loop", "loop")?.args("loop_vars", &[zero, zero])?;
    let (condition, step) = (op.block(0)?, op.block(1)?);
    let counter = condition.input::<i32>("i", &[])?;
    condition.input::<i32>("s", &[])?;
    let less = condition.begin("less", "")?.args("x", &[counter])?.args("y", &[limit])?.finish()?;
    condition.output("", less)?;
    let (i, s) = (step.input::<i32>("i", &[])?, step.input::<i32>("s", &[])?);
    step.output("", step.begin("add", "")?.args("x", &[i])?.int("y", 1)?.finish()?)?;
    step.output("", step.begin("add", "")?.args("x", &[s])?.args("y", &[i])?.finish()?)?;
    let results = op.finish_all()?;
    let sum = body.begin("expand_dims", "sum")?.args("x", &[results[1]])?.ints("axes", &[0])?.finish()?;
    body.output("sum", sum)?;
    let mut request = program.load(None)?.request()?;
    print!("loop:");
    for n in 0..6i32 {
        request.set_input("n", &[n], &[1])?;
        print!(" {}", request.run(None)?.output::<i32>("sum")?[0]);
    }
    println!();
    program.write(package)?;
    let placements = Model::load(package, None)?.placements()?;
    println!("package: {}", if placements.contains("while_loop") { "while_loop" } else { "no loop" });
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    read_digits(&arguments[1], &arguments[2])?;
    speak(&arguments[3], &arguments[4])?;
    sum_up(&arguments[5])
}
