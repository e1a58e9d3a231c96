//! `cargo bench -p treebeam-benches`: one table of ratios. Its rows are explained in
//! `benches/README.md`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    treebeam_benches::run(std::env::args().skip(1).filter(|argument| argument != "--bench"))
}
