//! Finds libmlc in MLC_LIB_DIR, or with pkg-config.
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=MLC_LIB_DIR");
    println!("cargo:rustc-link-lib=mlc");
    if let Ok(folder) = std::env::var("MLC_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        return;
    }
    let found = Command::new("pkg-config").args(["--variable=libdir", "mlc"]).output();
    if let Ok(output) = found {
        if output.status.success() {
            let folder = String::from_utf8_lossy(&output.stdout);
            println!("cargo:rustc-link-search=native={}", folder.trim());
        }
    }
}
