//! Cuts the plotting script out of the sources that its library hands out, leaves out what no report draws, and
//! compresses the rest: 4.7 MB become 0.8.

use miniz_oxide::deflate::compress_to_vec_zlib;
use std::path::PathBuf;

/// Modules that draw maps and scenes in three dimensions, 2.1 MB, each by words near its beginning.
const UNUSED: [&str; 3] = ["e.maplibregl=t()", "e.mapboxgl=t()", "alpha_shape:o("];

/// How far the words are from where the body of their module begins, at most.
const NEAR: usize = 400;

fn main() {
    // The script is between the first pair of tags; the second pair has one that sets formulas.
    let sources = plotly::Plot::offline_js_sources();
    let (_, rest) = sources.split_once('>').expect("a script begins");
    let (script, _) = rest.split_once("</script>").expect("a script ends");
    let mut script = script.to_owned();
    for words in UNUSED {
        // Another version of the library may be put together in another way; then the whole of it does as well.
        script = without(&script, words).unwrap_or(script);
    }
    let packed = compress_to_vec_zlib(script.as_bytes(), 9);
    let place = std::env::var_os("OUT_DIR").expect("cargo names a directory");
    let path = PathBuf::from(place).join("plotly.min.js.zlib");
    std::fs::write(path, packed).expect("the script is written");
}

/// The script without the body of the module that begins with `words`: what asks that module for something gets empty
/// objects. The bundler writes `var NAME=WRAP((EXPORTS,MODULE)=>{BODY});var NEXT=WRAP((`.
fn without(script: &str, words: &str) -> Option<String> {
    let at = script.find(words)?;
    let (before, _) = script.split_at(at);
    let begin = before.rfind("=>{")? + "=>{".len();
    let (head, body) = script.split_at(begin);
    let wrapped = head.rfind("((")?;
    let wrap = &head[head[..wrapped].rfind('=')? + 1..wrapped];
    let (_, module) = head[wrapped + 2..].split_once(')')?.0.split_once(',')?;
    let next = format!("={wrap}((");
    let end = body.match_indices("});var ").map(|(end, _)| end).find(|end| {
        let name = &body[end + "});var ".len()..];
        name.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
            .is_some_and(|length| name[length..].starts_with(&next))
    })?;
    let is_sound = at - begin < NEAR && !wrap.is_empty() && end > 100_000;
    is_sound.then(|| format!("{head}{module}.exports=new Proxy({{}},{{get:()=>({{}})}}){}", &body[end..]))
}
