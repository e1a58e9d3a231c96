//! Constants found in a text of each kind, as `name=literal`, and text that has none.

use super::*;

fn check(file: &str, text: &str, expected: &[&str]) {
    let found = find_constants(file, text);
    let shown: Vec<String> = found
        .iter()
        .map(|Constant { id, text, .. }| match id.nth {
            1 => format!("{}={text}", id.name),
            nth => format!("{}#{nth}={text}", id.name),
        })
        .collect();
    assert_eq!(shown, expected, "{file}");
    for constant in &found {
        assert_eq!(text.get(constant.span.clone()), Some(constant.text.as_str()), "{file}");
    }
}

#[test]
fn python() {
    let text = "\u{feff}LR = 0.1  # LR = 0.2\n\
        \"\"\"\nINSIDE = 1\n\"\"\"\n\
        beta: float = -0.5\r\n\
        \tself.depth = 3\n\
        s = 'k = 4'\n\
        config = {\n    \"momentum\": 0.9,\n    'on': True,\n}\n\
        model = Model(\n    width=64,\n    name=\"x = 3\",\n)\n\
        count = 0\nfor x in y:\n    count += 1\n\
        lr = 1e-3\n\
        a == 3\na = b = 3\na, b = 1, 2\na = 3 if b else 4\nif a == 3: pass\n\
        größe = 2_000\n\
        SEED = 4\nrandom_seed = 5\n__version__ = 1.2\n\
        x: int\n\
        last = .5";
    check(
        "a.py",
        text,
        &[
            "LR=0.1",
            "beta=-0.5",
            "self.depth=3",
            "momentum=0.9",
            "on=True",
            "width=64",
            "lr#2=1e-3",
            "größe=2_000",
            "last=.5",
        ],
    );
}

#[test]
fn rust() {
    let text = "pub const RATE: f64 = 0.5; // RATE: f64 = 0.6\n\
        const WIDTH: usize = 1_024;\n\
        static ON: bool = true;\n\
        /* const NO: u8 = 1;\n /* const NO: u8 = 2; */\n const NO: u8 = 3; */\n\
        fn f<'a>(x: &'a str) {\n    let mut count = 0;\n    let scale = 2f32;\n    let c = '\"';\n\
        \x20   let s = \"\nconst NO: u8 = 4;\n\";\n\
        \x20   let r = r#\"\nconst NO: u8 = 5;\n\"#;\n\
        \x20   Self { depth: 3, }\n    Self {\n        depth: 3,\n        flag: false }\n\
        \x20   total = 3;\n    match x { _ => 1 }\n}\n\
        const MASK: u32 = 0xff;\n\
        let ratio = -1.5e-3_f64;\n";
    check(
        "src/a.rs",
        text,
        &[
            "RATE=0.5",
            "WIDTH=1_024",
            "ON=true",
            "scale=2f32",
            "depth=3",
            "flag=false",
            "ratio=-1.5e-3_f64",
        ],
    );
}

#[test]
fn like_c() {
    let text = "#define ALPHA 0.25\n\
        static const double beta = 1.5f; /* gamma = 2; */\n\
        const lr: number = 0.1;\n\
        for (int i = 0; i < 3; i++) {\n\
        int total = 0;\ntotal += 2;\n\
        unsigned long size = 10UL;\n\
        .depth = 3,\n\
        rate := 0.5\n\
        options = {\n  dropout: 0.1,\n};\n\
        return x == 3;\n\
        std::size_t n{4};\n";
    check(
        "a.cpp",
        text,
        &["ALPHA=0.25", "beta=1.5f", "lr=0.1", "size=10UL", "depth=3", "rate=0.5", "dropout=0.1"],
    );
}

#[test]
fn toml() {
    let text = "rate = 0.1 # rate = 0.2\n\
        [model]\nrate = 0.3\r\ndepth = -4\nname = \"x = 1\"\non = true\n\
        text = \"\"\"\nrate = 9\n\"\"\"\n\
        [model . \"inner part\"]\n'rate' = 1_000\na.b = 2.5\n\
        list = [\n  1,\n  2,\n]\nday = 1979-05-27\n\
        [[layer]]\nwidth = 8\n[[layer]]\nwidth = 16";
    check(
        "a.toml",
        text,
        &[
            "rate=0.1",
            "model.rate=0.3",
            "model.depth=-4",
            "model.on=true",
            "model.inner part.rate=1_000",
            "model.inner part.a.b=2.5",
            "layer.width=8",
            "layer.width#2=16",
        ],
    );
}

#[test]
fn json() {
    let text = "{\"rate\": 0.1, \"s\": \"\\\"rate\\\": 3\", \"model\": {\"rate\": -2e-3, \"on\":false, \"none\": null},\n\
        \"list\": [1, 2, {\"width\": 8}, {\"width\":16}], \"version\": 3, \"last\": 5}";
    check(
        "a.json",
        text,
        &[
            "rate=0.1",
            "model.rate=-2e-3",
            "model.on=false",
            "list.width=8",
            "list.width#2=16",
            "last=5",
        ],
    );
    check("b.json", "{\"open", &[]);
    check("c.json", &"[".repeat(100_000), &[]);
}

#[test]
fn yaml() {
    let text = "rate: 0.1 # rate: 0.2\n\
        model:\n  rate: 0.3\n  depth: 3\n  text: |\n    rate: 9\n    depth: 9\n  on: true\n\
        \x20 inner:\n    rate: 1e-3\n\
        layers:\n  - width: 8\n    act: relu\n  - width: 16\n\
        url: http://a:80\ntime: 12:30\nflow: {a: 1}\n# x: 1\n\"quoted\": 5\n---\nrate: 7\n";
    check(
        "a.yml",
        text,
        &[
            "rate=0.1",
            "model.rate=0.3",
            "model.depth=3",
            "model.on=true",
            "model.inner.rate=1e-3",
            "layers.width=8",
            "layers.width#2=16",
            "quoted=5",
            "rate#2=7",
        ],
    );
}
